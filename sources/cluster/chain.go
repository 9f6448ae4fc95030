package cluster

import (
	"context"
	"fmt"
	"slices"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"acescope/engine/temporal/history"
)

// Bounds of a chain of runs that is read: events that are held whole, and runs before and
// after the one that was asked for.
const (
	MaxChainEvents = 250_000
	MaxChainRuns   = 1000
)

// Chain is the histories of runs that continue one another, in order. A run that was reset
// stands in the place of the one that it was reset from: its history begins with that
// one's.
type Chain struct {
	WorkflowID string
	Runs       [][]*historypb.HistoryEvent
	RunIDs     []string
	Before     string // why what comes before is not there, "" where nothing does
	Partial    string // why what comes after is not there, "" where it is
}

// Gone says what of the chain is not there, "" where all is.
func (c *Chain) Gone() string {
	if c.Before != "" && c.Partial != "" {
		return c.Before + "; " + c.Partial
	}
	return c.Before + c.Partial
}

// ReadChain reads the histories of the runs that a run continues, of the run itself and of
// those that continue it; with alone, of the run alone. Without a run id it is the newest.
// Runs that are no longer kept end the chain on their side; Before and Partial say so. read,
// which may be nil, is told how many events there are so far.
func ReadChain(ctx context.Context, c client.Client, namespace, workflowID, runID string, alone bool, read func(events int)) (Chain, error) {
	chain := Chain{WorkflowID: workflowID}
	p := Pages{c, namespace, workflowID, runID}
	if alone {
		_, err := chain.read(ctx, p, read)
		return chain, err
	}
	line, err := p.before(ctx)
	if err != nil {
		return chain, err
	}
	chain.Before = line.Before
	for _, id := range line.RunIDs {
		p.RunID = id
		if p.RunID, err = chain.read(ctx, p, read); err != nil || chain.Partial != "" {
			return chain, err
		}
	}
	for p.RunID != "" && chain.Partial == "" {
		id := p.RunID
		if slices.Contains(chain.RunIDs, id) {
			break
		}
		p.RunID, err = chain.read(ctx, p, read)
		if err != nil && NotFound(err) {
			chain.Partial, err = "the run "+id+", which continues it, is gone", nil
		}
		if err != nil {
			return chain, err
		}
	}
	return chain, nil
}

// read adds the history of one run, and gives the run that continues it.
func (c *Chain) read(ctx context.Context, p Pages, told func(int)) (next string, err error) {
	total := 0
	for _, r := range c.Runs {
		total += len(r)
	}
	var events []*historypb.HistoryEvent
	var token []byte
	for {
		page, more, err := p.Forward(ctx, token, false)
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
		if total >= MaxChainEvents {
			c.Partial = fmt.Sprintf("only its first %d events are read", total)
			break
		}
	}
	c.Runs, c.RunIDs = append(c.Runs, events), append(c.RunIDs, p.RunID)
	if len(events) == 0 {
		return "", nil
	}
	return history.NextRun(events[len(events)-1]), nil
}

// Line is the ids of the runs that continue one another, in order, and where among them a
// run stands.
type Line struct {
	RunIDs []string
	At     int    // of the run that was asked for
	Before string // why what comes before is not there, "" where nothing does
	After  string // why what comes after is not there, "" where nothing does
}

// ReadLine finds the runs that a run continues, and those that continue it. It reads the
// first and the last event of each only.
func ReadLine(ctx context.Context, c client.Client, namespace, workflowID, runID string) (Line, error) {
	p := Pages{c, namespace, workflowID, runID}
	line, err := p.before(ctx)
	if err != nil {
		return line, err
	}
	for p.RunID = line.RunIDs[line.At]; ; {
		last, err := p.closing(ctx)
		if NotFound(err) && p.RunID != line.RunIDs[line.At] {
			line.RunIDs = line.RunIDs[:len(line.RunIDs)-1]
			line.After = "the run " + p.RunID + ", which continues it, is gone"
			return line, nil
		}
		if err != nil {
			return line, err
		}
		next := history.NextRun(last)
		if next == "" || slices.Contains(line.RunIDs, next) {
			return line, nil
		}
		if len(line.RunIDs)-line.At > MaxChainRuns {
			line.After = fmt.Sprintf("only %d runs after it are looked at", MaxChainRuns)
			return line, nil
		}
		line.RunIDs, p.RunID = append(line.RunIDs, next), next
	}
}

// before finds the runs that a run continues: each history's first event names the one
// before.
func (p Pages) before(ctx context.Context) (Line, error) {
	asking, cancel := context.WithTimeout(ctx, CallTimeout)
	r, err := p.C.DescribeWorkflowExecution(asking, p.WorkflowID, p.RunID)
	cancel()
	if err != nil {
		return Line{}, err
	}
	info := r.GetWorkflowExecutionInfo()
	p.RunID = info.GetExecution().GetRunId()
	line := Line{RunIDs: []string{p.RunID}}
	for len(line.RunIDs) > 1 || p.RunID != info.GetFirstRunId() {
		began, err := p.single(ctx, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
		if NotFound(err) && len(line.RunIDs) > 1 {
			line.RunIDs = line.RunIDs[:len(line.RunIDs)-1]
			line.Before = "the run " + p.RunID + ", which it continues, is gone"
			break
		}
		if err != nil {
			return line, err
		}
		p.RunID = began.GetWorkflowExecutionStartedEventAttributes().GetContinuedExecutionRunId()
		if p.RunID == "" || slices.Contains(line.RunIDs, p.RunID) {
			break
		}
		if len(line.RunIDs) > MaxChainRuns {
			line.Before = fmt.Sprintf("only %d runs before it are looked at", MaxChainRuns)
			break
		}
		line.RunIDs = append(line.RunIDs, p.RunID)
	}
	slices.Reverse(line.RunIDs)
	line.At = len(line.RunIDs) - 1
	return line, nil
}

// closing is the event that closed a run, nil where it is open.
func (p Pages) closing(ctx context.Context) (*historypb.HistoryEvent, error) {
	asking, cancel := context.WithTimeout(ctx, CallTimeout)
	defer cancel()
	r, err := p.C.DescribeWorkflowExecution(asking, p.WorkflowID, p.RunID)
	if err != nil || r.GetWorkflowExecutionInfo().GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING {
		return nil, err // asked for the end of an open run, the server waits for it
	}
	return p.single(ctx, enumspb.HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT)
}

// single is the first event of a run, or with the filter for it the one that closed it; nil
// where there is none.
func (p Pages) single(ctx context.Context, filter enumspb.HistoryEventFilterType) (*historypb.HistoryEvent, error) {
	ctx, cancel := context.WithTimeout(ctx, CallTimeout)
	defer cancel()
	r, err := p.C.WorkflowService().GetWorkflowExecutionHistory(ctx, &workflowservice.GetWorkflowExecutionHistoryRequest{
		Namespace: p.Namespace, Execution: p.execution(), MaximumPageSize: 1, HistoryEventFilterType: filter})
	if err != nil {
		return nil, err
	}
	events, err := p.eventsOf(r)
	return First(events), err
}
