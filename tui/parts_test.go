package tui

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"acescope/theme"
	"acescope/tui/text"
)

// TestPromptsKeepSentLines checks that a refused text stays in the prompt, and that only sent texts are kept.
func TestPromptsKeepSentLines(t *testing.T) {
	p := prompts{history: promptHistory{}}
	sent := ""
	ask := func() {
		p.open = newPrompt(Prompt{Label: "/", Check: func(s string) error { return oops(s == "bad") },
			Done: func(s string) tea.Cmd { sent = s; return nil }}, p.history["/"], theme.Styles{}, 80)
	}
	typed := func(keys ...string) {
		for _, k := range keys {
			p.key(nil, keyFor(k), 0)
		}
	}
	ask()
	typed("b", "a", "d", "enter")
	if p.open == nil || sent != "" || p.open.refused == nil {
		t.Fatalf("a refused text closed the prompt or was sent: %q", sent)
	}
	typed("esc")
	ask()
	typed("o", "k", "enter")
	if p.open != nil || sent != "ok" {
		t.Errorf("sent %q", sent)
	}
	if got := p.history["/"]; len(got) != 1 || got[0] != "ok" {
		t.Errorf("kept %q", got)
	}
	if p.layout(80) != 0 {
		t.Error("a closed prompt takes lines")
	}
}

// TestEditedTextIsSafe checks that prompts, forms and dialogs show no character that a terminal may act on or
// hide, with the cursor where the text before it ends, and that the values keep them.
func TestEditedTextIsSafe(t *testing.T) {
	const before, after, shown = "a\u202eb\u200b\u3164x", "\u2066c\u2028d\ufe0f\U000e0041", "abxc d"
	check := func(what string, lines []string) {
		t.Helper()
		drawn := ansi.Strip(strings.Join(lines, "\n"))
		if !strings.Contains(drawn, shown) || strings.ContainsFunc(drawn, func(r rune) bool {
			return r != '\n' && text.Hidden(r)
		}) {
			t.Errorf("%s: %q", what, lines)
		}
	}
	s := theme.FromEnv(true, func(string) string { return "" })

	f := newForm(Form{Title: shown + before, Fields: []Field{{Label: "x", Hint: before + after,
		Value: before + after},
		{Label: "y", Value: before + after}}}, nil, s)
	f.inputs[0].SetCursor(utf8.RuneCountInString(before))
	_, start := f.draw(80, 20)
	f.fresh = false
	lines, cursor := f.draw(80, 20)
	check("form", lines)
	if f.value(0) != before+after {
		t.Errorf("the form changed its value: %q", f.value(0))
	}
	f.inputs[0].CursorStart()
	if _, start = f.draw(80, 20); cursor.Position.X-start.Position.X != text.Width("abx") {
		t.Errorf("cursor at %d, input at %d", cursor.Position.X, start.Position.X)
	}

	value := "one\u200d\n" + before + after + "\ntwo"
	p := prompts{open: newPrompt(Prompt{Label: "to\u202e", Hint: after, Lines: true, Value: value}, nil, s,
		80)}
	p.open.input.CursorUp()
	p.open.input.SetCursorColumn(utf8.RuneCountInString(before))
	p.layout(80)
	lines, cursor = p.drawBelow(nil, s, 80, 20)
	check("prompt", lines)
	if want := text.Width(" to abx"); cursor.Position.X != want || cursor.Position.Y != 1 {
		t.Errorf("cursor at %v, want column %d in line 1", cursor.Position, want)
	}
	if p.open.input.Value() != value {
		t.Errorf("the prompt changed its value: %q", p.open.input.Value())
	}

	_, lines = newQuestion(Question{Title: before, Lines: []string{before + after}}).visible(s, 80, 20, noon)
	check("dialog", box(s, 80, before, lines))
}

// TestFormsKeepValues checks that a closed form keeps what was typed until it is submitted.
func TestFormsKeepValues(t *testing.T) {
	notes := messages{now: func() time.Time { return noon }}
	all := forms{kept: map[string]Values{}, context: t.Context(), messages: &notes,
		clipboard: &clipboard{messages: &notes}}
	fail := errors.New("disk full")
	spec := Form{Name: "new", Fields: []Field{{Name: "x"}},
		Submit: func(context.Context, Values) (func(Shell) tea.Cmd, error) {
			return nil, fail
		}}
	all.fill(spec, theme.Styles{})
	for _, k := range []string{"a", "esc"} {
		all.key(nil, keyFor(k), 0)
	}
	if all.open != nil || all.kept["new"]["x"] != "a" {
		t.Fatalf("kept %v", all.kept)
	}
	all.fill(spec, theme.Styles{})
	submit := func() { all.result(nil, all.key(nil, keyFor("enter"), 0)().(formMsg)) }
	submit()
	if all.open == nil || all.open.failure != "disk full" || all.open.typed()["x"] != "a" {
		t.Fatal("a failed form closed or lost its values")
	}
	fail = nil
	submit()
	if all.open != nil || len(all.kept) != 0 {
		t.Errorf("a submitted form is open or keeps %v", all.kept)
	}
}

// TestMouseToggles checks the note and that clicks outside the panes do nothing.
func TestMouseToggles(t *testing.T) {
	p := newPanes([]Screen{{Name: "one", Views: []View{&pane{name: "left"}}}})
	m := mouse{panes: &p, keys: &keymap{}, now: func() time.Time { return noon }}
	if !strings.HasPrefix(m.toggle(), "mouse on") || !m.on || !strings.HasPrefix(m.toggle(), "mouse off") ||
		m.on {
		t.Error("the note does not say whether the mouse is on")
	}
	if cmd := m.handle(tea.MouseClickMsg{X: 3, Y: 3, Button: tea.MouseLeft}); cmd != nil ||
		m.last != (lastClick{}) {
		t.Error("a click outside the panes counts")
	}
}

// TestCanvasDrawsOnce checks that a frame is drawn only after a message.
func TestCanvasDrawsOnce(t *testing.T) {
	drawn := 0
	frame := func() (string, *tea.Cursor) { drawn++; return "frame", nil }
	c := canvas{dirty: true}
	c.draw(frame)
	c.draw(frame)
	c.touched(tickMsg{})
	c.draw(frame)
	if drawn != 2 || c.content != "frame" {
		t.Errorf("drawn %d times: %q", drawn, c.content)
	}
}
