package runs

import (
	"strings"
	"time"

	"acescope/engine/ace"
	"acescope/sources/runs"
	"acescope/tui/widget"
)

// drawnRow is a drawn row with everything that its text depends on, except the columns and the styles.
// Drawing only the rows that changed halves the time of a frame (BenchmarkFrame200x50).
type drawnRow struct {
	run     runs.Run // without summary and fork, whose pointers are new at each read
	summed  bool
	summary ace.Summary
	fork    string
	age     int64 // in seconds, or in minutes for a closed run older than a minute
	mark    widget.RowMark
	marked  bool
	text    string
}

// maxDrawnRows bounds the kept rows.
const maxDrawnRows = 1024

// row returns the text of a run, drawn again only if the run, its age or its marks changed.
func (t *table) row(r runs.Run, cursor, focused bool, now time.Time) string {
	want := drawnRow{run: r, mark: widget.MarkOf(cursor, focused), marked: t.listing.Marks.Of[r.ID()]}
	if r.Summary != nil {
		want.summary, want.summed, want.run.Summary = *r.Summary, true, nil
		want.summary.Metered = nil // not drawn
	}
	if r.Fork != nil {
		want.fork, want.run.Fork = forkedFrom(r, t.pane.Styles.Glyphs), nil
	}
	age := max(now.Sub(r.Start), 0)
	want.age = int64(age / time.Second)
	if !r.Open() && age >= time.Minute {
		want.age /= 60
	}
	have := t.drawn[r.ID()]
	if want.text = have.text; have.text != "" && have == want {
		return have.text
	}
	want.text = t.drawRow(r, want.mark, want.marked, now)
	if t.drawn == nil || len(t.drawn) >= maxDrawnRows {
		t.drawn = make(map[runs.ID]drawnRow, maxDrawnRows)
	}
	t.drawn[r.ID()] = want
	return want.text
}

// drawRow draws a run cell by cell. It paints the row under the cursor as a whole, so that its background has
// no gaps.
func (t *table) drawRow(r runs.Run, mark widget.RowMark, marked bool, now time.Time) string {
	s := t.pane.Styles
	var b strings.Builder
	pointer, star := " ", " "
	if mark != widget.RowPlain {
		pointer = s.Glyphs.Pointer
	}
	if marked {
		star = "*"
	}
	b.WriteString(pointer + star)
	for i, c := range t.cols {
		if i > 0 {
			b.WriteByte(' ')
		}
		what := c.Cell(r, now, s)
		if i == 0 && r.Fork != nil {
			what = s.Glyphs.Forked + " " + what
		}
		switch c.ID {
		case columnSubject:
			what = t.common.shorten(what)
		case columnAnswer:
			what = answerIn(c.Width, r, s)
		}
		cell := c.fit(what, s.Glyphs.Ellipsis)
		switch {
		case mark != widget.RowPlain:
		case c.ink == nil:
			cell = s.Muted.Paint(cell)
		default:
			cell = c.ink(r, s).Paint(cell)
		}
		b.WriteString(cell)
	}
	return widget.RowInk(mark, s).Paint(b.String())
}
