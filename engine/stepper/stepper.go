// Package stepper steps through the folded state of a run, forward and backward, event by
// event. The kinds of runs are in engine/kind. It does no I/O.
//
// Bounds: a [Stepper] holds the events and checkpoints of the fold, which share unchanged
// parts. Any position is folded from the nearest checkpoint before it. Loss: an event that
// cannot be read does not change the state and is noted in its [Frame].
package stepper

import (
	"fmt"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"

	"acescope/engine/ace"
	"acescope/engine/kind"
	"acescope/engine/kind/kinds"
	"acescope/engine/temporal/history"
)

// Limits between two checkpoints: facts, events and payload bytes. Long histories have more
// facts and events per checkpoint, so that there are at most about maxChecks.
const (
	checkFacts  = 64
	checkEvents = 2048
	checkBytes  = 256 << 10
	maxChecks   = 1024
)

// Options are options for reading a history.
type Options struct {
	// Types names events of unknown types, by 0-based position.
	Types map[int]string
}

// Stepper gives the folded state of a run at each of its events. Positions are 1-based event
// numbers; position 0 is the state before the first event. It is safe for concurrent use.
type Stepper struct {
	About Run

	events []*historypb.HistoryEvent
	types  map[int]string
	checks []*mark // ascending by position, the first at 0

	// Ascending positions of events
	phases []int // that changed the phase, or an experiment's stage or epoch
	tools  []int // that report tool calls, or tasks of an experiment
	errors []int // that report failures, or produced a wrong answer
	facts  []int // that changed the state
	steps  []int // that changed the state by more than tool calls

	wrong  int // position of the event that produced an answer that was graded wrong, 0 without one
	graded int // position of the event that graded it

	clockBack map[int]time.Duration // how far the clock went back, by position

	mu     sync.Mutex
	cursor *mark // state at the position that was last sought
}

// Run describes the run of a history as a whole.
type Run struct {
	WorkflowID   string `json:"workflow_id,omitempty"`
	RunID        string `json:"run_id,omitempty"`
	WorkflowType string `json:"workflow_type,omitempty"`
	TaskID       string `json:"task_id,omitempty"`
	Prev         string `json:"previous_run_id,omitempty"` // run that this run continues
	How          string `json:"begun_by,omitempty"`        // continue-as-new, retry, cron or reset
	// Reset identifies the run that this run was reset from, or is nil.
	Reset      *history.ResetFrom `json:"reset_from,omitempty"`
	Next       string             `json:"next_run_id,omitempty"` // run that continues this run
	Events     int                `json:"events"`
	FirstEvent int64              `json:"first_event_id"`
	LastEvent  int64              `json:"last_event_id"`
	Start      time.Time          `json:"start,omitzero"`
	Foreign    string             `json:"foreign,omitempty"` // why the fold cannot cover the whole run
	Unread     int                `json:"unread_events,omitempty"`
	Encoded    int                `json:"sealed_payloads,omitempty"` // encoded payloads, which need a codec
	ClockBack  int                `json:"clock_back,omitempty"`      // events older than their predecessor
}

// mark is the state at a position.
type mark struct {
	at   int
	fold kind.Fold
}

func (m *mark) clone() *mark { return &mark{at: m.at, fold: m.fold.Clone()} }

func (m *mark) apply(e *historypb.HistoryEvent) kind.Effect {
	m.at++
	return m.fold.Apply(e)
}

// New folds a history from the first event to the last.
func New(events []*historypb.HistoryEvent, o Options) *Stepper {
	s := &Stepper{events: events, types: o.Types, clockBack: map[int]time.Duration{}}
	s.describe()
	m := &mark{fold: kinds.Of(s.About.WorkflowType).New()}
	s.checks = []*mark{m.clone()}
	every := max(checkFacts, len(events)/maxChecks)
	facts, bytes, phase := 0, 0, m.fold.Phase()
	var answer answerFinder
	var clock history.Clock
	for _, e := range events {
		effect := m.apply(e)
		s.index(m.at, e, effect)
		if now := m.fold.Phase(); now != phase {
			s.phases = append(s.phases, m.at)
			phase = now
		}
		answer.look(m)
		if back := clock.Step(e); back > 0 {
			s.About.ClockBack++
			s.clockBack[m.at] = back
		}
		if effect.Changed {
			facts++
			for _, p := range history.FoldedPayloads(e) {
				bytes += len(p.GetData())
			}
		}
		if facts >= every || bytes >= checkBytes || m.at-s.checks[len(s.checks)-1].at >= max(checkEvents,
			every) {
			s.checks = append(s.checks, m.clone())
			facts, bytes = 0, 0
		}
	}
	s.describeEnd(m.fold)
	if answer.isBad {
		s.wrong, s.graded = answer.at, answer.graded
		if at, found := slices.BinarySearch(s.errors, s.wrong); !found {
			s.errors = slices.Insert(s.errors, at, s.wrong)
		}
	}
	return s
}

// index adds the position of an event to the lists of positions.
func (s *Stepper) index(pos int, e *historypb.HistoryEvent, effect kind.Effect) {
	if effect.Foreign != nil && s.About.Foreign == "" {
		s.About.Foreign = effect.Foreign.Error()
	}
	if effect.Changed {
		s.facts = append(s.facts, pos)
		if !effect.ToolsOnly {
			s.steps = append(s.steps, pos)
		}
		if effect.Tool {
			s.tools = append(s.tools, pos)
		}
	}
	if effect.Failed || history.IsError(e) {
		s.errors = append(s.errors, pos)
	}
	if e.GetEventType() == enumspb.EVENT_TYPE_UNSPECIFIED {
		s.About.Unread++
	}
	s.About.Encoded += len(encodedPayloads(e))
}

