package histories

import (
	"context"
	"time"

	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"

	"acescope/sources/cluster"
)

// ReadEvents calls fn with each page of a run's history as it is now, oldest first, and
// the log up to there, which holds events in short only. fn may be nil. The log that is
// returned is whole; with last above 0 it is of no more than so many of the newest
// events, which are read alone.
func ReadEvents(ctx context.Context, c client.Client, namespace, workflowID, runID string, last int, fn func(l *EventLog, from int) error) (*EventLog, error) {
	p := cluster.Pages{c, namespace, workflowID, runID}
	x := NewEventIndex(workflowID, runID)
	if last > 0 {
		err := readLast(ctx, p, x, last)
		l := x.Log(time.Now())
		if err == nil && fn != nil {
			err = fn(l, 0)
		}
		return withSpans(l, nil), err
	}
	var token []byte
	for {
		events, next, err := p.Forward(ctx, token, false)
		if err != nil {
			return nil, err
		}
		from := x.Len()
		x.Append(events)
		if fn != nil {
			if err := fn(x.Log(time.Now()), from); err != nil {
				return nil, err
			}
		}
		if token = next; len(token) == 0 {
			break
		}
	}
	l := x.Log(time.Now())
	return withSpans(l, pendingNow(ctx, p, l)), nil
}

func withSpans(l *EventLog, pending []PendingWork) *EventLog {
	l.Spans, l.ClockBack = Timeline(l, pending), ClockBack(l)
	return l
}

// readLast fills an index with the newest events.
func readLast(ctx context.Context, p cluster.Pages, x *EventIndex, last int) error {
	var token []byte
	for {
		events, next, err := p.Backward(ctx, min(last, cluster.OlderBatches), token)
		if err != nil {
			return err
		}
		x.Prepend(keepLast(events, last-x.Len()))
		if token = next; len(token) == 0 || x.Len() >= last {
			return nil
		}
	}
}

func keepLast(events []*historypb.HistoryEvent, n int) []*historypb.HistoryEvent {
	return events[max(len(events)-n, 0):]
}

// pendingNow is the activities under way, none where the server does not say.
func pendingNow(ctx context.Context, p cluster.Pages, l *EventLog) []PendingWork {
	if l.Closed {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, cluster.CallTimeout)
	defer cancel()
	d, err := p.C.DescribeWorkflowExecution(ctx, p.WorkflowID, p.RunID)
	if err != nil {
		return nil
	}
	var pending []PendingWork
	for _, a := range d.GetPendingActivities() {
		pending = append(pending, PendingWorkOf(a))
	}
	return pending
}
