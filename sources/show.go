package sources

import (
	"context"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
)

// Show reads what is known of a run now, without waiting for more to happen.
func Show(ctx context.Context, c client.Client, workflowID, runID string) (*Detail, error) {
	w := newWatcher(NewStore(), c, selection{workflowID, runID})
	iter := c.GetWorkflowHistory(ctx, workflowID, runID, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	var last int64
	if err := drain(iter, &last, w.take); err != nil {
		return nil, err
	}
	if w.open() {
		w.describe(ctx)
	}
	w.ask(ctx)
	d := w.detail
	d.Updated = w.store.now()
	return &d, nil
}
