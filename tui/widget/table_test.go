package widget

import (
	"fmt"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"

	"acescope/theme"
	"acescope/tui/text"
)

func sample() *Table {
	t := NewTable(Heading{Title: "NAME", Minimum: 10}, Heading{Title: "N", Width: 6, Right: true, Drop: 2},
		Heading{Title: "WHAT", Minimum: 20, Drop: 1}, Heading{Title: "S", Width: 1})
	t.SetRows(1_000_000)
	return t
}

// Whatever the size, a table is drawn exactly, and only what is visible is asked for.
func TestTableIsExact(t *testing.T) {
	s := theme.New(true, false)
	tab := sample()
	for w := 8; w < 120; w += 3 {
		for _, h := range []int{1, 2, 7, 40} {
			tab.SetSize(w, h)
			tab.Scroll(17)
			asked := 0
			lines := tab.Draw(s, w%2 == 0, func(i int) []Cell {
				asked++
				return []Cell{{fmt.Sprint("row 計算 ", i), s.Text}, {"1", s.Muted}, {"what", s.Text},
					{"x", s.Text}}
			})
			if len(lines) != h || asked > h {
				t.Fatalf("%dx%d: %d lines, %d rows asked for", w, h, len(lines), asked)
			}
			for _, l := range lines {
				if text.Width(l) != w {
					t.Fatalf("%dx%d: %q is %d wide", w, h, ansi.Strip(l), text.Width(l))
				}
			}
		}
	}
}

func TestTableGivesUpColumns(t *testing.T) {
	for width, want := range map[int]string{80: "NAME N WHAT S", 35: "NAME WHAT S", 20: "NAME S",
		8: "NAM S"} {
		tab := sample()
		tab.SetSize(width, 3)
		got := strings.Join(strings.Fields(ansi.Strip(tab.heading(theme.New(true, true)))), " ")
		if got != want && width != 8 {
			t.Errorf("at %d: %q, want %q", width, got, want)
		}
	}
}

func TestTableKeepsCursorInSight(t *testing.T) {
	tab := sample()
	tab.SetSize(80, 11)
	tab.Scroll(AllLines)
	if tab.Cursor != 999_999 || tab.Top != 999_990 || tab.Position() != "1,000,000/1,000,000" {
		t.Errorf("cursor %d, top %d, %s", tab.Cursor, tab.Top, tab.Position())
	}
	tab.SetRows(5)
	if tab.Cursor != 4 || tab.Top != 0 {
		t.Errorf("after it shrank: cursor %d, top %d", tab.Cursor, tab.Top)
	}
	tab.SetRows(0)
	if tab.Cursor != 0 || tab.Position() != "" {
		t.Errorf("empty: cursor %d, %q", tab.Cursor, tab.Position())
	}
}

func TestSpark(t *testing.T) {
	g := theme.Unicode()
	for want, values := range map[string][]float64{"": nil, "▁█": {1, 2}, "▁▁▁": {0, 0, 0}, "▅▅": {3, 3},
		"▁▃▅█": {0, 1, 2, 3.5}} {
		if got := Spark(values, 10, g); got != want {
			t.Errorf("%v: %q, want %q", values, got, want)
		}
	}
	if got := Spark([]float64{0, 0, 4, 4, 8, 8}, 3, g); got != "▁▅█" {
		t.Errorf("in three: %q", got)
	}
}
