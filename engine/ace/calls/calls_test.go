package calls_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"acescope/engine/ace"
	"acescope/engine/ace/calls"
)

// memory is an artifact store.
type memory struct {
	content map[string][]byte
	puts    int
}

func (m *memory) put(_ context.Context, content []byte, mediaType string) (ace.Ref, error) {
	sum := sha256.Sum256(content)
	ref := ace.Ref{SHA256: hex.EncodeToString(sum[:]), Size: int64(len(content)), MediaType: mediaType}
	if m.content == nil {
		m.content = map[string][]byte{}
	}
	m.puts++
	m.content[ref.SHA256] = bytes.Clone(content)
	return ref, nil
}

func (m *memory) get(_ context.Context, ref ace.Ref, limit int64) ([]byte, error) {
	data, ok := m.content[ref.SHA256]
	if !ok || int64(len(data)) > limit {
		return nil, errors.New("not found")
	}
	return data, nil
}

func asIs(line []byte) []byte { return line }

func user(text string) ace.ModelMessage {
	return ace.ModelMessage{Role: "user", Content: ace.ModelText{Text: text}}
}

// exchange returns a request whose answer asks for a tool, and the request with the tool's result.
func exchange(system string) []ace.ModelCall {
	tool := []ace.ModelToolCall{{ID: "c1", Name: "calculate", Arguments: `{"expression": "1+1"}`}}
	first := ace.ModelCall{Provider: "p", DurationMS: 12,
		Request: ace.ModelRequest{Model: "m", MaxTokens: 100,
			System:   []ace.ModelText{{Text: "role"}, {Text: system}},
			Messages: []ace.ModelMessage{user("question")}},
		Response: &ace.ModelResponse{Model: "m-2", FinishReason: "calls", Calls: tool,
			Usage: ace.Usage{InputTokens: 5, OutputTokens: 7}, Raw: []byte(`{"id":"x"}`)}}
	second := first
	second.Request.Messages = []ace.ModelMessage{user("question"), {Role: "assistant", Calls: tool},
		{Role: "user", Results: []ace.ModelToolResult{{ID: "c1", Content: ace.ModelText{Text: "2"}}}}}
	second.Response = &ace.ModelResponse{FinishReason: "end",
		Text: ace.ModelText{Text: strings.Repeat("long ", 2000)}}
	return []ace.ModelCall{first, second}
}

// A record returns the requests as they were added, though it stores repeated messages and long texts once.
func TestRoundTrip(t *testing.T) {
	m := &memory{}
	system := strings.Repeat("a bullet of the playbook\n", 400)
	for range 2 {
		r := &calls.Recorder{}
		for _, c := range exchange(system) {
			r.Add(c)
		}
		log, err := r.Store(t.Context(), m.put, asIs)
		if err != nil || log.Requests != 2 || log.Omitted != 0 || log.MediaType != ace.CallsMediaType {
			t.Fatalf("%+v, %v", log, err)
		}
		if lines := string(m.content[log.SHA256]); strings.Contains(lines, "a bullet") ||
			strings.Count(lines, `"question"`) != 1 {
			t.Errorf("repeated or long texts in %s", lines)
		}
		got, err := calls.Read(t.Context(), m.get, *log)
		if err != nil || !reflect.DeepEqual(got, exchange(system)) {
			t.Errorf("%+v, %v", got, err)
		}
	}
	if len(m.content) != 3 { // the record, the playbook, the answer
		t.Errorf("%d artifacts of two equal records", len(m.content))
	}
}

// Nothing is stored for a phase that asked no model, or without a recorder.
func TestNoRequests(t *testing.T) {
	m := &memory{}
	for _, r := range []*calls.Recorder{nil, {}} {
		log, err := r.Store(t.Context(), m.put, asIs)
		if log != nil || err != nil || m.puts != 0 {
			t.Errorf("%+v, %v, %d artifacts", log, err, m.puts)
		}
	}
}

// Secrets are removed from every part of a request before anything is stored.
func TestSecretsRemoved(t *testing.T) {
	m := &memory{}
	r := &calls.Recorder{}
	for _, c := range exchange(strings.Repeat("x", ace.InlineText) + "s3cret") {
		c.Error = "s3cret"
		c.Response.Raw = []byte(`{"text":"s3cret"}`)
		r.Add(c)
	}
	_, err := r.Store(t.Context(), m.put, func(line []byte) []byte {
		return bytes.ReplaceAll(line, []byte("s3cret"), []byte("[redacted]"))
	})
	if err != nil || m.puts == 0 {
		t.Fatal(err, m.puts)
	}
	for _, content := range m.content {
		if bytes.Contains(content, []byte("s3cret")) {
			t.Errorf("stored %.200s", content)
		}
	}
}

// A record is bounded; the requests beyond are counted.
func TestRecordBounded(t *testing.T) {
	m := &memory{}
	r := &calls.Recorder{}
	const each, n = 600 << 10, 5
	for i := range n {
		c := exchange("")[0]
		c.Response.Raw = fmt.Appendf(nil, `"%d%s"`, i, strings.Repeat("x", each))
		r.Add(c)
	}
	log, err := r.Store(t.Context(), m.put, asIs)
	if err != nil || log.Size > ace.MaxCallLog || log.Requests != 3 || log.Omitted != 2 {
		t.Fatalf("%+v, %v", log, err)
	}
	if got, err := calls.Read(t.Context(), m.get, *log); err != nil || len(got) != 3 {
		t.Errorf("%d requests, %v", len(got), err)
	}
}

func FuzzRead(f *testing.F) {
	m := &memory{}
	r := &calls.Recorder{}
	for _, c := range exchange("s") {
		r.Add(c)
	}
	log, err := r.Store(f.Context(), m.put, asIs)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(m.content[log.SHA256])
	f.Add([]byte(`{"request":{"repeated_messages":1}}`))
	f.Add([]byte(`{"request":{"messages":[{}]}}` + "\n" + `{"request":{"repeated_messages":1}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		get := func(context.Context, ace.Ref, int64) ([]byte, error) { return data, nil }
		list, err := calls.Read(t.Context(), get, ace.CallLog{})
		if err == nil {
			_ = calls.Text(list)
		}
	})
}
