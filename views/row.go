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
	second  int64 // of its age, or minute once that is closed and in minutes
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
	age := now.Sub(r.Start)
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
	for i, c := range v.cols {
		if i > 0 {
			b.WriteByte(' ')
		}
		what, ink := c.cell(r, now, s), c.ink(r, s)
		if i == 0 && r.LastError != "" && !v.showsError && retrying(&r) {
			what, ink = what+"  "+text.Safe(r.LastError, " "), s.Retrying
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
