// Package widget holds the parts that screens are drawn with: tables, lists of sections, plots,
// sparklines, payload viewers and wrapped documents. It does no I/O. It keeps no data except caches of
// drawn text, each bounded by a constant next to it.
package widget

import (
	"cmp"
	"strings"

	"acescope/engine/ace"
	"acescope/theme"
	"acescope/tui/text"
)

// Table is a list of any length with a cursor. It asks for the visible rows only, by number, so
// that the time to draw does not depend on the number of rows.
type Table struct {
	all           []Heading
	Cols          []int // indexes of the headings that fit the width
	Widths        []int // of Cols
	Rows          int
	Cursor, Top   int
	width, height int
}

// Heading is a column of a table. A column of width 0 takes the width that the others leave, at
// least minimum cells, or 16 if minimum is 0. Without room, columns are dropped in the order of
// drop, highest first; columns with drop 0 stay.
type Heading struct {
	Title   string
	Width   int
	Minimum int
	Right   bool
	Drop    int
}

// Cell is one cell of a table as safe text.
type Cell struct {
	Text string
	Ink  theme.Ink
}

func NewTable(all ...Heading) *Table { return &Table{all: all} }

func (t *Table) SetSize(width, height int) {
	if width != t.width || t.Cols == nil {
		t.Arrange(width)
	}
	t.width, t.height = width, height
	t.Reveal()
}

// Arrange chooses the columns for a width.
func (t *Table) Arrange(width int) {
	t.Cols = t.Cols[:0]
	for i := range t.all {
		t.Cols = append(t.Cols, i)
	}
	for {
		rest, least, drop := width-PointerWidth-len(t.Cols)+1, 0, 0
		for at, i := range t.Cols {
			h := t.all[i]
			if rest -= h.Width; h.Width == 0 {
				least += h.least()
			}
			if h.Drop > t.all[t.Cols[drop]].Drop {
				drop = at
			}
		}
		if rest >= least || t.all[t.Cols[drop]].Drop == 0 {
			t.share(rest, least)
			return
		}
		t.Cols = append(t.Cols[:drop], t.Cols[drop+1:]...)
	}
}

func (h Heading) least() int { return cmp.Or(h.Minimum, NameWidth) }

// share divides the remaining width among the columns of width 0, in proportion to their
// minimum widths.
func (t *Table) share(rest, least int) {
	t.Widths = make([]int, 0, len(t.Cols))
	for _, i := range t.Cols {
		h := t.all[i]
		w := h.Width
		if w == 0 {
			w = max(rest*h.least()/least, 1)
			rest, least = rest-w, least-h.least()
		}
		t.Widths = append(t.Widths, w)
	}
}

func (t *Table) SetRows(n int) {
	t.Rows = n
	t.Reveal()
}

func (t *Table) Page() int { return max(t.height-1, 1) }

func (t *Table) Scroll(by int) {
	t.Cursor = Clamp(t.Cursor+by, 0, max(t.Rows-1, 0))
	t.Reveal()
}

// Reveal scrolls so that the cursor is visible.
func (t *Table) Reveal() {
	t.Cursor = Clamp(t.Cursor, 0, max(t.Rows-1, 0))
	t.Top = TopOf(t.Top, t.Cursor, t.Page(), t.Rows)
}

// Position returns the position of the cursor: "12/10,214"; "" for an empty table.
func (t *Table) Position() string {
	return If(t.Rows == 0, "", ace.Number(t.Cursor+1)+"/"+ace.Number(t.Rows))
}

// Draw returns exactly height lines: the heading, then the visible rows. row gives the cells of
// a row by number, one for each column of the table, in order.
func (t *Table) Draw(s theme.Styles, focused bool, row func(i int) []Cell) []string {
	lines := append(make([]string, 0, t.height), t.heading(s))
	for i := t.Top; i < min(t.Top+t.Page(), t.Rows); i++ {
		lines = append(lines, t.line(s, row(i), i == t.Cursor, focused))
	}
	return Fill(lines, t.width, t.height)
}

func (t *Table) heading(s theme.Styles) string {
	h := text.Spaces(PointerWidth)
	for at, i := range t.Cols {
		h += If(at > 0, " ", "")
		h += t.Fit(at, t.all[i].Title, "")
	}
	return s.Muted.Paint(text.Fit(h, t.width, ""))
}

func (t *Table) Fit(at int, what, tail string) string {
	if t.all[t.Cols[at]].Right {
		return text.FitLeft(what, t.Widths[at], tail)
	}
	return text.Fit(what, t.Widths[at], tail)
}

// line paints a row cell by cell. It paints the row under the cursor as a whole, so that its
// background has no gaps.
func (t *Table) line(s theme.Styles, cells []Cell, cursor, focused bool) string {
	var b strings.Builder
	mark := MarkOf(cursor, focused)
	if mark == RowPlain {
		b.WriteString(text.Spaces(PointerWidth))
	} else {
		b.WriteString(s.Glyphs.Pointer + " ")
	}
	used := PointerWidth
	for at, i := range t.Cols {
		if at > 0 {
			b.WriteByte(' ')
			used++
		}
		c := t.Fit(at, cells[i].Text, s.Glyphs.Ellipsis)
		used += t.Widths[at]
		if mark == RowPlain {
			c = cells[i].Ink.Paint(c)
		}
		b.WriteString(c)
	}
	if used > t.width {
		return RowInk(mark, s).Paint(text.Fit(b.String(), t.width, ""))
	}
	b.WriteString(text.Spaces(t.width - used))
	return RowInk(mark, s).Paint(b.String())
}

// NameWidth is the width that the name of a task gets before another column is shown.
const NameWidth = 16

// PointerWidth is the width of the mark of the selected row.
const PointerWidth = 2

// RowMark is how a row is marked.
type RowMark uint8

const (
	RowPlain    RowMark = iota
	RowCursor           // selected, in a pane without focus
	RowSelected         // selected, in the focused pane
)

// MarkOf returns the mark of a row that may be under the cursor.
func MarkOf(cursor, focused bool) RowMark {
	switch {
	case cursor && focused:
		return RowSelected
	case cursor:
		return RowCursor
	}
	return RowPlain
}

func RowInk(mark RowMark, s theme.Styles) theme.Ink {
	return [...]theme.Ink{RowPlain: {}, RowCursor: s.Cursor, RowSelected: s.Selected}[mark]
}
