package experiments

import (
	"time"

	"acescope/sources/experiments"
	"acescope/theme"
	"acescope/tui/widget"
)

// ExperimentText is what the screen says of one experiment, as painted lines of width
// cells.
func ExperimentText(x *experiments.Series, width int, now time.Time, s theme.Styles) []string {
	w := &widget.Writer{Doc: &widget.Document{}, S: s, Width: width, Now: now, Loc: time.Local}
	experimentFacts(w, x)
	return w.Lines
}

// ComparisonText is what the screen says of two experiments, but for their tasks.
func ComparisonText(c *experiments.Comparison, width int, now time.Time, s theme.Styles) []string {
	w := &widget.Writer{Doc: &widget.Document{}, S: s, Width: width, Now: now, Loc: time.Local}
	comparison(w, c)
	return w.Lines
}
