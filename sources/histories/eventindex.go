package histories

import (
	"context"
	"slices"
	"time"

	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/proto"

	"acescope/sources/cluster"
)

// EventIndex collects the summaries of the events of one run, oldest first. It is not safe for concurrent
// use. It only appends, so published logs do not change.
type EventIndex struct {
	workflowID string
	runID      string
	history    *cluster.History
	shared     bool // others add to the history

	rows   []Event
	bytes  int64
	closed bool
	agent  agentCalls
}

// NewEventIndex returns an empty index of a history that others add to, or, if h is nil, of a history of its
// own.
func NewEventIndex(workflowID, runID string, h *cluster.History) *EventIndex {
	x := &EventIndex{workflowID: workflowID, runID: runID, history: h, shared: h != nil}
	if h == nil {
		x.history = cluster.HistoryOf(nil)
	}
	return x
}

// last returns the id of the last event, or 0.
func (x *EventIndex) last() int64 {
	if n := len(x.rows); n > 0 {
		return x.rows[n-1].ID
	}
	return 0
}

// Append adds events after the last one, in order, and skips known events.
func (x *EventIndex) Append(events []*historypb.HistoryEvent) {
	for len(events) > 0 && events[0].GetEventId() <= x.last() {
		events = events[1:]
	}
	if !x.shared {
		x.history.Add(events)
	}
	x.agent.apply(events)
	for _, e := range events {
		row := rowOf(e)
		size := proto.Size(e)
		row.Size = int32(size)
		x.rows = append(x.rows, row)
		x.bytes += int64(size)
		x.closed = x.closed || cluster.ClosesRun(e.GetEventType())
	}
}

// Log returns the events read so far, without spans and matches.
func (x *EventIndex) Log(now time.Time) *EventLog {
	l := &EventLog{WorkflowID: x.workflowID, RunID: x.runID, Closed: x.closed, Bytes: x.bytes, Updated: now,
		rows: x.rows, history: x.history, agent: &x.agent}
	if len(x.rows) > 0 {
		l.Unread = x.rows[0].ID - 1
	}
	return l
}

// NewEventLog returns the log of a complete history, for instance from a file.
func NewEventLog(workflowID, runID string, events []*historypb.HistoryEvent, now time.Time) *EventLog {
	x := NewEventIndex(workflowID, runID, nil)
	x.Append(events)
	return withSpans(x.Log(now), nil)
}

// ReadEvents calls fn with each page of a run's history, oldest first, and the log so far, which holds only
// summaries. fn may be nil. It returns the complete log. With last above 0, it reads only that number of the
// newest events.
func ReadEvents(ctx context.Context, c client.Client, namespace, workflowID, runID string, last int,
	fn func(l *EventLog, from int) error) (*EventLog, error) {
	p := cluster.Pages{c, namespace, workflowID, runID}
	x := NewEventIndex(workflowID, runID, nil)
	if last > 0 {
		events, err := readLast(ctx, p, last)
		x.Append(events)
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
		from := len(x.rows)
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

func withSpans(l *EventLog, pending []PendingActivity) *EventLog {
	l.Spans, l.ClockBack = Timeline(l, pending), countClockBack(l)
	return l
}

// readLast returns the newest events, oldest first.
func readLast(ctx context.Context, p cluster.Pages, last int) ([]*historypb.HistoryEvent, error) {
	var all []*historypb.HistoryEvent
	var token []byte
	for {
		events, next, err := p.Backward(ctx, min(last, cluster.OlderBatches), token)
		if err != nil {
			return all, err
		}
		all = slices.Concat(events, all)
		if token = next; len(token) == 0 || len(all) >= last {
			return all[max(len(all)-last, 0):], nil
		}
	}
}

// pendingNow returns the pending activities, or nil if the server does not answer.
func pendingNow(ctx context.Context, p cluster.Pages, l *EventLog) []PendingActivity {
	if l.Closed {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, cluster.CallTimeout)
	defer cancel()
	d, err := p.C.DescribeWorkflowExecution(ctx, p.WorkflowID, p.RunID)
	if err != nil {
		return nil
	}
	return pendingOf(d)
}
