package cluster

import (
	"cmp"
	"context"
	"slices"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"acescope/engine/ace"
	"acescope/engine/temporal/history"
)

// Bounds of a chain: events that are read, and runs before and after the given run.
const (
	maxChainEvents = 250_000
	maxChainRuns   = 1000
)

// Chain holds the histories of runs that continue one another, in order. A run that was reset replaces its
// original, because its history begins with the original's.
type Chain struct {
	Runs    [][]*historypb.HistoryEvent
	RunIDs  []string
	Before  string // why earlier runs are missing
	Partial string // why later runs are missing

	shared *Link // complete histories that it keeps are not read again; may be nil
}

// Incomplete returns which runs of the chain are missing and why, or "".
func (c *Chain) Incomplete() string {
	if c.Before != "" && c.Partial != "" {
		return c.Before + "; " + c.Partial
	}
	return c.Before + c.Partial
}

// ReadChain reads the histories of a run and of the runs before and after it in its chain, or of the run
// alone. An empty run id is the newest run. A deleted run ends the chain; Before and Partial report it. read
// receives the number of events so far; it may be nil.
func ReadChain(ctx context.Context, c client.Client, namespace, workflowID, runID string, alone bool,
	read func(events int)) (Chain, error) {
	return readChain(ctx, Chain{}, Pages{c, namespace, workflowID, runID}, alone, read)
}

// ReadChain is like the function [ReadChain], but does not read complete histories that the link keeps.
func (l *Link) ReadChain(ctx context.Context, workflowID, runID string, alone bool,
	read func(events int)) (Chain, error) {
	return readChain(ctx, Chain{shared: l}, Pages{l.Client, l.Namespace, workflowID, runID}, alone, read)
}

func readChain(ctx context.Context, chain Chain, p Pages, alone bool, read func(events int)) (Chain, error) {
	if alone {
		_, err := chain.read(ctx, p, read)
		return chain, err
	}
	line, err := p.before(ctx)
	if err == nil {
		err = p.walk(&line, 0, func(p Pages) (string, error) { return chain.read(ctx, p, read) })
	}
	chain.Before = line.Before
	chain.Partial = cmp.Or(chain.Partial, line.After)
	return chain, err
}

// read adds the history of one run and returns the id of the next run. It adds nothing to a chain with too
// many events.
func (c *Chain) read(ctx context.Context, p Pages, told func(int)) (next string, err error) {
	if c.Partial != "" {
		return "", nil
	}
	total := 0
	for _, r := range c.Runs {
		total += len(r)
	}
	var events []*historypb.HistoryEvent
	var token []byte
	for {
		page, more, err := c.page(ctx, p, token)
		if err != nil {
			return "", err
		}
		events = append(events, page...)
		if total += len(page); told != nil {
			told(total)
		}
		if token = more; len(token) == 0 {
			break
		}
		if total >= maxChainEvents {
			c.Partial = "only its first " + ace.Number(total) + " events are read"
			break
		}
	}
	c.Runs, c.RunIDs = append(c.Runs, events), append(c.RunIDs, p.RunID)
	if len(events) == 0 || c.Partial != "" {
		return "", nil
	}
	return history.NextRun(events[len(events)-1]), nil
}

// page returns a page of a run, or the complete history of a closed run if it is shared.
func (c *Chain) page(ctx context.Context, p Pages, token []byte) (events []*historypb.HistoryEvent,
	next []byte, err error) {
	if c.shared != nil {
		if h := c.shared.complete(p.WorkflowID, p.RunID); h != nil {
			events, err = h.Events(ctx)
			return events, nil, err
		}
	}
	return p.Forward(ctx, token, false)
}

// ChainPosition lists the run ids of a chain, in order, and the position of one of them.
type ChainPosition struct {
	RunIDs []string
	At     int    // index of the given run
	Before string // why earlier runs are missing
	After  string // why later runs are missing
}

