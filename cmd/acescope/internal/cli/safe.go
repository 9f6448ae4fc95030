package cli

import (
	"fmt"

	"acescope/tui/text"
)

// SafeText makes untrusted text fit for one line of a terminal.
func SafeText(s string) string { return text.Safe(s, " ") }

// Numbered is a number of things in words: "1 attempt", "2 attempts".
func Numbered(n int64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
