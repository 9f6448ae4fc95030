package sources

import (
	"context"
	"fmt"

	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"
)

// MaxChainEvents bounds the events of a chain of runs that are held whole.
const MaxChainEvents = 250_000

// Chain is the histories of a run and of those that it was continued as, in order.
type Chain struct {
	WorkflowID string
	Runs       [][]*historypb.HistoryEvent
	RunIDs     []string
	Partial    string // why there is not all of it, "" where there is
}

// ReadChain reads the histories of all runs that follow one another under a workflow id.
// With a run id it is the chain which that run is in; if it is in none that begins at the
// first run (it was reset, say), or with alone, it is that run alone. read, which may be
// nil, is told how many events there are so far.
func ReadChain(ctx context.Context, c client.Client, namespace, workflowID, runID string, alone bool, read func(events int)) (Chain, error) {
	if alone {
		return readFrom(ctx, pages{c, namespace, workflowID, runID}, true, read)
	}
	asking, cancel := context.WithTimeout(ctx, callTimeout)
	r, err := c.DescribeWorkflowExecution(asking, workflowID, runID)
	cancel()
	if err != nil {
		return Chain{}, err
	}
	info := r.GetWorkflowExecutionInfo()
	wanted := info.GetExecution().GetRunId()
	first := info.GetFirstRunId()
	if first == "" {
		first = wanted
	}
	chain, err := readFrom(ctx, pages{c, namespace, workflowID, first}, false, read)
	for _, id := range chain.RunIDs {
		if err != nil || id == wanted || chain.Partial != "" {
			return chain, err
		}
	}
	if err != nil && !NotFound(err) || wanted == first {
		return chain, err
	}
	// The first run is gone, or this one stands beside its chain.
	return readFrom(ctx, pages{c, namespace, workflowID, wanted}, false, read)
}

// readFrom reads a run and, but for alone, those that follow it.
func readFrom(ctx context.Context, p pages, alone bool, read func(int)) (Chain, error) {
	chain := Chain{WorkflowID: p.workflowID}
	total := 0
	for p.runID != "" || len(chain.Runs) == 0 {
		var events []*historypb.HistoryEvent
		var token []byte
		for {
			page, next, err := p.forward(ctx, token, false)
			if err != nil {
				if len(chain.Runs) > 0 && NotFound(err) {
					chain.Partial = "the run " + p.runID + ", which it was continued as, is gone"
					return chain, nil
				}
				return chain, err
			}
			events = append(events, page...)
			total += len(page)
			if read != nil {
				read(total)
			}
			if token = next; len(token) == 0 {
				break
			}
			if total >= MaxChainEvents {
				chain.Partial = fmt.Sprintf("only its first %d events are read", total)
				break
			}
		}
		chain.Runs, chain.RunIDs = append(chain.Runs, events), append(chain.RunIDs, p.runID)
		if alone || chain.Partial != "" || len(events) == 0 {
			break
		}
		p.runID = NextRun(events[len(events)-1])
	}
	return chain, nil
}
