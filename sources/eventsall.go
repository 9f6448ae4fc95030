package sources

import (
	"context"
	"time"

	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"
)

// ReadEvents calls fn with each page of a run's history as it is now, oldest first, and
// the log up to there, which holds events in short only. fn may be nil. The log that is
// returned is whole; with last above 0 it is of no more than so many of the newest
// events, which are read alone.
func ReadEvents(ctx context.Context, c client.Client, namespace, workflowID, runID string, last int, fn func(l *EventLog, from int) error) (*EventLog, error) {
	p := pages{c, namespace, workflowID, runID}
	x := newEventIndex(workflowID, runID)
	if last > 0 {
		err := readLast(ctx, p, x, last)
		l := x.log(time.Now())
		if err == nil && fn != nil {
			err = fn(l, 0)
		}
		return withSpans(l, nil), err
	}
	var token []byte
	for {
		events, next, err := p.forward(ctx, token, false)
		if err != nil {
			return nil, err
		}
		from := x.len()
		x.append(events)
		if fn != nil {
			if err := fn(x.log(time.Now()), from); err != nil {
				return nil, err
			}
		}
		if token = next; len(token) == 0 {
			break
		}
	}
	l := x.log(time.Now())
	return withSpans(l, pendingNow(ctx, p, l)), nil
}

func withSpans(l *EventLog, pending []PendingWork) *EventLog {
	l.Spans, l.ClockBack = Timeline(l, pending), clockBack(l)
	return l
}

// readLast fills an index with the newest events.
func readLast(ctx context.Context, p pages, x *eventIndex, last int) error {
	var token []byte
	for {
		events, next, err := p.backward(ctx, min(last, olderBatches), token)
		if err != nil {
			return err
		}
		x.prepend(keepLast(events, last-x.len()))
		if token = next; len(token) == 0 || x.len() >= last {
			return nil
		}
	}
}

func keepLast(events []*historypb.HistoryEvent, n int) []*historypb.HistoryEvent {
	return events[max(len(events)-n, 0):]
}

// pendingNow is the activities under way, none where the server does not say.
func pendingNow(ctx context.Context, p pages, l *EventLog) []PendingWork {
	if l.Closed {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	d, err := p.c.DescribeWorkflowExecution(ctx, p.workflowID, p.runID)
	if err != nil {
		return nil
	}
	var pending []PendingWork
	for _, a := range d.GetPendingActivities() {
		pending = append(pending, pendingWork(a))
	}
	return pending
}
