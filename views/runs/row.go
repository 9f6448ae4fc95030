package runs

import (
	"strings"
	"time"

	"acescope/sources/runs"
	"acescope/tui/text"
	"acescope/tui/widget"
)

// cells returns the cells of a run in the columns that fit.
func (t *table) cells(r runs.Run, now time.Time) []widget.Cell {
	s := t.pane.Styles
	cells := make([]widget.Cell, len(t.cols))
	for at, i := range t.Cols {
		c, width := t.cols[i], t.Widths[at]
		cell := widget.Cell{Text: c.Cell(r, now, s), Ink: s.Muted}
		if c.ink != nil {
			cell.Ink = c.ink(r, s)
		}
		switch {
		case c.ID == columnTask && r.Fork != nil:
			cell.Text = s.Glyphs.Forked + " " + cell.Text
		case c.ID == columnSubject:
			cell.Text = t.common.shorten(cell.Text)
		case c.ID == columnAnswer:
			cell.Text = answerIn(width, r, s)
		case c.ID == columnAgent || c.ID == columnModel:
			cell.Text = namesIn(width, cell.Text, s)
		case c.ID == columnDelta && text.Width(cell.Text) > width: // drop the spaces rather than a number
			cell.Text = strings.ReplaceAll(cell.Text, " ", "")
		}
		cells[i] = cell
	}
	return cells
}
