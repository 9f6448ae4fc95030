package compare

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
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
	"acescope/engine/internal/plainjson"
	"acescope/engine/temporal/history"
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
	KindStep     = "step" // of a flow, without an operation
)

// Statuses of a step.
const (
	Done      = "done"
	Failed    = "failed"
	TimedOut  = "timed out"
	Cancelled = "cancelled"
	Denied    = "denied"
	Continued = "continued as new"
	Open      = "open"
)

// Step is one step of a run. Input and Result are JSON, or nil if absent. For a payload that is not JSON,
// they are a text that identifies it, and Note describes it.
type Step struct {
	Key        string          `json:"key"` // kind, name and number
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
	Taken      bool            `json:"taken_over,omitempty"` // reused from the original of a fork

	ident     string  // identifies the step in both runs
	hasID     bool    // ident contains an ID, so that it is unique
	inputHash uint64  // fingerprint of Input, 0 without an input
	error     string  // Error without the run's own IDs
	opaque    [2]bool // whether equal contents of inputPayload and resultPayload may have different bytes
	hasCalls  bool    // the result lists tool calls, which are separate steps
	random    bool    // the result differs in every run
}

const (
	inputPayload = iota
	resultPayload
)

type builder struct {
	side   Side
	all    bool
	steps  []Step
	run    int
	open   map[int64]int  // index of the open steps of this run, by the event that started them
	counts map[string]int // steps by key

	reusable map[string]json.RawMessage // results of a fork's original, by the ID of the operation
	operated map[string]bool            // open steps of a flow that requested an operation, by path
	ids      []string                   // the run's own IDs, longest first
	prefix   []string                   // prefixes of its children's IDs
	fold     *ace.State
	decoder  history.Decoder
	about    About
	calls    int       // tool calls that have become steps
	usage    ace.Usage // of the earlier runs of the chain

	lastTask  int64 // the workflow task that closed the run; 0 for none
	clockBack int   // events that are older than their predecessor
	phase     int   // next phase of a fork that may be reused, counted over its passes
	notes     []string
}

func build(side Side, all bool) *builder {
	s := &builder{side: side, all: all, counts: map[string]int{}, operated: map[string]bool{},
		fold: &ace.State{}}
	s.about = About{Runs: len(side.Runs), Status: Open, Partial: side.Partial, Before: side.Before}
	for i, events := range s.side.Runs {
		s.run = i
		s.open = map[int64]int{}
		s.decoder = history.Decoder{}
		if i > 0 {
			s.addCalls(nil, math.MaxInt)
			s.usage = s.usage.Add(s.fold.Usage)
			s.fold = &ace.State{}
			s.calls = 0
			s.phase = 0
		}
		s.lastTask = closingTask(events)
		var clock history.Clock
		for at, e := range events {
			if e == nil || s.isJoint(i, at, e) {
				continue
			}
			if clock.Step(e) > 0 {
				s.clockBack++
			}
			s.addEvent(e)
			s.foldEvent(e)
			s.addReused(e)
		}
		s.addRunID(i, events)
		s.about.Events += len(events)
		if n := len(events); n > 0 {
			s.about.last = events[n-1].GetEventTime().AsTime()
		}
	}
	s.addCalls(nil, math.MaxInt)
	s.about.Steps = len(s.steps)
	for i := range s.steps {
		if st := &s.steps[i]; !st.opaque[inputPayload] {
			st.inputHash = fingerprint(st.Input, all)
		}
	}
	return s
}

func (s *builder) addRunID(run int, events []*historypb.HistoryEvent) {
	id := history.OriginOf(events).RunID
	if run < len(s.side.RunIDs) {
		id = cmp.Or(s.side.RunIDs[run], id)
	}
	s.about.RunIDs = append(s.about.RunIDs, id)
}

func (s *builder) foldEvent(e *historypb.HistoryEvent) {
	fact, ok, _ := s.decoder.Fact(e)
	if !ok {
		return
	}
	s.fold.Apply(fact)
	if fact.Kind == ace.FactStepCompleted && fact.Step == ace.PhaseSkills {
		s.addCalls(e, math.MaxInt)
	}
}

