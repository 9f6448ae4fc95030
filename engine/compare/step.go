package compare

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	failurepb "go.temporal.io/api/failure/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/converter"

	"acescope/engine/ace"
	"acescope/engine/history"
)

// Kinds of steps.
const (
	KindStart    = "start"
	KindActivity = "activity"
	KindTool     = "tool call"
	KindChild    = "child workflow"
	KindTimer    = "timer"
	KindSignal   = "signal"
	KindMarker   = "marker"
	KindUpdate   = "update"
	KindExternal = "external call"
	KindEnd      = "end"
)

// Ways in which a step ends.
const (
	Done      = "done"
	Failed    = "failed"
	TimedOut  = "timed out"
	Cancelled = "cancelled"
	Denied    = "denied"
	Continued = "continued as new"
	Open      = "open"
)

// Step is one thing that a run did. Input and Result are JSON, nil where there is none
// or where it is not JSON; then Note says what it is.
type Step struct {
	Key        string          `json:"key"` // what it is: kind, name, and which time
	Kind       string          `json:"kind"`
	Name       string          `json:"name"`
	Run        int             `json:"run,omitempty"` // of the chain, 0-based
	Event      int64           `json:"event_id"`
	End        int64           `json:"end_event_id,omitempty"`
	At         time.Time       `json:"at"`
	DurationMS float64         `json:"duration_ms"`
	Attempt    int32           `json:"attempt,omitempty"`
	Status     string          `json:"status"`
	Error      string          `json:"error,omitempty"`
	Input      json.RawMessage `json:"-"`
	Result     json.RawMessage `json:"-"`
	Note       string          `json:"note,omitempty"`
	Taken      bool            `json:"taken_over,omitempty"` // of the run that this one was forked from: it was not executed here

	ident  string // what makes it the same step in both runs
	own    bool   // ident names it alone, whenever it came
	given  uint64 // fingerprint of Input, 0 where there is none
	error  string // Error without the run's own ids
	sealed [2]sealed
	calls  bool // its result lists tool calls that are steps of their own
	varies bool // its result is never that of another run
}

// sealed is a payload that is not JSON.
type sealed struct {
	encoding string
	sum      string // of its bytes
}

// hard tells whether its bytes say nothing of what is in it: the same may be written in
// another way each time.
func (s sealed) hard() bool {
	return s.encoding != "" && !strings.HasPrefix(s.encoding, "binary/plain") && !strings.HasPrefix(s.encoding, "binary/protobuf")
}

// stepper takes the histories of a chain of runs apart.
type stepper struct {
	side   Side
	all    bool
	steps  []Step
	run    int
	open   map[int64]int // step by the event that began it, of this run
	times  map[string]int
	ids    []string // the run's own, longest first
	prefix []string // of its children's ids
	fold   *ace.State
	dec    history.Decoder
	about  About
	told   int // tool calls that are steps already
	usage  ace.Usage

	clockBack int // events that are older than the one before them
	borrowing int // the first phase of which it is not said yet whether it was taken over
	notes     []string
}

// chain takes all of it apart.
func (s *stepper) chain() {
	s.times, s.fold = map[string]int{}, &ace.State{}
	for i, events := range s.side.Runs {
		s.run, s.open, s.dec = i, map[int64]int{}, history.Decoder{}
		if i > 0 {
			s.tools(nil)
			s.usage, s.told, s.fold, s.borrowing = s.usage.Add(s.fold.Usage), 0, &ace.State{}, 0
		}
		var clock history.Clock
		for at, e := range events {
			if e == nil || s.joint(i, at, e) {
				continue
			}
			if clock.Back(e) > 0 {
				s.clockBack++
			}
			s.take(e)
			s.foldEvent(e)
			s.takenOver(e)
		}
		s.named(i, events)
		s.about.Events += len(events)
		if n := len(events); n > 0 {
			s.about.last = events[n-1].GetEventTime().AsTime()
		}
	}
	s.tools(nil)
	s.about.Runs = len(s.side.Runs)
}

// named takes up which run it was.
func (s *stepper) named(run int, events []*historypb.HistoryEvent) {
	id := ""
	if run < len(s.side.RunIDs) {
		id = s.side.RunIDs[run]
	}
	if id == "" {
		id = history.OriginOf(events).RunID
	}
	s.about.RunIDs = append(s.about.RunIDs, id)
}

