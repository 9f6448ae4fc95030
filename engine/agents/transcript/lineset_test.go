package transcript

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"acescope/engine/agents/price"
)

// TestForks: b is a fork of a after two turns, c of b after three; a continues later.
func TestForks(t *testing.T) {
	dir := t.TempDir()
	turn := func(id string, minute int) string {
		return fmt.Sprintf(`{"type":"user","uuid":"u%[1]s","timestamp":"2026-11-20T09:%02[2]d:00Z","message":{"content":"ask %[1]s"}}
{"type":"assistant","uuid":"a%[1]s","timestamp":"2026-11-20T09:%02[2]d:30Z","message":{"id":"m%[1]s","model":"claude-opus-5-5","content":[{"type":"text","text":"x"}],"stop_reason":"end_turn","usage":{"input_tokens":100,"output_tokens":10}}}
`, id, minute)
	}
	files := map[string]string{
		"a": turn("1", 1) + turn("2", 2) + turn("a3", 10) + turn("a4", 11),
		"b": turn("1", 1) + turn("2", 2) + turn("b3", 12),
		"c": turn("1", 1) + turn("2", 2) + turn("b3", 12) + turn("c4", 20) + turn("c5", 21),
		"d": turn("other", 1),
	}
	sets := map[string]*LineSet{}
	for name, data := range files {
		path := filepath.Join(dir, name+".jsonl")
		if err := os.WriteFile(path, []byte(strings.ReplaceAll(data, `"type"`, `"sessionId":"`+name+
			`","type"`)), 0o600); err != nil {
			t.Fatal(err)
		}
		k, err := ReadLineSet(context.Background(), path)
		if err != nil {
			t.Fatal(err)
		}
		sets[name] = k
	}
	for name, want := range map[string]struct {
		parent string
		shared int
	}{"a": {"", 0}, "b": {"a", 4}, "c": {"b", 6}, "d": {"", 0}} {
		var others []*LineSet
		for _, o := range []string{"a", "b", "c", "d"} {
			if o != name {
				others = append(others, sets[o])
			}
		}
		parent, shared := sets[name].Parent(others, 0)
		got := ""
		if parent != nil {
			got = strings.TrimSuffix(filepath.Base(parent.Path), ".jsonl")
			s, err := sets[name].Inherited(context.Background(), parent, price.Shipped())
			if err != nil || s.Turns != want.shared/2 || s.Tokens.Total() != int64(110*want.shared/2) {
				t.Errorf("%s: %d inherited turns, %d tokens, %v", name, s.Turns, s.Tokens.Total(), err)
			}
		}
		if got != want.parent || shared != want.shared {
			t.Errorf("%s is a fork of %q with %d shared lines, want %q with %d", name, got, shared,
				want.parent, want.shared)
		}
	}
}
