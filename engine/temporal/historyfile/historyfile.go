// Package historyfile reads exported workflow histories and writes them in the form that
// Temporal's replayers read. It may import Temporal's API types and
// engine/internal/jsonscan only.
//
// Read accepts the output of "temporal workflow show -o json" and of the Web UI (an object
// with "events", or the bare list), the server's response to GetWorkflowExecutionHistory as
// JSON, lists or sequences of those, single events one per line, and any of it compressed
// with gzip.
//
// Order: histories and events keep the order of the file. Bounds: files of more than
// [MaxBytes] after decompression are rejected, and so are files that decompress to more than
// 200 times their size. Loss: unknown fields are dropped; an event that cannot be decoded
// keeps its ID, time and type and is listed in [History.Unread]; a truncated file gives the
// events before the break, and an [Error] with the place.
package historyfile

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/tidwall/gjson"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/temporalproto"
	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// MaxBytes bounds the size of a file after decompression. The server's limit for a history
// is 50 MB, which becomes two or three times as long in JSON.
const MaxBytes = 1 << 30

// Histories decompress to 5 to 50 times their size. A file larger than minBombBytes that
// exceeds maxRatio is treated as an attempt to exhaust memory.
const (
	maxRatio     = 200
	minBombBytes = 64 << 20
)

const chunk = 256

// History is the history of one run.
type History struct {
	Events []*historypb.HistoryEvent
	Unread []Unread // events that could not be decoded, by position
}

// Unread describes an event of which only ID, time and type are known.
type Unread struct {
	Index  int    // position in [History.Events]
	Type   string // as the file names it; newer servers have types that this program does not know
	Offset int64  // in the file, after decompression
	Reason string
}

// Error reports where a file stops being a history. The part before the place was read.
type Error struct {
	Offset  int64 // bytes from the start, after decompression
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

// Write writes a history as the temporal command does.
func Write(w io.Writer, events []*historypb.HistoryEvent) error {
	data, err := temporalproto.CustomJSONMarshalOptions{Indent: "  "}.Marshal(
		&historypb.History{Events: events})
	if err != nil {
		return err
	}
	_, err = w.Write(append(data, '\n'))
	return err
}

// Read reads all histories of a file. If it fails, it also returns the histories before the error.
func Read(r io.Reader) ([]History, error) {
	data, readErr := readAll(r)
	s := scanner{data: data}
	err := s.scan()
	if err == nil && len(s.histories) == 0 {
		err = &Error{Offset: int64(len(data)), Reason: "no history found"}
	}
	if readErr != nil {
		err = readErr
	}
	return decode(data, s.histories), err
}

// readAll reads and, if needed, decompresses the file. If it fails, it also returns the data before the
// error.
func readAll(r io.Reader) ([]byte, error) {
	size := 0 // the size of a file, so that the buffer need not grow while it is read
	if f, ok := r.(fs.File); ok {
		if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
			size = int(min(info.Size(), MaxBytes))
		}
	}
	compressed := &countingReader{Reader: r}
	buffered := bufio.NewReaderSize(compressed, 1<<16)
	r = buffered
	if magic, _ := buffered.Peek(2); bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(buffered)
		if err != nil {
			return nil, fmt.Errorf("gzip: %w", err)
		}
		r = &ratioReader{Reader: z, compressed: compressed}
	}
	var buffer bytes.Buffer
	buffer.Grow(size + bytes.MinRead)
	_, err := buffer.ReadFrom(io.LimitReader(r, MaxBytes+1))
	data := buffer.Bytes()
	switch {
	case len(data) > MaxBytes:
		return nil, fmt.Errorf("larger than %d MB, the limit for a history file", MaxBytes>>20)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return data, &Error{Offset: int64(len(data)), Reason: "the compressed file is truncated"}
	case err != nil:
		return data, fmt.Errorf("after %d bytes: %w", len(data), err)
	}
	return bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")), nil
}

type countingReader struct {
	io.Reader
	n int64
}

func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n += int64(n)
	return n, err
}

// ratioReader fails if the decompressed data exceeds maxRatio times the compressed data.
type ratioReader struct {
	io.Reader
	compressed *countingReader
	n          int64
}

func (r *ratioReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	r.n += int64(n)
	if r.n > minBombBytes && r.n > maxRatio*r.compressed.n {
		return n, fmt.Errorf("decompresses to more than %d times its size, which no history does", maxRatio)
	}
	return n, err
}

func decode(data []byte, histories [][]span) []History {
	out := make([]History, len(histories))
	var mu sync.Mutex
	var decoding errgroup.Group
	decoding.SetLimit(runtime.GOMAXPROCS(0))
	for h, spans := range histories {
		out[h].Events = make([]*historypb.HistoryEvent, len(spans))
		for from := 0; from < len(spans); from += chunk {
			decoding.Go(func() error {
				unread := decodeChunk(data, spans, out[h].Events, from, min(from+chunk, len(spans)))
				mu.Lock()
				defer mu.Unlock()
				out[h].Unread = append(out[h].Unread, unread...)
				return nil
			})
		}
	}
	_ = decoding.Wait() // decoding returns no error
	for _, h := range out {
		slices.SortFunc(h.Unread, func(a, b Unread) int { return cmp.Compare(a.Index, b.Index) })
	}
	return out
}

func decodeChunk(data []byte, spans []span, events []*historypb.HistoryEvent, from,
	to int) (unread []Unread) {
	options := temporalproto.CustomJSONUnmarshalOptions{DiscardUnknown: true}
	for i := from; i < to; i++ {
		text := data[spans[i].from:spans[i].to]
		e := &historypb.HistoryEvent{}
		err := options.Unmarshal(text, e)
		if err == nil && e.EventType != enumspb.EVENT_TYPE_UNSPECIFIED {
			events[i] = e
			continue
		}
		u := Unread{Index: i, Offset: int64(spans[i].from), Reason: "unknown event type"}
		if err != nil {
			u.Reason = err.Error()
		}
		events[i], u.Type = decodePartly(text)
		unread = append(unread, u)
	}
	return unread
}

// decodePartly returns an event with only the ID and time of a JSON event, and its type name.
func decodePartly(text []byte) (*historypb.HistoryEvent, string) {
	if !json.Valid(text) {
		return &historypb.HistoryEvent{}, ""
	}
	field := func(name, protoName string) gjson.Result {
		if r := gjson.GetBytes(text, name); r.Exists() {
			return r
		}
		return gjson.GetBytes(text, protoName)
	}
	e := &historypb.HistoryEvent{EventId: field("eventId", "event_id").Int()}
	if at, err := time.Parse(time.RFC3339Nano, field("eventTime", "event_time").Str); err == nil {
		e.EventTime = timestamppb.New(at)
	}
	return e, field("eventType", "event_type").String()
}
