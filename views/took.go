package views

import (
	"strings"
	"time"

	"acescope/theme"
	"acescope/tui/text"
)

// took is [text.Took] in characters that the terminal has.
func took(d time.Duration, g theme.Glyphs) string {
	return strings.Replace(text.Took(d), "µ", g.Micro, 1)
}

// tookMS is took of milliseconds.
func tookMS(ms float64, g theme.Glyphs) string {
	return took(time.Duration(ms*float64(time.Millisecond)), g)
}