// describe sets the fields of About that follow from the events.
func (s *Stepper) describe() {
	a := &s.About
	a.Events = len(s.events)
	if a.Events == 0 {
		return
	}
	a.FirstEvent = s.EventID(1)
	a.LastEvent = s.EventID(len(s.events))
	a.Start = timeOf(s.events[0])
	a.WorkflowType = s.events[0].GetWorkflowExecutionStartedEventAttributes().GetWorkflowType().GetName()
	o := history.OriginOf(s.events)
	a.WorkflowID, a.RunID = o.WorkflowID, o.RunID
	a.Prev, a.How, a.Reset, a.Next = o.Prev, o.How, o.Reset, o.Next
}

// describeEnd sets the fields of About that follow from the fold of the whole history.
func (s *Stepper) describeEnd(end kind.Fold) {
	a := &s.About
	if a.WorkflowType == "" && a.Events > 0 {
		a.Foreign = "the first events of the history are missing, so the state of the run is incomplete; " +
			"export the complete history"
	}
	a.TaskID = end.ID()
}

func timeOf(e *historypb.HistoryEvent) time.Time {
	if t := e.GetEventTime(); t != nil {
		return t.AsTime()
	}
	return time.Time{}
}

// encodedPayloads returns, for each payload of an event that cannot be read, why.
func encodedPayloads(e *historypb.HistoryEvent) (encodings []string) {
	for _, p := range history.FoldedPayloads(e) {
		if _, stored := history.StoredBy(p); stored {
			encodings = append(encodings, history.Unread(history.PayloadList(p)))
		} else if history.Encoded(p) {
			encodings = append(encodings, history.EncodingOf(p)+history.DecodeHint(p))
		}
	}
	return encodings
}

// Len returns the number of events.
func (s *Stepper) Len() int { return len(s.events) }

// Event returns the event at a position.
func (s *Stepper) Event(pos int) *historypb.HistoryEvent { return s.events[pos-1] }

// Events returns the events up to a position. The caller must not change them.
func (s *Stepper) Events(pos int) []*historypb.HistoryEvent { return s.events[:pos] }

// EventID returns the ID of the event at a position, or the position if the event has no ID.
func (s *Stepper) EventID(pos int) int64 {
	if id := s.events[pos-1].GetEventId(); id > 0 {
		return id
	}
	return int64(pos)
}

// EventType returns the type of the event at a position. An unknown type has its name in the history.
func (s *Stepper) EventType(pos int) string {
	if name := s.types[pos-1]; name != "" {
		return strings.TrimPrefix(name, "EVENT_TYPE_")
	}
	return s.events[pos-1].GetEventType().String()
}

// RangeError is the error for an event ID that a history does not have.
type RangeError struct {
	Event       int64
	First, Last int64
	Events      int
}

func (e *RangeError) Error() string {
	if e.Events == 0 {
		return "the history has no events"
	}
	return fmt.Sprintf("event %d not found: the history has events %d to %d", e.Event, e.First, e.Last)
}

// Find returns the position of the event with an ID, or a [RangeError].
func (s *Stepper) Find(id int64) (int, error) {
	// IDs are consecutive except in files that were edited.
	if pos := id - s.About.FirstEvent + 1; pos >= 1 && pos <= int64(len(s.events)) &&
		s.EventID(int(pos)) == id {
		return int(pos), nil
	}
	for pos := 1; pos <= len(s.events); pos++ {
		if s.EventID(pos) == id {
			return pos, nil
		}
	}
	return 0, &RangeError{Event: id, First: s.About.FirstEvent, Last: s.About.LastEvent,
		Events: len(s.events)}
}

// seek returns the state at a position. The caller holds s.mu and must not keep the state.
func (s *Stepper) seek(pos int) kind.Fold {
	check := s.checks[sort.Search(len(s.checks), func(i int) bool { return s.checks[i].at > pos })-1]
	if s.cursor == nil || s.cursor.at > pos || s.cursor.at < check.at {
		s.cursor = check.clone()
	}
	for s.cursor.at < pos {
		s.cursor.apply(s.events[s.cursor.at])
	}
	return s.cursor.fold
}

// State returns a copy of the state of a task run at a position, or nil for other runs.
func (s *Stepper) State(pos int) *ace.State {
	s.mu.Lock()
	defer s.mu.Unlock()
	if task, ok := s.seek(pos).(kind.Tasker); ok {
		return task.State().Clone()
	}
	return nil
}

// By selects the events that a step stops at.
type By int

// Steps stop at every event, phase change, tool call or error.
const (
	ByEvent By = iota
	ByPhase
	ByTool
	ByError
)

// Move returns the next position after pos at which a step stops, or the previous one if forward is false. It
// returns false if there is no further position.
func (s *Stepper) Move(pos int, by By, forward bool) (int, bool) {
	switch {
	case by != ByEvent:
		return neighbor(s.Marks(by), pos, forward)
	case forward:
		return min(pos+1, len(s.events)), pos < len(s.events)
	}
	return max(pos-1, 1), pos > 1
}

// Marks lists the positions that steps stop at, ascending, or nil for ByEvent. The caller
// must not change the list.
func (s *Stepper) Marks(by By) []int {
	switch by {
	case ByPhase:
		return s.phases
	case ByTool:
		return s.tools
	case ByError:
		return s.errors
	}
	return nil
}

// neighbor returns the next element of an ascending list after pos, or the previous one
// before it.
func neighbor(list []int, pos int, forward bool) (int, bool) {
	i, found := slices.BinarySearch(list, pos)
	switch {
	case !forward:
		i--
	case found:
		i++
	}
	if i < 0 || i >= len(list) {
		return pos, false
	}
	return list[i], true
}
