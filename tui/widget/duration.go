package widget

import (
	"strings"
	"time"

	"acescope/theme"
	"acescope/tui/text"
)

// Duration is [text.Duration] in characters that the terminal can show.
func Duration(d time.Duration, g theme.Glyphs) string {
	return strings.Replace(text.Duration(d), "µ", g.Micro, 1)
}

// Milliseconds is [Duration] of a number of milliseconds.
func Milliseconds(ms float64, g theme.Glyphs) string {
	return Duration(time.Duration(ms*float64(time.Millisecond)), g)
}
