package main

import (
	"fmt"

	"acescope/tui/text"
)

// safe makes untrusted text fit for one line of a terminal.
func safe(s string) string { return text.Safe(s, " ") }

// numbered is a number of things in words: "1 attempt", "2 attempts".
func numbered(n int64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
