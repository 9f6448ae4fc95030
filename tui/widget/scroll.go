package widget

import (
	tea "charm.land/bubbletea/v2"

	"acescope/engine/ace"
	"acescope/theme"
	"acescope/tui"
	"acescope/tui/text"
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

// Panel shows a part of lines that scrolls; top is the first visible line.
type Panel struct{ Top, Lines, Height int }

func (p *Panel) Scroll(by int) { p.Top = Clamp(p.Top+by, 0, max(p.Lines-p.Height, 0)) }

// Position returns which lines are visible, or "" if all are.
func (p *Panel) Position() string {
	if p.Lines <= p.Height {
		return ""
	}
	last := min(p.Top+p.Height, p.Lines)
	return ace.Number(p.Top+1) + "-" + ace.Number(last) + " of " + ace.Number(p.Lines)
}

// TopOf returns the first visible of n lines, near top, so that the cursor is visible and the page is full.
func TopOf(top, cursor, page, n int) int {
	return Clamp(Clamp(top, cursor-page+1, cursor), 0, max(n-page, 0))
}

func Clamp(v, low, high int) int { return max(min(v, high), low) }

// Fill returns exactly height lines: it cuts lines off, or adds blank lines of the width.
func Fill(lines []string, width, height int) []string {
	for len(lines) < height {
		lines = append(lines, text.Spaces(width))
	}
	return lines[:max(height, 0)]
}

// Center puts a few plain lines into the middle of an area. It wraps lines that are too long.
func Center(list []string, width, height int, s theme.Styles) []string {
	var wrapped []string
	for _, t := range list {
		wrapped = append(wrapped, text.Wrap(t, max(width, 1))...)
	}
	var lines []string
	for range max((height-len(wrapped))/2, 0) {
		lines = append(lines, text.Spaces(width))
	}
	for _, t := range wrapped {
		t = text.Cut(t, width, s.Glyphs.Ellipsis)
		left := max((width-text.Width(t))/2, 0)
		lines = append(lines, text.Fit(text.Spaces(left)+s.Muted.Paint(t), width, ""))
	}
	return Fill(lines, width, height)
}
