package runs

import (
	"strings"
	"time"

	"acescope/sources/runs"
	"acescope/tui/text"
	"acescope/tui/widget"
)

// row draws a run cell by cell, but the one under the cursor at once, so that its background has no gaps.
func (t *table) row(r runs.Run, cursor, focused bool, now time.Time) string {
	mark := widget.RowPlain
	switch {
	case cursor && focused:
		mark = widget.RowSelected
	case cursor:
		mark = widget.RowCursor
	}
	s := t.pane.Styles
	var b strings.Builder
	pointer, star := " ", " "
	if mark != widget.RowPlain {
		pointer = s.Glyphs.Pointer
	}
	if t.listing.Marks.Of[r.ID()] {
		star = "*"
	}
	b.WriteString(pointer + star)
	tells := t.showsErrorOf(&r)
	for i := 0; i < len(t.cols); i++ {
		if i > 0 {
			b.WriteByte(' ')
		}
		c := t.cols[i]
		what, ink := c.Cell(r, now, s), c.ink(r, s)
		if i == 0 && r.Fork != nil {
			what = s.Glyphs.Forked + " " + what
		}
		switch {
		case tells && t.errorSpan.from == 0 && i == 0:
			what, ink = text.Cut(what+"  "+text.Safe(r.LastError, " "), c.Width, s.Glyphs.Ellipsis), s.Retrying
		case tells && t.errorSpan.from > 0 && i == t.errorSpan.from:
			c.Width, c.right = t.errorSpan.width, false
			what, ink = text.Safe(r.LastError, " "), s.Retrying
			i = t.errorSpan.to
		}
		cell := c.fit(what, s.Glyphs.Ellipsis)
		if mark == widget.RowPlain {
			cell = ink.Paint(cell)
		}
		b.WriteString(cell)
	}
	return widget.RowInk(mark, s).Paint(b.String())
}

// errorSpan is the range of columns that shows the last error of a retrying run instead of their empty values, if there
// is no column for the error. If from is 0, the error follows the name.
type errorSpan struct{ from, to, width int }

// errorColumns are adjacent columns that an error may replace.
var errorColumns = map[string]bool{"skills": true, "delta": true, "refused": true, "tokens": true, "cost": true}

func errorSpanOf(cols []Column) errorSpan {
	var p errorSpan
	for i, c := range cols {
		if !errorColumns[c.ID] {
			continue
		}
		if p.from == 0 {
			p.from, p.width = i, -1
		}
		p.to = i
		p.width += c.Width + 1
	}
	if p.width < widget.NameWidth {
		return errorSpan{}
	}
	return p
}

func (t *table) showsErrorOf(r *runs.Run) bool {
	return r.LastError != "" && !t.showsError && retrying(r)
}
