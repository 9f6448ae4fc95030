package main

import "acescope/tui/text"

// safe makes untrusted text fit for one line of a terminal.
func safe(s string) string { return text.Safe(s, " ") }
