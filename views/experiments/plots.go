package experiments

import (
	"math"
	"strings"
	"time"

	"acescope/engine/ace"
	"acescope/engine/learning/stats"
	"acescope/sources/experiments"
	"acescope/theme"
	"acescope/tui"
	"acescope/tui/text"
	"acescope/tui/widget"
	"acescope/views/console"
)

// Curves shows facts and learning curves of experiments.
type Curves struct {
	*Experiments
	console.Pane
	of    func() []string // workflow IDs of the experiments
	list  *list           // whose cursor moves, nil without one
	cache map[plotKey][]string
	sums  sums
}

// NewCurves returns the learning curves of the experiments that of returns by workflow ID. Read requests
// them.
func NewCurves(x *Experiments, of func() []string) *Curves {
	return &Curves{Experiments: x, Pane: console.NewPane("Curves"), of: of}
}

// sums are the totals of an experiment and the cost of a correct answer with its interval, which take too
// long to compute for each drawing.
type sums struct {
	of         *experiments.Series
	totals     experiments.Totals
	perCorrect string
}

// plotKey is the input of a drawn plot, except the styles.
type plotKey struct {
	series        [experiments.MaxSeries]*experiments.Series
	options       plotOptions
	width, height int
}

func (v *Curves) Title() string {
	ids := v.of()
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
	return ace.Count(len(ids), "experiment")
}

func (v *Curves) Footer() string {
	over := "over all tasks"
	if w := windows[v.Window]; w > 0 {
		over = "over " + ace.Number(w) + " tasks"
	}
	over += widget.If(v.ByTime, " "+v.Styles.Glyphs.Dot+" by time", "")
	return over
}

func (v *Curves) Bindings() []tui.Binding {
	return append(widget.Motions("curves", v), v.plotBindings("curves")...)
}

func (v *Curves) Scroll(by int)            { v.list.Scroll(by) }
func (v *Curves) Page() int                { return 1 }
func (v *Curves) SetStyles(s theme.Styles) { v.Styles, v.cache, v.sums = s, nil, sums{} }

func (v *Curves) Draw(now time.Time, _ bool) []string {
	ids, read := v.of(), v.read()
	switch {
	case len(ids) == 0:
		return v.Message(nil, "no experiment is selected")
	case len(read) == 0:
		return v.Message(nil, "reading its tasks"+v.Styles.Glyphs.Ellipsis)
	}
	w := &widget.Writer{Doc: &widget.Document{}, S: v.Styles, Width: v.Width, Now: now, Loc: v.location}
	if len(ids) == 1 {
		if x := read[0]; v.sums.of != x {
			t := x.Totals()
			v.sums = sums{x, t, perCorrect(x, t, v.Styles.Glyphs, true)}
		}
		facts(w, v.sums)
	} else {
		comparedFacts(w, read)
		if missing := len(ids) - len(read); missing > 0 {
			w.Say(v.Styles.Muted, " reading "+ace.Number(missing)+" more"+v.Styles.Glyphs.Ellipsis)
		}
	}
	facts := w.Lines[:min(len(w.Lines), max(v.Height-minPlotHeight, 1))]
	return widget.Fill(append(facts, v.plots(read, v.Height-len(facts))...), v.Width, v.Height)
}

// read returns the series that are read so far.
func (v *Curves) read() (list []*experiments.Series) {
	for _, id := range v.of() {
		if s := v.series(id); s != nil {
			list = append(list, s)
		}
	}
	return list
}

// Plot draws only the accuracy, without facts.
func (v *Curves) Plot() []string {
	return v.plot(v.read(), plotOptions{experiments.MetricAccuracy, windows[v.Window], v.ByTime}, v.Width,
		v.Height)
}

// Minimum height of a plot below facts, and minimum size of the grid of four.
const (
	minPlotHeight = 8
	gridWidth     = 84
	gridHeight    = 26
)

// plots draws the chosen metric, or all four in a grid. Without room for the grid, it draws the first.
func (v *Curves) plots(read []*experiments.Series, height int) []string {
	if v.Metric != AllMetrics || v.Width < gridWidth || height < gridHeight {
		return v.plot(read, plotOptions{PlotMetrics[max(v.Metric, 0)], windows[v.Window], v.ByTime}, v.Width,
			height)
	}
	left, top := v.Width/2, height/2
	cell := func(i, width, height int) []string {
		return v.plot(read, plotOptions{PlotMetrics[i], windows[v.Window], v.ByTime}, width, height)
	}
	var lines []string
	for row, h := range []int{top, height - top} {
		a, b := cell(2*row, left-1, h), cell(2*row+1, v.Width-left, h)
		for i := range a {
			lines = append(lines, a[i]+" "+b[i])
		}
	}
	return lines
}

