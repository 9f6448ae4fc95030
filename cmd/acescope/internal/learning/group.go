package learning

import (
	"fmt"
	"slices"
	"time"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine/ace"
	"acescope/engine/learning/stats"
	"acescope/sources/experiments"
	"acescope/theme"
	"acescope/tui/widget"
	experimentsview "acescope/views/experiments"
)

type GroupLine struct {
	Type    string             `json:"type"` // experiment_group
	Group   string             `json:"group"`
	Planned int                `json:"planned"`
	Repeats []string           `json:"repeats"`
	Closed  int                `json:"completed"`
	Bands   []experiments.Band `json:"bands"`
}

func repeatsLine(g *experiments.Group) GroupLine {
	l := GroupLine{Type: "experiment_group", Group: g.Name, Planned: g.Planned, Repeats: []string{},
		Closed: len(g.Closed()), Bands: g.Bands()}
	for _, s := range g.Repeats {
		l.Repeats = append(l.Repeats, s.Name())
	}
	return l
}

type GroupComparisonLine struct {
	A        GroupLine `json:"a"`
	B        GroupLine `json:"b"`
	Headline string    `json:"headline"`
	*experiments.GroupComparison
}

// asGroup returns group, or an experiment as a group of one.
func asGroup(one *experiments.Series, group *experiments.Group) *experiments.Group {
	if group == nil {
		group = &experiments.Group{Name: one.Name(), Planned: 1, Repeats: []*experiments.Series{one}}
	}
	return group
}

// groupShow writes the spread of the repeats, each of them, and the learning curve with its band.
func groupShow(a *cli.App, g *experiments.Group, f seriesFlags) error {
	if f.tasks || f.byTime {
		return cli.UsageError("--tasks and --time show one experiment: name a repeat, such as %s",
			g.Repeats[0].Name())
	}
	if a.JSON {
		out := cli.NewLines(a)
		out.Put(repeatsLine(g))
		for _, s := range g.Repeats {
			out.Put(seriesLine(s))
		}
		return out.Flush()
	}
	width, styles, paint := a.Canvas()
	lines := append(groupText(g, styles.Glyphs), "")
	chart := experiments.BandChart(g.Repeats, f.metric, f.window)
	plot := experimentsview.ChartPlot(chart, false).Draw(width, plotLines, styles)
	return a.Print(append(lines, plot...), paint)
}

func groupText(g *experiments.Group, glyphs theme.Glyphs) []string {
	lines := []string{fmt.Sprintf(
		"%d of %s completed; mean (95%% interval of the mean), lowest to highest",
		len(g.Closed()), ace.Count(g.Planned, "repeat"))}
	for _, b := range g.Bands() {
		number := func(f float64) string { return widget.Quantity(f, b.Unit, glyphs) }
		interval := ""
		if b.Low != nil {
			interval = widget.InParentheses(widget.Range(stats.Interval{Low: *b.Low, High: *b.High}, b.Unit,
				glyphs))
		}
		lines = append(lines, fmt.Sprintf("%-18s %s%s, %s to %s", b.Name, number(b.Mean), interval,
			number(b.Lowest), number(b.Highest)))
	}
	for _, s := range g.Repeats {
		t, eval := s.Totals(), ""
		if last := s.Progress.LastEval(); last != nil {
			eval = ", last evaluation " + widget.Accuracy(last.Correct, last.Labeled(), glyphs)
		}
		order := ""
		if s.Input.Shuffle != nil {
			order = fmt.Sprintf(", shuffled with seed %d", s.Input.Shuffle.Seed)
		}
		lines = append(lines, fmt.Sprintf("%s: %s, accuracy %s%s%s", s.Name(), s.Status,
			widget.Accuracy(t.Correct, t.Graded, glyphs), eval, order))
	}
	for i, line := range lines {
		lines[i] = " " + cli.SafeText(line)
	}
	return lines
}

// groupCompare writes the comparison of two groups.
func groupCompare(a *cli.App, first, second *experiments.Group) error {
	c := experiments.CompareGroups(first, second)
	if a.JSON {
		line := GroupComparisonLine{repeatsLine(first), repeatsLine(second), c.Headline(), c}
		return cli.NewLines(a).Write(line)
	}
	width, s, paint := a.Canvas()
	w := &widget.Writer{Doc: &widget.Document{}, S: s, Width: width, Now: time.Now(), Loc: time.Local}
	repeats := func(g *experiments.Group) string {
		return fmt.Sprintf("%s, %d of %d completed", g.Name, len(g.Closed()), g.Planned)
	}
	w.Say(s.Strong, cli.SafeText(" A "+repeats(first)+"  "+s.Glyphs.Arrow+"  B "+repeats(second)))
	w.Prose(" ", s.Strong, c.Headline())
	w.Prose(" ", s.Muted, "means over the repeats; the intervals cover their variation, not that of the items")
	for _, text := range slices.DeleteFunc([]string{c.Likeness(), c.Differing()},
		func(t string) bool { return t == "" }) {
		w.Prose(" ", s.Warning, text)
	}
	var metrics []widget.Metric
	for _, m := range c.Metrics() {
		metrics = append(metrics, widget.Metric(m))
	}
	w.Metrics(metrics)
	return a.Print(w.Lines, paint)
}
