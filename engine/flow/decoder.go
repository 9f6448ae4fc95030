package flow

import (
	"encoding/json"

	historypb "go.temporal.io/api/history/v1"

	"acescope/engine/temporal/history"
	"acescope/engine/temporal/operation"
)

// ApplyEvent applies an event of a run's history to the state, and reports whether it changed the state. A
// run records the facts since its last operation or wait together with the next one.
func (s *State) ApplyEvent(e *historypb.HistoryEvent) bool {
	if start := e.GetWorkflowExecutionStartedEventAttributes(); start != nil {
		in, ok := InputOf(e)
		if !ok {
			return false
		}
		*s = State{}
		if in.Carried != nil {
			*s = in.Carried.State
		}
		s.Name = in.Name
		s.Digest = in.Digest
		return true
	}
	changed := false
	for _, n := range operation.NotesOf(e) {
		var f Fact
		if n.Event == operation.StepChanged && json.Unmarshal(n.Value, &f) == nil {
			s.Apply(n.Key, n.Time, f)
			changed = true
		}
	}
	return changed
}

// InputOf returns the input of a run from its first event. It returns false for other events and unreadable
// inputs.
func InputOf(e *historypb.HistoryEvent) (in Input, ok bool) {
	start := e.GetWorkflowExecutionStartedEventAttributes()
	data, readable := history.Values(start.GetInput())
	if start.GetWorkflowType().GetName() != Workflow || !readable {
		return Input{}, false
	}
	return in, json.Unmarshal(data, &in) == nil
}

// Fold returns the state after the events, which may be the beginning of a history.
func Fold(events []*historypb.HistoryEvent) (s State) {
	for _, e := range events {
		s.ApplyEvent(e)
	}
	return s
}