func (v *Curves) plot(read []*experiments.Series, o plotOptions, width, height int) []string {
	key := plotKey{options: o, width: width, height: height}
	copy(key.series[:], read)
	if lines, ok := v.cache[key]; ok {
		return lines
	}
	if v.cache == nil || len(v.cache) >= 2*len(PlotMetrics) {
		v.cache = map[plotKey][]string{}
	}
	lines := newPlot(read, o).Draw(width, height, v.Styles)
	v.cache[key] = lines
	return lines
}

// facts writes one experiment in a few wrapped lines.
func facts(w *widget.Writer, of sums) {
	x, t := of.of, of.totals
	s, g := w.S, w.S.Glyphs
	dot := "  " + g.Dot + "  "
	p := &x.Progress
	m := s.Status(string(x.Status))
	if x.Reading {
		m = theme.Mark{Glyph: g.Refresh, Word: "reading its history" + g.Ellipsis, Ink: s.Warning}
	}
	state := []widget.Span{{m.Ink, m.Glyph + " " + console.OrDash(m.Word, g)}}
	if x.Status == ace.Running && !x.Reading && p.Stage != "" {
		state = append(state, widget.Span{s.Text, " " + text.Safe(p.Stage, " ")})
	}
	if p.TotalEpochs > 1 {
		state = append(state, widget.Span{s.Text,
			", epoch " + ace.Number(p.Epoch) + " of " + ace.Number(p.TotalEpochs)})
	}
	line := func(spans ...widget.Span) { w.Spans(" ", s.Muted, spans) }
	line(append(state, widget.Span{s.Text, dot + tasksCell(p, g) + " tasks"},
		widget.Span{s.Failed, failedCell(p)},
		widget.Span{s.Muted, dot + seriesDuration(x, w) + dot + "a task " +
			widget.Quantity(t.MeanDurationMS, "ms", g)})...)
	recent, graded := x.Recent(experiments.DefaultWindow)
	line(widget.Span{s.Muted, "accuracy "}, widget.Span{s.Strong, widget.Accuracy(t.Correct, t.Graded, g)},
		widget.Span{s.Text, widget.MeanScore(x.MeanScore())},
		widget.Span{s.Text, ", " + lastCount(x) + " " + widget.Accuracy(recent, graded, g)},
		widget.Span{s.Muted, "  (95% intervals)"})
	line(widget.Span{s.Muted, "eval "}, widget.Span{s.Strong, evalCell(p.Eval, g)},
		widget.Span{s.Strong, widget.InParentheses(evalRange(p.Eval, g))},
		widget.Span{s.Text, lastEvalScore(x)}, widget.Span{s.Muted, learnedText(p, dot)})
	line(widget.Span{s.Muted, "playbook "}, widget.Span{s.Text, ace.Count(p.Bullets, "bullet")},
		widget.Span{s.Muted, dot + "operations "}, widget.Span{s.Added, ace.Number(p.Accepted) + " accepted"},
		widget.Span{s.Text, ", "}, widget.Span{s.Removed, ace.Number(p.Rejected) + " rejected"})
	line(widget.Span{s.Muted, "cost "},
		widget.Span{s.Text, console.CostCell(p.Usage, g) + ", " + ace.Number(t.Tokens) + " tokens"},
		widget.Span{s.Muted, dot + "per correct answer "}, widget.Span{s.Text, of.perCorrect})
	in := x.Input
	about := []string{console.OrDash(in.DatasetID, g), console.OrDash(in.Model, g),
		console.OrDash(string(in.Adapter), g), ace.Number(max(in.Parallel, 1)) + " at a time"}
	if tools := in.SkillsConfig.AllowedTools; len(tools) > 0 {
		about = append(about, "only "+text.Safe(strings.Join(tools, ", "), " "))
	}
	line(widget.Span{s.Muted, strings.Join(about, dot)})
	seriesErrors(w, x)
}

// lastEvalScore shows the mean score of the last evaluation, "" without partial credit.
func lastEvalScore(x *experiments.Series) string {
	last := x.Progress.LastEval()
	if last == nil {
		return ""
	}
	return widget.MeanScore(x.Input.MeanScore(last.Score, last.Labeled()))
}

