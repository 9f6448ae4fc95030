package sources

import (
	"context"
	"fmt"
	"slices"

	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"
)

// ReadHistory reads the whole history of a run, as far as it is recorded now. Above
// [MaxEvents] events it fails; a server ends a run long before.
func ReadHistory(ctx context.Context, c client.Client, namespace, workflowID, runID string) ([]*historypb.HistoryEvent, error) {
	p := pages{c, namespace, workflowID, runID}
	var all []*historypb.HistoryEvent
	var token []byte
	for {
		events, next, err := p.forward(ctx, token, false)
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

// maxChain bounds the runs of a chain that are followed.
const maxChain = 1000

// ReadChain reads the histories of the runs that continue each other (continue-as-new,
// retry, cron), among them the given one, the oldest first. A run that the server no
// longer has ends the chain there.
func ReadChain(ctx context.Context, c client.Client, namespace, workflowID, runID string) ([][]*historypb.HistoryEvent, error) {
	one, err := ReadHistory(ctx, c, namespace, workflowID, runID)
	if err != nil {
		return nil, err
	}
	before, err := readOn(ctx, c, namespace, workflowID, one, func(h []*historypb.HistoryEvent) string {
		return h[0].GetWorkflowExecutionStartedEventAttributes().GetContinuedExecutionRunId()
	})
	if err != nil {
		return nil, err
	}
	after, err := readOn(ctx, c, namespace, workflowID, one, func(h []*historypb.HistoryEvent) string { return NextRun(h[len(h)-1]) })
	if err != nil {
		return nil, err
	}
	slices.Reverse(before)
	return slices.Concat(before, [][]*historypb.HistoryEvent{one}, after), nil
}

// readOn reads from run to run for as long as a history names another.
func readOn(ctx context.Context, c client.Client, namespace, workflowID string, h []*historypb.HistoryEvent, next func([]*historypb.HistoryEvent) string) ([][]*historypb.HistoryEvent, error) {
	var list [][]*historypb.HistoryEvent
	for len(h) > 0 && len(list) < maxChain {
		run := next(h)
		if run == "" {
			break
		}
		var err error
		if h, err = ReadHistory(ctx, c, namespace, workflowID, run); NotFound(err) {
			break
		}
		if err != nil {
			return nil, err
		}
		list = append(list, h)
	}
	return list, nil
}
