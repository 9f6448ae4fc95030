package tui

import (
	"cmp"
	"strings"

	"acescope/theme"
	"acescope/tui/text"
)

// tab is where a screen stands in the line of tabs: from its first cell to before its
// last.
type tab struct {
	screen, from, to int
	label            string
}

// tabs places the screens in a line: with their names where there is room, else with short
// ones, else only the current one with a name. One cell before each label is for the pointer.
func (m *Model) tabs() []tab {
	full := func(i int) string { return m.screens[i].Name }
	short := func(i int) string { return cmp.Or(m.screens[i].Short, m.screens[i].Name) }
	current := func(i int) string {
		if i == m.at.screen {
			return m.screens[i].Name
		}
		return ""
	}
	var out []tab
	for _, name := range []func(int) string{full, short, current} {
		var width int
		if out, width = m.tabsNamed(name); width <= m.width {
			break
		}
	}
	return out
}

// tabsNamed is the line with one way of naming, and its width.
func (m *Model) tabsNamed(name func(screen int) string) (out []tab, width int) {
	for i, s := range m.screens {
		if s.Aside && i != m.at.screen {
			continue
		}
		label := cmp.Or(name(i), s.Name)
		if keys := m.screenKeys(i); len(keys) > 0 {
			label = strings.TrimRight(m.keyName(keys[0])+" "+name(i), " ")
		}
		w := text.Width(label) + 1
		out = append(out, tab{i, width, width + w, label})
		if width += w; m.width >= WideWidth {
			width++
		}
	}
	return out, width
}

func (m *Model) screenKeys(i int) []string { return m.keysFor("screen." + m.screens[i].Name) }

// drawTabs is the line of tabs; a pointer marks the screen that is shown.
func (m *Model) drawTabs() string {
	s := m.styles
	l := text.Line{Max: m.width}
	for _, t := range m.tabs() {
		l.Pad(s.Bar, t.from)
		ink, mark := theme.Ink(s.BarMuted), " "
		if t.screen == m.at.screen {
			ink, mark = s.BarStrong, s.Glyphs.Pointer
		}
		l.Add(ink, mark+t.label)
	}
	return l.String(s.Bar)
}
