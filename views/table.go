package views

import (
	"strings"

	"acescope/theme"
	"acescope/tui/text"
)

// table is a list of any length with a cursor. It asks for the visible rows only, by
// number, so that what it costs does not depend on how many there are.
type table struct {
	all           []heading
	cols          []int // of all, as far as the width lets them in
	widths        []int // of cols
	rows          int
	cursor, top   int
	width, height int
}

// heading is a column of a table. Width 0 takes what the others leave, at least minimum
// (0: 16 cells). Columns are given up in the order of drop, highest first, where there is
// no room; those with 0 stay.
type heading struct {
	title   string
	width   int
	minimum int
	right   bool
	drop    int
}

// cell is one cell of a table as safe text.
type cell struct {
	text string
	ink  theme.Ink
}

func newTable(all ...heading) *table { return &table{all: all} }

func (t *table) setSize(width, height int) {
	if width != t.width || t.cols == nil {
		t.arrange(width)
	}
	t.width, t.height = width, height
	t.reveal()
}

// arrange chooses the columns for a width.
func (t *table) arrange(width int) {
	t.cols = t.cols[:0]
	for i := range t.all {
		t.cols = append(t.cols, i)
	}
	for {
		rest, least, drop := width-pointerWidth-len(t.cols)+1, 0, 0
		for at, i := range t.cols {
			h := t.all[i]
			if rest -= h.width; h.width == 0 {
				least += h.least()
			}
			if h.drop > t.all[t.cols[drop]].drop {
				drop = at
			}
		}
		if rest >= least || t.all[t.cols[drop]].drop == 0 {
			t.share(rest)
			return
		}
		t.cols = append(t.cols[:drop], t.cols[drop+1:]...)
	}
}

func (h heading) least() int {
	if h.minimum > 0 {
		return h.minimum
	}
	return nameWidth
}

// share gives what is left to the columns without a width, in proportion to what they
// need at least.
func (t *table) share(rest int) {
	t.widths = make([]int, len(t.cols))
	least := 0
	for at, i := range t.cols {
		if t.widths[at] = t.all[i].width; t.all[i].width == 0 {
			least += t.all[i].least()
		}
	}
	for at, i := range t.cols {
		if h := t.all[i]; h.width == 0 {
			t.widths[at] = max(rest*h.least()/least, 1)
			rest, least = rest-t.widths[at], least-h.least()
		}
	}
}

// setRows says how many rows there are now.
func (t *table) setRows(n int) {
	t.rows = n
	t.reveal()
}

func (t *table) page() int { return max(t.height-1, 1) }

func (t *table) scroll(by int) {
	t.cursor = clamp(t.cursor+by, 0, max(t.rows-1, 0))
	t.reveal()
}

// reveal moves the visible part so that it holds the cursor.
func (t *table) reveal() {
	t.cursor = clamp(t.cursor, 0, max(t.rows-1, 0))
	t.top = clamp(t.top, t.cursor-t.page()+1, t.cursor)
	t.top = clamp(t.top, 0, max(t.rows-t.page(), 0))
}

// position is where the cursor is: "12/10,214"; "" for an empty table.
func (t *table) position() string {
	if t.rows == 0 {
		return ""
	}
	return text.Count(int64(t.cursor+1)) + "/" + text.Count(int64(t.rows))
}

// draw is exactly height lines: the heading, then the visible rows. row gives the cells
// of a row by number, one for each column of the table, in order.
func (t *table) draw(s theme.Styles, focused bool, row func(i int) []cell) []string {
	lines := append(make([]string, 0, t.height), t.heading(s))
	for i := t.top; i < min(t.top+t.page(), t.rows); i++ {
		lines = append(lines, t.line(s, row(i), i == t.cursor, focused))
	}
	return fill(lines, t.width, t.height)
}

func (t *table) heading(s theme.Styles) string {
	h := text.Spaces(pointerWidth)
	for at, i := range t.cols {
		if at > 0 {
			h += " "
		}
		h += t.fit(at, t.all[i].title, "")
	}
	return s.Muted.Paint(text.Fit(h, t.width, ""))
}

func (t *table) fit(at int, what, tail string) string {
	if t.all[t.cols[at]].right {
		return text.FitLeft(what, t.widths[at], tail)
	}
	return text.Fit(what, t.widths[at], tail)
}

// line paints cell by cell, but the row under the cursor in one piece, so that its
// background has no gaps.
func (t *table) line(s theme.Styles, cells []cell, cursor, focused bool) string {
	var b strings.Builder
	mark := rowPlain
	switch {
	case cursor && focused:
		mark = rowSelected
	case cursor:
		mark = rowCursor
	}
	if mark == rowPlain {
		b.WriteString(text.Spaces(pointerWidth))
	} else {
		b.WriteString(s.Glyphs.Pointer + " ")
	}
	used := pointerWidth
	for at, i := range t.cols {
		if at > 0 {
			b.WriteByte(' ')
			used++
		}
		c := t.fit(at, cells[i].text, s.Glyphs.Ellipsis)
		used += t.widths[at]
		if mark == rowPlain {
			c = cells[i].ink.Paint(c)
		}
		b.WriteString(c)
	}
	if used > t.width {
		return rowInk(mark, s).Paint(text.Fit(b.String(), t.width, ""))
	}
	b.WriteString(text.Spaces(t.width - used))
	return rowInk(mark, s).Paint(b.String())
}
