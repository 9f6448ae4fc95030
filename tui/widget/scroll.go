package widget

import (
	tea "charm.land/bubbletea/v2"

	"acescope/tui"
)

// Scroller is something that j, k and their like move through.
type Scroller interface {
	// Scrolll moves by lines, down where positive, and stops at the ends.
	Scroll(lines int)
	// Pagee is how many lines are visible.
	Page() int
}

// AllLines is further than anything is long.
const AllLines = 1 << 30

// Motions are the bindings that every list and text has.
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
