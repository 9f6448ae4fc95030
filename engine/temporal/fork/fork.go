// Package fork plans forks of task runs. From the history of a run it derives the input of a
// new run that reuses the results recorded before a point and reruns the steps after it. It may
// import engine/ace, engine/temporal/history and Temporal's API types. It does no I/O, so that
// a preview of a fork matches the fork.
//
// Order: results are reused in the order of the steps, from the first to the last before the
// point. Loss: a fork does not have tool events that were signaled to the original but are not
// in the session's result. The original is never changed.
package fork

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"

	"acescope/engine/ace"
	"acescope/engine/temporal/history"
)

var (
	// ErrForeign means that the run is not an ACE task run and cannot be forked.
	ErrForeign = errors.New("not a task run")
	// ErrPoint means that the run has no such point, or cannot be forked there.
	ErrPoint = errors.New("not a point to fork from")
	// ErrNoChange means that a change is not possible.
	ErrNoChange = errors.New("change not possible")
)

func errorf(kind error, format string, args ...any) error {
	return fmt.Errorf("%w: %s", kind, fmt.Sprintf(format, args...))
}

// Original is a run to fork, read from its history. An open run can be forked too.
type Original struct {
	WorkflowID, RunID string
	Input             ace.TaskInput

	events []*historypb.HistoryEvent
	final  ace.State
}

// Read reads the history of a run from its first event. It takes empty IDs from the history.
func Read(workflowID, runID string, events []*historypb.HistoryEvent) (*Original, error) {
	if len(events) == 0 || events[0].GetWorkflowExecutionStartedEventAttributes() == nil {
		return nil, errorf(ErrForeign, "the history does not begin with the start event")
	}
	start := events[0].GetWorkflowExecutionStartedEventAttributes()
	if kind := start.GetWorkflowType().GetName(); kind != ace.TaskWorkflow {
		return nil, errorf(ErrForeign, "the run is an %s; only an %s can be forked", kind, ace.TaskWorkflow)
	}
	o := &Original{
		WorkflowID: cmp.Or(workflowID, start.GetWorkflowId()),
		RunID:      cmp.Or(runID, history.OriginOf(events).RunID),
		events:     events,
	}
	all := func(*ace.State, *historypb.HistoryEvent) bool { return true }
	if err := o.fold(all, &o.final, nil); err != nil {
		return nil, errorf(ErrForeign, "the run cannot be read: %v", err)
	}
	o.Input = o.final.Input
	o.WorkflowID = cmp.Or(o.WorkflowID, ace.WorkflowID(o.Input.TaskID))
	return o, nil
}

// results are recorded results by the number of passes before them.
type results []map[ace.Phase]json.RawMessage

// set stores a result; the numbers of passes grow by one.
func (r *results) set(passes int, step ace.Phase, result json.RawMessage) {
	for len(*r) <= passes {
		*r = append(*r, map[ace.Phase]json.RawMessage{})
	}
	(*r)[passes][step] = result
}

// fold folds events into s until more returns false. It stores recorded results in results,
// unless that is nil.
func (o *Original) fold(
	more func(*ace.State, *historypb.HistoryEvent) bool, s *ace.State, results *results,
) error {
	var d history.Decoder
	for _, e := range o.events {
		fact, ok, err := d.Fact(e)
		if err != nil {
			return err
		}
		passes := len(s.Passes)
		if ok {
			s.Apply(fact)
		}
		result := e.GetActivityTaskCompletedEventAttributes().GetResult()
		if ok && fact.Kind == ace.FactStepCompleted && results != nil && history.Unread(result) == "" {
			results.set(passes, fact.Step, history.JSON(result))
		}
		if !more(s, e) {
			return nil
		}
	}
	return nil
}

// Last returns the ID of the last event.
func (o *Original) Last() int64 { return o.events[len(o.events)-1].GetEventId() }

// spent returns the usage of a step in the original, or nil if it is not recorded.
func (o *Original) spent(step ace.Phase) *ace.Usage {
	for _, st := range o.final.Steps {
		if st.Phase == step && !st.Reused {
			return st.Usage
		}
	}
	return nil
}

// Point is the point at which a fork leaves the original: an event, or the start of a phase. Exactly one of
// the fields is set.
type Point struct {
	Event int64
	Phase ace.Phase
}

// place is a point found in a history. Everything up to the event is kept.
type place struct {
	event   int64
	phase   ace.Phase // the first phase to rerun
	within  bool      // the phase started before the event
	passes  int       // number of passes before the phase
	results results
}

func (o *Original) find(p Point) (place, error) {
	if p.Phase != "" {
		return o.atPhase(p.Phase)
	}
	return o.atEvent(p.Event)
}

