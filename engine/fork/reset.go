package fork

import (
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"

	"acescope/engine/ace"
)

// Reset is where a reset leaves a run: Temporal can do so at the end of a workflow task
// only. What was decided then is decided again, by today's code and with the same input.
type Reset struct {
	Event int64 // the end of the workflow task
	Kept  int64 // the last event that stays
	Lost  int64 // events after that
}

// ResetAt finds where a run of any type is reset so that everything up to a point stays,
// and as little more as can be.
func ResetAt(events []*historypb.HistoryEvent, at Point) (Reset, error) {
	if len(events) == 0 {
		return Reset{}, refused(ErrPoint, "the history is empty")
	}
	last := events[len(events)-1].GetEventId()
	if at.Phase != "" {
		return resetPhase(events, at.Phase, last)
	}
	if at.Event < 1 || at.Event > last {
		return Reset{}, refused(ErrPoint, "there is no event %d; the history has 1 to %d", at.Event, last)
	}
	newest := int64(0)
	for _, e := range events {
		if !ended(e) {
			continue
		}
		if newest = e.GetEventId(); newest > at.Event {
			break
		}
	}
	return resetOf(newest, last)
}

func resetPhase(events []*historypb.HistoryEvent, phase ace.Phase, last int64) (Reset, error) {
	if phase.Activity() == "" {
		return Reset{}, refused(ErrPoint, "there is no phase %q; there are generator, skills, reflector, curator, persist", phase)
	}
	for _, e := range events {
		if a := e.GetActivityTaskScheduledEventAttributes(); a.GetActivityType().GetName() == phase.Activity() {
			return resetOf(a.GetWorkflowTaskCompletedEventId(), last)
		}
	}
	return Reset{}, refused(ErrPoint, "the run has not come to %s", phase)
}

func resetOf(event, last int64) (Reset, error) {
	if event == 0 {
		return Reset{}, refused(ErrPoint, "no workflow task has ended yet, so that the run cannot be reset")
	}
	return Reset{Event: event, Kept: event - 1, Lost: last - event + 1}, nil
}

func ended(e *historypb.HistoryEvent) bool {
	switch e.GetEventType() {
	case enumspb.EVENT_TYPE_WORKFLOW_TASK_COMPLETED, enumspb.EVENT_TYPE_WORKFLOW_TASK_TIMED_OUT, enumspb.EVENT_TYPE_WORKFLOW_TASK_FAILED:
		return true
	}
	return false
}
