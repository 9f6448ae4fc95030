package replay

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
	"acescope/engine/history"
	"acescope/engine/run"
	"acescope/engine/session"
)

// Between two checkpoints lie at most so many facts, events, and bytes of payloads. Long
// histories have fewer checkpoints by the event: there are at most about maxChecks, and
// one for each checkBytes.
const (
	checkFacts  = 64
	checkEvents = 2048
	checkBytes  = 256 << 10
	maxChecks   = 1024
)

// StepOptions say how a history is read.
type StepOptions struct {
	// Types names events whose type this program does not know, by position from 0.
	Types map[int]string
}

// Stepper knows the folded state of a run at each of its events. Positions count events
// from 1; at position 0 nothing is known. It may be used by several goroutines.
//
// Bounds: it holds the events it was given and checkpoints of the fold, which share what
// they have in common. Any position is reached from the nearest checkpoint before it.
// Loss: an event that cannot be read says nothing to the fold and does not stop it.
type Stepper struct {
	About Run

	events []*historypb.HistoryEvent
	types  map[int]string
	checks []*mark // ascending by position, the first at 0
	phases []int   // positions at which the phase, or an experiment's stage or epoch, changed
	tools  []int   // that tell of tool calls, or of tasks of an experiment
	errors []int
	facts  []int                 // that tell the fold something
	backs  map[int]time.Duration // by how much the clock went back, by position
	steps  []int                 // those facts that are of more than tool calls

	mu     sync.Mutex
	cursor *mark // where the last frame was, to go on from
}

// Run is what a history says of its run as a whole.
type Run struct {
	WorkflowID   string `json:"workflow_id,omitempty"`
	RunID        string `json:"run_id,omitempty"`
	WorkflowType string `json:"workflow_type,omitempty"`
	TaskID       string `json:"task_id,omitempty"`
	Prev         string `json:"previous_run_id,omitempty"` // the run that this one continues
	How          string `json:"begun_by,omitempty"`        // continue-as-new, retry, cron or reset
	// Reset is the run whose events this one begins with, nil for one that was not reset.
	Reset      *history.ResetFrom `json:"reset_from,omitempty"`
	Next       string             `json:"next_run_id,omitempty"` // the run that continues this one
	Events     int                `json:"events"`
	FirstEvent int64              `json:"first_event_id"`
	LastEvent  int64              `json:"last_event_id"`
	Start      time.Time          `json:"start,omitzero"`
	Foreign    string             `json:"foreign,omitempty"` // why the contract does not tell all of it
	Unread     int                `json:"unread_events,omitempty"`
	Sealed     int                `json:"sealed_payloads,omitempty"` // that are encoded: a codec is needed
	ClockBack  int                `json:"clock_back,omitempty"`      // events that are older than the one before them
}

// mark is the fold at a position.
type mark struct {
	at         int
	task       *ace.State
	experiment *ace.ExperimentState // in place of task for an experiment
	session    *session.State       // the same, for an agent session
	run        *run.State           // the same, for a run of a blueprint
	decoder    *history.Decoder
	tasks      *history.ExperimentDecoder
	talk       *history.SessionDecoder
	course     *history.RunDecoder
}

func (m *mark) clone() *mark {
	c := &mark{at: m.at}
	if m.session != nil {
		state := *m.session // its parts are replaced, never written into
		c.session, c.talk = &state, m.talk.Clone()
		return c
	}
	if m.run != nil {
		state := *m.run
		c.run, c.course = &state, m.course.Clone()
		return c
	}
	if m.experiment != nil {
		c.experiment, c.tasks = m.experiment.Clone(), m.tasks.Clone()
		return c
	}
	c.task, c.decoder = m.task.Clone(), m.decoder.Clone()
	return c
}

// told is what an event told the fold.
type told struct {
	any     bool
	kind    ace.FactKind // of a task's fact
	bad     bool         // it tells that something failed
	work    bool         // it tells of a tool call, or of a task of an experiment
	foreign error
}

// apply folds the next event.
func (m *mark) apply(e *historypb.HistoryEvent) told {
	m.at++
	if m.session != nil {
		return m.tell(e)
	}
	if m.run != nil {
		return m.tellRun(e)
	}
	if m.experiment != nil {
		fact, ok, err := m.tasks.Fact(e)
		if ok {
			m.experiment.Apply(fact)
		}
		return told{any: ok, work: ok && (fact.Failed != nil || fact.Ended != nil), bad: ok && (fact.Failed != nil || fact.Ended != nil && fact.Ended.ExitStatus == ace.Failed), foreign: err}
	}
	fact, ok, err := m.decoder.Fact(e)
	if ok {
		m.task.Apply(fact)
	}
	return told{any: ok, kind: fact.Kind, work: ok && len(m.task.Touched()) > 0, bad: ok && isBad(fact), foreign: err}
}

