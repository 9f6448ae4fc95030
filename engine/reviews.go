package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	enumspb "go.temporal.io/api/enums/v1"

	"acescope/engine/ace"
	"acescope/engine/temporal/history"
)

// ErrNoReview means that the run would ignore the decision.
var ErrNoReview = errors.New("not decided")

// DecideReview decides on the operations of a run that wait for review. It refuses a decision that the run
// would ignore.
func DecideReview(ctx context.Context, e *Engine, workflowID, runID string, d ace.ReviewDecision) error {
	var s ace.State
	var decoder history.Decoder
	events := e.Client.GetWorkflowHistory(ctx, workflowID, runID, false,
		enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		event, err := events.Next()
		if err != nil {
			return fmt.Errorf("review of %s: %w", workflowID, err)
		}
		if f, ok, err := decoder.Fact(event); ok && err == nil {
			s.Apply(f)
		}
	}
	if why := s.Review.Refuses(&d); why != "" {
		return fmt.Errorf("%w: %s: %s", ErrNoReview, workflowID, why)
	}
	arg, err := json.Marshal(d)
	if err != nil {
		return err
	}
	return e.Signal(ctx, workflowID, runID, ace.SignalReview, arg)
}
