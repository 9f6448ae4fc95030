package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"acescope/engine/ace"
	"acescope/engine/tasks/run"
)

// shelf is a store of artifacts by digest.
type shelf map[string]string

func (s shelf) Open(_ context.Context, ref ace.Ref) (io.ReadCloser, error) {
	data, ok := s[ref.SHA256]
	if !ok {
		return nil, errors.New("artifact not found")
	}
	return io.NopCloser(strings.NewReader(data)), nil
}

func (s shelf) Path(_ context.Context, ref ace.Ref) (string, error) {
	if _, ok := s[ref.SHA256]; !ok {
		return "", errors.New("artifact not found")
	}
	return "/data/" + ref.SHA256, nil
}

func (s shelf) ref(name, content string) *ace.Ref {
	s[name] = content
	return &ace.Ref{SHA256: name, Size: int64(len(content))}
}

// TestTruncatesResults checks how long outputs are truncated, and what the message says.
func TestTruncatesResults(t *testing.T) {
	s := shelf{}
	long, doc := strings.Repeat("€", 60_000), `{"a":"`+strings.Repeat("b", 20_000)+`"}`
	for name, c := range map[string]struct {
		r       run.Result
		program bool
		size    int // characters of the output, 0 for any
		want    []string
	}{
		"inline": {run.Result{Output: json.RawMessage(`"hello"`), OutputIs: "text"}, false, 5, nil},
		"none":   {run.Result{OutputIs: "none"}, true, 0, nil},
		"text": {run.Result{OutputIs: "text", OutputRef: s.ref("t", long)}, false, MaxResult,
			[]string{"output is truncated to its first 50,000 characters; the whole text has 180,000 bytes and is the file /data/t."}},
		"whole json": {run.Result{OutputIs: "json", OutputRef: s.ref("j", doc)}, true, 0, nil},
		"whole text": {run.Result{OutputIs: "text", OutputRef: s.ref("w", doc)}, false, len(doc), nil},
		"text as json": {run.Result{OutputIs: "text", OutputRef: s.ref("q", `"`+strings.Repeat("c", 20_000)+
			`"`)}, false, 20_000, nil},
		"long json": {run.Result{OutputIs: "json", OutputRef: s.ref("l", `["`+strings.Repeat("d", 80_000)+
			`"]`), Stdout: strings.Repeat("o", 8000), Stderr: strings.Repeat("e", 8000),
			StdoutRef: s.ref("o", strings.Repeat("o", 80_000))}, true, MaxResult - 16_000,
			[]string{"stdout is its beginning and its end; the whole text is the file /data/o.",
				"output is truncated to its first 34,000 characters"}},
		"elsewhere": {run.Result{OutputIs: "json", OutputRef: &ace.Ref{SHA256: "gone", Size: 9},
			Dropped: 3}, true, 0, []string{"cannot be read here (artifact not found); it is artifact gone.",
			"Not stored, above the limit: 3 bytes"}},
		"no valid JSON": {run.Result{OutputIs: "invalid", Output: json.RawMessage(`"{\"a\""`)}, true, 4, nil},
	} {
		o := reply{Type: run.StartSession}
		if c.program {
			o.Type = run.ExecuteTask
		}
		c.r.Status = run.Completed
		out := New(Options{Artifacts: s}).withResult(t.Context(), o, c.r)
		for _, w := range c.want {
			if !strings.Contains(out.Message, w) {
				t.Errorf("%s: message %q, want %q", name, out.Message, w)
			}
		}
		if len(c.want) == 0 && out.Message != "" {
			t.Errorf("%s: message %q", name, out.Message)
		}
		var text string
		if c.size > 0 && (json.Unmarshal(out.Output, &text) != nil ||
			utf8.RuneCountInString(text) != c.size) {
			t.Errorf("%s: %d characters: %.40s", name, utf8.RuneCountInString(text), out.Output)
		}
		if len(out.Output) > 0 && !json.Valid(out.Output) {
			t.Errorf("%s: not JSON: %.40s", name, out.Output)
		}
		if _, err := json.Marshal(out); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if c.program != (out.Stdout != nil) {
			t.Errorf("%s: stdout %v", name, out.Stdout)
		}
	}
}
