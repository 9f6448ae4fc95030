package views

import (
	"strings"
	"time"

	"acescope/engine/ace"
	"acescope/sources"
	"acescope/theme"
	"acescope/tui/text"
)

// rowCache keeps drawn rows by run. What it keeps for a run is used again only if
// the run, its times on screen and the way it is marked are all the same.
type rowCache struct {
	rows map[rowKey]drawnRow
}

type rowKey struct{ workflowID, runID string }

type drawnRow struct {
	run     sources.Run // with no summary; that is beside it, by value
	summed  bool
	summary ace.Summary
	fork    string // where it was forked, which is beside it too
	second  int64  // of its age, or minute once that is closed and in minutes
	mark    rowMark
	marked  bool
	text    string
}

type rowMark uint8

const (
	rowPlain rowMark = iota
	rowCursor
	rowSelected
)

// rowCacheSize bounds the cache; when it is full it starts anew.
const rowCacheSize = 1024

func (c *rowCache) clear() { c.rows = nil }

func (c *rowCache) put(k rowKey, d drawnRow) {
	if c.rows == nil || len(c.rows) >= rowCacheSize {
		c.rows = make(map[rowKey]drawnRow, rowCacheSize)
	}
	c.rows[k] = d
}

func (v *runs) row(r sources.Run, cursor, focused bool, now time.Time) string {
	key := rowKey{r.WorkflowID, r.RunID}
	want := drawnRow{run: r, mark: rowPlain, marked: v.marks.of[key]}
	if r.Summary != nil {
		want.summary, want.summed, want.run.Summary = *r.Summary, true, nil
	}
	if f := r.Fork; f != nil {
		want.fork, want.run.Fork = forkedFrom(r, v.styles.Glyphs), nil // another one with every reading
	}
	age := max(now.Sub(r.Start), 0)
	want.second = int64(age / time.Second)
	if !r.Open() && age >= time.Minute {
		want.second /= 60
	}
	switch {
	case cursor && focused:
		want.mark = rowSelected
	case cursor:
		want.mark = rowCursor
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
func (v *runs) drawRow(r sources.Run, mark rowMark, marked bool, now time.Time) string {
	s := v.styles
	var b strings.Builder
	pointer, star := " ", " "
	if mark != rowPlain {
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
		what, ink := c.cell(r, now, s), c.ink(r, s)
		if i == 0 && r.Fork != nil {
			what = s.Glyphs.Forked + " " + what
		}
		switch {
		case tells && v.why.from == 0 && i == 0:
			what, ink = text.Cut(what+"  "+text.Safe(r.LastError, " "), c.width, s.Glyphs.Ellipsis), s.Retrying
		case tells && v.why.from > 0 && i == v.why.from:
			c.width, c.right = v.why.width, false
			what, ink = text.Safe(r.LastError, " "), s.Retrying
			i = v.why.to
		}
		cell := c.fit(what, s.Glyphs.Ellipsis)
		if mark == rowPlain {
			cell = ink.Paint(cell)
		}
		b.WriteString(cell)
	}
	return rowInk(mark, s).Paint(b.String())
}

func rowInk(mark rowMark, s theme.Styles) theme.Ink {
	switch mark {
	case rowSelected:
		return s.Selected
	case rowCursor:
		return s.Cursor
	}
	return theme.Ink{}
}

// whyPlace is where a run that is being retried tells its last error, where that has no
// column of its own: over the columns from to to, which it has nothing to say in yet, or
// with 0 behind its name.
type whyPlace struct{ from, to, width int }

// whyOver are the columns that an error may stand over. They stand side by side.
var whyOver = map[string]bool{"skills": true, "delta": true, "refused": true, "tokens": true, "cost": true}

func placeForWhy(cols []column) whyPlace {
	var p whyPlace
	for i, c := range cols {
		if !whyOver[c.id] {
			continue
		}
		if p.from == 0 {
			p.from, p.width = i, -1
		}
		p.to = i
		p.width += c.width + 1
	}
	if p.width < nameWidth {
		return whyPlace{}
	}
	return p
}

func (v *runs) tellsWhy(r *sources.Run) bool {
	return r.LastError != "" && !v.showsError && retrying(r)
}
