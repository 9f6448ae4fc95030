package tui

import (
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
)

// wheelLines is how far one notch of the wheel scrolls.
const wheelLines = 3

// doubleClick is the longest time between the clicks of a double click.
const doubleClick = 400 * time.Millisecond

// lastClick is what a second click is compared with.
type lastClick struct {
	place place
	y     int
	at    time.Time
}

// mouse handles clicks and the wheel in the panes.
type mouse struct {
	panes *panes
	keys  *keymap
	do    func(Binding) tea.Cmd
	now   func() time.Time
	on    bool
	last  lastClick
}

// toggle turns the mouse on or off and describes the change.
func (m *mouse) toggle() string {
	if m.on = !m.on; m.on {
		return "mouse on: a click selects, a double click opens, the wheel scrolls; hold shift to select text"
	}
	return "mouse off: the terminal handles it"
}

// leftClick reports whether a message is a click with the left button.
func leftClick(msg tea.MouseMsg) bool {
	_, ok := msg.(tea.MouseClickMsg)
	return ok && msg.Mouse().Button == tea.MouseLeft
}

// wheeled returns by how many lines a message scrolls, down if positive.
func wheeled(msg tea.MouseMsg) int {
	if _, ok := msg.(tea.MouseWheelMsg); !ok {
		return 0
	}
	return map[tea.MouseButton]int{tea.MouseWheelUp: -wheelLines,
		tea.MouseWheelDown: wheelLines}[msg.Mouse().Button]
}

func (m *mouse) handle(msg tea.MouseMsg) tea.Cmd {
	at := msg.Mouse()
	if by := wheeled(msg); by != 0 {
		return m.wheel(at.X, at.Y, by)
	}
	if leftClick(msg) {
		return m.click(at.X, at.Y)
	}
	return nil
}

// wheel scrolls the pane under the pointer, by pressing its keys up and down if it is no [Wheeler].
func (m *mouse) wheel(x, y, by int) tea.Cmd {
	at, ok := m.panes.hit(x, y)
	if !ok {
		return nil
	}
	v := m.panes.views()[at.pane]
	if w, ok := v.(Wheeler); ok {
		w.Wheel(by)
		return nil
	}
	key := "down"
	if by < 0 {
		key = "up"
	}
	var cmds []tea.Cmd
	for range wheelLines {
		cmds = append(cmds, m.pressed(v, key))
	}
	return tea.Batch(cmds...)
}

// pressed runs the binding that a view, or else the shell, has for a key before mapping.
func (m *mouse) pressed(v View, key string) tea.Cmd {
	for _, b := range slices.Concat(v.Bindings(), m.keys.global) {
		if slices.Contains(b.Keys, key) {
			return m.do(b)
		}
	}
	return nil
}

// click shows the screen of a tab, or focuses a pane and selects the row under the pointer. The second click
// on a row opens it.
func (m *mouse) click(x, y int) tea.Cmd {
	if y == 1 && len(m.panes.screens) > 1 {
		for _, t := range m.panes.tabs(m.keys) {
			if x >= t.from && x < t.to {
				m.panes.jump(m.panes.screens[t.screen].Name)
			}
		}
		return nil
	}
	at, ok := m.panes.hit(x, y)
	if !ok {
		return nil
	}
	m.panes.focus(m.panes.paneAt(at))
	before := m.last
	m.last = lastClick{m.panes.at, at.y, m.now()}
	if !at.inside {
		return nil
	}
	v := m.panes.focused()
	selected, cmd := m.selectAt(v, at.y)
	second := m.last.at.Sub(before.at) <= doubleClick && before.place == m.panes.at && before.y == at.y
	if selected && second {
		m.last = lastClick{}
		return tea.Batch(cmd, m.pressed(v, "enter"))
	}
	return cmd
}

// selectAt moves the cursor of a view to the last row that begins at or above a line, by pressing the keys up
// and down: only the view knows which lines are rows. It reports whether a row begins at that line.
func (m *mouse) selectAt(v View, y int) (ok bool, _ tea.Cmd) {
	lines, at := m.cursorLine(v)
	if at < 0 || strings.TrimSpace(lines[y]) == "" {
		return false, nil
	}
	key, back, step := "down", "up", 1
	if at > y {
		key, back, step = "up", "down", -1
	}
	var cmds []tea.Cmd
	for (y-at)*step > 0 {
		cmds = append(cmds, m.pressed(v, key))
		_, next := m.cursorLine(v)
		if (next-at)*step <= 0 {
			break // the last row, or lines without a cursor
		}
		at = next
	}
	if step > 0 && at > y {
		cmds = append(cmds, m.pressed(v, back))
	}
	return at == y, tea.Batch(cmds...)
}

// cursorLine returns the lines of a view without colors, and which of them is the selected row, or -1.
func (m *mouse) cursorLine(v View) (lines []string, at int) {
	for _, l := range v.Draw(m.now(), true) {
		lines = append(lines, ansi.Strip(l))
	}
	isCursor := func(l string) bool { return strings.HasPrefix(l, m.keys.glyphs.Pointer) }
	return lines, slices.IndexFunc(lines, isCursor)
}
