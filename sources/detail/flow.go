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

// flowRun folds the history of a run of a flow.
type flowRun struct {
	*flows.Folder
	iterations int // of a loop that are listed, 0 for all
}

// fold returns changes of steps, then of the run.
func (f flowRun) fold(_ *draft, e *historypb.HistoryEvent) (changes []histories.Change) {
	f.Apply(e)
	for _, s := range f.Changed() {
		changes = append(changes, histories.Change{Type: histories.ChangeStep, Event: e.GetEventId(),
			At:   s.Start,
			Step: s.Path, FlowStep: &s})
	}
	if _, closes := history.CloseStatus(e.GetEventType()); closes {
		changes = append(changes, histories.Change{Type: histories.ChangeStatus, Event: e.GetEventId(),
			At: e.GetEventTime().AsTime(), Status: f.Status, Failure: f.Failure})
	}
	return changes
}

func (f flowRun) query(ctx context.Context, ask query) func(*draft) {
	var s flow.State
	if ask(ctx, flow.QueryFlow, &s) != nil {
		return nil
	}
	return func(d *draft) {
		d.From, d.Err = runs.FromQuery, ""
		f.takeState(d, s)
	}
}

func (f flowRun) take(d *draft) { f.takeState(d, f.State) }

// takeState sets the detail from the steps of a flow.
func (f flowRun) takeState(d *draft, s flow.State) {
	if f.Foreign != nil {
		d.Err = fmt.Sprint(f.Foreign)
	}
	d.Flow = f.View(s, f.iterations)
	d.Phase = ace.PhaseAnswer{Phase: d.Flow.Phase, Usage: s.Usage, Failure: f.Failure}
	d.Input = ace.TaskInput{TaskID: strings.TrimPrefix(d.WorkflowID, flow.IDPrefix)}
}