func (s *stepper) foldEvent(e *historypb.HistoryEvent) {
	fact, ok, _ := s.dec.Fact(e)
	if !ok {
		return
	}
	s.fold.Apply(fact)
	if fact.Kind == ace.FactStepCompleted && fact.Step == ace.PhaseSkills {
		s.tools(e)
	}
}

// joint tells whether an event only continues the run as a new one, in the middle of the
// chain. Both sides of it are left out.
func (s *stepper) joint(run, at int, e *historypb.HistoryEvent) bool {
	switch e.GetEventType() {
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW:
		return run+1 < len(s.side.Runs)
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED:
		before := 0
		if run > 0 {
			before = len(s.side.Runs[run-1])
		}
		if at > 0 || before == 0 || s.side.Runs[run-1][before-1].GetEventType() != enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW {
			return false
		}
		s.started(e)
		s.foldEvent(e)
		return true
	}
	return false
}

// started takes up whose history it is.
func (s *stepper) started(e *historypb.HistoryEvent) {
	a := e.GetWorkflowExecutionStartedEventAttributes()
	id := a.GetWorkflowId()
	if s.about.Type == "" {
		s.about.Type, s.about.WorkflowID, s.about.start = a.GetWorkflowType().GetName(), id, e.GetEventTime().AsTime()
	}
	s.about.Open = true
	s.prefix = []string{ownPrefix(id)}
	if id != "" {
		s.prefix = append(s.prefix, id)
	}
	ids := map[string]bool{}
	for _, own := range append(s.ids, id, a.GetOriginalExecutionRunId(), a.GetFirstExecutionRunId(), a.GetContinuedExecutionRunId(),
		ace.TaskIDOf(id), strings.TrimPrefix(id, ace.ExperimentIDPrefix)) {
		if len(own) > 3 { // a shorter one is in many words
			ids[own] = true
		}
	}
	s.ids = slices.SortedFunc(maps.Keys(ids), func(a, b string) int { return len(b) - len(a) })
}

// anonymous is a text without the run's own ids.
func (s *stepper) anonymous(text string) string {
	if s.all || text == "" {
		return text
	}
	for _, id := range s.ids {
		text = strings.ReplaceAll(text, id, "{id}")
	}
	return text
}

// begin begins a step. With an id it is the step of that id, whenever it comes.
func (s *stepper) begin(e *historypb.HistoryEvent, kind, name, id string, input *commonpb.Payloads) *Step {
	key := kind + " " + name
	if id != "" {
		key += " " + id
	}
	st := Step{Kind: kind, Name: name, Run: s.run, Event: e.GetEventId(), At: e.GetEventTime().AsTime(), Status: Open, ident: key, own: id != ""}
	if kind == KindStart || kind == KindEnd {
		st.ident = kind // whatever the workflow is called
	}
	st.Key = s.nth(key, id != "" || kind == KindStart || kind == KindEnd)
	st.Input, st.Note, st.sealed[0] = s.payload(input)
	s.open[e.GetEventId()] = len(s.steps)
	s.steps = append(s.steps, st)
	return &s.steps[len(s.steps)-1]
}

// nth adds which time it is, but to the first of what is there once.
func (s *stepper) nth(key string, once bool) string {
	s.times[key]++
	if n := s.times[key]; n > 1 || !once {
		return key + " #" + strconv.Itoa(n)
	}
	return key
}

func (s *stepper) end(e *historypb.HistoryEvent, began int64, status string, result *commonpb.Payloads, f *failurepb.Failure) {
	i, ok := s.open[began]
	if !ok {
		return
	}
	delete(s.open, began)
	st := &s.steps[i]
	st.End, st.Status = e.GetEventId(), status
	st.DurationMS = max(float64(e.GetEventTime().AsTime().Sub(st.At)), 0) / float64(time.Millisecond)
	var note string
	if st.Result, note, st.sealed[1] = s.payload(result); note != "" {
		st.Note = note
	}
	if f != nil {
		st.Error = history.FailureOf(f).Message
		st.error = s.anonymous(st.Error)
	}
}

// once is a step that begins and ends with one event.
func (s *stepper) once(e *historypb.HistoryEvent, kind, name, id string, input *commonpb.Payloads) *Step {
	st := s.begin(e, kind, name, id, input)
	s.end(e, e.GetEventId(), Done, nil, nil)
	return st
}