func (o *Original) atEvent(id int64) (place, error) {
	if last := o.Last(); id < 1 || id > last {
		return place{}, errorf(ErrPoint, "event %d not found; the history has events 1 to %d", id, last)
	}
	at := place{event: id}
	var s ace.State
	entered := int64(0)
	err := o.fold(func(s *ace.State, e *historypb.HistoryEvent) bool {
		if s.Phase != at.phase || len(s.Passes) != at.passes {
			at.phase = s.Phase
			at.passes = len(s.Passes)
			entered = e.GetEventId()
		}
		return e.GetEventId() < id
	}, &s, &at.results)
	if at.phase == ace.PhaseDone {
		return place{}, errorf(ErrPoint, "at event %d every step is done, so nothing would be rerun", id)
	}
	at.within = id > entered
	return o.complete(at, s.Input.Fork), err
}

func (o *Original) atPhase(phase ace.Phase) (place, error) {
	if phase.Activity() == "" {
		return place{}, errUnknownPhase(phase)
	}
	at := place{event: 1, phase: phase}
	var s ace.State
	err := o.fold(func(s *ace.State, e *historypb.HistoryEvent) bool {
		at.event = e.GetEventId()
		at.passes = len(s.Passes)
		return before(s.Phase, phase)
	}, &s, &at.results)
	if err == nil && before(s.Phase, phase) {
		return place{}, errorf(ErrPoint,
			"%s has no recorded result, so a fork cannot start with %s; the run is in %s",
			s.Phase, phase, s.Phase)
	}
	return o.complete(at, s.Input.Fork), err
}

// complete adds the results that the original itself reused, and removes those of steps to
// rerun.
func (o *Original) complete(at place, had *ace.Fork) place {
	for passes := range at.passes + 1 {
		for _, step := range ace.Steps() {
			if result := had.InlineResult(passes, step); result != nil {
				at.results.set(passes, step, result)
			}
		}
	}
	at.results = at.results[:min(len(at.results), at.passes+1)]
	if len(at.results) > at.passes {
		maps.DeleteFunc(at.results[at.passes], func(step ace.Phase, _ json.RawMessage) bool {
			return !before(step, at.phase)
		})
	}
	return at
}

func errUnknownPhase(phase ace.Phase) error {
	return errorf(ErrPoint, "phase %q not found; phases are generator, skills, reflector, curator, persist",
		phase)
}

func before(a, b ace.Phase) bool { return order(a) < order(b) }

func order(p ace.Phase) int {
	if i := slices.Index(ace.Steps(), p); i >= 0 {
		return i
	}
	return len(ace.Steps())
}

// Reset is the point to which a run is reset. Temporal resets only to the end of a workflow task, whose
// decisions the current code then makes again.
type Reset struct {
	Event int64 // end of the workflow task
	Kept  int64 // last event that is kept
	Lost  int64 // number of events after it
}

// ResetAt returns the earliest reset of a run of any type that keeps everything up to a point.
func ResetAt(events []*historypb.HistoryEvent, at Point) (Reset, error) {
	if len(events) == 0 {
		return Reset{}, errorf(ErrPoint, "the history is empty")
	}
	last := events[len(events)-1].GetEventId()
	if at.Phase != "" {
		return resetPhase(events, at.Phase, last)
	}
	if at.Event < 1 || at.Event > last {
		return Reset{}, errorf(ErrPoint, "event %d not found; the history has events 1 to %d", at.Event, last)
	}
	newest := int64(0)
	for _, e := range events {
		if !endsWorkflowTask(e) {
			continue
		}
		newest = e.GetEventId()
		if newest > at.Event {
			break
		}
	}
	return resetOf(newest, last)
}

func resetPhase(events []*historypb.HistoryEvent, phase ace.Phase, last int64) (Reset, error) {
	if phase.Activity() == "" {
		return Reset{}, errUnknownPhase(phase)
	}
	for _, e := range events {
		if a := e.GetActivityTaskScheduledEventAttributes(); a.GetActivityType().GetName() == phase.Activity() {
			return resetOf(a.GetWorkflowTaskCompletedEventId(), last)
		}
	}
	return Reset{}, errorf(ErrPoint, "the run has not reached %s", phase)
}

func resetOf(event, last int64) (Reset, error) {
	if event == 0 {
		return Reset{}, errorf(ErrPoint, "no workflow task has ended yet, so the run cannot be reset")
	}
	return Reset{Event: event, Kept: event - 1, Lost: last - event + 1}, nil
}

func endsWorkflowTask(e *historypb.HistoryEvent) bool {
	switch e.GetEventType() {
	case enumspb.EVENT_TYPE_WORKFLOW_TASK_COMPLETED, enumspb.EVENT_TYPE_WORKFLOW_TASK_TIMED_OUT,
		enumspb.EVENT_TYPE_WORKFLOW_TASK_FAILED:
		return true
	}
	return false
}
