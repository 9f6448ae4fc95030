package fork

import (
	"encoding/json"
	"errors"

	historypb "go.temporal.io/api/history/v1"

	"acescope/engine/ace"
	"acescope/engine/history"
)

// ErrForeign means that the run is none of a task, and so cannot be forked.
var ErrForeign = errors.New("no run of a task")

// ErrPoint means that there is no such point in the run, or none to fork from.
var ErrPoint = errors.New("no point to fork from")

// Original is a run that can be forked, as its history tells of it. The history of an
// open run is what it has done so far.
type Original struct {
	WorkflowID, RunID string
	Input             ace.TaskInput

	events []*historypb.HistoryEvent
	final  ace.State
}

// Read reads the history of a run from its first event. Ids that are "" are taken from
// the history where it has them.
func Read(workflowID, runID string, events []*historypb.HistoryEvent) (*Original, error) {
	if len(events) == 0 || events[0].GetWorkflowExecutionStartedEventAttributes() == nil {
		return nil, refused(ErrForeign, "the history does not begin with the start of a run")
	}
	start := events[0].GetWorkflowExecutionStartedEventAttributes()
	if kind := start.GetWorkflowType().GetName(); kind != ace.TaskWorkflow {
		return nil, refused(ErrForeign, "the run is an %s; only an %s can be forked", kind, ace.TaskWorkflow)
	}
	o := &Original{WorkflowID: workflowID, RunID: runID, events: events}
	if o.WorkflowID == "" {
		o.WorkflowID = start.GetWorkflowId()
	}
	if o.RunID == "" {
		o.RunID = history.OriginOf(events).RunID
	}
	if err := o.fold(func(*ace.State, *historypb.HistoryEvent) bool { return true }, &o.final, nil); err != nil {
		return nil, refused(ErrForeign, "the run cannot be read: %v", err)
	}
	o.Input = o.final.Input
	if o.WorkflowID == "" {
		o.WorkflowID = ace.WorkflowID(o.Input.TaskID)
	}
	return o, nil
}

// fold folds the events, and keeps results as they were recorded, until more says that
// the event was the last one wanted.
func (o *Original) fold(more func(*ace.State, *historypb.HistoryEvent) bool, s *ace.State, results map[ace.Phase]json.RawMessage) error {
	var d history.Decoder
	for _, e := range o.events {
		fact, ok, err := d.Fact(e)
		if err != nil {
			return err
		}
		if ok {
			s.Apply(fact)
		}
		if ok && fact.Kind == ace.FactStepCompleted && results != nil {
			results[fact.Step] = history.JSON(e.GetActivityTaskCompletedEventAttributes().GetResult())
		}
		if !more(s, e) {
			return nil
		}
	}
	return nil
}

// Last is the id of the newest event that is known.
func (o *Original) Last() int64 { return o.events[len(o.events)-1].GetEventId() }

// Spent is what a step of the original used, nil where that is not recorded.
func (o *Original) Spent(step ace.Phase) *ace.Usage {
	for _, st := range o.final.Steps {
		if st.Phase == step && !st.Taken {
			return st.Usage
		}
	}
	return nil
}

// Point is where a fork leaves the original: at an event, or at the begin of a phase.
// One of the two is given.
type Point struct {
	Event int64
	Phase ace.Phase
}

// place is a point once it is found: everything up to the event counts.
type place struct {
	event   int64
	phase   ace.Phase // that is executed anew
	within  bool      // the phase had begun before the event
	results map[ace.Phase]json.RawMessage
}

func (o *Original) find(p Point) (place, error) {
	if p.Phase != "" {
		return o.atPhase(p.Phase)
	}
	return o.atEvent(p.Event)
}

func (o *Original) atEvent(id int64) (place, error) {
	if last := o.Last(); id < 1 || id > last {
		return place{}, refused(ErrPoint, "there is no event %d; the history has 1 to %d", id, last)
	}
	at := place{event: id, results: map[ace.Phase]json.RawMessage{}}
	var s ace.State
	entered := int64(0)
	err := o.fold(func(s *ace.State, e *historypb.HistoryEvent) bool {
		if s.Phase != at.phase {
			at.phase, entered = s.Phase, e.GetEventId()
		}
		return e.GetEventId() < id
	}, &s, at.results)
	if at.phase == ace.PhaseDone {
		return place{}, refused(ErrPoint, "at event %d every step is done, so that nothing would be executed anew", id)
	}
	at.within = id > entered
	return o.complete(at, s.Input.Fork), err
}

func (o *Original) atPhase(phase ace.Phase) (place, error) {
	if phase.Activity() == "" {
		return place{}, refused(ErrPoint, "there is no phase %q; there are generator, skills, reflector, curator, persist", phase)
	}
	at := place{event: 1, phase: phase, results: map[ace.Phase]json.RawMessage{}}
	var s ace.State
	err := o.fold(func(s *ace.State, e *historypb.HistoryEvent) bool {
		at.event = e.GetEventId()
		return before(s.Phase, phase)
	}, &s, at.results)
	if err == nil && before(s.Phase, phase) {
		return place{}, refused(ErrPoint, "%s has no recorded result, so that %s cannot be begun with; the run stands in %s", s.Phase, phase, s.Phase)
	}
	return o.complete(at, s.Input.Fork), err
}

// complete adds the results that the original had taken over itself, and leaves out those
// of steps that are executed anew.
func (o *Original) complete(at place, had *ace.Fork) place {
	for _, step := range ace.Steps() {
		if result := had.Inline(step); result != nil {
			at.results[step] = result
		}
		if !before(step, at.phase) {
			delete(at.results, step)
		}
	}
	return at
}

// before tells whether a phase comes before another.
func before(a, b ace.Phase) bool { return order(a) < order(b) }

func order(p ace.Phase) int {
	for i, step := range ace.Steps() {
		if step == p {
			return i
		}
	}
	return len(ace.Steps())
}