// isJoint reports whether an event only joins two runs of a chain by continue-as-new. Such events are not
// steps.
func (s *builder) isJoint(run, at int, e *historypb.HistoryEvent) bool {
	switch e.GetEventType() {
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW:
		return run+1 < len(s.side.Runs)
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED:
		if at > 0 || run == 0 || len(s.side.Runs[run-1]) == 0 {
			return false
		}
		before := s.side.Runs[run-1]
		if before[len(before)-1].GetEventType() != enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW {
			return false
		}
		s.started(e)
		s.foldEvent(e)
		return true
	}
	return false
}

// started takes the workflow and its IDs from a start event.
func (s *builder) started(e *historypb.HistoryEvent) {
	a := e.GetWorkflowExecutionStartedEventAttributes()
	id := a.GetWorkflowId()
	if s.about.Type == "" {
		s.about.Type = a.GetWorkflowType().GetName()
		s.about.WorkflowID = id
		s.about.start = e.GetEventTime().AsTime()
	}
	s.about.Open = true
	s.prefix = nil
	if experiment, ok := strings.CutPrefix(id, ace.ExperimentIDPrefix); ok {
		s.prefix = append(s.prefix, experiment+"-")
	}
	if id != "" {
		s.prefix = append(s.prefix, id)
	}
	ids := map[string]bool{}
	for _, own := range append(s.ids, id, ace.TaskIDOf(id), strings.TrimPrefix(id, ace.ExperimentIDPrefix),
		a.GetOriginalExecutionRunId(), a.GetFirstExecutionRunId(), a.GetContinuedExecutionRunId()) {
		if len(own) > 3 { // shorter IDs are parts of many words
			ids[own] = true
		}
	}
	s.ids = slices.SortedFunc(maps.Keys(ids), func(a, b string) int { return len(b) - len(a) })
}

func (s *builder) anonymous(text string) string {
	if s.all || text == "" {
		return text
	}
	for _, id := range s.ids {
		text = strings.ReplaceAll(text, id, "{id}")
	}
	return text
}

// begin adds a step. An ID identifies the step independently of its position.
func (s *builder) begin(e *historypb.HistoryEvent, kind, name, id string, input *commonpb.Payloads) *Step {
	key := kind + " " + name
	if id != "" {
		key += " " + id
	}
	st := Step{
		Kind: kind, Name: name, Run: s.run, Event: e.GetEventId(), At: e.GetEventTime().AsTime(),
		Status: Open, ident: key, hasID: id != "",
	}
	unique := id != ""
	if kind == KindStart || kind == KindEnd {
		st.ident = kind // independent of the workflow type
		unique = true
	}
	st.Key = s.numbered(key, unique)
	st.Input, st.Note, st.opaque[inputPayload] = readPayloads(input)
	s.open[e.GetEventId()] = len(s.steps)
	s.steps = append(s.steps, st)
	return &s.steps[len(s.steps)-1]
}

// numbered appends " #n" to the key of its nth step. If unique is set, the first step has the bare key.
func (s *builder) numbered(key string, unique bool) string {
	s.counts[key]++
	if n := s.counts[key]; n > 1 || !unique {
		return key + " #" + strconv.Itoa(n)
	}
	return key
}

func (s *builder) end(e *historypb.HistoryEvent, began int64, status string, result *commonpb.Payloads,
	f *failurepb.Failure) {
	i, ok := s.open[began]
	if !ok {
		return
	}
	delete(s.open, began)
	st := &s.steps[i]
	st.End = e.GetEventId()
	st.Status = status
	st.DurationMS = max(float64(e.GetEventTime().AsTime().Sub(st.At)), 0) / float64(time.Millisecond)
	var note string
	st.Result, note, st.opaque[resultPayload] = readPayloads(result)
	st.Note = cmp.Or(note, st.Note)
	if f != nil {
		st.Error = history.FailureOf(f).Message
		st.error = s.anonymous(st.Error)
	}
}

func (s *builder) once(e *historypb.HistoryEvent, kind, name, id string, input *commonpb.Payloads) *Step {
	st := s.begin(e, kind, name, id, input)
	s.end(e, e.GetEventId(), Done, nil, nil)
	return st
}

