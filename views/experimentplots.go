package views

import (
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"acescope/engine/ace"
	"acescope/sources"
	"acescope/theme"
	"acescope/tui"
	"acescope/tui/text"
)

// experimentPlots is the facts and the learning curves of the chosen experiments.
type experimentPlots struct {
	*experiments
	list          *experimentList
	styles        theme.Styles
	width, height int
	cache         map[plotKey][]string
}

// plotKey is all that a drawn plot depends on, but for the styles.
type plotKey struct {
	series        [sources.MaxSeries]*sources.Series
	options       plotOptions
	width, height int
}

func newExperimentPlots(x *experiments, list *experimentList) *experimentPlots {
	return &experimentPlots{experiments: x, list: list}
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
	if w := windows[v.window]; w > 0 {
		over = "over " + text.Count(int64(w)) + " tasks"
	}
	if v.byTime {
		over += " " + v.styles.Glyphs.Dot + " by time"
	}
	return over
}

func (v *experimentPlots) Bindings() []tui.Binding {
	return append(motions("curves", v), v.plotting("curves")...)
}

// scroll goes through the experiments as in the list.
func (v *experimentPlots) scroll(by int) { v.list.scroll(by) }
func (v *experimentPlots) page() int     { return 1 }

func (v *experimentPlots) Update(tea.Msg) tea.Cmd { return nil }
func (v *experimentPlots) SetShown(bool)          {}

func (v *experimentPlots) SetStyles(s theme.Styles) { v.styles, v.cache = s, nil }

func (v *experimentPlots) SetSize(width, height int) { v.width, v.height = width, height }

// SetSnapshot has nothing to do: the list keeps what is shared.
func (v *experimentPlots) SetSnapshot(*sources.Snapshot) {}

func (v *experimentPlots) Draw(now time.Time, _ bool) []string {
	ids := v.chosen()
	var read []*sources.Series
	for _, id := range ids {
		if s := v.series(id); s != nil {
			read = append(read, s)
		}
	}
	switch {
	case len(ids) == 0:
		return centre([]string{"no experiment is selected"}, v.width, v.height, v.styles)
	case len(read) == 0:
		return centre([]string{"reading its tasks" + v.styles.Glyphs.Ellipsis}, v.width, v.height, v.styles)
	}
	w := &writer{doc: &document{}, s: v.styles, width: v.width, now: now, loc: v.Location}
	if len(ids) == 1 {
		w.experimentFacts(read[0])
	} else {
		w.experimentRows(read)
		if missing := len(ids) - len(read); missing > 0 {
			w.say(v.styles.Muted, " reading "+text.Count(int64(missing))+" more"+v.styles.Glyphs.Ellipsis)
		}
	}
	facts := w.lines[:min(len(w.lines), max(v.height-leastPlotHeight, 1))]
	return fill(append(facts, v.plots(read, v.height-len(facts))...), v.width, v.height)
}

// Least height of a plot beside facts, and least room for four of them.
const (
	leastPlotHeight = 8
	gridWidth       = 84
	gridHeight      = 26
)

