package views

import (
	"slices"
	"testing"
	"time"

	"acescope/tui"
	"acescope/views/console"
)

// TestCopiesOfRun checks the forms of the selected run, in the list and on its screen.
func TestCopiesOfRun(t *testing.T) {
	sc := newScreen(t, full(6), plainLook, 120, 40)
	for _, screen := range []string{"runs", "run"} {
		copier, ok := sc.named(screen).Views[0].(tui.MultiCopier)
		if !ok {
			t.Fatalf("%s offers one form", screen)
		}
		got := copier.Copies()
		for _, want := range []tui.Copy{
			{Key: "i", What: "workflow ID", Text: "ace/q-00006"},
			{Key: "r", What: "run ID", Text: "run-q-00006"},
			{Key: "c", What: "command", Text: "acescope show q-00006"},
			{Key: "a", What: "answer", Text: "0.172"},
		} {
			if !slices.Contains(got, want) {
				t.Errorf("%s: no %v in %v", screen, want, got)
			}
		}
	}
	sc.press("y")
	sc.has("c    command      acescope show q-00006")
	sc.press("esc", "1")
	st := newStore(full(6))
	sc = newScreenOf(t, st, console.Options{Controls: st, Actions: st.actions(), Location: time.UTC,
		Flags: []string{"--data-dir", "/my data"}}, plainLook, 120, 40)
	sc.press("y")
	sc.has("acescope --data-dir '/my data' show q-00006")
	sc.press("esc")
	sc.typed("n")
	sc.has("$ acescope --data-dir '/my data' run")
	sc.typed("esc", "f")
	sc.has("$ acescope --data-dir '/my data' fork q-00006")
}
