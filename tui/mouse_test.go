package tui

import (
	"slices"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"acescope/tui/text"
)

// rowsPane is a list whose rows begin at some of its lines, below headings and with lines of their own.
type rowsPane struct {
	pane
	begin  []int // lines
	at     int
	opened []int
}

func newRows(begin ...int) *rowsPane {
	r := &rowsPane{pane: pane{name: "rows"}, begin: begin}
	move := func(by int) func(Shell) tea.Cmd {
		return func(Shell) tea.Cmd { r.at = min(max(r.at+by, 0), len(r.begin)-1); return nil }
	}
	r.bindings = []Binding{{Action: "rows.down", Keys: []string{"j", "down"}, Do: move(1)},
		{Action: "rows.up", Keys: []string{"k", "up"}, Do: move(-1)},
		{Action: "rows.open", Keys: []string{"enter"}, Do: func(Shell) tea.Cmd {
			r.opened = append(r.opened, r.at)
			return nil
		}}}
	return r
}

func (r *rowsPane) Draw(time.Time, bool) []string {
	lines := make([]string, r.height)
	for i := range lines {
		switch at := slices.Index(r.begin, i); {
		case i > r.begin[len(r.begin)-1]:
		case at == r.at:
			lines[i] = "\x1b[1m▸ row"
		default:
			lines[i] = " line"
		}
		lines[i] = text.Fit(lines[i], r.width, "")
	}
	return lines
}

// TestClickSelects checks rows of one line, a heading at 4, and a row of three lines at 6.
func TestClickSelects(t *testing.T) {
	list, now := newRows(1, 2, 3, 5, 6, 9), noon
	o := Options{Source: newSource(),
		Screens: []Screen{{Name: "one", Views: []View{&pane{name: "left"}, list}}},
		Now:     func() time.Time { return now }}
	m := mapped(t, o, map[string][]string{"rows.down": {"f5"}, "rows.open": {"f6"}})
	m.Update(tea.WindowSizeMsg{Width: 160, Height: 30})
	click := func(y int) {
		now = now.Add(time.Second)
		m.Update(tea.MouseClickMsg{X: 150, Y: y + 2, Button: tea.MouseLeft}) // below the header and the frame
	}
	for _, c := range []struct{ y, want int }{
		{3, 2}, {9, 5}, {1, 0}, {5, 3}, {2, 1}, // rows
		{4, 2}, {9, 5}, {4, 2}, // the heading, from above and from below
		{8, 4}, {1, 0}, {7, 4}, // lines of a row
		{12, 4}, {0, 0}, // below and above the rows
	} {
		if click(c.y); list.at != c.want || m.panes.at.focus != 1 {
			t.Errorf("a click on line %d selected row %d, want %d; focus %d", c.y, list.at, c.want,
				m.panes.at.focus)
		}
	}
	double := func(y int, after time.Duration) {
		click(y)
		now = now.Add(after - time.Second)
		click(y)
	}
	double(5, doubleClick)
	if !slices.Equal(list.opened, []int{3}) {
		t.Errorf("a double click on row 3 opened %v", list.opened)
	}
	double(5, 2*doubleClick)
	double(8, doubleClick)
	double(20, doubleClick)
	click(3)
	m.Update(tea.MouseClickMsg{X: 150, Y: 3, Button: tea.MouseLeft})
	if len(list.opened) != 1 {
		t.Errorf("slow clicks, clicks beside a row or on two rows opened %v", list.opened[1:])
	}
}
