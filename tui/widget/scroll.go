package widget

import (
	tea "charm.land/bubbletea/v2"

	"acescope/tui"
)

// Scroller is a list or a text that the keys of [Motions] move through.
type Scroller interface {
	// Scroll moves by lines, down if positive, and stops at the ends.
	Scroll(lines int)
	// Page returns the number of visible lines.
	Page() int
}

// AllLines is a number of lines that scrolls to the end of any list or text.
const AllLines = 1 << 30

// Motions returns the bindings that move through a list or a text.
func Motions(view string, s Scroller) []tui.Binding {
	b := func(name, help string, by func() int, keys ...string) tui.Binding {
		return tui.Binding{Action: view + "." + name, Keys: keys, Help: help, Motion: true,
			Do: func(tui.Shell) tea.Cmd { s.Scroll(by()); return nil }}
	}
	return []tui.Binding{
		b("down", "down", func() int { return 1 }, "j", "down"),
		b("up", "up", func() int { return -1 }, "k", "up"),
		b("half_down", "half a page down", func() int { return max(s.Page()/2, 1) }, "ctrl+d"),
		b("half_up", "half a page up", func() int { return -max(s.Page()/2, 1) }, "ctrl+u"),
		b("page_down", "a page down", func() int { return max(s.Page()-1, 1) }, "pgdown", "ctrl+f"),
		b("page_up", "a page up", func() int { return -max(s.Page()-1, 1) }, "pgup", "ctrl+b"),
		b("first", "to the first; a list follows the newest", func() int { return -AllLines }, "g", "home"),
		b("last", "to the last", func() int { return AllLines }, "G", "end"),
	}
}
