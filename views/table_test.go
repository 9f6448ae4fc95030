package views

import (
	"fmt"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"

	"acescope/theme"
	"acescope/tui/text"
)

func sample() *table {
	t := newTable(heading{title: "NAME", minimum: 10}, heading{title: "N", width: 6, right: true, drop: 2},
		heading{title: "WHAT", minimum: 20, drop: 1}, heading{title: "S", width: 1})
	t.setRows(1_000_000)
	return t
}

// Whatever the size, a table is drawn exactly, and only what is visible is asked for.
func TestTableIsExact(t *testing.T) {
	s := theme.New(true, false)
	tab := sample()
	for w := 8; w < 120; w += 3 {
		for _, h := range []int{1, 2, 7, 40} {
			tab.setSize(w, h)
			tab.scroll(17)
			asked := 0
			lines := tab.draw(s, w%2 == 0, func(i int) []cell {
				asked++
				return []cell{{fmt.Sprint("row 計算 ", i), s.Text}, {"1", s.Muted}, {"what", s.Text}, {"x", s.Text}}
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
	for width, want := range map[int]string{80: "NAME N WHAT S", 35: "NAME WHAT S", 20: "NAME S", 8: "NAM S"} {
		tab := sample()
		tab.setSize(width, 3)
		got := strings.Join(strings.Fields(ansi.Strip(tab.heading(theme.New(true, true)))), " ")
		if got != want && width != 8 {
			t.Errorf("at %d: %q, want %q", width, got, want)
		}
	}
}

func TestTableKeepsCursorInSight(t *testing.T) {
	tab := sample()
	tab.setSize(80, 11)
	tab.scroll(allLines)
	if tab.cursor != 999_999 || tab.top != 999_990 || tab.position() != "1,000,000/1,000,000" {
		t.Errorf("cursor %d, top %d, %s", tab.cursor, tab.top, tab.position())
	}
	tab.setRows(5)
	if tab.cursor != 4 || tab.top != 0 {
		t.Errorf("after it shrank: cursor %d, top %d", tab.cursor, tab.top)
	}
	tab.setRows(0)
	if tab.cursor != 0 || tab.position() != "" {
		t.Errorf("empty: cursor %d, %q", tab.cursor, tab.position())
	}
}

func TestSpark(t *testing.T) {
	g := theme.Unicode()
	for want, values := range map[string][]float64{"": nil, "▁█": {1, 2}, "▁▁▁": {0, 0, 0}, "▅▅": {3, 3}, "▁▃▅█": {0, 1, 2, 3.5}} {
		if got := spark(values, 10, g); got != want {
			t.Errorf("%v: %q, want %q", values, got, want)
		}
	}
	if got := spark([]float64{0, 0, 4, 4, 8, 8}, 3, g); got != "▁▅█" {
		t.Errorf("in three: %q", got)
	}
}