func (s *stepper) take(e *historypb.HistoryEvent) {
	switch e.GetEventType() {
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED:
		a := e.GetWorkflowExecutionStartedEventAttributes()
		s.started(e)
		st := s.once(e, KindStart, a.GetWorkflowType().GetName(), "", a.GetInput())
		if !s.all {
			st.Input = withoutFork(st.Input)
		}
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED:
		a := e.GetWorkflowExecutionSignaledEventAttributes()
		// How calls are bundled into signals is chance.
		if s.all || a.GetSignalName() != ace.SignalToolEvent {
			s.once(e, KindSignal, a.GetSignalName(), "", a.GetInput())
		}
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CANCEL_REQUESTED:
		s.once(e, KindSignal, "cancel request", "", nil)
	case enumspb.EVENT_TYPE_MARKER_RECORDED:
		s.marker(e)
	case enumspb.EVENT_TYPE_TIMER_STARTED:
		a := e.GetTimerStartedEventAttributes()
		if !s.all && s.busy() {
			return
		}
		s.begin(e, KindTimer, a.GetStartToFireTimeout().AsDuration().String(), s.ownID(a.GetTimerId()), nil)
	case enumspb.EVENT_TYPE_TIMER_FIRED:
		s.end(e, e.GetTimerFiredEventAttributes().GetStartedEventId(), Done, nil, nil)
	case enumspb.EVENT_TYPE_TIMER_CANCELED:
		s.end(e, e.GetTimerCanceledEventAttributes().GetStartedEventId(), Cancelled, nil, nil)
	default:
		s.activity(e)
		s.child(e)
		s.outside(e)
		s.close(e)
	}
}

// busy tells whether an activity or a child is under way. Whether a timer that is started
// beside it fires, and is started again, depends on how long that takes.
func (s *stepper) busy() bool {
	for _, i := range s.open {
		if k := s.steps[i].Kind; k == KindActivity || k == KindChild {
			return true
		}
	}
	return false
}

// ownID is an id that the workflow gave, "" for one that the SDK counted.
func (s *stepper) ownID(id string) string {
	if _, err := strconv.ParseUint(id, 10, 64); err == nil {
		return ""
	}
	return s.anonymous(id)
}

// childID is what a child's id has beside its parent's, "" where they have nothing in
// common: it may be chance.
func (s *stepper) childID(id string) string {
	for _, p := range s.prefix {
		if rest, ok := strings.CutPrefix(ace.TaskIDOf(id), p); p != "" && ok && rest != "" {
			return rest
		}
		if rest, ok := strings.CutPrefix(id, p); p != "" && ok && rest != "" {
			return strings.TrimLeft(rest, "/-_.:")
		}
	}
	return ""
}

// ownPrefix is what an experiment's children have in their ids from its own.
func ownPrefix(workflowID string) string {
	if id, ok := strings.CutPrefix(workflowID, ace.ExperimentIDPrefix); ok {
		return id + "-"
	}
	return ""
}

// payload is JSON, or a note of what it is instead and what tells it from others.
func (s *stepper) payload(p *commonpb.Payloads) (json.RawMessage, string, sealed) {
	switch n := len(p.GetPayloads()); {
	case n == 0:
		return nil, "", sealed{}
	case n == 1:
		return s.single(p.GetPayloads()[0])
	}
	list := make([]json.RawMessage, 0, len(p.GetPayloads()))
	var shut sealed
	for _, one := range p.GetPayloads() {
		data, note, is := s.single(one)
		if data == nil || !json.Valid(data) {
			data, _ = json.Marshal(note + is.sum)
			if is.encoding != "" && (shut.encoding == "" || is.hard()) {
				shut.encoding = is.encoding
			}
			shut.sum += is.sum
		}
		list = append(list, data)
	}
	data, err := json.Marshal(list)
	if err != nil {
		return nil, "the arguments are not JSON", shut
	}
	return data, "", shut
}

func (s *stepper) single(p *commonpb.Payload) (json.RawMessage, string, sealed) {
	data := history.JSONOf(p)
	encoding := string(p.GetMetadata()[converter.MetadataEncoding])
	switch {
	case data != nil:
		return data, "", sealed{}
	case encoding == converter.MetadataEncodingNil:
		return json.RawMessage("null"), "", sealed{}
	}
	sum := sha256.Sum256(p.GetData())
	if encoding == "" {
		encoding = "nothing that is said"
	}
	note := fmt.Sprintf("%d bytes, encoded as %s", len(p.GetData()), encoding)
	if reason := history.CodecReason(p); reason != "" {
		note += "; codec server: " + reason
	}
	return nil, note, sealed{encoding, hex.EncodeToString(sum[:])}
}
