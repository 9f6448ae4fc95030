package detail

import (
	"context"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"acescope/engine/temporal/history"
	"acescope/sources/cluster"
	"acescope/sources/histories"
	"acescope/sources/runs"
)

// Read returns the current state of a run.
func Read(ctx context.Context, c client.Client, workflowID, runID string) (*histories.Detail, error) {
	return ReadAll(ctx, cluster.Deps{Client: c}, workflowID, runID)
}

// ReadAll is [Read] with the playbook version that the run changed, and artifacts.
func ReadAll(ctx context.Context, d cluster.Deps, workflowID, runID string) (*histories.Detail, error) {
	link := cluster.NewLink()
	link.Deps = d
	w := newWatcher(link, runs.ID{WorkflowID: workflowID, RunID: runID}, nil)
	w.iterations = 0
	iter := d.Client.GetWorkflowHistory(ctx, workflowID, runID, false,
		enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	if err := cluster.Drain(iter, w.take); err != nil {
		return nil, err
	}
	w.describe(ctx)
	w.ask(ctx)
	w.mu.Lock()
	w.takeFold()
	w.mu.Unlock()
	w.settleOld(ctx)
	return w.takeDirty(), nil
}

// ReadEvents is [Read] for an exported history.
func ReadEvents(events []*historypb.HistoryEvent) (*histories.Detail, error) {
	o := history.OriginOf(events)
	w := newWatcher(cluster.NewLink(), runs.ID{WorkflowID: o.WorkflowID, RunID: o.RunID}, nil)
	for _, e := range events {
		if err := w.take(e); err != nil {
			return nil, err
		}
	}
	w.mu.Lock()
	w.dirty = true
	w.takePending(&workflowservice.DescribeWorkflowExecutionResponse{PendingWorkflowTask: w.task.Described(),
		WorkflowExecutionInfo: &workflowpb.WorkflowExecutionInfo{
			Status: enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING}})
	w.mu.Unlock()
	return w.takeDirty(), nil
}
