package cluster

import (
	"bytes"
	"compress/flate"
	"context"
	"encoding/binary"
	"io"
	"slices"
	"sort"
	"sync"

	historypb "go.temporal.io/api/history/v1"
	"google.golang.org/protobuf/proto"
)

// History is the history of one run. It is read page by page, by whichever of its followers needs the next
// page first, and kept for all of them: the newest page as it was read, all events compressed. It is not
// bounded, because a server bounds a history (50 MB unless it is configured otherwise).
type History struct {
	follower follower      // used by the follower that has the turn
	turn     chan struct{} // one slot

	mu      sync.Mutex
	changed chan struct{} // closed and replaced by each change
	blocks  []eventBlock
	newest  []*historypb.HistoryEvent // the last page
	last    int64                     // id of the last event
	closed  bool                      // there are no further events
	away    error                     // why the server cannot be reached
	writer  *flate.Writer
}

// NewHistory returns a history of which nothing is read yet.
func NewHistory(p Pages) *History {
	h := &History{turn: make(chan struct{}, 1), changed: make(chan struct{})}
	h.follower.Pages = p
	return h
}

// HistoryOf returns the complete history of a run, for instance from a file.
func HistoryOf(events []*historypb.HistoryEvent) *History {
	h := NewHistory(Pages{})
	h.Add(events)
	h.close()
	return h
}

// Follow calls fn with the events after an id (0 for all), recorded and new, in order and once each, until
// the run closes. It retries while the server is unreachable, until ctx ends. away receives each new failure,
// and nil when the server answers again; it may be nil. fn must not change the events, which others read too.
func (h *History) Follow(ctx context.Context, after int64, away func(error),
	fn func([]*historypb.HistoryEvent) error) error {
	var reported error
	report := func(err error) {
		if away != nil && PlainError(err) != PlainError(reported) {
			away(err)
		}
		reported = err
	}
	for ctx.Err() == nil {
		h.mu.Lock()
		closed := h.closed
		reason := h.away
		changed := h.changed
		h.mu.Unlock()
		report(reason)
		events, err := h.pageAfter(after)
		if err != nil {
			return err
		}
		if len(events) > 0 {
			after = events[len(events)-1].GetEventId()
			if err := fn(events); err != nil {
				return err
			}
			continue
		}
		if closed {
			return nil
		}
		select {
		case h.turn <- struct{}{}:
			h.follower.away = func(err error) {
				h.change(func() { h.away = err })
				report(err)
			}
			err := h.readPage(ctx, after)
			if err != nil { // the next follower finds out for itself whether the server answers
				h.follower.lost = ""
				h.change(func() { h.away = nil })
			}
			<-h.turn
			if err != nil {
				return err
			}
		case <-changed:
		case <-ctx.Done():
		}
	}
	return ctx.Err()
}

// Each is like [History.Follow], but calls fn with one event at a time, beginning with the first.
func (h *History) Each(ctx context.Context, away func(error), fn func(*historypb.HistoryEvent) error) error {
	return h.Follow(ctx, 0, away, func(events []*historypb.HistoryEvent) error {
		for _, e := range events {
			if err := fn(e); err != nil {
				return err
			}
		}
		return nil
	})
}

// readPage reads the next page, unless another follower has just read it.
func (h *History) readPage(ctx context.Context, after int64) error {
	h.mu.Lock()
	known := h.last > after || h.closed
	h.mu.Unlock()
	if known {
		return nil
	}
	events, more, err := h.follower.next(ctx)
	h.Add(events)
	if err == nil && !more {
		h.close()
	}
	return err
}

// Events returns the recorded events. It reads them, unless the run has closed and its history is known.
func (h *History) Events(ctx context.Context) ([]*historypb.HistoryEvent, error) {
	var all []*historypb.HistoryEvent
	if h.Closed() {
		err := h.Follow(ctx, 0, nil, func(events []*historypb.HistoryEvent) error {
			all = append(all, events...)
			return nil
		})
		return all, err
	}
	p := h.follower.Pages
	all, err := ReadHistory(ctx, p.C, p.Namespace, p.WorkflowID, p.RunID)
	if n := len(all); err == nil && n > 0 && ClosesRun(all[n-1].GetEventType()) {
		h.fill(all)
	}
	return all, err
}

// fill keeps the complete history of a run, unless a follower has begun to read it.
func (h *History) fill(all []*historypb.HistoryEvent) {
	select {
	case h.turn <- struct{}{}:
		defer func() { <-h.turn }()
	default:
		return
	}
	if h.lastID() == 0 {
		h.Add(all)
		h.close()
	}
}

// close marks the history as complete.
func (h *History) close() {
	h.change(func() {
		h.closed = true
		h.away = nil
		h.writer = nil
	})
}

func (h *History) lastID() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.last
}

// Event returns the event with an id, or nil if it is not read.
func (h *History) Event(id int64) (*historypb.HistoryEvent, error) {
	events, err := h.pageAfter(id - 1)
	if e := First(events); e.GetEventId() == id {
		return e, err
	}
	return nil, err
}

// Closed reports whether the run has closed and its history is read to the end.
func (h *History) Closed() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.closed
}

func (h *History) change(change func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	change()
	close(h.changed)
	h.changed = make(chan struct{})
}

