package sources

import (
	"context"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"

	"acescope/engine/history"
)

// Show reads what is known of a run now, without waiting for more to happen.
func Show(ctx context.Context, c client.Client, workflowID, runID string) (*Detail, error) {
	return ShowAll(ctx, Deps{Client: c}, workflowID, runID)
}

// ShowAll is [Show] with what lies beside the run: the playbook version that it changed.
func ShowAll(ctx context.Context, d Deps, workflowID, runID string) (*Detail, error) {
	w := newWatcher(NewStore(), d, selection{workflowID, runID})
	iter := d.Client.GetWorkflowHistory(ctx, workflowID, runID, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	var last int64
	if err := drain(iter, &last, w.take); err != nil {
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
func ShowHistory(events []*historypb.HistoryEvent) (*Detail, error) {
	o := history.OriginOf(events)
	w := newWatcher(NewStore(), Deps{}, selection{o.WorkflowID, o.RunID})
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
