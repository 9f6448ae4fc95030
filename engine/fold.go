package engine

import (
	"context"
	"errors"
	"fmt"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
)

// fold applies what the history of a workflow's newest run tells, so far.
func fold[F any](ctx context.Context, c client.Client, workflowID string, fact func(*historypb.HistoryEvent) (F, bool, error), apply func(F)) error {
	events := c.GetWorkflowHistory(ctx, workflowID, "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		event, err := events.Next()
		if err != nil {
			return err
		}
		f, ok, err := fact(event)
		if err != nil {
			return err
		}
		if ok {
			apply(f)
		}
	}
	return nil
}

// read says of what an error of reading is; where there is no such thing, it is none.
func read(what, id string, none, err error) error {
	var gone *serviceerror.NotFound
	switch {
	case err == nil:
		return nil
	case errors.As(err, &gone):
		return fmt.Errorf("%w: %s", none, id)
	}
	return fmt.Errorf("%s %s: %w", what, id, err)
}