// ReadChainPosition finds the runs before and after a run in its chain. It reads only the first and last
// event of each.
func ReadChainPosition(ctx context.Context, c client.Client, namespace, workflowID,
	runID string) (ChainPosition, error) {
	p := Pages{c, namespace, workflowID, runID}
	line, err := p.before(ctx)
	if err != nil {
		return line, err
	}
	return line, p.walk(&line, line.At, func(p Pages) (string, error) {
		last, err := p.closing(ctx)
		return history.NextRun(last), err
	})
}

// walk calls visit, which returns the ID of the next run, for the runs of a chain from an index on, and adds
// the runs that follow.
func (p Pages) walk(line *ChainPosition, from int, visit func(Pages) (next string, err error)) error {
	for i := from; i < len(line.RunIDs); i++ {
		p.RunID = line.RunIDs[i]
		next, err := visit(p)
		switch {
		case NotFound(err) && i > line.At:
			line.RunIDs = line.RunIDs[:i]
			line.After = "the next run, " + p.RunID + ", no longer exists"
			return nil
		case err != nil:
			return err
		case i < line.At || next == "" || slices.Contains(line.RunIDs, next):
			continue
		case i-line.At >= maxChainRuns:
			line.After = "only the next " + ace.Number(maxChainRuns) + " runs are read"
			return nil
		}
		line.RunIDs = append(line.RunIDs, next)
	}
	return nil
}

// before finds the earlier runs: the first event of each history names the previous run.
func (p Pages) before(ctx context.Context) (ChainPosition, error) {
	asking, cancel := context.WithTimeout(ctx, CallTimeout)
	r, err := p.C.DescribeWorkflowExecution(asking, p.WorkflowID, p.RunID)
	cancel()
	if err != nil {
		return ChainPosition{}, err
	}
	info := r.GetWorkflowExecutionInfo()
	p.RunID = info.GetExecution().GetRunId()
	line := ChainPosition{RunIDs: []string{p.RunID}}
	for len(line.RunIDs) > 1 || p.RunID != info.GetFirstRunId() {
		began, err := p.FirstEvent(ctx)
		if NotFound(err) && len(line.RunIDs) > 1 {
			line.RunIDs = line.RunIDs[:len(line.RunIDs)-1]
			line.Before = "the previous run, " + p.RunID + ", no longer exists"
			break
		}
		if err != nil {
			return line, err
		}
		p.RunID = began.GetWorkflowExecutionStartedEventAttributes().GetContinuedExecutionRunId()
		if p.RunID == "" || slices.Contains(line.RunIDs, p.RunID) {
			break
		}
		if len(line.RunIDs) > maxChainRuns {
			line.Before = "only the previous " + ace.Number(maxChainRuns) + " runs are read"
			break
		}
		line.RunIDs = append(line.RunIDs, p.RunID)
	}
	slices.Reverse(line.RunIDs)
	line.At = len(line.RunIDs) - 1
	return line, nil
}

// closing returns the event that closed a run, or nil if it is open.
func (p Pages) closing(ctx context.Context) (*historypb.HistoryEvent, error) {
	asking, cancel := context.WithTimeout(ctx, CallTimeout)
	defer cancel()
	r, err := p.C.DescribeWorkflowExecution(asking, p.WorkflowID, p.RunID)
	if err != nil || r.GetWorkflowExecutionInfo().GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING {
		return nil, err // the server waits for the end of an open run
	}
	return p.single(ctx, enumspb.HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT)
}

// FirstEvent returns the event that started a run.
func (p Pages) FirstEvent(ctx context.Context) (*historypb.HistoryEvent, error) {
	return p.single(ctx, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
}

// single returns the first event of a run, or with the filter for it the closing event; nil if the history
// has no such event.
func (p Pages) single(ctx context.Context, filter enumspb.HistoryEventFilterType) (*historypb.HistoryEvent,
	error) {
	ctx, cancel := context.WithTimeout(ctx, CallTimeout)
	defer cancel()
	r, err := p.C.WorkflowService().GetWorkflowExecutionHistory(ctx,
		&workflowservice.GetWorkflowExecutionHistoryRequest{
			Namespace: p.Namespace, Execution: p.execution(), MaximumPageSize: 1,
			HistoryEventFilterType: filter})
	if err != nil {
		return nil, err
	}
	events, err := p.eventsOf(r)
	return First(events), err
}
