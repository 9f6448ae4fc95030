package tui

import (
	"slices"
	"strings"

	"acescope/tui/text"
)

func (m *Model) openHelp() {
	m.sheet = &sheet{title: "Help", keys: m.keysFor("shell.help"), lines: m.helpFor}
}

func (m *Model) openKeys() {
	m.sheet = &sheet{title: "Keys", lines: func(int) []string {
		var lines []string
		for i, g := range m.Keys() {
			if i > 0 {
				lines = append(lines, "")
			}
			lines = append(lines, m.helpLines(g.Name, g.Bindings)...)
		}
		return lines
	}}
}

// helpFor lists the focused view's keys and those that work everywhere, from the
// bindings that dispatch: side by side where there is room.
func (m *Model) helpFor(width int) []string {
	v := m.focused()
	left := m.helpLines(v.Name(), m.allowed(m.withKeys(v.Bindings())))
	right := m.helpLines("Everywhere", m.allowed(m.everywhere(v.Bindings())))
	if w := widest(left); w+3+widest(right) <= width+2 {
		return beside(left, right, w+3)
	}
	return append(append(left, ""), right...)
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
