package widget

import (
	"strings"

	"acescope/theme"
)

// Spark draws values as one character each: the smallest as the lowest level, the largest as
// the highest. Equal values are drawn at the lowest level if they are 0, otherwise in the
// middle. If there are more than width values, each character shows the mean of several.
func Spark(values []float64, width int, g theme.Glyphs) string {
	if width < 1 || len(values) == 0 {
		return ""
	}
	values = buckets(values, width)
	low, high := values[0], values[0]
	for _, v := range values {
		low, high = min(low, v), max(high, v)
	}
	levels := []rune(g.Levels)
	var b strings.Builder
	for _, v := range values {
		at := 0
		switch {
		case high > low:
			at = int((v-low)/(high-low)*float64(len(levels)-1) + 0.5)
		case high != 0:
			at = len(levels) / 2
		}
		b.WriteRune(levels[Clamp(at, 0, len(levels)-1)])
	}
	return b.String()
}

// buckets returns at most n values: means of adjacent values.
func buckets(values []float64, n int) []float64 {
	if len(values) <= n {
		return values
	}
	out := make([]float64, n)
	for i := range out {
		from, to := i*len(values)/n, (i+1)*len(values)/n
		for _, v := range values[from:to] {
			out[i] += v / float64(to-from)
		}
	}
	return out
}
