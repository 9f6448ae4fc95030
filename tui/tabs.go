package tui

import (
	"acescope/theme"
	"acescope/tui/text"
)

// tab is where a screen stands in the line of tabs: from its first cell to before its
// last.
type tab struct {
	screen, from, to int
	label            string
}

// tabs places the screens in a line: with names where there is room, else only the
// current one with its name. One cell before each label is for the pointer.
func (m *Model) tabs() []tab {
	for _, named := range []bool{true, false} {
		out, x := []tab{}, 0
		for i, s := range m.screens {
			if s.Aside && i != m.at.screen {
				continue
			}
			label := s.Name
			if len(m.screenKeys(i)) > 0 {
				label = m.keyName(m.screenKeys(i)[0])
				if named || i == m.at.screen {
					label += " " + s.Name
				}
			}
			w := text.Width(label) + 1
			out = append(out, tab{i, x, x + w, label})
			x += w
			if m.width >= WideWidth {
				x++
			}
		}
		if x <= m.width || !named {
			return out
		}
	}
	return nil
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
