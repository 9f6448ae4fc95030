package sources

import (
	"context"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"

	"acescope/engine/temporal/history"
	"acescope/sources/cluster"
	"acescope/sources/histories"
)

// Show reads what is known of a run now, without waiting for more to happen.
func Show(ctx context.Context, c client.Client, workflowID, runID string) (*histories.Detail, error) {
	return ShowAll(ctx, cluster.Deps{Client: c}, workflowID, runID)
}

// ShowAll is [Show] with what lies beside the run: the playbook version that it changed.
func ShowAll(ctx context.Context, d cluster.Deps, workflowID, runID string) (*histories.Detail, error) {
	w := newWatcher(NewStore(), d, selection{workflowID, runID})
	iter := d.Client.GetWorkflowHistory(ctx, workflowID, runID, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	var last int64
	if err := cluster.Drain(iter, &last, w.take); err != nil {
		return nil, err
	}
	w.describe(ctx)
	w.ask(ctx)
	w.mu.Lock()
	w.takeFold()
	w.mu.Unlock()
	w.settleOld()
	return w.takeDirty(), nil
}

// ShowHistory is [Show] of a history that was exported: what a file says of a run.
func ShowHistory(events []*historypb.HistoryEvent) (*histories.Detail, error) {
	o := history.OriginOf(events)
	w := newWatcher(NewStore(), cluster.Deps{}, selection{o.WorkflowID, o.RunID})
	for _, e := range events {
		if err := w.take(e); err != nil {
			return nil, err
		}
	}
	w.mu.Lock()
	w.dirty = true
	w.mu.Unlock()
	return w.takeDirty(), nil
}