func (s *builder) addEvent(e *historypb.HistoryEvent) {
	s.addNotes(e)
	switch e.GetEventType() {
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED:
		a := e.GetWorkflowExecutionStartedEventAttributes()
		s.started(e)
		st := s.once(e, KindStart, a.GetWorkflowType().GetName(), "", a.GetInput())
		if !s.all {
			st.Input = withoutFork(s.setFork(st.Input))
		}
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED:
		a := e.GetWorkflowExecutionSignaledEventAttributes()
		// Tool calls are steps of their own, and their grouping into signals is random.
		if s.all || a.GetSignalName() != ace.SignalToolEvent {
			s.once(e, KindSignal, a.GetSignalName(), "", a.GetInput())
		}
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CANCEL_REQUESTED:
		s.once(e, KindSignal, "cancel request", "", nil)
	case enumspb.EVENT_TYPE_MARKER_RECORDED:
		s.marker(e)
	case enumspb.EVENT_TYPE_TIMER_STARTED:
		a := e.GetTimerStartedEventAttributes()
		unneeded := s.lastTask != 0 && a.GetWorkflowTaskCompletedEventId() == s.lastTask
		if !s.all && (s.busy() || unneeded) {
			return
		}
		s.begin(e, KindTimer, a.GetStartToFireTimeout().AsDuration().String(), s.ownID(a.GetTimerId()), nil)
	default:
		if end, ok := history.EndingOf(e); ok {
			s.end(e, end.Started, endStatuses[end.Status], end.Result, end.Failure)
		}
		s.operation(e)
		s.close(e)
	}
}

// closingTask returns the event of the workflow task that closed a run, or 0.
func closingTask(events []*historypb.HistoryEvent) int64 {
	if len(events) == 0 {
		return 0
	}
	last := events[len(events)-1]
	decided, ok := history.Attributes(last).(interface{ GetWorkflowTaskCompletedEventId() int64 })
	if _, closes := history.CloseStatus(last.GetEventType()); !closes || !ok {
		return 0
	}
	return decided.GetWorkflowTaskCompletedEventId()
}

// busy reports whether an activity or a child workflow is open. Whether a timer is started beside it, and
// whether the timer fires, depends on how long the activity or child workflow takes.
func (s *builder) busy() bool {
	for _, i := range s.open {
		if k := s.steps[i].Kind; k == KindActivity || k == KindChild {
			return true
		}
	}
	return false
}

// ownID returns an ID that the workflow chose, or "" for a number from the SDK.
func (s *builder) ownID(id string) string {
	if _, err := strconv.ParseUint(id, 10, 64); err == nil {
		return ""
	}
	return s.anonymous(id)
}

// childID returns a child's ID without its parent's ID. It returns "" if the child's ID does not contain its
// parent's, because it may then be random.
func (s *builder) childID(id string) string {
	for _, p := range s.prefix {
		if rest, ok := strings.CutPrefix(ace.TaskIDOf(id), p); ok && rest != "" {
			return rest
		}
		if rest, ok := strings.CutPrefix(id, p); ok && rest != "" {
			return strings.TrimLeft(rest, "/-_.:")
		}
	}
	return ""
}

// readPayloads returns payloads as JSON, with a note on payloads that cannot be read. opaque is set if equal
// contents may have different bytes, as with encryption.
func readPayloads(p *commonpb.Payloads) (raw json.RawMessage, note string, opaque bool) {
	var list []json.RawMessage
	for _, payload := range p.GetPayloads() {
		data, why, hidden := readPayload(payload)
		list = append(list, data)
		note = cmp.Or(note, why)
		opaque = opaque || hidden
	}
	switch len(list) {
	case 0:
		return nil, "", false
	case 1:
		return list[0], note, opaque
	}
	raw, _ = json.Marshal(list) // every element is valid
	return raw, note, opaque
}

func readPayload(p *commonpb.Payload) (raw json.RawMessage, note string, opaque bool) {
	data := history.PayloadJSON(p)
	encoding := cmp.Or(string(p.GetMetadata()[converter.MetadataEncoding]), "unknown")
	switch {
	case data != nil && json.Valid(data):
		return data, "", false
	case data != nil:
		raw, _ = plainjson.Marshal(string(data))
		return raw, "not valid JSON", false
	case encoding == converter.MetadataEncodingNil:
		return json.RawMessage("null"), "", false
	}
	raw, _ = plainjson.Marshal(history.Describe(p)) // of texts and numbers
	note = fmt.Sprintf("%s, encoded as %s", ace.Count(len(p.GetData()), "byte"), encoding)
	if reason := history.CodecReason(p); reason != "" {
		note += "; codec server: " + reason
	}
	_, stored := history.StoredBy(p)
	return raw, note, stored || history.Encoded(p)
}