func seriesErrors(w *widget.Writer, x *experiments.Series) {
	if x.Failure != nil {
		w.Prose(" "+w.S.Glyphs.Failed+" ", w.S.Error, x.Failure.Message)
	}
	if x.Err != "" {
		w.Prose(" "+w.S.Glyphs.Failed+" reading: ", w.S.Error, x.Err)
	}
	if x.Note != "" {
		w.Prose(" ", w.S.Muted, x.Note)
	}
	if x.Dropped > 0 {
		w.Say(w.S.Warning, " "+ace.Number(x.Dropped)+" later tasks counted but not plotted")
	}
}

// learnedText says how the verdicts changed from the first evaluation to the last, "" unless there are two.
func learnedText(p *ace.ExperimentProgress, dot string) string {
	if learned := experiments.Learned(p); learned != nil {
		return dot + learned.Change()
	}
	return ""
}

func lastCount(x *experiments.Series) string {
	return "last " + ace.Number(min(experiments.DefaultWindow, max(len(x.Tasks), 1)))
}

// seriesDuration shows the duration of the experiment once its history is read.
func seriesDuration(x *experiments.Series, w *widget.Writer) string {
	if x.Reading {
		return "reading"
	}
	return text.Duration(x.Duration(w.Now))
}

// perCorrect shows the cost of a correct answer, in tokens if there is no cost, and its interval if ranged is
// true.
func perCorrect(x *experiments.Series, t experiments.Totals, g theme.Glyphs, ranged bool) string {
	value, unit, interval := console.CostCell(ace.Usage{CostUSD: t.CostPerCorrect}, g), "USD", x.CostInterval
	switch {
	case t.Correct == 0:
		return g.Dash
	case t.Cost == 0:
		value, unit, interval = ace.Count(int64(t.TokensPerCorrect+0.5), "token"), "", x.TokensInterval
	}
	if ranged {
		value += widget.InParentheses(widget.Range(interval(), unit, g))
	}
	return value
}

// comparedFacts writes one line per experiment, with the mark of its curve.
func comparedFacts(w *widget.Writer, list []*experiments.Series) {
	s, g := w.S, w.S.Glyphs
	t := widget.NewTable(
		widget.Heading{Title: "EXPERIMENT", Minimum: 10},
		widget.Heading{Title: "TASKS", Width: 11, Right: true},
		widget.Heading{Title: "ACC", Width: 6, Right: true},
		widget.Heading{Title: "95%", Width: 6, Drop: 2},
		widget.Heading{Title: "EVAL", Width: 13, Right: true, Drop: 1},
		widget.Heading{Title: "95%", Width: 6, Drop: 2},
		widget.Heading{Title: "BULLETS", Width: 7, Right: true, Drop: 3},
		widget.Heading{Title: "ACC/REJ", Width: 9, Right: true, Drop: 5},
		widget.Heading{Title: "COST", Width: 7, Right: true, Drop: 6},
		widget.Heading{Title: "PER CORRECT", Width: 13, Right: true, Drop: 7},
		widget.Heading{Title: "TOOK", Width: 7, Right: true, Drop: 4})
	t.SetSize(w.Width, len(list)+1)
	t.SetRows(len(list))
	t.Cursor = -1
	lines := t.Draw(s, false, func(i int) []widget.Cell {
		x := list[i]
		p, sum, ink := &x.Progress, x.Totals(), s.Series(i)
		operations := ace.Number(p.Accepted) + "/" + ace.Number(p.Rejected)
		return []widget.Cell{{widget.SeriesMark(i, g) + " " + text.Safe(x.Name(), " "), ink},
			{tasksCell(p, g), s.Text},
			{rateCell(sum.Accuracy, g), s.Text}, {widget.Range(sum.Interval(), "rate", g), s.Muted},
			{evalCell(p.Eval, g), s.Text}, {evalRange(p.Eval, g), s.Muted},
			{ace.Number(p.Bullets), s.Text},
			{operations, s.Text}, {console.CostCell(p.Usage, g), s.Muted},
			{perCorrect(x, sum, g, false), s.Muted},
			{seriesDuration(x, w), s.Muted}}
	})
	w.Lines = append(w.Lines, lines...)
	for _, x := range list {
		if x.Err != "" {
			w.Prose(" "+g.Failed+" "+text.Safe(x.Name(), " ")+": ", s.Error, x.Err)
		}
	}
}

// PlotMetrics are the metrics in the order of the screen.
var PlotMetrics = []experiments.Metric{experiments.MetricAccuracy, experiments.MetricPlaybook,
	experiments.MetricOperations, experiments.MetricCost}

