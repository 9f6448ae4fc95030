package widget

import (
	"acescope/theme"
	"acescope/tui/text"
)

// Fill returns exactly height lines: it cuts lines off, or adds blank lines of the width.
func Fill(lines []string, width, height int) []string {
	for len(lines) < height {
		lines = append(lines, text.Spaces(width))
	}
	return lines[:max(height, 0)]
}

// Centre puts a few plain lines into the middle of an area. It wraps lines that are too long.
func Centre(say []string, width, height int, s theme.Styles) []string {
	var wrapped []string
	for _, t := range say {
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
