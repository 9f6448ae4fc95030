package views

import (
	"slices"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	"acescope/theme"
)

func (s *screen) click(x, y int) {
	s.model.Update(tea.MouseClickMsg{X: x, Y: y, Button: tea.MouseLeft})
}

// cursorLine returns the line of the terminal that has the cursor of the left pane, or -1.
func (s *screen) cursorLine() int {
	return slices.IndexFunc(splitLines(s.plain()), func(l string) bool { return strings.HasPrefix(l, "┃▸") })
}

// TestClickSelectsRows checks that a click on any row that the keys reach selects that row.
func TestClickSelectsRows(t *testing.T) {
	for name, c := range map[string]struct {
		snap *snapshot
		keys []string
		rows int // at least
	}{
		"runs":        {full(60), nil, 17},
		"columns":     {full(60), []string{"C"}, 10},
		"run":         {full(60), []string{"2"}, 10},
		"timeline":    {timelineCases()["bars"].snap, []string{"3"}, 5},
		"experiments": {three(), []string{"5"}, 2},
		"triage":      {ailing(), []string{"7"}, 8},
		"health":      {testHost(), []string{"8"}, 7},
		"sessions":    {agentSnap(), []string{"0"}, 3},
		"lineage":     {withFamily(), []string{"T"}, 4},
	} {
		t.Run(name, func(t *testing.T) {
			sc := newScreen(t, c.snap, theme.New(true, false), 80, 24)
			sc.press(append(c.keys, "g")...)
			row := func() string { return strings.Replace(splitLines(sc.plain())[5], "▸", " ", 1) }
			first, rows := row(), []int{sc.cursorLine()}
			for {
				sc.press("down")
				at := sc.cursorLine()
				if row() != first || at == rows[len(rows)-1] {
					break // the list scrolls or ends
				}
				rows = append(rows, at)
			}
			sc.press("g")
			if rows[0] < 0 || len(rows) < c.rows {
				t.Fatalf("the cursor reaches lines %v, not %d\n%s", rows, c.rows, sc.plain())
			}
			for i := range rows {
				y := rows[i*7%len(rows)]
				if sc.click(20, y); sc.cursorLine() != y {
					t.Fatalf("a click on line %d selects line %d\n%s", y, sc.cursorLine(), sc.plain())
				}
			}
		})
	}
}

func TestDoubleClickOpensARun(t *testing.T) {
	sc := newScreen(t, full(60), plainLook, 80, 24)
	want := full(60).Runs.Rows[4].TaskID
	sc.click(20, 8)
	if got := sc.selected(); got != want {
		t.Errorf("the click selected %s, not %s", got, want)
	}
	sc.click(20, 8)
	sc.has("[Inspect]")
	sc.has(want)
	sc.press("esc")
	if got := sc.selected(); got != want {
		t.Errorf("esc leads to %s, not %s", got, want)
	}
}
