package widget

import (
	"slices"
	"strings"

	"acescope/engine/ace"
)

// If returns a if the condition is true, otherwise b. It evaluates both.
func If[T any](condition bool, a, b T) T {
	if condition {
		return a
	}
	return b
}

func Dropped(n int) string {
	if n == 0 {
		return ""
	}
	return ", " + ace.Number(n) + " more not kept"
}

// Bounded returns the beginning of a text that may be long: more than a line of the screen
// shows, but short enough to make it safe quickly.
func Bounded(t string, width int) string {
	if limit := 16*width + 4096; len(t) > limit {
		return t[:limit]
	}
	return t
}

func Holds(part string, in ...string) bool {
	part = strings.ToLower(part)
	return slices.ContainsFunc(in, func(s string) bool { return strings.Contains(strings.ToLower(s), part) })
}