// plotOptions are the metric of a plot and how it is drawn.
type plotOptions struct {
	metric experiments.Metric
	window int // last tasks of rates, 0 for all so far
	byTime bool
}

// newPlot returns the plot of a metric.
func newPlot(list []*experiments.Series, o plotOptions) widget.Plot {
	p := ChartPlot(experiments.NewChart(list, o.metric, o.window, o.byTime), o.byTime)
	if len(list) == 0 {
		p.Empty = "reading the tasks"
	}
	return p
}

// ChartPlot returns the plot of a chart.
func ChartPlot(c experiments.Chart, byTime bool) widget.Plot {
	p := widget.NewPlot(c.Title, c.Unit, byTime)
	p.Empty, p.Legend = c.Empty, len(c.Curves) > 1
	for _, curve := range c.Curves {
		p.Curves = append(p.Curves, widget.PlotCurve(curve))
	}
	return p
}

// Tasks counts the closed tasks of an experiment: "57/120".
func Tasks(r experiments.Experiment, g theme.Glyphs) string {
	if r.Progress == nil {
		return g.Dash
	}
	return tasksCell(r.Progress, g)
}

// Held shows the held-out accuracy before and after, with the interval of the newest: "held-out 20.0→65.0%
// (58–71)". Without an evaluation it shows the accuracy of all answers.
func Held(r experiments.Experiment, g theme.Glyphs) string {
	p := r.Progress
	switch {
	case p == nil:
		return ""
	case len(p.Eval) > 0:
		return "held-out " + evalCell(p.Eval, g) + widget.InParentheses(evalRange(p.Eval, g))
	}
	return "accuracy " + rateCell(accuracyOf(r), g) + widget.InParentheses(accuracyRange(p, g))
}

func tasksCell(p *ace.ExperimentProgress, g theme.Glyphs) string {
	ended, _, _ := experiments.Answers(p)
	of := p.TotalTasks * p.TotalEpochs
	return widget.If(of == 0, g.Dash, ace.Number(ended)+"/"+ace.Number(of))
}

// accuracyOf returns the accuracy over all epochs, or -1 without labeled answers.
func accuracyOf(r experiments.Experiment) float64 {
	if r.Progress == nil {
		return -1
	}
	_, correct, labeled := experiments.Answers(r.Progress)
	if labeled == 0 {
		return -1
	}
	return float64(correct) / float64(labeled)
}

// lastEval returns the newest complete evaluation, or -1.
func lastEval(r experiments.Experiment) float64 {
	if r.Progress == nil || r.Progress.LastEval() == nil {
		return -1
	}
	return evalRate(r.Progress.LastEval())
}

// evalRate returns the accuracy of an evaluation, or -1 without labels.
func evalRate(e *ace.EvalResult) float64 {
	return widget.If(e.Labeled() == 0, -1, e.Accuracy)
}

func costSoFar(r experiments.Experiment) float64 {
	if r.Progress == nil {
		return -1
	}
	return r.Progress.Usage.CostUSD
}

// failedCell counts the failed tasks, "" without any.
func failedCell(p *ace.ExperimentProgress) string {
	out := ""
	if failed, _ := p.Failed(); failed > 0 {
		out = ", " + ace.Number(failed) + " failed"
	}
	if canceled := p.Canceled(); canceled > 0 {
		out += ", " + ace.Number(canceled) + " canceled"
	}
	return out
}

func rateCell(f float64, g theme.Glyphs) string {
	if f < 0 || math.IsNaN(f) {
		return g.Dash
	}
	return console.Percent(f)
}

// evalCell shows the first and the last evaluation: "20.0→65.0%".
func evalCell(list []ace.EvalResult, g theme.Glyphs) string {
	switch len(list) {
	case 0:
		return g.Dash
	case 1:
		return rateCell(evalRate(&list[0]), g)
	}
	before, after := rateCell(evalRate(&list[0]), g), rateCell(evalRate(&list[len(list)-1]), g)
	return strings.TrimSuffix(before, "%") + g.Arrow + after
}

// evalRange shows the interval of the last evaluation.
func evalRange(list []ace.EvalResult, g theme.Glyphs) string {
	if len(list) == 0 {
		return ""
	}
	last := &list[len(list)-1]
	return widget.Range(stats.Wilson(last.Correct, last.Labeled()), "rate", g)
}

// accuracyRange shows the interval of the accuracy over all epochs.
func accuracyRange(p *ace.ExperimentProgress, g theme.Glyphs) string {
	_, correct, labeled := experiments.Answers(p)
	return widget.Range(stats.Wilson(correct, labeled), "rate", g)
}
