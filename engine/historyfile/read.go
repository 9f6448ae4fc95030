package historyfile

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strconv"
	"sync"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/temporalproto"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// MaxBytes bounds what is read of one file, after decompression. The server's own limit
// for a history is 50 MB, which JSON makes some two or three times as long.
const MaxBytes = 1 << 30

// History is the history of one run.
type History struct {
	Events []*historypb.HistoryEvent
	// Unread lists the events that could not be read whole, by position in Events.
	Unread []Unread
}

// Unread is an event of which only id, time and type are known.
type Unread struct {
	Index  int
	Type   string // as the file names it: newer servers have types that this program does not know
	Offset int64  // in the file, after decompression
	Reason string
}

// Error says where a file is not a history. Histories and events before it were read.
type Error struct {
	Offset  int64 // bytes from the begin, after decompression
	History int   // 1-based number of the history, 0 before the first
	Event   int   // 1-based position of the event in that history
	Reason  string
}

func (e *Error) Error() string {
	if e.History == 0 {
		return fmt.Sprintf("byte %d: %s", e.Offset, e.Reason)
	}
	return fmt.Sprintf("byte %d, event %d of history %d: %s", e.Offset, e.Event, e.History, e.Reason)
}

// Read reads every history of a file. With an error, what came before it is returned
// all the same.
func Read(r io.Reader) ([]History, error) {
	data, broken := readAll(r)
	s := scanner{data: data}
	err := s.scan()
	if err == nil && len(s.list) == 0 {
		err = &Error{Offset: int64(len(data)), Reason: "there is no history in it"}
	}
	if broken != nil {
		err = broken
	}
	return decode(data, s.list), err
}

// readAll reads all there is, decompressed where that is needed. With an error, what was
// read before it is returned.
func readAll(r io.Reader) ([]byte, error) {
	packed := &counter{Reader: r}
	buffered := bufio.NewReaderSize(packed, 1<<16)
	r = buffered
	if magic, _ := buffered.Peek(2); bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(buffered)
		if err != nil {
			return nil, fmt.Errorf("gzip: %w", err)
		}
		r = &swelling{Reader: z, packed: packed}
	}
	data, err := io.ReadAll(io.LimitReader(r, MaxBytes+1))
	switch {
	case len(data) > MaxBytes:
		return nil, fmt.Errorf("more than %d MB: too long for a history", MaxBytes>>20)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return data, &Error{Offset: int64(len(data)), Reason: "the compressed file ends in the middle"}
	case err != nil:
		return data, fmt.Errorf("after %d bytes: %w", len(data), err)
	}
	return bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")), nil
}

// What is compressed may swell: histories by 5 to 50 times. More than maxSwell, in what is
// no small file, is meant to fill the memory.
const (
	maxSwell   = 200
	smallBytes = 64 << 20
)

// counter counts what was read.
type counter struct {
	io.Reader
	n int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n += int64(n)
	return n, err
}

// swelling ends where too much comes of too little.
type swelling struct {
	io.Reader
	packed *counter
	n      int64
}

func (s *swelling) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	if s.n += int64(n); s.n > smallBytes && s.n > maxSwell*s.packed.n {
		return n, fmt.Errorf("it swells to more than %d times its compressed size: it is no history", maxSwell)
	}
	return n, err
}

// stretch is how many events one goroutine decodes at a time.
const stretch = 256

// decode makes events of their texts, on all processors.
func decode(data []byte, list [][]span) []History {
	out := make([]History, len(list))
	type job struct{ history, from, to int }
	jobs := make(chan job)
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for j := range jobs {
				unread := decodeStretch(data, list[j.history], out[j.history].Events, j.from, j.to)
				if len(unread) > 0 {
					mu.Lock()
					out[j.history].Unread = append(out[j.history].Unread, unread...)
					mu.Unlock()
				}
			}
		})
	}
	for h, spans := range list {
		out[h].Events = make([]*historypb.HistoryEvent, len(spans))
		for from := 0; from < len(spans); from += stretch {
			jobs <- job{h, from, min(from+stretch, len(spans))}
		}
	}
	close(jobs)
	wg.Wait()
	for h := range out {
		sortUnread(out[h].Unread)
	}
	return out
}

// decodeStretch decodes events[from:to].
func decodeStretch(data []byte, spans []span, events []*historypb.HistoryEvent, from, to int) (unread []Unread) {
	known := temporalproto.CustomJSONUnmarshalOptions{DiscardUnknown: true}
	for i := from; i < to; i++ {
		at := spans[i]
		e := &historypb.HistoryEvent{}
		err := known.Unmarshal(data[at.from:at.to], e)
		if err == nil && e.EventType != enumspb.EVENT_TYPE_UNSPECIFIED {
			events[i] = e
			continue
		}
		events[i] = rough(data[at.from:at.to])
		reason := "this program does not know the type"
		if err != nil {
			reason = err.Error()
		}
		unread = append(unread, Unread{Index: i, Type: typeName(data[at.from:at.to]), Offset: int64(at.from), Reason: reason})
	}
	return unread
}

// head is what every event has, as text or number, in either way of writing names.
type head struct {
	ID    json.RawMessage `json:"eventId"`
	ID2   json.RawMessage `json:"event_id"`
	Time  string          `json:"eventTime"`
	Time2 string          `json:"event_time"`
	Type  json.RawMessage `json:"eventType"`
	Type2 json.RawMessage `json:"event_type"`
}

// rough is an event of which only id and time are known, where that much can be read.
func rough(text []byte) *historypb.HistoryEvent {
	var h head
	_ = json.Unmarshal(text, &h) // what it could read before an error is kept
	e := &historypb.HistoryEvent{EventId: number(h.ID)}
	if e.EventId == 0 {
		e.EventId = number(h.ID2)
	}
	for _, t := range []string{h.Time, h.Time2} {
		if at, err := time.Parse(time.RFC3339Nano, t); err == nil {
			e.EventTime = timestamppb.New(at)
		}
	}
	return e
}

func typeName(text []byte) string {
	var h head
	_ = json.Unmarshal(text, &h)
	for _, raw := range []json.RawMessage{h.Type, h.Type2} {
		var name string
		if json.Unmarshal(raw, &name) == nil {
			return name
		}
		if len(raw) > 0 {
			return string(raw)
		}
	}
	return ""
}

// number is an id, which protobuf's JSON writes as text.
func number(raw json.RawMessage) int64 {
	n, _ := strconv.ParseInt(string(bytes.Trim(raw, `"`)), 10, 64)
	return n
}
