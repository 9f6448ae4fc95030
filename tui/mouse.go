package tui

import (
	"slices"

	tea "charm.land/bubbletea/v2"

	"acescope/tui/text"
)

// wheelLines is how far one notch of the wheel scrolls.
const wheelLines = 3

func (m *Model) toggleMouse() {
	if m.mouseOn = !m.mouseOn; m.mouseOn {
		m.Note("mouse on: the wheel scrolls, a click focuses; hold shift to select text")
	} else {
		m.Note("mouse off: it is the terminal's again")
	}
}

// mouse takes the wheel and clicks. Dialogs take the wheel only where they scroll.
func (m *Model) mouse(msg tea.MouseMsg) tea.Cmd {
	at := msg.Mouse()
	switch msg.(type) {
	case tea.MouseWheelMsg:
		by := map[tea.MouseButton]int{tea.MouseWheelUp: -wheelLines, tea.MouseWheelDown: wheelLines}[at.Button]
		if m.sheet != nil {
			m.scrollSheet(by)
			return nil
		}
		return m.wheel(at.X, at.Y, by)
	case tea.MouseClickMsg:
		if at.Button == tea.MouseLeft && m.sheet == nil {
			return m.click(at.X, at.Y)
		}
	}
	return nil
}

// spot is a cell of a pane: x and y count inside its frame, so that the frame's own are
// -1 or beyond.
type spot struct {
	pane, x, y int
	inside     bool // the frame
}

// hit is what is at a cell of the screen; ok is false beside the panes and below dialogs.
func (m *Model) hit(x, y int) (at spot, ok bool) {
	top, height := m.bodyTop(), m.bodyHeight()
	if m.tiny() || m.prompt != nil || m.question != nil || y < top || y >= top+height {
		return spot{}, false
	}
	left, shown := 0, m.shown()
	for n, w := range m.widths() {
		if x < left+w {
			px, py := x-left-1, y-top-1
			return spot{shown[n], px, py, px >= 0 && px < w-2 && py >= 0 && py < height-2}, true
		}
		left += w
	}
	return spot{}, false
}

func (m *Model) wheel(x, y, by int) tea.Cmd {
	at, ok := m.hit(x, y)
	if !ok || by == 0 {
		return nil
	}
	v := m.views()[at.pane]
	if w, ok := v.(Wheeler); ok {
		w.Wheel(by)
		return nil
	}
	key := "down"
	if by < 0 {
		key = "up"
	}
	for _, b := range v.Bindings() {
		if slices.Contains(b.Keys, key) {
			var cmds []tea.Cmd
			for range wheelLines {
				cmds = append(cmds, m.do(b))
			}
			return tea.Batch(cmds...)
		}
	}
	return nil
}

// click opens the screen of a tab, or focuses a pane and tells it.
func (m *Model) click(x, y int) tea.Cmd {
	if y == 1 && len(m.screens) > 1 && m.prompt == nil && m.question == nil {
		for _, t := range m.tabs() {
			if x >= t.from && x < t.to {
				m.Open(m.screens[t.screen].Name)
			}
		}
		return nil
	}
	at, ok := m.hit(x, y)
	if !ok {
		return nil
	}
	to := at.pane
	if other := m.titleAt(at); other >= 0 {
		to = other
	}
	m.goTo(place{m.at.screen, to}, false)
	if c, ok := m.focused().(Clicker); ok && at.inside {
		return c.Click(at.x, at.y)
	}
	return nil
}

// titleAt is the pane whose name stands at a spot of a pane's upper edge, -1 for none.
func (m *Model) titleAt(at spot) int {
	if at.y != -1 {
		return -1
	}
	from := 1
	for _, p := range m.titles(at.pane) {
		to := from + text.Width(p.label)
		if at.x >= from && at.x < to {
			return p.pane
		}
		from = to
	}
	return -1
}
