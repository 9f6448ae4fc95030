package widget

import (
	"strings"
	"time"

	"acescope/theme"
	"acescope/tui/text"
)

// Took is [text.Took] in characters that the terminal has.
func Took(d time.Duration, g theme.Glyphs) string {
	return strings.Replace(text.Took(d), "µ", g.Micro, 1)
}

// TookMS is took of milliseconds.
func TookMS(ms float64, g theme.Glyphs) string {
	return Took(time.Duration(ms*float64(time.Millisecond)), g)
}
