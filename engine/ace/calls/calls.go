// Package calls records the requests that a phase sends to its model, and reads such records. A record has an
// [ace.ModelCall] per line. The package imports engine/ace and starts no goroutine.
//
// Bounds: [ace.MaxCallLog] bytes per record; later requests are counted. Texts above [ace.InlineText] are
// artifacts of their own.
package calls

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"acescope/engine/ace"
)

// Recorder holds the requests of a phase. A nil Recorder records nothing. It is safe for concurrent use.
type Recorder struct {
	mu    sync.Mutex
	calls []ace.ModelCall
}

type recorderKey struct{}

// WithRecorder returns a context in which providers add their requests to the recorder.
func WithRecorder(ctx context.Context, r *Recorder) context.Context {
	return context.WithValue(ctx, recorderKey{}, r)
}

// RecorderOf returns the recorder of a context, or nil.
func RecorderOf(ctx context.Context) *Recorder {
	r, _ := ctx.Value(recorderKey{}).(*Recorder)
	return r
}

// Add adds a request with all of its messages and texts.
func (r *Recorder) Add(c ace.ModelCall) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, c)
}

// Usage returns the usage of all requests, or nil without responses.
func (r *Recorder) Usage() *ace.Usage {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	var sum *ace.Usage
	for _, c := range r.calls {
		if c.Response != nil {
			sum = new(cmp.Or(sum, &ace.Usage{}).Add(c.Response.Usage))
		}
	}
	return sum
}

// Put stores an artifact.
type Put func(ctx context.Context, content []byte, mediaType string) (ace.Ref, error)

// Store stores the record and returns a reference to it, or nil if there were no requests. The function
// redact removes secrets from a line of JSON.
func (r *Recorder) Store(ctx context.Context, put Put, redact func(line []byte) []byte) (*ace.CallLog,
	error) {
	if r == nil {
		return nil, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.calls) == 0 {
		return nil, nil
	}
	w := writer{ctx: ctx, put: put}
	for i, c := range r.calls {
		if w.full {
			break
		}
		line, err := json.Marshal(c)
		if err != nil {
			return nil, fmt.Errorf("record of request %d: %w", i+1, err)
		}
		if err := json.Unmarshal(redact(line), &c); err != nil {
			return nil, fmt.Errorf("record of request %d: %w", i+1, err)
		}
		if err := w.write(c); err != nil {
			return nil, fmt.Errorf("record of request %d: %w", i+1, err)
		}
	}
	ref, err := put(ctx, w.lines, ace.CallsMediaType)
	return &ace.CallLog{Ref: ref, Requests: w.written, Omitted: len(r.calls) - w.written}, err
}

// writer formats the lines of a record.
type writer struct {
	ctx      context.Context
	put      Put
	lines    []byte
	written  int
	full     bool
	previous []json.RawMessage // the messages of the previous request
}

func (w *writer) write(c ace.ModelCall) error {
	var messages []json.RawMessage
	for _, m := range c.Request.Messages {
		line, err := json.Marshal(m)
		if err != nil {
			return err
		}
		messages = append(messages, line)
	}
	for same := 0; same < min(len(messages), len(w.previous)); same++ {
		if !bytes.Equal(messages[same], w.previous[same]) {
			break
		}
		c.Request.Repeated = same + 1
	}
	c.Request.Messages = c.Request.Messages[c.Request.Repeated:]
	for _, t := range texts(&c) {
		if len(t.Text) <= ace.InlineText {
			continue
		}
		ref, err := w.put(w.ctx, []byte(t.Text), "text/plain; charset=utf-8")
		if err != nil {
			return err
		}
		*t = ace.ModelText{Ref: &ref}
	}
	line, err := json.Marshal(c)
	if err != nil {
		return err
	}
	if len(w.lines)+len(line) >= ace.MaxCallLog {
		w.full = true
		return nil
	}
	w.lines = append(append(w.lines, line...), '\n')
	w.written++
	w.previous = messages
	return nil
}

// texts returns the texts of a request and its response.
func texts(c *ace.ModelCall) (all []*ace.ModelText) {
	for i := range c.Request.System {
		all = append(all, &c.Request.System[i])
	}
	for i := range c.Request.Messages {
		m := &c.Request.Messages[i]
		all = append(all, &m.Content)
		for j := range m.Results {
			all = append(all, &m.Results[j].Content)
		}
	}
	if c.Response != nil {
		all = append(all, &c.Response.Text)
	}
	return all
}

// maxText bounds a text of a record, in bytes.
const maxText = 32 << 20

// Get reads an artifact of at most limit bytes.
type Get func(ctx context.Context, ref ace.Ref, limit int64) ([]byte, error)

// Read reads a record. The requests have all of their messages and texts.
func Read(ctx context.Context, get Get, log ace.CallLog) ([]ace.ModelCall, error) {
	data, err := get(ctx, log.Ref, ace.MaxCallLog)
	if err != nil {
		return nil, fmt.Errorf("record of model calls: %w", err)
	}
	var list []ace.ModelCall
	var previous []ace.ModelMessage
	for n, line := range bytes.Split(bytes.TrimSuffix(data, []byte("\n")), []byte("\n")) {
		c, err := decode(line, previous)
		if err != nil {
			return nil, fmt.Errorf("record of model calls %s, line %d: %w", log.SHA256, n+1, err)
		}
		for _, t := range texts(&c) {
			if t.Ref == nil {
				continue
			}
			text, err := get(ctx, *t.Ref, maxText)
			if err != nil {
				return nil, fmt.Errorf("record of model calls %s, line %d: %w", log.SHA256, n+1, err)
			}
			*t = ace.ModelText{Text: string(text)}
		}
		previous = c.Request.Messages
		list = append(list, c)
	}
	return list, nil
}

// decode parses a line of a record and adds the messages that the request repeats from the previous request.
func decode(line []byte, previous []ace.ModelMessage) (c ace.ModelCall, err error) {
	if err = json.Unmarshal(line, &c); err != nil {
		return c, err
	}
	n := c.Request.Repeated
	if n < 0 || n > len(previous) {
		return c, fmt.Errorf("the request repeats %d messages, but the previous request has %d", n,
			len(previous))
	}
	c.Request.Messages = slices.Concat(previous[:n], c.Request.Messages)
	c.Request.Repeated = 0
	return c, nil
}