// tell folds the next event of an agent session.
func (m *mark) tell(e *historypb.HistoryEvent) told {
	fact, ok, err := m.talk.Fact(e)
	if !ok {
		return told{foreign: err}
	}
	asked := len(m.session.Pending) + len(m.session.Decided) + len(m.session.Running)
	m.session.Apply(fact)
	return told{any: true, work: fact.Kind == session.FactToolRan || asked != len(m.session.Pending)+len(m.session.Decided)+len(m.session.Running),
		bad: fact.Failure != nil || fact.Result != nil && fact.Result.Failed != nil || fact.Tool != nil && fact.Tool.Error, foreign: err}
}

// isBad tells whether a fact is that a step, or one of its tool calls, failed.
func isBad(f ace.Fact) bool {
	if f.Kind == ace.FactStepFailed {
		return true
	}
	for _, e := range f.Events {
		if e.OK != nil && !*e.OK || e.Accepted != nil && !*e.Accepted {
			return true
		}
	}
	if r, ok := f.Result.(*ace.SkillSessionResult); ok {
		return slices.ContainsFunc(r.Invocations, func(i ace.Invocation) bool { return !i.Accepted || !i.OK })
	}
	return false
}

// stage is what a step by phase goes by.
func (m *mark) stage() string {
	if m.session != nil {
		return string(m.session.Status)
	}
	if m.run != nil {
		return string(m.run.Status)
	}
	if m.experiment != nil {
		return fmt.Sprint(m.experiment.Progress.Stage, " ", m.experiment.Progress.Epoch)
	}
	return string(m.task.Phase)
}

// NewStepper folds a history once, from the first event to the last.
func NewStepper(events []*historypb.HistoryEvent, o StepOptions) *Stepper {
	s := &Stepper{events: events, types: o.Types, backs: map[int]time.Duration{}}
	s.describe()
	at := s.begin()
	s.checks = []*mark{at.clone()}
	every := max(checkFacts, len(events)/maxChecks)
	facts, bytes, stage := 0, 0, at.stage()
	var clock history.Clock
	for i, e := range events {
		t := at.apply(e)
		s.index(i+1, e, at, t, &stage)
		s.count(i, e, &clock)
		if t.any {
			facts++
			bytes += payloadBytes(e)
		}
		if facts >= every || bytes >= checkBytes || i+1-s.checks[len(s.checks)-1].at >= max(checkEvents, every) {
			s.checks = append(s.checks, at.clone())
			facts, bytes = 0, 0
		}
	}
	s.about(at)
	return s
}

// begin is the fold of nothing, by the workflow's type.
func (s *Stepper) begin() *mark {
	if s.About.WorkflowType == session.Workflow {
		return &mark{session: &session.State{}, talk: &history.SessionDecoder{}}
	}
	if s.About.WorkflowType == run.Workflow {
		return &mark{run: &run.State{}, course: &history.RunDecoder{}}
	}
	if s.About.WorkflowType == ace.ExperimentWorkflow {
		return &mark{experiment: &ace.ExperimentState{}, tasks: &history.ExperimentDecoder{}}
	}
	return &mark{task: &ace.State{}, decoder: &history.Decoder{}}
}

// index notes where a step by phase, by tool call or to an error can go.
func (s *Stepper) index(pos int, e *historypb.HistoryEvent, at *mark, t told, stage *string) {
	if t.foreign != nil && s.About.Foreign == "" {
		s.About.Foreign = t.foreign.Error()
	}
	if t.any {
		s.facts = append(s.facts, pos)
		if t.kind != ace.FactToolEvents {
			s.steps = append(s.steps, pos)
		}
		if t.work {
			s.tools = append(s.tools, pos)
		}
	}
	if t.bad || history.IsError(e) {
		s.errors = append(s.errors, pos)
	}
	if now := at.stage(); now != *stage {
		*stage = now
		s.phases = append(s.phases, pos)
	}
}

// count notes what is odd about an event.
func (s *Stepper) count(i int, e *historypb.HistoryEvent, clock *history.Clock) {
	if e.GetEventType() == enumspb.EVENT_TYPE_UNSPECIFIED {
		s.About.Unread++
	}
	s.About.Sealed += len(sealedIn(e))
	if by := clock.Back(e); by > 0 {
		s.About.ClockBack++
		s.backs[i+1] = by
	}
}

