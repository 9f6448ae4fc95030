package cluster

import (
	"context"
	"fmt"

	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"
)

// ReadHistory reads the whole history of a run, as far as it is recorded now. Above
// [MaxEvents] events it fails; a server ends a run long before.
func ReadHistory(ctx context.Context, c client.Client, namespace, workflowID, runID string) ([]*historypb.HistoryEvent, error) {
	p := Pages{c, namespace, workflowID, runID}
	var all []*historypb.HistoryEvent
	var token []byte
	for {
		events, next, err := p.Forward(ctx, token, false)
		if err != nil {
			return nil, err
		}
		all = append(all, events...)
		if len(all) > MaxEvents {
			return nil, fmt.Errorf("the history of %s has more than %d events", workflowID, MaxEvents)
		}
		if token = next; len(token) == 0 {
			return all, nil
		}
	}
}
