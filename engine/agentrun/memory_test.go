package agentrun

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestRemember holds that a transcript has a call done only where that is certain, and tells
// nothing of what came before the call.
func TestRemember(t *testing.T) {
	say := func(more, model, stop, block string) string {
		return fmt.Sprintf(`{"type":"assistant",%s"message":{"id":"m","model":"%s","stop_reason":%s,"content":[%s],"usage":{"output_tokens":7}}}`, more, model, stop, block)
	}
	const (
		opus  = "claude-opus-5-5"
		user  = `{"type":"user","message":{"role":"user","content":"do it"}}`
		text  = `{"type":"text","text":"x"}`
		use   = `{"type":"tool_use","id":"t1","name":"Bash","input":{}}`
		ends  = `"end_turn"`
		calls = `"tool_use"`
	)
	answer, call := say("", opus, ends, text), say("", opus, calls, use)
	for _, c := range []struct {
		what        string
		lines       []string
		begun, done bool
	}{
		{"nothing", nil, false, false},
		{"asked", []string{user}, true, false},
		{"answered", []string{user, answer}, true, true},
		{"a call", []string{user, call}, true, false},
		{"gone on with", []string{user, answer, user}, true, false},
		{"nobody tells that it is the end", []string{user, say("", opus, "null", text)}, true, false},
		{"what the CLI says when it is resumed", []string{user, call, `{"type":"user","isMeta":true,"message":{"content":"Continue"}}`, say("", "<synthetic>", `"stop_sequence"`, text)}, true, false},
		{"the API failed", []string{user, say(`"isApiErrorMessage":true,`, "<synthetic>", `"stop_sequence"`, text)}, true, false},
		{"a subagent answered", []string{user, call, say(`"isSidechain":true,`, opus, ends, text)}, true, false},
		{"no JSON", []string{user, "{"}, true, false},
	} {
		path := filepath.Join(t.TempDir(), "s.jsonl")
		before := user + "\n" + answer + "\n" + `{"type":"cost-state","totalCostUSD":0.5}` + "\n"
		if err := os.WriteFile(path, []byte(before+strings.Join(append(c.lines, ""), "\n")), 0o600); err != nil {
			t.Fatal(err)
		}
		m, err := remember(t.Context(), path, int64(len(before)))
		if err != nil || m.Begun != c.begun || m.Done != c.done || m.Counted != 0.5 || m.Done && m.Text != "x" {
			t.Errorf("%s: %+v, %v", c.what, m, err)
		}
		if len(c.lines) == 0 && m.Used.OutputTokens != 0 {
			t.Errorf("%s: %+v", c.what, m.Used)
		}
	}
	if _, err := remember(t.Context(), t.TempDir(), 0); err == nil {
		t.Error("a directory is read")
	}
}
