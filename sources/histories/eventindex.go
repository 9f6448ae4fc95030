package histories

import (
	"time"

	historypb "go.temporal.io/api/history/v1"

	"acescope/sources/cluster"
)

// EventIndex collects the events of one run from both sides: pages before the first and
// events after the last. It is not safe for concurrent use. Its slices are only appended
// to, so that what was published stays as it was.
type EventIndex struct {
	workflowID, runID string

	older, newer []Event
	raw          rawStore
	decode       eventDecoder
	bytes        int64
	bare         int
	Closed       bool
	began        bool   // the first event is read
	Token        []byte // of the page before the first event, while there is one
}

func NewEventIndex(workflowID, runID string) *EventIndex {
	return &EventIndex{workflowID: workflowID, runID: runID}
}

func (x *EventIndex) first() int64 {
	switch {
	case len(x.older) > 0:
		return x.older[len(x.older)-1].ID
	case len(x.newer) > 0:
		return x.newer[0].ID
	}
	return 0
}

func (x *EventIndex) Last() int64 {
	switch {
	case len(x.newer) > 0:
		return x.newer[len(x.newer)-1].ID
	case len(x.older) > 0:
		return x.older[0].ID
	}
	return 0
}

func (x *EventIndex) Len() int { return len(x.older) + len(x.newer) }

// Append takes events that follow the last one, in order; those that are known already
// are left out.
func (x *EventIndex) Append(events []*historypb.HistoryEvent) {
	for len(events) > 0 && events[0].GetEventId() <= x.Last() {
		events = events[1:]
	}
	x.newer = append(x.newer, x.rows(events)...)
}

// Prepend takes a page that comes before the first event, in order.
func (x *EventIndex) Prepend(events []*historypb.HistoryEvent) {
	for n := len(events); n > 0 && x.Len() > 0 && events[n-1].GetEventId() >= x.first(); n-- {
		events = events[:n-1]
	}
	rows := x.rows(events)
	for i := len(rows) - 1; i >= 0; i-- {
		x.older = append(x.older, rows[i])
	}
}

func (x *EventIndex) rows(events []*historypb.HistoryEvent) []Event {
	rows := make([]Event, len(events))
	places, sizes := x.raw.add(events)
	for i, e := range events {
		rows[i] = x.decode.row(e)
		rows[i].place, rows[i].Size = places[i], int32(sizes[i])
		x.bytes += int64(sizes[i])
		if !places[i].kept() {
			x.bare++
		}
		x.Closed = x.Closed || cluster.Closing(e.GetEventType())
		x.began = x.began || e.GetEventId() == 1
	}
	return rows
}

// Log is what is known now, without spans and matches.
func (x *EventIndex) Log(now time.Time) *EventLog {
	l := &EventLog{WorkflowID: x.workflowID, RunID: x.runID, Closed: x.Closed, Bytes: x.bytes, Kept: x.raw.bytes, Bare: x.bare,
		Updated: now, older: x.older, newer: x.newer, raw: x.raw.blocks}
	l.Left = max(x.first()-1, 0)
	l.Cut = l.Left > 0 && l.Len() >= cluster.MaxEvents
	return l
}

// NewEventLog is the log of a history that is there whole, for instance in a file.
func NewEventLog(workflowID, runID string, events []*historypb.HistoryEvent, now time.Time) *EventLog {
	x := NewEventIndex(workflowID, runID)
	x.Append(events)
	l := x.Log(now)
	l.Spans, l.ClockBack = Timeline(l, nil), ClockBack(l)
	return l
}
