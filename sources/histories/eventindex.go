package histories

import (
	"bytes"
	"compress/flate"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"time"

	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/proto"

	"acescope/sources/cluster"
)

// EventIndex collects the events of one run from both sides: pages before the first and events after the last.
// It is not safe for concurrent use. It only appends to its slices, so published logs do not change.
type EventIndex struct {
	workflowID, runID string

	older, newer []Event
	raw          rawStore
	decode       eventDecoder
	bytes        int64
	bare         int
	Closed       bool
	began        bool   // the first event is read
	Token        []byte // of the page before the first event, otherwise nil
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

// Append adds events after the last one, in order, and skips known events.
func (x *EventIndex) Append(events []*historypb.HistoryEvent) {
	for len(events) > 0 && events[0].GetEventId() <= x.Last() {
		events = events[1:]
	}
	x.newer = append(x.newer, x.rows(events)...)
}

// Prepend adds a page before the first event, in order.
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
		x.Closed = x.Closed || cluster.ClosesRun(e.GetEventType())
		x.began = x.began || e.GetEventId() == 1
	}
	return rows
}

// Log returns the events read so far, without spans and matches.
func (x *EventIndex) Log(now time.Time) *EventLog {
	l := &EventLog{WorkflowID: x.workflowID, RunID: x.runID, Closed: x.Closed, Bytes: x.bytes, Kept: x.raw.bytes, NotKept: x.bare,
		Updated: now, older: x.older, newer: x.newer, raw: x.raw.blocks}
	l.Unread = max(x.first()-1, 0)
	l.Cut = l.Unread > 0 && l.Len() >= cluster.MaxEvents
	return l
}

// NewEventLog returns the log of a complete history, for instance from a file.
func NewEventLog(workflowID, runID string, events []*historypb.HistoryEvent, now time.Time) *EventLog {
	x := NewEventIndex(workflowID, runID)
	x.Append(events)
	l := x.Log(now)
	l.Spans, l.ClockBack = Timeline(l, nil), countClockBack(l)
	return l
}

// ReadEvents calls fn with each page of a run's history, oldest first, and the log so far, which holds only
// summaries. fn may be nil. It returns the complete log. With last above 0, it reads only that number of the
// newest events.
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
	l.Spans, l.ClockBack = Timeline(l, pending), countClockBack(l)
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

// pendingNow returns the pending activities, or nil if the server does not answer.
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

// rawStore keeps complete events in compressed blocks. It stops at maxKept bytes; later events are not kept.
type rawStore struct {
	blocks []rawBlock
	bytes  int64
	writer *flate.Writer
	buf    []byte
}

// rawBlock is a compressed sequence of events, each preceded by its length.
type rawBlock []byte

// Bounds of a block. Opening an event unpacks its block.
const (
	blockEvents = 64
	blockBytes  = 256 << 10
)

// rawPlace locates an event: the number of its block, from 1, and its index in the block.
type rawPlace struct {
	block uint32
	slot  uint16
}

func (p rawPlace) kept() bool { return p.block > 0 }

// add keeps events and returns their places and sizes.
func (s *rawStore) add(events []*historypb.HistoryEvent) ([]rawPlace, []int) {
	places, sizes := make([]rawPlace, len(events)), make([]int, len(events))
	slot := 0
	s.buf = s.buf[:0]
	for i, e := range events {
		sizes[i] = proto.Size(e)
		if s.bytes >= maxKept {
			continue
		}
		s.buf = binary.AppendUvarint(s.buf, uint64(sizes[i]))
		s.buf, _ = proto.MarshalOptions{UseCachedSize: true}.MarshalAppend(s.buf, e) // the event was just decoded
		places[i] = rawPlace{uint32(len(s.blocks) + 1), uint16(slot)}
		if slot++; slot == blockEvents || len(s.buf) >= blockBytes || i == len(events)-1 {
			s.flush()
			slot = 0
		}
	}
	s.flush()
	return places, sizes
}

func (s *rawStore) flush() {
	if len(s.buf) == 0 {
		return
	}
	var out bytes.Buffer
	if s.writer == nil {
		s.writer, _ = flate.NewWriter(&out, flate.BestSpeed) // the level is valid
	} else {
		s.writer.Reset(&out)
	}
	_, _ = s.writer.Write(s.buf) // to memory
	_ = s.writer.Close()
	block := bytes.Clone(out.Bytes())
	s.blocks = append(s.blocks, block)
	s.bytes += int64(len(block))
	s.buf = s.buf[:0]
}

// unpack returns the encoded events of a block.
func (b rawBlock) unpack() ([][]byte, error) {
	all, err := io.ReadAll(flate.NewReader(bytes.NewReader(b)))
	if err != nil {
		return nil, err
	}
	var events [][]byte
	for len(all) > 0 {
		size, n := binary.Uvarint(all)
		if n <= 0 || uint64(len(all)-n) < size {
			return nil, fmt.Errorf("truncated block of events")
		}
		events = append(events, all[n:n+int(size)])
		all = all[n+int(size):]
	}
	return events, nil
}

// Raw returns the complete event with an id, or nil if it is not kept.
func (l *EventLog) Raw(id int64) (*historypb.HistoryEvent, error) {
	row := l.Event(id)
	if row == nil || !row.place.kept() {
		return nil, nil
	}
	events, err := l.raw[row.place.block-1].unpack()
	if err != nil {
		return nil, err
	}
	e := &historypb.HistoryEvent{}
	return e, proto.Unmarshal(events[row.place.slot], e)
}
