package experiments

import (
	"strings"
	"time"

	"acescope/engine/ace"
	"acescope/sources/experiments"
	"acescope/theme"
	"acescope/tui"
	"acescope/tui/text"
	"acescope/tui/widget"
	"acescope/views/console"
)

// experimentPlots is the facts and the learning curves of the chosen experiments.
type experimentPlots struct {
	*Experiments
	list          *experimentList
	styles        theme.Styles
	width, height int
	cache         map[plotKey][]string
}

// plotKey is all that a drawn plot depends on, but for the styles.
type plotKey struct {
	series        [experiments.MaxSeries]*experiments.Series
	options       plotOptions
	width, height int
}

func NewExperimentPlots(x *Experiments, list *experimentList) *experimentPlots {
	return &experimentPlots{Experiments: x, list: list}
}

func (v *experimentPlots) Name() string { return "Curves" }

func (v *experimentPlots) Title() string {
	ids := v.chosen()
	switch len(ids) {
	case 0:
		return "Curves"
	case 1:
		r, ok := v.row(ids[0])
		if !ok {
			return "Curves"
		}
		return text.Safe(r.Name(), " ")
	}
	return text.Count(int64(len(ids))) + " experiments"
}

// Footer is how the curves are drawn.
func (v *experimentPlots) Footer() string {
	over := "over all tasks"
	if w := windows[v.Window]; w > 0 {
		over = "over " + text.Count(int64(w)) + " tasks"
	}
	if v.ByTime {
		over += " " + v.styles.Glyphs.Dot + " by time"
	}
	return over
}

func (v *experimentPlots) Bindings() []tui.Binding {
	return append(widget.Motions("curves", v), v.plotting("curves")...)
}

// Scroll goes through the experiments as in the list.
func (v *experimentPlots) Scroll(by int) { v.list.Scroll(by) }
func (v *experimentPlots) Page() int     { return 1 }

func (v *experimentPlots) SetStyles(s theme.Styles) { v.styles, v.cache = s, nil }

func (v *experimentPlots) SetSize(width, height int) { v.width, v.height = width, height }

// Refresh has nothing to do: the list keeps what is shared.
func (v *experimentPlots) Refresh() {}

func (v *experimentPlots) Draw(now time.Time, _ bool) []string {
	ids := v.chosen()
	var read []*experiments.Series
	for _, id := range ids {
		if s := v.series(id); s != nil {
			read = append(read, s)
		}
	}
	switch {
	case len(ids) == 0:
		return widget.Centre([]string{"no experiment is selected"}, v.width, v.height, v.styles)
	case len(read) == 0:
		return widget.Centre([]string{"reading its tasks" + v.styles.Glyphs.Ellipsis}, v.width, v.height, v.styles)
	}
	w := &widget.Writer{Doc: &widget.Document{}, S: v.styles, Width: v.width, Now: now, Loc: v.location}
	if len(ids) == 1 {
		experimentFacts(w, read[0])
	} else {
		experimentRows(w, read)
		if missing := len(ids) - len(read); missing > 0 {
			w.Say(v.styles.Muted, " reading "+text.Count(int64(missing))+" more"+v.styles.Glyphs.Ellipsis)
		}
	}
	facts := w.Lines[:min(len(w.Lines), max(v.height-leastPlotHeight, 1))]
	return widget.Fill(append(facts, v.plots(read, v.height-len(facts))...), v.width, v.height)
}

// Least height of a plot beside facts, and least room for four of them.
const (
	leastPlotHeight = 8
	gridWidth       = 84
	gridHeight      = 26
)

// plots draws the chosen metric, or all four in a grid where there is room; where there
// is none, all means the first.
func (v *experimentPlots) plots(read []*experiments.Series, height int) []string {
	if v.Metric != AllMetrics || v.width < gridWidth || height < gridHeight {
		return v.plot(read, plotOptions{PlotMetrics[max(v.Metric, 0)], windows[v.Window], v.ByTime, true}, v.width, height)
	}
	left, top := v.width/2, height/2
	cell := func(i, width, height int) []string {
		return v.plot(read, plotOptions{PlotMetrics[i], windows[v.Window], v.ByTime, true}, width, height)
	}
	var lines []string
	for row, h := range []int{top, height - top} {
		a, b := cell(2*row, left-1, h), cell(2*row+1, v.width-left, h)
		for i := range a {
			lines = append(lines, a[i]+" "+b[i])
		}
	}
	return lines
}

func (v *experimentPlots) plot(read []*experiments.Series, o plotOptions, width, height int) []string {
	key := plotKey{options: o, width: width, height: height}
	copy(key.series[:], read)
	if lines, ok := v.cache[key]; ok {
		return lines
	}
	if v.cache == nil || len(v.cache) >= 2*len(PlotMetrics) {
		v.cache = map[plotKey][]string{}
	}
	lines := experimentPlot(read, o, v.styles).Draw(width, height, v.styles)
	v.cache[key] = lines
	return lines
}

