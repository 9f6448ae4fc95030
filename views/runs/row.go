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

// rowCache keeps drawn rows by run. What it keeps for a run is used again only if
// the run, its times on screen and the way it is marked are all the same.
type rowCache struct {
	rows map[console.RowKey]drawnRow
}

type drawnRow struct {
	run     runs.Run // with no summary; that is beside it, by value
	summed  bool
	summary ace.Summary
	fork    string // where it was forked, which is beside it too
	second  int64  // of its age, or minute once that is closed and in minutes
	mark    widget.RowMark
	marked  bool
	text    string
}

// rowCacheSize bounds the cache; when it is full it starts anew.
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
		want.fork, want.run.Fork = forkedFrom(r, v.Styles.Glyphs), nil // another one with every reading
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

// drawRow paints cell by cell, but the selected row in one piece, so that its
// background has no gaps.
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
	tells := v.tellsWhy(&r)
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
		case tells && v.why.from == 0 && i == 0:
			what, ink = text.Cut(what+"  "+text.Safe(r.LastError, " "), c.Width, s.Glyphs.Ellipsis), s.Retrying
		case tells && v.why.from > 0 && i == v.why.from:
			c.Width, c.right = v.why.width, false
			what, ink = text.Safe(r.LastError, " "), s.Retrying
			i = v.why.to
		}
		cell := c.fit(what, s.Glyphs.Ellipsis)
		if mark == widget.RowPlain {
			cell = ink.Paint(cell)
		}
		b.WriteString(cell)
	}
	return widget.RowInk(mark, s).Paint(b.String())
}

// whyPlace is where a run that is being retried tells its last error, where that has no
// column of its own: over the columns from to to, which it has nothing to say in yet, or
// with 0 behind its name.
type whyPlace struct{ from, to, width int }

// whyOver are the columns that an error may stand over. They stand side by side.
var whyOver = map[string]bool{"skills": true, "delta": true, "refused": true, "tokens": true, "cost": true}

func placeForWhy(cols []Column) whyPlace {
	var p whyPlace
	for i, c := range cols {
		if !whyOver[c.Id] {
			continue
		}
		if p.from == 0 {
			p.from, p.width = i, -1
		}
		p.to = i
		p.width += c.Width + 1
	}
	if p.width < widget.NameWidth {
		return whyPlace{}
	}
	return p
}

func (v *Runs) tellsWhy(r *runs.Run) bool {
	return r.LastError != "" && !v.showsError && retrying(r)
}
