package detail

import (
	"context"
	"fmt"
	"strings"

	historypb "go.temporal.io/api/history/v1"

	"acescope/engine/ace"
	"acescope/engine/flow"
	"acescope/engine/temporal/history"
	"acescope/sources/flows"
	"acescope/sources/histories"
	"acescope/sources/runs"
)

// foldFlow folds an event of a run of a flow and returns its changes, in order: of steps, then of the run.
func (w *watcher) foldFlow(e *historypb.HistoryEvent) (changes []histories.Change) {
	w.flow.Apply(e)
	for _, s := range w.flow.Changed() {
		changes = append(changes, histories.Change{Type: histories.ChangeStep, Event: e.GetEventId(),
			At: s.Start, Step: s.Path,
			FlowStep: &s})
	}
	if closed, ok := history.Closing(e); ok {
		changes = append(changes, histories.Change{Type: histories.ChangeStatus, Event: e.GetEventId(),
			At: e.GetEventTime().AsTime(), Status: closed.Status, Failure: closed.Failure})
	}
	return changes
}

// askFlow queries the steps of a live run. It returns nil if the worker does not answer.
func (w *watcher) askFlow(ctx context.Context) func() {
	var s flow.State
	if w.query(ctx, flow.QueryFlow, &s) != nil {
		return nil
	}
	return func() {
		w.detail.From, w.detail.Err = runs.FromQuery, ""
		w.takeFlow(s)
	}
}

// takeFlow sets the detail from the steps of a flow.
func (w *watcher) takeFlow(s flow.State) {
	d := &w.detail
	if w.flow.Foreign != nil {
		d.Err = fmt.Sprint(w.flow.Foreign)
	}
	d.Flow = w.flow.View(s, w.iterations)
	d.Phase = ace.PhaseAnswer{Phase: d.Flow.Phase, Usage: s.Usage, Failure: w.flow.Failure}
	d.Input = ace.TaskInput{TaskID: strings.TrimPrefix(d.WorkflowID, flows.IDPrefix)}
}
