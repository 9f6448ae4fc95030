package views

import (
	tea "charm.land/bubbletea/v2"

	"acescope/tui"
)

// scroller is something that j, k and their like move through.
type scroller interface {
	// scroll moves by lines, down where positive, and stops at the ends.
	scroll(lines int)
	// page is how many lines are visible.
	page() int
}

// allLines is further than anything is long.
const allLines = 1 << 30

// motions are the bindings that every list and text has.
func motions(view string, s scroller) []tui.Binding {
	b := func(name, help string, by func() int, keys ...string) tui.Binding {
		return tui.Binding{Action: view + "." + name, Keys: keys, Help: help,
			Do: func(tui.Shell) tea.Cmd { s.scroll(by()); return nil }}
	}
	return []tui.Binding{
		b("down", "down", func() int { return 1 }, "j", "down"),
		b("up", "up", func() int { return -1 }, "k", "up"),
		b("half_down", "half a page down", func() int { return max(s.page()/2, 1) }, "ctrl+d"),
		b("half_up", "half a page up", func() int { return -max(s.page()/2, 1) }, "ctrl+u"),
		b("page_down", "a page down", func() int { return max(s.page()-1, 1) }, "pgdown", "ctrl+f"),
		b("page_up", "a page up", func() int { return -max(s.page()-1, 1) }, "pgup", "ctrl+b"),
		b("first", "to the first; a list follows the newest", func() int { return -allLines }, "g", "home"),
		b("last", "to the last", func() int { return allLines }, "G", "end"),
	}
}

func clamp(v, low, high int) int { return max(min(v, high), low) }