// Add keeps events that were read elsewhere. They must follow the last one.
func (h *History) Add(events []*historypb.HistoryEvent) {
	if len(events) == 0 {
		return
	}
	h.change(func() {
		h.newest = events
		h.last = events[len(events)-1].GetEventId()
		for len(events) > 0 {
			var block eventBlock
			block, events = h.pack(events)
			h.blocks = append(h.blocks, block)
		}
	})
}

// pageAfter returns some of the events after an id, beginning with the first; none if they are not read.
func (h *History) pageAfter(id int64) ([]*historypb.HistoryEvent, error) {
	h.mu.Lock()
	events := h.newest
	first := First(events)
	if first == nil || first.GetEventId() <= id+1 {
		h.mu.Unlock()
		skip := sort.Search(len(events), func(i int) bool { return events[i].GetEventId() > id })
		return events[skip:], nil
	}
	block := h.blockOf(id + 1)
	h.mu.Unlock()
	encoded, err := block.unpack()
	if err != nil {
		return nil, err
	}
	events = make([]*historypb.HistoryEvent, len(encoded))
	for i, b := range encoded {
		events[i] = &historypb.HistoryEvent{}
		if err := proto.Unmarshal(b, events[i]); err != nil {
			return nil, err
		}
	}
	skip := sort.Search(len(events), func(i int) bool { return events[i].GetEventId() > id })
	return events[skip:], nil
}

// blockOf returns the block of an event that is at most the last one. The lock is held.
func (h *History) blockOf(id int64) eventBlock {
	return h.blocks[sort.Search(len(h.blocks), func(i int) bool { return h.blocks[i].last >= id })]
}

// Block returns the encoded events that are compressed together with an event, and the id of the last of
// them; none if the event is not read.
func (h *History) Block(id int64) (encoded [][]byte, last int64) {
	h.mu.Lock()
	if id > h.last {
		h.mu.Unlock()
		return nil, 0
	}
	b := h.blockOf(id)
	h.mu.Unlock()
	encoded, _ = b.unpack() // cannot fail: pack made the block
	return encoded, b.last
}

// A block ends with the event that reaches one of these bounds. Reading one event unpacks its block.
const (
	blockEvents = 64
	blockBytes  = 256 << 10
)

// eventBlock is a compressed sequence of events, each preceded by its length.
type eventBlock struct {
	last int64 // id of its last event
	data []byte
}

// pack compresses the first of some events and returns the others.
func (h *History) pack(events []*historypb.HistoryEvent) (b eventBlock, rest []*historypb.HistoryEvent) {
	var plain []byte
	for n := 0; n < blockEvents && len(plain) < blockBytes && len(events) > 0; n++ {
		plain = binary.AppendUvarint(plain, uint64(proto.Size(events[0])))
		// encoding cannot fail: the event was just decoded
		plain, _ = proto.MarshalOptions{UseCachedSize: true}.MarshalAppend(plain, events[0])
		b.last = events[0].GetEventId()
		events = events[1:]
	}
	var out bytes.Buffer
	if h.writer == nil {
		h.writer, _ = flate.NewWriter(nil, flate.BestSpeed) // the level is valid
	}
	h.writer.Reset(&out)
	_, _ = h.writer.Write(plain) // to memory
	_ = h.writer.Close()
	b.data = bytes.Clone(out.Bytes())
	return b, events
}

// unpack returns the encoded events.
func (b eventBlock) unpack() (events [][]byte, err error) {
	plain, err := io.ReadAll(flate.NewReader(bytes.NewReader(b.data)))
	for err == nil && len(plain) > 0 {
		size, n := binary.Uvarint(plain)
		events = append(events, plain[n:n+int(size)])
		plain = plain[n+int(size):]
	}
	return events, err
}

// maxHistories bounds the histories that a link keeps.
const maxHistories = 8

// historySet keeps the most recently requested histories.
type historySet struct {
	mu   sync.Mutex
	list []keptHistory // newest last
}

type keptHistory struct {
	workflowID string
	runID      string
	history    *History
}

// History returns the history of a run, which all its callers share. Without a run id, it is an unshared
// history of the newest run, because a newer run may start later.
func (l *Link) History(workflowID, runID string) *History {
	s := &l.histories
	s.mu.Lock()
	defer s.mu.Unlock()
	kept := keptHistory{workflowID: workflowID, runID: runID}
	if i := s.index(workflowID, runID); i >= 0 {
		kept = s.list[i]
		s.list = slices.Delete(s.list, i, i+1)
	} else {
		kept.history = NewHistory(Pages{C: l.Client, Namespace: l.Namespace, WorkflowID: workflowID,
			RunID: runID})
	}
	if runID != "" {
		s.list = append(s.list, kept)
		s.list = slices.Delete(s.list, 0, max(0, len(s.list)-maxHistories))
	}
	return kept.history
}

// complete returns the history of a closed run if it is kept and completely read, otherwise nil.
func (l *Link) complete(workflowID, runID string) *History {
	s := &l.histories
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := s.index(workflowID, runID); i >= 0 && s.list[i].history.Closed() {
		return s.list[i].history
	}
	return nil
}

func (s *historySet) index(workflowID, runID string) int {
	return slices.IndexFunc(s.list, func(k keptHistory) bool {
		return k.workflowID == workflowID && k.runID == runID
	})
}

// ForgetHistories lets all histories be read again, because their payloads would now be decoded differently.
func (l *Link) ForgetHistories() {
	l.histories.mu.Lock()
	defer l.histories.mu.Unlock()
	l.histories.list = nil
}
