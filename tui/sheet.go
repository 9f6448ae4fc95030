package tui

import (
	"slices"

	tea "charm.land/bubbletea/v2"
)

// sheet is a box of lines over the screen that scrolls: the help, the errors. top is its
// first visible line.
type sheet struct {
	title string
	keys  []string // that close it, besides esc, q and enter
	lines func(width int) []string
	top   int
}

// far is further than any sheet is long.
const far = 1 << 20

func (m *Model) sheetKey(k tea.KeyPressMsg) {
	page := max(m.height-6, 1)
	switch {
	case slices.Contains(append([]string{"esc", "q", "enter"}, m.sheet.keys...), k.String()):
		m.sheet = nil
	default:
		m.scrollSheet(scrolls(k, page))
	}
}

func (m *Model) scrollSheet(by int) { m.sheet.top = max(m.sheet.top+by, 0) }

// drawSheet is the box with the visible part; it ends the scrolling at the last line.
func (m *Model) drawSheet() []string {
	s := m.sheet
	lines := s.lines(m.width - 6)
	room := max(m.height-4, 1)
	s.top = min(s.top, max(len(lines)-room, 0))
	title := s.title
	if len(lines) > room {
		title += ", j/k scroll"
	}
	return m.box(title, lines[s.top:min(s.top+room, len(lines))])
}
