package views

import (
	"time"

	"acescope/sources"
	"acescope/theme"
)

// ExperimentText is what the screen says of one experiment, as painted lines of width
// cells.
func ExperimentText(x *sources.Series, width int, now time.Time, s theme.Styles) []string {
	w := &writer{doc: &document{}, s: s, width: width, now: now, loc: time.Local}
	w.experimentFacts(x)
	return w.lines
}

// ComparisonText is what the screen says of two experiments, but for their tasks.
func ComparisonText(c *sources.Comparison, width int, now time.Time, s theme.Styles) []string {
	w := &writer{doc: &document{}, s: s, width: width, now: now, loc: time.Local}
	w.comparison(c)
	return w.lines
}
