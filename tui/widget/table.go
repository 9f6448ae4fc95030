// Package widget holds the parts that screens are drawn with: tables, lists of sections, plots,
// sparklines, payload viewers and wrapped documents. It does no I/O. It keeps no data except caches of
// drawn text, each bounded by a constant next to it.
package widget

import (
	"cmp"
	"slices"
	"strings"

	"acescope/theme"
	"acescope/tui/text"
)

// Table is a list in columns with headings.
type Table struct {
	List
	all    []Heading
	Cols   []int            // indexes of the headings that fit the width
	Widths []int            // of Cols
	Marked func(i int) bool // reports whether a row is marked; nil for a table without marks
	// Version identifies what the rows show. Rows of one version are drawn only once; with nil, they are drawn
	// each time.
	Version any
	version any // of drawn
	drawn   map[drawnRow]string
}

// maxDrawn bounds the kept lines.
const maxDrawn = 1024

// drawnRow identifies the line of a row in one version.
type drawnRow struct {
	row    int
	mark   RowMark
	marked bool
}

// Heading is a column of a table. A column of width 0 takes the width that the others leave, at
// least minimum cells, or 16 if minimum is 0. Without room, columns are dropped in the order of
// drop, highest first; columns with drop 0 stay. Before a column with a narrow minimum is
// dropped, all such columns get that minimum. If all columns have a width, the first takes the
// rest.
type Heading struct {
	Title   string
	Remark  string // behind the title, if it fits
	Width   int
	Minimum int
	Narrow  int
	Right   bool
	Middle  bool // texts lose their middle, because they differ at their ends
	Sorted  bool // the rows are sorted by the column
	Drop    int
}

// Cell is one cell of a table as safe text.
type Cell struct {
	Text string
	Ink  theme.Ink
}

func NewTable(all ...Heading) *Table { return &Table{all: all} }

// SetColumns replaces the columns and chooses those that fit a width.
func (t *Table) SetColumns(all []Heading, width int) {
	t.all = all
	t.Arrange(width)
}

func (t *Table) SetSize(width, height int) {
	if width != t.width || t.Cols == nil {
		t.Arrange(width)
	}
	t.List.SetSize(width, height-1)
}

// Arrange chooses the columns for a width.
func (t *Table) Arrange(width int) {
	t.version = nil
	t.Cols = t.Cols[:0]
	for i := range t.all {
		t.Cols = append(t.Cols, i)
	}
	for narrow := false; len(t.Cols) > 0; {
		rest, least, drop := width-PointerWidth-len(t.Cols)+1, 0, 0
		for at, i := range t.Cols {
			rest -= t.all[i].Width
			least += t.all[i].least(narrow)
			if t.all[i].Drop > t.all[t.Cols[drop]].Drop {
				drop = at
			}
		}
		last := t.all[t.Cols[drop]]
		switch {
		case rest >= least || last.Drop == 0:
			t.share(rest, least, narrow)
			return
		case last.Narrow > 0 && !narrow:
			narrow = true
		default:
			t.Cols = slices.Delete(t.Cols, drop, drop+1)
		}
	}
}

// least returns the minimum width of a column of width 0, and 0 for other columns.
func (h Heading) least(narrow bool) int {
	switch {
	case h.Width > 0:
		return 0
	case narrow && h.Narrow > 0:
		return h.Narrow
	}
	return cmp.Or(h.Minimum, NameWidth)
}

// share divides the remaining width among the columns of width 0, in proportion to their
// minimum widths.
func (t *Table) share(rest, least int, narrow bool) {
	t.Widths = make([]int, 0, len(t.Cols))
	for _, i := range t.Cols {
		h := t.all[i]
		w := h.Width
		if n := h.least(narrow); n > 0 {
			w = max(rest*n/least, 1)
			rest, least = rest-w, least-n
		}
		t.Widths = append(t.Widths, w)
	}
	t.Widths[0] += max(rest, 0)
}

// Draw returns the heading, then exactly as many lines as there is height for rows. row gives the cells of a
// row by number, one for each column of the table, in order.
func (t *Table) Draw(s theme.Styles, focused bool, row func(i int) []Cell) []string {
	if t.version == nil || t.version != t.Version || len(t.drawn) >= maxDrawn {
		t.version, t.drawn = t.Version, map[drawnRow]string{}
	}
	return append([]string{t.heading(s)}, t.List.Draw(focused, func(i int, mark RowMark) string {
		at := drawnRow{i, mark, t.Marked != nil && t.Marked(i)}
		line, ok := t.drawn[at]
		if !ok {
			line = t.line(s, at, row(i))
			t.drawn[at] = line
		}
		return line
	})...)
}

func (t *Table) heading(s theme.Styles) string {
	line, painted := text.Spaces(PointerWidth), ""
	for at, i := range t.Cols {
		line += If(at > 0, " ", "")
		title := t.all[i].Title
		if whole := title + t.all[i].Remark; text.Width(whole) <= t.Widths[at] {
			title = whole
		}
		title = t.Fit(at, title, "")
		if t.all[i].Sorted {
			painted += s.Muted.Paint(line) + s.Strong.Paint(title)
			line, title = "", ""
		}
		line += title
	}
	return text.Fit(painted+s.Muted.Paint(line), t.width, "")
}

// Fit returns a text in the width of a column.
func (t *Table) Fit(at int, what, tail string) string {
	before, what, after := t.fit(at, what, tail)
	return before + what + after
}

// fit returns a text, cut to the width of a column, with the spaces before and after it.
func (t *Table) fit(at int, what, tail string) (before, cut, after string) {
	h, width := t.all[t.Cols[at]], t.Widths[at]
	if h.Middle {
		what = text.Middle(what, width, tail)
	}
	cut = text.Cut(what, width, tail)
	space := text.Spaces(width - text.Width(cut))
	if h.Right {
		return space, cut, ""
	}
	return "", cut, space
}

// line paints a row cell by cell. It paints the row under the cursor as a whole, so that its
// background has no gaps.
func (t *Table) line(s theme.Styles, row drawnRow, cells []Cell) string {
	var b strings.Builder
	b.WriteString(If(row.mark == RowPlain, " ", s.Glyphs.Pointer))
	b.WriteString(If(row.marked, "*", " "))
	used := PointerWidth
	for at, i := range t.Cols {
		if at > 0 {
			b.WriteByte(' ')
			used++
		}
		ink := If(row.mark == RowPlain, cells[i].Ink, theme.Ink{})
		before, cell, after := t.fit(at, cells[i].Text, s.Glyphs.Ellipsis)
		ink.Write(&b, before, cell, after)
		used += t.Widths[at]
	}
	if used > t.width {
		return RowInk(row.mark, s).Paint(text.Fit(b.String(), t.width, ""))
	}
	b.WriteString(text.Spaces(t.width - used))
	return RowInk(row.mark, s).Paint(b.String())
}

// NameWidth is the width that the name of a task gets before another column is shown.
const NameWidth = 16
