package widget

import (
	"acescope/engine/ace"
	"acescope/theme"
)

// List is a list of any length with a cursor. It asks for the visible rows only, by number, so that the time
// to draw does not depend on the number of rows.
type List struct {
	Rows          int
	Cursor, Top   int
	Skip          func(i int) bool // reports whether the cursor passes over a row; nil for a list without such rows
	width, height int
}

// SetSize sets the width, and the number of rows that are visible.
func (l *List) SetSize(width, height int) {
	l.width, l.height = width, height
	l.Reveal()
}

func (l *List) SetRows(n int) {
	l.Rows = n
	l.Reveal()
}

func (l *List) Page() int { return max(l.height, 1) }

// Scroll moves the cursor by rows.
func (l *List) Scroll(by int) {
	l.Cursor += by
	l.Reveal()
	step := If(by < 0, -1, 1)
	for _, step := range []int{step, -step} {
		for at := l.Cursor; at >= 0 && at < l.Rows; at += step {
			if l.Skip == nil || !l.Skip(at) {
				l.Cursor = at
				l.Reveal()
				return
			}
		}
	}
}

// Reveal scrolls so that the cursor is visible, and the heading above it.
func (l *List) Reveal() {
	l.Cursor = Clamp(l.Cursor, 0, max(l.Rows-1, 0))
	l.Top = TopOf(l.Top, l.Cursor, l.Page(), l.Rows)
	if l.Skip != nil && l.Top == l.Cursor && l.Top > 0 && l.Page() > 1 && l.Skip(l.Top-1) {
		l.Top--
	}
}

// Position returns the position of the cursor: "12/10,214"; "" for an empty list.
func (l *List) Position() string {
	return If(l.Rows == 0, "", ace.Number(l.Cursor+1)+"/"+ace.Number(l.Rows))
}

// Draw returns exactly height lines: the visible rows.
func (l *List) Draw(focused bool, line func(i int, mark RowMark) string) []string {
	lines := make([]string, 0, max(l.height, 0))
	for i := l.Top; i < min(l.Top+l.Page(), l.Rows); i++ {
		lines = append(lines, line(i, MarkOf(i == l.Cursor, focused)))
	}
	return Fill(lines, l.width, l.height)
}

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
