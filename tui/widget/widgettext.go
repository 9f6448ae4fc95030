package widget

import (
	"slices"
	"strings"

	"acescope/engine/ace"
	"acescope/theme"
)

// NameWidth is the width that the name of a task gets before another column is shown.
const NameWidth = 16

// PointerWidth is the width of the mark of the selected row.
const PointerWidth = 2

type RowMark uint8

func Unless(quiet bool, a, b theme.Ink) theme.Ink {
	if quiet {
		return a
	}
	return b
}

func Dropped(n int) string {
	if n == 0 {
		return ""
	}
	return ", " + ace.Number(n) + " more not kept"
}

// Bounded returns the beginning of a text that may be long: more than a line of the screen
// shows, but short enough to make it safe quickly.
func Bounded(t string, width int) string {
	if limit := 16*width + 4096; len(t) > limit {
		return t[:limit]
	}
	return t
}

// Panel shows a part of lines that scrolls; top is the first visible line.
type Panel struct{ Top, Lines, Height int }

func (p *Panel) Scroll(by int) { p.Top = Clamp(p.Top+by, 0, max(p.Lines-p.Height, 0)) }

// Position returns which lines are visible, or "" if all are.
func (p *Panel) Position() string {
	if p.Lines <= p.Height {
		return ""
	}
	last := min(p.Top+p.Height, p.Lines)
	return ace.Number(p.Top+1) + "-" + ace.Number(last) + " of " + ace.Number(p.Lines)
}

func Holds(part string, in ...string) bool {
	part = strings.ToLower(part)
	return slices.ContainsFunc(in, func(s string) bool { return strings.Contains(strings.ToLower(s), part) })
}

const (
	RowPlain RowMark = iota
	RowCursor
	RowSelected
)

func RowInk(mark RowMark, s theme.Styles) theme.Ink {
	switch mark {
	case RowSelected:
		return s.Selected
	case RowCursor:
		return s.Cursor
	}
	return theme.Ink{}
}

func Clamp(v, low, high int) int { return max(min(v, high), low) }
