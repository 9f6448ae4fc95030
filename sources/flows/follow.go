// Package flows reads runs of flows: their state, folded from histories.
package flows

import (
	"cmp"
	"context"
	"encoding/json"

	commonpb "go.temporal.io/api/common/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"

	"acescope/engine/ace"
	"acescope/engine/flow"
	"acescope/engine/temporal/history"
	"acescope/sources/cluster"
)

// Run holds the facts of a history about a run of a flow.
type Run struct {
	Input   flow.Input
	State   flow.State
	Status  ace.Status
	Result  *flow.Result // nil unless it completed, or failed by a step "fail"
	Failure *ace.Failure
	Next    string // run that continues this one

	task history.WorkflowTask
}

// apply changes the run by an event. It reports whether the state of the steps changed.
func (r *Run) apply(e *historypb.HistoryEvent) bool {
	if in, ok := flow.InputOf(e); ok {
		r.Input = in
		r.Status = ace.Running
	}
	if end, ok := r.task.Closing(e); ok {
		r.Status, r.Failure, r.Next = end.Status, end.Failure, history.NextRun(e)
		failure := e.GetWorkflowExecutionFailedEventAttributes().GetFailure()
		r.Result = resultOf(cmp.Or(e.GetWorkflowExecutionCompletedEventAttributes().GetResult(),
			failure.GetApplicationFailureInfo().GetDetails()))
	}
	return r.State.ApplyEvent(e)
}

func resultOf(p *commonpb.Payloads) *flow.Result {
	var result flow.Result
	if data, ok := history.Values(p); !ok || json.Unmarshal(data, &result) != nil {
		return nil
	}
	return &result
}

// Follow follows a run and the runs that continue it until it closes. It calls changed after each event that
// changes the state. away is as in [cluster.Follow].
func Follow(ctx context.Context, c client.Client, namespace, workflowID, runID string, away func(error),
	changed func(Run)) (Run, error) {
	for {
		var r Run
		err := cluster.Follow(ctx, c, namespace, workflowID, runID, away,
			func(e *historypb.HistoryEvent) error {
				if r.apply(e) {
					changed(r)
				}
				return nil
			})
		if err != nil || r.Next == "" {
			return r, err
		}
		runID = r.Next
	}
}