// plots draws the chosen metric, or all four in a grid where there is room; where there
// is none, all means the first.
func (v *experimentPlots) plots(read []*sources.Series, height int) []string {
	if v.metric != allMetrics || v.width < gridWidth || height < gridHeight {
		return v.plot(read, plotOptions{plotMetrics[max(v.metric, 0)], windows[v.window], v.byTime, true}, v.width, height)
	}
	left, top := v.width/2, height/2
	cell := func(i, width, height int) []string {
		return v.plot(read, plotOptions{plotMetrics[i], windows[v.window], v.byTime, true}, width, height)
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

func (v *experimentPlots) plot(read []*sources.Series, o plotOptions, width, height int) []string {
	key := plotKey{options: o, width: width, height: height}
	copy(key.series[:], read)
	if lines, ok := v.cache[key]; ok {
		return lines
	}
	if v.cache == nil || len(v.cache) >= 2*len(plotMetrics) {
		v.cache = map[plotKey][]string{}
	}
	lines := experimentPlot(read, o, v.styles).draw(width, height, v.styles)
	v.cache[key] = lines
	return lines
}

// experimentFacts is one experiment in a few lines.
func (w *writer) experimentFacts(x *sources.Series) {
	s, g := w.s, w.s.Glyphs
	dot := "  " + g.Dot + "  "
	p, t := &x.Progress, x.Totals()
	m := s.Status(string(x.Exit))
	if x.Reading {
		m = theme.Mark{Glyph: g.Refresh, Word: "reading its history" + g.Ellipsis, Ink: s.Warning}
	}
	l := w.line().Add(m.Ink, " "+m.Glyph+" "+orDash(m.Word, g))
	if x.Exit == ace.Running && !x.Reading && p.Stage != "" {
		l.Add(s.Text, " "+text.Safe(p.Stage, " "))
	}
	if p.TotalEpochs > 1 {
		l.Add(s.Text, ", epoch "+text.Count(int64(p.Epoch))+" of "+text.Count(int64(p.TotalEpochs)))
	}
	w.end(l.Add(s.Text, dot+tasksCell(p, g)+" tasks").Add(s.Muted, dot+tookSeries(x, w)+dot+"a task "+tookOrDash(t.MeanTookMS, g)))
	w.end(w.line().Add(s.Muted, " accuracy ").Add(s.Strong, rateCell(t.Accuracy, g)).Add(s.Text, ", "+lastCount(x)+" "+rateCell(lastRate(x), g)).
		Add(s.Muted, dot+"eval ").Add(s.Strong, evalCell(p.Eval, g)))
	w.end(w.line().Add(s.Muted, " playbook ").Add(s.Text, text.Count(int64(p.Bullets))+" bullets").
		Add(s.Muted, dot+"operations ").Add(s.Added, text.Count(int64(p.Accepted))+" accepted").Add(s.Text, ", ").Add(s.Removed, text.Count(int64(p.Rejected))+" rejected"))
	w.end(w.line().Add(s.Muted, " cost ").Add(s.Text, costCell(p.Usage, g)+", "+text.Count(t.Tokens)+" tokens").
		Add(s.Muted, dot+"per right answer ").Add(s.Text, perRight(t, g)))
	in := x.Input
	w.end(w.line().Add(s.Muted, " "+orDash(in.DatasetID, g)+dot+orDash(in.Model, g)+dot+orDash(string(in.Adapter), g)+
		dot+text.Count(int64(max(in.Parallel, 1)))+" at a time"+toolsOf(in, dot)))
	w.seriesTrouble(x)
}

func toolsOf(in ace.ExperimentInput, dot string) string {
	if len(in.SkillsConfig.AllowedTools) == 0 {
		return ""
	}
	return dot + "only " + text.Safe(strings.Join(in.SkillsConfig.AllowedTools, ", "), " ")
}

func (w *writer) seriesTrouble(x *sources.Series) {
	if x.Failure != nil {
		w.prose(" "+w.s.Glyphs.Failed+" ", w.s.Error, x.Failure.Message)
	}
	if x.Err != "" {
		w.prose(" "+w.s.Glyphs.Failed+" reading: ", w.s.Error, x.Err)
	}
	if x.Dropped > 0 {
		w.say(w.s.Warning, " "+text.Count(int64(x.Dropped))+" later tasks are counted but not plotted")
	}
}

// lastRate is the accuracy over the last tasks.
func lastRate(x *sources.Series) float64 {
	all := x.Accuracy(sources.DefaultWindow)
	if len(all) == 0 {
		return -1
	}
	return all[len(all)-1]
}

func lastCount(x *sources.Series) string {
	return "last " + text.Count(int64(min(sources.DefaultWindow, max(x.Tasks.Len(), 1))))
}

// tookSeries is how long the experiment took; what is being read does not tell it yet.
func tookSeries(x *sources.Series, w *writer) string {
	if x.Reading {
		return "reading"
	}
	return text.Took(x.Took(w.now))
}

func tookOrDash(ms float64, g theme.Glyphs) string {
	if ms != ms {
		return g.Dash
	}
	return tookMS(ms, g)
}

// perRight is what a right answer took: money where there is any, else tokens.
func perRight(t sources.Totals, g theme.Glyphs) string {
	switch {
	case t.Right == 0:
		return g.Dash
	case t.Cost == 0:
		return text.Count(int64(t.TokensPerRight+0.5)) + " tokens"
	}
	return costCell(ace.Usage{CostUSD: t.CostPerRight}, g)
}

// experimentRows is one line each, with the mark of its curve.
func (w *writer) experimentRows(list []*sources.Series) {
	s, g := w.s, w.s.Glyphs
	t := newTable(heading{title: "EXPERIMENT", minimum: 10}, heading{title: "TASKS", width: 11, right: true}, heading{title: "ACC", width: 6, right: true},
		heading{title: "EVAL", width: 13, right: true, drop: 1}, heading{title: "BULLETS", width: 7, right: true, drop: 2},
		heading{title: "ACC/REJ", width: 9, right: true, drop: 4}, heading{title: "COST", width: 7, right: true, drop: 5},
		heading{title: "PER RIGHT", width: 13, right: true, drop: 6}, heading{title: "TOOK", width: 7, right: true, drop: 3})
	t.setSize(w.width, len(list)+1)
	t.setRows(len(list))
	t.cursor = -1
	lines := t.draw(s, false, func(i int) []cell {
		x := list[i]
		p, sum, ink := &x.Progress, x.Totals(), s.Series(i)
		return []cell{{seriesMark(i, g) + " " + text.Safe(x.Name(), " "), ink}, {tasksCell(p, g), s.Text}, {rateCell(sum.Accuracy, g), s.Text},
			{evalCell(p.Eval, g), s.Text}, {text.Count(int64(p.Bullets)), s.Text},
			{text.Count(int64(p.Accepted)) + "/" + text.Count(int64(p.Rejected)), s.Text}, {costCell(p.Usage, g), s.Muted},
			{perRight(sum, g), s.Muted}, {tookSeries(x, w), s.Muted}}
	})
	w.lines = append(w.lines, lines...)
	for _, x := range list {
		if x.Err != "" {
			w.prose(" "+g.Failed+" "+text.Safe(x.Name(), " ")+": ", s.Error, x.Err)
		}
	}
}
