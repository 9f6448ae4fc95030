package experiments

import (
	"acescope/sources/experiments"
	"acescope/theme"
	"acescope/tui/text"
	"acescope/tui/widget"
)

// PlotMetrics are the metrics in the order in which the screen goes through them.
var PlotMetrics = []experiments.Metric{experiments.MetricAccuracy, experiments.MetricPlaybook, experiments.MetricOperations, experiments.MetricCost}

// plotOptions says what of experiments is plotted, and how.
type plotOptions struct {
	metric experiments.Metric
	window int // of rates, 0 for all so far
	byTime bool
	legend bool
}

// ExperimentPlot draws a metric of experiments as exactly height lines of width cells.
// Rates go over the last window tasks, 0 for all so far. Where no experiment reports a
// cost, tokens stand in its place, and the title says so.
func ExperimentPlot(list []*experiments.Series, m experiments.Metric, window int, byTime bool, width, height int, s theme.Styles) []string {
	return experimentPlot(list, plotOptions{m, window, byTime, true}, s).Draw(width, height, s)
}

func experimentPlot(list []*experiments.Series, o plotOptions, s theme.Styles) widget.Plot {
	if o.metric == experiments.MetricCost && experiments.Free(list...) {
		o.metric = experiments.MetricTokens
	}
	p := widget.Plot{Title: o.title(s.Glyphs), X: widget.Axis{Format: widget.CountTick, Whole: true, Zero: true, Unit: "tasks"}, Y: yAxis(o.metric), Empty: "no task has ended yet"}
	if rightOnly(o.metric) {
		p.Empty = "no task was answered right yet"
	}
	if o.byTime {
		p.X = widget.Axis{Format: widget.TimeTick, Time: true, Zero: true}
	}
	for i, series := range list {
		for j, c := range series.Curves(o.metric, o.window, o.byTime) {
			name := text.Cut(text.Safe(series.Name(), " "), 24, s.Glyphs.Ellipsis)
			if c.Name != "" {
				name += " " + c.Name
			}
			p.Curves = append(p.Curves, widget.PlotCurve{Name: name, X: c.X, Y: c.Y, Ink: s.Series(i), Mark: widget.SeriesMark(i, s.Glyphs), Dashed: j > 0})
		}
	}
	p.Legend = o.legend && len(p.Curves) > 1
	return p
}

// rightOnly tells whether a metric has values only where an answer was right.
func rightOnly(m experiments.Metric) bool {
	return m == experiments.MetricCost || m == experiments.MetricTokens
}

func (o plotOptions) title(g theme.Glyphs) string {
	over := "all so far"
	if o.window > 0 {
		over = "last " + text.Count(int64(o.window))
	}
	sep := " " + g.Dot + " "
	return map[experiments.Metric]string{
		experiments.MetricAccuracy:   "Accuracy" + sep + over,
		experiments.MetricPlaybook:   "Playbook" + sep + "bullets",
		experiments.MetricOperations: "Operations so far" + sep + "rejected dashed",
		experiments.MetricCost:       "US$ per right answer" + sep + over,
		experiments.MetricTokens:     "Tokens per right answer" + sep + over + ", no cost known",
	}[o.metric]
}

func yAxis(m experiments.Metric) widget.Axis {
	switch m {
	case experiments.MetricAccuracy:
		return widget.Axis{Format: widget.PercentTick, Most: 1, Room: 0.1}
	case experiments.MetricCost:
		return widget.Axis{Format: widget.DollarTick, Zero: true}
	case experiments.MetricOperations:
		return widget.Axis{Format: widget.CountTick, Whole: true, Zero: true}
	}
	return widget.Axis{Format: widget.CountTick, Whole: true}
}