// describe takes over what the first event says.
func (s *Stepper) describe() {
	a := &s.About
	if a.Events = len(s.events); a.Events == 0 {
		return
	}
	a.FirstEvent, a.LastEvent = s.EventID(1), s.EventID(len(s.events))
	a.Start = timeOf(s.events[0])
	if began := s.events[0].GetWorkflowExecutionStartedEventAttributes(); began != nil {
		a.WorkflowType = began.GetWorkflowType().GetName()
	}
	o := history.OriginOf(s.events)
	a.WorkflowID, a.RunID, a.Prev, a.How, a.Reset, a.Next = o.WorkflowID, o.RunID, o.Prev, o.How, o.Reset, o.Next
}

// about takes over what the fold says of the whole.
func (s *Stepper) about(end *mark) {
	a := &s.About
	switch {
	case end.session != nil:
		a.TaskID = end.session.Input.SessionID
	case end.run != nil:
		a.TaskID = end.run.Input.RunID
	case end.experiment != nil:
		a.TaskID = end.experiment.Input.ExperimentID
	case a.WorkflowType == "":
		a.Foreign = "the history does not begin with the start of a run: what came before is not known"
	case a.WorkflowType != ace.TaskWorkflow:
		a.Foreign = fmt.Sprintf("a workflow of type %q, not one of the contract: what it has in common with it is shown", a.WorkflowType)
		a.TaskID = end.task.Input.TaskID
	default:
		a.TaskID = end.task.Input.TaskID
	}
}

func timeOf(e *historypb.HistoryEvent) time.Time {
	if t := e.GetEventTime(); t != nil {
		return t.AsTime()
	}
	return time.Time{}
}

// Len is how many events there are.
func (s *Stepper) Len() int { return len(s.events) }

// Event is the event at a position.
func (s *Stepper) Event(pos int) *historypb.HistoryEvent { return s.events[pos-1] }

// EventID is the id of the event at a position; the position itself where it has none.
func (s *Stepper) EventID(pos int) int64 {
	if id := s.events[pos-1].GetEventId(); id > 0 {
		return id
	}
	return int64(pos)
}

// EventType is the type of the event at a position, as it stands in the history where this
// program does not know it.
func (s *Stepper) EventType(pos int) string {
	if name := s.types[pos-1]; name != "" {
		return strings.TrimPrefix(name, "EVENT_TYPE_")
	}
	return s.events[pos-1].GetEventType().String()
}

// RangeError says that a history has no such event.
type RangeError struct {
	Event       int64
	First, Last int64
	Events      int
}

func (e *RangeError) Error() string {
	if e.Events == 0 {
		return "the history has no events"
	}
	return fmt.Sprintf("there is no event %d: the history has events %d to %d", e.Event, e.First, e.Last)
}

// Find is the position of the event with an id.
func (s *Stepper) Find(id int64) (int, error) {
	// Ids follow one another but in files that were cut or joined by hand.
	if pos := id - s.About.FirstEvent + 1; pos >= 1 && pos <= int64(len(s.events)) && s.EventID(int(pos)) == id {
		return int(pos), nil
	}
	for pos := range s.events {
		if s.EventID(pos+1) == id {
			return pos + 1, nil
		}
	}
	return 0, &RangeError{Event: id, First: s.About.FirstEvent, Last: s.About.LastEvent, Events: len(s.events)}
}

// seek is the fold at a position, to be used under the lock and not kept.
func (s *Stepper) seek(pos int) *mark {
	check := s.checks[sort.Search(len(s.checks), func(i int) bool { return s.checks[i].at > pos })-1]
	if s.cursor == nil || s.cursor.at > pos || s.cursor.at < check.at {
		s.cursor = check.clone()
	}
	for s.cursor.at < pos {
		s.cursor.apply(s.events[s.cursor.at])
	}
	return s.cursor
}

// State is the folded state of a task at a position, nil for an experiment. It is the
// caller's own.
func (s *Stepper) State(pos int) *ace.State {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.seek(pos); m.task != nil {
		return m.task.Clone()
	}
	return nil
}

// Experiment is the folded state of an experiment at a position, nil for a task.
func (s *Stepper) Experiment(pos int) *ace.ExperimentState {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.seek(pos); m.experiment != nil {
		return m.experiment.Clone()
	}
	return nil
}
