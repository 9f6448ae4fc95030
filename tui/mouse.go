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

func (m *Model) toggleMouse() {
	if m.mouseOn = !m.mouseOn; m.mouseOn {
		m.Note("mouse on: a click selects, a double click opens, the wheel scrolls; hold shift to select text")
	} else {
		m.Note("mouse off: the terminal handles it")
	}
}

// mouse handles the wheel and clicks. The wheel scrolls an open dialog.
func (m *Model) mouse(msg tea.MouseMsg) tea.Cmd {
	at := msg.Mouse()
	open := m.dialogs.top()
	if open == nil && m.form != nil {
		if _, ok := msg.(tea.MouseClickMsg); ok && at.Button == tea.MouseLeft {
			return m.form.click(at.Y)
		}
		return nil
	}
	switch msg.(type) {
	case tea.MouseWheelMsg:
		by := map[tea.MouseButton]int{tea.MouseWheelUp: -wheelLines, tea.MouseWheelDown: wheelLines}[at.Button]
		if open == nil {
			return m.wheel(at.X, at.Y, by)
		}
		open.scroll(by)
	case tea.MouseClickMsg:
		if at.Button == tea.MouseLeft && open == nil {
			return m.click(at.X, at.Y)
		}
	}
	return nil
}

// wheel scrolls the pane under the pointer, by pressing its keys up and down if it is no [Wheeler].
func (m *Model) wheel(x, y, by int) tea.Cmd {
	at, ok := m.panes.hit(x, y)
	if !ok || by == 0 || m.tooSmall() || m.prompt != nil {
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
func (m *Model) pressed(v View, key string) tea.Cmd {
	for _, b := range slices.Concat(v.Bindings(), m.keys.global) {
		if slices.Contains(b.Keys, key) {
			return m.do(b)
		}
	}
	return nil
}

// click shows the screen of a tab, or focuses a pane and selects the row under the pointer. The second click on a row
// opens it.
func (m *Model) click(x, y int) tea.Cmd {
	if y == 1 && len(m.panes.screens) > 1 && m.prompt == nil {
		for _, t := range m.panes.tabs(&m.keys) {
			if x >= t.from && x < t.to {
				m.panes.jump(m.panes.screens[t.screen].Name)
			}
		}
		return nil
	}
	at, ok := m.panes.hit(x, y)
	if !ok || m.tooSmall() || m.prompt != nil {
		return nil
	}
	m.Focus(m.panes.paneAt(at))
	before := m.clicked
	m.clicked = lastClick{m.panes.at, at.y, m.opts.Now()}
	if !at.inside {
		return nil
	}
	v := m.panes.focused()
	selected, cmd := m.selectAt(v, at.y)
	second := m.clicked.at.Sub(before.at) <= doubleClick && before.place == m.panes.at && before.y == at.y
	if selected && second {
		m.clicked = lastClick{}
		return tea.Batch(cmd, m.pressed(v, "enter"))
	}
	return cmd
}

// selectAt moves the cursor of a view to the last row that begins at or above a line, by pressing the keys up and
// down: only the view knows which lines are rows. It reports whether a row begins at that line.
func (m *Model) selectAt(v View, y int) (ok bool, _ tea.Cmd) {
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
func (m *Model) cursorLine(v View) (lines []string, at int) {
	for _, l := range v.Draw(m.opts.Now(), true) {
		lines = append(lines, ansi.Strip(l))
	}
	isCursor := func(l string) bool { return strings.HasPrefix(l, m.styles.Glyphs.Pointer) }
	return lines, slices.IndexFunc(lines, isCursor)
}
