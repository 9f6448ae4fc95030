package runs

import (
	"strings"
	"time"

	"acescope/engine/ace"
	"acescope/sources/runs"
	"acescope/tui/text"
	"acescope/tui/widget"
	"acescope/views/console"
)

// rowCache keeps drawn rows by run. A row is reused if the run, its shown times and its marks are unchanged.
type rowCache struct {
	rows map[console.RowKey]drawnRow
}

type drawnRow struct {
	run     runs.Run // without summary, which is stored by value below
	summed  bool
	summary ace.Summary
	fork    string // its fork as text
	second  int64  // its age in seconds, or in minutes for a closed run older than a minute
	mark    widget.RowMark
	marked  bool
	text    string
}

// rowCacheSize is the maximum size; a full cache is emptied.
const rowCacheSize = 1024

func (c *rowCache) clear() { c.rows = nil }

func (c *rowCache) put(k console.RowKey, d drawnRow) {
	if c.rows == nil || len(c.rows) >= rowCacheSize {
		c.rows = make(map[console.RowKey]drawnRow, rowCacheSize)
	}
	c.rows[k] = d
}

func (v *Runs) row(r runs.Run, cursor, focused bool, now time.Time) string {
	key := console.RowKey{r.WorkflowID, r.RunID}
	want := drawnRow{run: r, mark: widget.RowPlain, marked: v.listing.Marks.Of[key]}
	if r.Summary != nil {
		want.summary, want.summed, want.run.Summary = *r.Summary, true, nil
	}
	if f := r.Fork; f != nil {
		want.fork, want.run.Fork = forkedFrom(r, v.Styles.Glyphs), nil // a new pointer at each read
	}
	age := max(now.Sub(r.Start), 0)
	want.second = int64(age / time.Second)
	if !r.Open() && age >= time.Minute {
		want.second /= 60
	}
	switch {
	case cursor && focused:
		want.mark = widget.RowSelected
	case cursor:
		want.mark = widget.RowCursor
	}
	if have, ok := v.cache.rows[key]; ok {
		if want.text = have.text; have == want {
			return have.text
		}
	}
	want.text = v.drawRow(r, want.mark, want.marked, now)
	v.cache.put(key, want)
	return want.text
}

// drawRow paints cell by cell, but the selected row at once, so that its background has no gaps.
func (v *Runs) drawRow(r runs.Run, mark widget.RowMark, marked bool, now time.Time) string {
	s := v.Styles
	var b strings.Builder
	pointer, star := " ", " "
	if mark != widget.RowPlain {
		pointer = s.Glyphs.Pointer
	}
	if marked {
		star = "*"
	}
	b.WriteString(pointer + star)
	tells := v.showsErrorOf(&r)
	for i := 0; i < len(v.cols); i++ {
		if i > 0 {
			b.WriteByte(' ')
		}
		c := v.cols[i]
		what, ink := c.Cell(r, now, s), c.ink(r, s)
		if i == 0 && r.Fork != nil {
			what = s.Glyphs.Forked + " " + what
		}
		switch {
		case tells && v.errorSpan.from == 0 && i == 0:
			what, ink = text.Cut(what+"  "+text.Safe(r.LastError, " "), c.Width, s.Glyphs.Ellipsis), s.Retrying
		case tells && v.errorSpan.from > 0 && i == v.errorSpan.from:
			c.Width, c.right = v.errorSpan.width, false
			what, ink = text.Safe(r.LastError, " "), s.Retrying
			i = v.errorSpan.to
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

func (v *Runs) showsErrorOf(r *runs.Run) bool {
	return r.LastError != "" && !v.showsError && retrying(r)
}
