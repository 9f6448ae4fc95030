package views

import (
	"strings"
	"testing"

	"acescope/theme"
)

// TestLinks checks that the workflow ID of the run screen leads to the Web UI, at its own width, and only if
// the terminal shows links.
func TestLinks(t *testing.T) {
	for _, on := range []bool{true, false} {
		styles := theme.New(true, false)
		styles.Links = theme.Links{On: on, Run: func(workflow, run string) string {
			return "https://ui.example.com/" + workflow + "/" + run
		}}
		sc := newScreen(t, full(6), styles, 120, 40)
		sc.press("2", "G")
		drawn := sc.drawn() // checks the width of the lines
		if got := strings.Contains(drawn,
			"\x1b]8;;https://ui.example.com/ace/q-00006/run-q-00006\a"); got != on {
			t.Errorf("linked: %v, want %v\n%s", got, on, sc.plain())
		}
	}
}