// experimentFacts is one experiment in a few lines.
func experimentFacts(w *widget.Writer, x *experiments.Series) {
	s, g := w.S, w.S.Glyphs
	dot := "  " + g.Dot + "  "
	p, t := &x.Progress, x.Totals()
	m := s.Status(string(x.Exit))
	if x.Reading {
		m = theme.Mark{Glyph: g.Refresh, Word: "reading its history" + g.Ellipsis, Ink: s.Warning}
	}
	l := w.Line().Add(m.Ink, " "+m.Glyph+" "+console.OrDash(m.Word, g))
	if x.Exit == ace.Running && !x.Reading && p.Stage != "" {
		l.Add(s.Text, " "+text.Safe(p.Stage, " "))
	}
	if p.TotalEpochs > 1 {
		l.Add(s.Text, ", epoch "+text.Count(int64(p.Epoch))+" of "+text.Count(int64(p.TotalEpochs)))
	}
	w.End(l.Add(s.Text, dot+tasksCell(p, g)+" tasks").Add(s.Muted, dot+tookSeries(x, w)+dot+"a task "+tookOrDash(t.MeanTookMS, g)))
	w.End(w.Line().Add(s.Muted, " accuracy ").Add(s.Strong, rateCell(t.Accuracy, g)).Add(s.Text, ", "+lastCount(x)+" "+rateCell(lastRate(x), g)).
		Add(s.Muted, dot+"eval ").Add(s.Strong, evalCell(p.Eval, g)))
	w.End(w.Line().Add(s.Muted, " playbook ").Add(s.Text, text.Count(int64(p.Bullets))+" bullets").
		Add(s.Muted, dot+"operations ").Add(s.Added, text.Count(int64(p.Accepted))+" accepted").Add(s.Text, ", ").Add(s.Removed, text.Count(int64(p.Rejected))+" rejected"))
	w.End(w.Line().Add(s.Muted, " cost ").Add(s.Text, console.CostCell(p.Usage, g)+", "+text.Count(t.Tokens)+" tokens").
		Add(s.Muted, dot+"per right answer ").Add(s.Text, perRight(t, g)))
	in := x.Input
	w.End(w.Line().Add(s.Muted, " "+console.OrDash(in.DatasetID, g)+dot+console.OrDash(in.Model, g)+dot+console.OrDash(string(in.Adapter), g)+
		dot+text.Count(int64(max(in.Parallel, 1)))+" at a time"+toolsOf(in, dot)))
	seriesTrouble(w, x)
}

func toolsOf(in ace.ExperimentInput, dot string) string {
	if len(in.SkillsConfig.AllowedTools) == 0 {
		return ""
	}
	return dot + "only " + text.Safe(strings.Join(in.SkillsConfig.AllowedTools, ", "), " ")
}

func seriesTrouble(w *widget.Writer, x *experiments.Series) {
	if x.Failure != nil {
		w.Prose(" "+w.S.Glyphs.Failed+" ", w.S.Error, x.Failure.Message)
	}
	if x.Err != "" {
		w.Prose(" "+w.S.Glyphs.Failed+" reading: ", w.S.Error, x.Err)
	}
	if x.Dropped > 0 {
		w.Say(w.S.Warning, " "+text.Count(int64(x.Dropped))+" later tasks are counted but not plotted")
	}
}

// lastRate is the accuracy over the last tasks.
func lastRate(x *experiments.Series) float64 {
	all := x.Accuracy(experiments.DefaultWindow)
	if len(all) == 0 {
		return -1
	}
	return all[len(all)-1]
}

func lastCount(x *experiments.Series) string {
	return "last " + text.Count(int64(min(experiments.DefaultWindow, max(x.Tasks.Len(), 1))))
}

// tookSeries is how long the experiment took; what is being read does not tell it yet.
func tookSeries(x *experiments.Series, w *widget.Writer) string {
	if x.Reading {
		return "reading"
	}
	return text.Took(x.Took(w.Now))
}

func tookOrDash(ms float64, g theme.Glyphs) string {
	if ms != ms {
		return g.Dash
	}
	return widget.TookMS(ms, g)
}

// perRight is what a right answer took: money where there is any, else tokens.
func perRight(t experiments.Totals, g theme.Glyphs) string {
	switch {
	case t.Right == 0:
		return g.Dash
	case t.Cost == 0:
		return text.Count(int64(t.TokensPerRight+0.5)) + " tokens"
	}
	return console.CostCell(ace.Usage{CostUSD: t.CostPerRight}, g)
}

// experimentRows is one line each, with the mark of its curve.
func experimentRows(w *widget.Writer, list []*experiments.Series) {
	s, g := w.S, w.S.Glyphs
	t := widget.NewTable(widget.Heading{Title: "EXPERIMENT", Minimum: 10}, widget.Heading{Title: "TASKS", Width: 11, Right: true}, widget.Heading{Title: "ACC", Width: 6, Right: true},
		widget.Heading{Title: "EVAL", Width: 13, Right: true, Drop: 1}, widget.Heading{Title: "BULLETS", Width: 7, Right: true, Drop: 2},
		widget.Heading{Title: "ACC/REJ", Width: 9, Right: true, Drop: 4}, widget.Heading{Title: "COST", Width: 7, Right: true, Drop: 5},
		widget.Heading{Title: "PER RIGHT", Width: 13, Right: true, Drop: 6}, widget.Heading{Title: "TOOK", Width: 7, Right: true, Drop: 3})
	t.SetSize(w.Width, len(list)+1)
	t.SetRows(len(list))
	t.Cursor = -1
	lines := t.Draw(s, false, func(i int) []widget.Cell {
		x := list[i]
		p, sum, ink := &x.Progress, x.Totals(), s.Series(i)
		return []widget.Cell{{widget.SeriesMark(i, g) + " " + text.Safe(x.Name(), " "), ink}, {tasksCell(p, g), s.Text}, {rateCell(sum.Accuracy, g), s.Text},
			{evalCell(p.Eval, g), s.Text}, {text.Count(int64(p.Bullets)), s.Text},
			{text.Count(int64(p.Accepted)) + "/" + text.Count(int64(p.Rejected)), s.Text}, {console.CostCell(p.Usage, g), s.Muted},
			{perRight(sum, g), s.Muted}, {tookSeries(x, w), s.Muted}}
	})
	w.Lines = append(w.Lines, lines...)
	for _, x := range list {
		if x.Err != "" {
			w.Prose(" "+g.Failed+" "+text.Safe(x.Name(), " ")+": ", s.Error, x.Err)
		}
	}
}
