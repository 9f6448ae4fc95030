package histories

import (
	"strings"
	"testing"

	"acescope/engine/ace"
	"acescope/engine/learning/playbook"
	"acescope/engine/temporal/replay/replaytest"
	"acescope/sources/cluster"
)

// A page has every event with what it did, escapes what models write, and replaces secrets.
func TestPage(t *testing.T) {
	secret := "sk-ant-api03-" + strings.Repeat("Ab3dEf9h", 11) + "AA"
	t.Setenv("ACESCOPE_TEST_TOKEN", "correct horse battery")
	events := replaytest.WrongTask()
	m := &replaytest.History{Events: events}
	m.Signal(ace.ToolEvent{EventID: "u3", CallID: "c3", Kind: ace.KindToolUse,
		Name: "<script>alert(1)</script>",
		Args: []byte(`{"key":"` + secret + `","phrase":"correct horse battery"}`)})
	w := NewWalk(m.Events, nil, nil)
	w.Books.Given = map[string]*playbook.BulletHistory{"calc-2": {Bullet: playbook.Bullet{ID: "calc-2",
		Content: "Guess\x1b[31m."}}}
	data, err := w.Page(t.Context(), cluster.Deps{})
	if err != nil {
		t.Fatal(err)
	}
	page := string(data)
	for _, want := range []string{"Where the answer became wrong", "2437.5", "Guess[31m.", "&lt;script&gt;",
		`"expression":"150000 / 6.5"`,
		"Divide only if a rate is wanted.", "used by others", "v2 of books, 3 bullets", "<svg", `id="e40"`,
		"[redacted:"} {
		if !strings.Contains(page, want) && !strings.Contains(page, strings.ReplaceAll(want, `"`, "&#34;")) {
			t.Errorf("the page has no %q", want)
		}
	}
	for _, bad := range []string{"<script", secret, "correct horse", "\x1b", "http://", "https://"} {
		if strings.Contains(page, bad) {
			t.Errorf("the page contains %q", bad)
		}
	}
	if n := strings.Count(page, "<details id="); n != w.Len() {
		t.Errorf("%d events of %d", n, w.Len())
	}
}

// Every event of every recorded history is described in words.
func TestWords(t *testing.T) {
	for _, name := range replaytest.RecordedNames {
		w := NewWalk(replaytest.Recorded(t, name), nil, nil)
		for pos := 1; pos <= w.Len(); pos++ {
			if words := w.Words(pos); words == "" || words == w.EventType(pos) {
				t.Errorf("%s, event %d: %q", name, pos, words)
			}
		}
	}
	w := NewWalk(replaytest.WrongTask(), nil, nil)
	words := map[string]bool{}
	for pos := 1; pos <= w.Len(); pos++ {
		words[w.Words(pos)] = true
	}
	for _, want := range []string{"generator is scheduled", "generator starts", "skills completed after 1s",
		"tool call look_up failed after 40ms: no such formula", "workflow task completed", "the run starts",
		"the run completed"} {
		if !words[want] {
			t.Errorf("no event says %q: %v", want, words)
		}
	}
}
