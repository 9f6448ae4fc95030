package tui

import (
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"acescope/tui/text"
)

// help is the open help; top is its first visible line.
type help struct{ top int }

func (m *Model) helpKey(k tea.KeyPressMsg) {
	switch k.String() {
	case "j", "down":
		m.help.top++
	case "k", "up":
		m.help.top = max(m.help.top-1, 0)
	case "?", "esc", "q", "enter":
		m.help = nil
	}
}

// drawHelp lists the focused view's keys and those that work everywhere, from the
// bindings that dispatch: side by side where there is room.
func (m *Model) drawHelp() []string {
	v := m.focused()
	own := m.withKeys(v.Bindings())
	left := m.helpLines(v.Name(), own)
	right := m.helpLines("Everywhere", m.everywhere(own))
	lines := append(append(left, ""), right...)
	if w := widest(left); w+3+widest(right) <= m.width-4 {
		lines = beside(left, right, w+3)
	}
	room := max(m.height-4, 1)
	m.help.top = min(m.help.top, max(len(lines)-room, 0))
	title := "Help"
	if len(lines) > room {
		title = "Help, j/k scroll"
	}
	return m.box(title, lines[m.help.top:min(m.help.top+room, len(lines))])
}

func (m *Model) helpLines(title string, list []Binding) []string {
	s := m.styles
	names := make([]string, len(list))
	w := 0
	for i, b := range list {
		keys := slices.Clone(b.Keys)
		for j := range keys {
			keys[j] = m.keyName(keys[j])
		}
		names[i] = strings.Join(keys, " ")
		w = max(w, text.Width(names[i]))
	}
	lines := []string{s.Strong.Paint(title)}
	for i, b := range list {
		lines = append(lines, s.Key.Paint(text.Fit(names[i], w, ""))+"  "+s.Text.Paint(b.Help))
	}
	return lines
}

func widest(lines []string) int {
	w := 0
	for _, l := range lines {
		w = max(w, text.Width(l))
	}
	return w
}

func beside(left, right []string, at int) []string {
	out := make([]string, max(len(left), len(right)))
	for i := range out {
		if i < len(left) {
			out[i] = left[i]
		}
		if i < len(right) {
			out[i] = text.Fit(out[i], at, "") + right[i]
		}
	}
	return out
}
