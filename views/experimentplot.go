package views

import (
	"acescope/sources"
	"acescope/theme"
	"acescope/tui/text"
)

// plotMetrics are the metrics in the order in which the screen goes through them.
var plotMetrics = []sources.Metric{sources.MetricAccuracy, sources.MetricPlaybook, sources.MetricOperations, sources.MetricCost}

// plotOptions says what of experiments is plotted, and how.
type plotOptions struct {
	metric sources.Metric
	window int // of rates, 0 for all so far
	byTime bool
	legend bool
}

// ExperimentPlot draws a metric of experiments as exactly height lines of width cells.
// Rates go over the last window tasks, 0 for all so far. Where no experiment reports a
// cost, tokens stand in its place, and the title says so.
func ExperimentPlot(list []*sources.Series, m sources.Metric, window int, byTime bool, width, height int, s theme.Styles) []string {
	return experimentPlot(list, plotOptions{m, window, byTime, true}, s).draw(width, height, s)
}

func experimentPlot(list []*sources.Series, o plotOptions, s theme.Styles) plot {
	if o.metric == sources.MetricCost && sources.Free(list...) {
		o.metric = sources.MetricTokens
	}
	p := plot{title: o.title(s.Glyphs), x: axis{format: countTick, whole: true, zero: true, unit: "tasks"}, y: yAxis(o.metric), empty: "no task has ended yet"}
	if rightOnly(o.metric) {
		p.empty = "no task was answered right yet"
	}
	if o.byTime {
		p.x = axis{format: timeTick, time: true, zero: true}
	}
	for i, series := range list {
		for j, c := range series.Curves(o.metric, o.window, o.byTime) {
			name := text.Cut(text.Safe(series.Name(), " "), 24, s.Glyphs.Ellipsis)
			if c.Name != "" {
				name += " " + c.Name
			}
			p.curves = append(p.curves, plotCurve{name: name, x: c.X, y: c.Y, ink: s.Series(i), mark: seriesMark(i, s.Glyphs), dashed: j > 0})
		}
	}
	p.legend = o.legend && len(p.curves) > 1
	return p
}

// rightOnly tells whether a metric has values only where an answer was right.
func rightOnly(m sources.Metric) bool { return m == sources.MetricCost || m == sources.MetricTokens }

func (o plotOptions) title(g theme.Glyphs) string {
	over := "all so far"
	if o.window > 0 {
		over = "last " + text.Count(int64(o.window))
	}
	sep := " " + g.Dot + " "
	return map[sources.Metric]string{
		sources.MetricAccuracy:   "Accuracy" + sep + over,
		sources.MetricPlaybook:   "Playbook" + sep + "bullets",
		sources.MetricOperations: "Operations so far" + sep + "rejected dashed",
		sources.MetricCost:       "US$ per right answer" + sep + over,
		sources.MetricTokens:     "Tokens per right answer" + sep + over + ", no cost known",
	}[o.metric]
}

func yAxis(m sources.Metric) axis {
	switch m {
	case sources.MetricAccuracy:
		return axis{format: percentTick, most: 1, room: 0.1}
	case sources.MetricCost:
		return axis{format: dollarTick, zero: true}
	case sources.MetricOperations:
		return axis{format: countTick, whole: true, zero: true}
	}
	return axis{format: countTick, whole: true}
}

// seriesMark tells an experiment from the others on a plot without colour.
func seriesMark(i int, g theme.Glyphs) string {
	marks := []string{"●", "◆", "▲", "■", "○", "◇", "△", "□"}
	if g.Full[0] < 0x80 {
		marks = []string{"*", "o", "+", "x", "#", "@", "%", "&"}
	}
	return marks[i%len(marks)]
}
