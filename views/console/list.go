package console

import (
	"slices"
	"strings"

	"acescope/tui"
	"acescope/tui/widget"
)

// List is a pane with a table of rows. A view embeds it and replaces the methods that differ.
type List[R any] struct {
	Pane
	Table *widget.Table
	Rows  []R
}

func NewList[R any](name string, columns ...widget.Heading) List[R] {
	return List[R]{Pane: NewPane(name), Table: widget.NewTable(columns...)}
}

func (l *List[R]) Footer() string { return l.Table.Position() }
func (l *List[R]) Page() int      { return l.Table.Page() }
func (l *List[R]) Scroll(by int)  { l.Table.Scroll(by) }
func (l *List[R]) GoTo(row int)   { l.Table.Scroll(row - l.Table.Cursor) }

// Set replaces the rows. The cursor goes to the first row that satisfies the function is, which may be nil.
func (l *List[R]) Set(rows []R, is func(R) bool) {
	l.Rows = rows
	l.Table.SetRows(len(rows))
	if is == nil {
		return
	}
	if at := slices.IndexFunc(rows, is); at >= 0 {
		l.GoTo(at)
	}
}

// Refill replaces the rows. The cursor stays on its row, which the function same finds.
func (l *List[R]) Refill(rows []R, same func(a, b R) bool) {
	was, had := l.Current()
	l.Set(rows, func(r R) bool { return had && same(r, was) })
}

// Current returns the row under the cursor.
func (l *List[R]) Current() (row R, ok bool) {
	if l.Table.Cursor < len(l.Rows) {
		return l.Rows[l.Table.Cursor], true
	}
	return row, false
}

// Next moves the cursor to the next row that satisfies the function is, or with by -1 to the previous
// one, and returns true. If no row does, it notes the text none and returns false.
func (l *List[R]) Next(s tui.Shell, by int, is func(R) bool, none string) bool {
	for at := l.Table.Cursor + by; at >= 0 && at < len(l.Rows); at += by {
		if is(l.Rows[at]) {
			l.GoTo(at)
			return true
		}
	}
	s.Note(none)
	return false
}

// DrawRows draws the table below a head.
func (l *List[R]) DrawRows(head []string, focused bool, cells func(R) []widget.Cell) []string {
	l.Table.SetSize(l.Width, max(l.Height-len(head), 1))
	rows := l.Table.Draw(l.Styles, focused, func(i int) []widget.Cell { return cells(l.Rows[i]) })
	return widget.Fill(append(head, rows...), l.Width, l.Height)
}

// Join joins the parts of a footer that are not empty.
func (p *Pane) Join(parts ...string) string {
	parts = slices.DeleteFunc(parts, func(part string) bool { return part == "" })
	return strings.Join(parts, " "+p.Styles.Glyphs.Dot+" ")
}
