package sources

import (
	"context"
	"errors"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
)

// retryDelay is how long a follower waits before it asks a server again that is away.
const retryDelay = 200 * time.Millisecond

// Follow calls fn for every event of a run, the recorded ones first and then each as it
// happens, until the run closes. A server that goes away is asked again until it is
// back or ctx ends; no event is given twice. away, where it is not nil, is told of each
// failure and, with nil, of recovery.
func Follow(ctx context.Context, c client.Client, workflowID, runID string, away func(error), fn func(*historypb.HistoryEvent) error) error {
	var last int64
	lost := false
	for {
		iter := c.GetWorkflowHistory(ctx, workflowID, runID, true, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
		err := drain(iter, &last, func(e *historypb.HistoryEvent) error {
			if lost && away != nil {
				away(nil)
			}
			lost = false
			return fn(e)
		})
		if err == nil || ctx.Err() != nil || !Away(err) {
			return err
		}
		if lost = true; away != nil {
			away(err)
		}
		select {
		case <-time.After(retryDelay):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func drain(iter client.HistoryEventIterator, last *int64, fn func(*historypb.HistoryEvent) error) error {
	for iter.HasNext() {
		e, err := iter.Next()
		if err != nil {
			return err
		}
		if e.GetEventId() <= *last {
			continue
		}
		*last = e.GetEventId()
		if err := fn(e); err != nil {
			return err
		}
	}
	return nil
}

// Away tells whether an error means that the server cannot be reached now, so that
// asking again may help.
func Away(err error) bool {
	var unavailable *serviceerror.Unavailable
	var deadline *serviceerror.DeadlineExceeded
	var canceled *serviceerror.Canceled
	return errors.As(err, &unavailable) || errors.As(err, &deadline) || errors.As(err, &canceled) ||
		errors.Is(err, context.DeadlineExceeded)
}

// NotFound tells whether an error means that a run does not exist.
func NotFound(err error) bool {
	var missing *serviceerror.NotFound
	return errors.As(err, &missing)
}

// NextRun is the run that a closing event hands over to (continue-as-new, retry), "" if
// none.
func NextRun(e *historypb.HistoryEvent) string {
	switch e.GetEventType() {
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW:
		return e.GetWorkflowExecutionContinuedAsNewEventAttributes().GetNewExecutionRunId()
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED:
		return e.GetWorkflowExecutionCompletedEventAttributes().GetNewExecutionRunId()
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_FAILED:
		return e.GetWorkflowExecutionFailedEventAttributes().GetNewExecutionRunId()
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_TIMED_OUT:
		return e.GetWorkflowExecutionTimedOutEventAttributes().GetNewExecutionRunId()
	}
	return ""
}
