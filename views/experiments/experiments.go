// Package experiments lists experiments, plots their metrics and compares two of them task by task.
package experiments

import (
	"cmp"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"acescope/engine/ace"
	"acescope/sources/cluster"
	"acescope/sources/experiments"
	"acescope/theme"
	"acescope/tui"
	"acescope/tui/text"
	"acescope/tui/widget"
	"acescope/views/console"
)

// Experiments is what the screens of experiments share: what is listed, which are
// marked, and how they are plotted.
type Experiments struct {
	nav      *console.Navigation
	actor    *console.Actor
	controls console.Controls
	location *time.Location
	feed     Feed
	data     *experiments.Experiments // nil before the first reading
	state    cluster.ConnState
	file     bool     // they come from files
	Marks    []string // workflow ids in the order of marking, at most MaxSeries
	Cursor   string   // workflow id of the row that the list is on
	pair     []string // the two that are compared, nil while none are
	asked    []string

	Metric int // of plotMetrics, or allMetrics
	Window int // of windows
	ByTime bool
}

// Feed lists experiments and reads the series of some of them.
type Feed interface {
	console.Feed[*experiments.Experiments]
	// Show reads the series of these experiments, by workflow ID.
	Show(workflowIDs []string)
}

// New returns what the screens of experiments share.
func New(c *console.Console, feed Feed) *Experiments {
	return &Experiments{nav: c.Navigation, actor: c.Actor, controls: c.Controls, location: c.Location, feed: feed, Metric: AllMetrics}
}

// AllMetrics plots every metric side by side, where there is room.
const AllMetrics = -1

// windows are the windows of rates that one can go through; 0 is all tasks so far.
var windows = []int{experiments.DefaultWindow, 100, 20, 0}

// chosen are the experiments that are plotted: the marked ones, else that under the
// cursor.
func (x *Experiments) chosen() []string {
	switch {
	case len(x.Marks) > 0:
		return x.Marks
	case x.Cursor != "":
		return []string{x.Cursor}
	}
	return nil
}

// ask asks for the series of what is shown, if it is not what was asked for before.
func (x *Experiments) ask() {
	want := x.chosen()
	if x.pair != nil {
		want = x.pair
	}
	if !slices.Equal(want, x.asked) {
		x.asked = slices.Clone(want)
		x.feed.Show(x.asked)
	}
}

// series is what is read of an experiment, nil where nothing is yet.
func (x *Experiments) series(workflowID string) *experiments.Series {
	if x.data == nil {
		return nil
	}
	for _, s := range x.data.Series {
		if s.WorkflowID == workflowID {
			return s
		}
	}
	return nil
}

func (x *Experiments) row(workflowID string) (experiments.Experiment, bool) {
	if x.data != nil {
		for _, r := range x.data.Rows {
			if r.WorkflowID == workflowID {
				return r, true
			}
		}
	}
	return experiments.Experiment{}, false
}

func (x *Experiments) mark(s tui.Shell, id string) {
	if at := slices.Index(x.Marks, id); at >= 0 {
		x.Marks = slices.Delete(slices.Clone(x.Marks), at, at+1)
	} else if len(x.Marks) >= experiments.MaxSeries {
		s.Note("no more than " + text.Count(experiments.MaxSeries) + " experiments fit on one plot")
	} else if id != "" {
		x.Marks = append(slices.Clone(x.Marks), id)
	}
	x.ask()
}

// compare opens the comparison of two: those that are marked, or the marked one and that
// under the cursor. The one that began first is the first.
func (x *Experiments) compare(s tui.Shell) {
	pair := slices.Clone(x.Marks)
	if len(pair) == 1 && x.Cursor != pair[0] {
		pair = append(pair, x.Cursor)
	}
	if len(pair) != 2 {
		s.Note("mark two experiments with space to compare them")
		return
	}
	a, _ := x.row(pair[0])
	b, _ := x.row(pair[1])
	if b.Start.Before(a.Start) {
		slices.Reverse(pair)
	}
	x.pair = pair
	s.Open("compare")
}

// plotting are the keys of the plots, which work in the list too.
func (x *Experiments) plotting(view string) []tui.Binding {
	b := func(name, keys, help, short string, do func(s tui.Shell)) tui.Binding {
		return tui.Binding{Action: view + "." + name, Keys: strings.Fields(keys), Help: help, Short: short,
			Do: func(s tui.Shell) tea.Cmd { do(s); return nil }}
	}
	return []tui.Binding{
		b("metric", "m ]", "next metric: all four, accuracy, playbook size, operations, cost per right answer", "metric", func(tui.Shell) { x.nextMetric(1) }),
		b("metric_back", "[", "previous metric", "", func(tui.Shell) { x.nextMetric(-1) }),
		b("axis", "t", "plot over tasks or over time", "tasks/time", func(tui.Shell) { x.ByTime = !x.ByTime }),
		b("window", "w", "over how many of the last tasks rates go: 50, 100, 20, all", "window", func(tui.Shell) { x.Window = (x.Window + 1) % len(windows) }),
		b("compare", "d", "compare two experiments task by task: the two marked, or the marked one and this", "compare", x.compare),
		b("unmark", "u", "unmark all", "", func(tui.Shell) { x.Marks = nil; x.ask() }),
		b("run", "o", "open this experiment as a run", "", func(s tui.Shell) {
			if r, ok := x.row(x.Cursor); ok {
				x.nav.Show(r.Run)
				s.Open("run")
			}
		}),
	}
}

func (x *Experiments) nextMetric(by int) {
	n := len(PlotMetrics) + 1
	x.Metric = (x.Metric+1+by+n)%n - 1
}

// experimentList is the list of experiments.
type experimentList struct {
	*Experiments
	styles        theme.Styles
	width, height int
	table         *widget.Table
	rows          []experiments.Experiment // as they are sorted and filtered
	Filter        string
	Order         int // of experimentOrders
	stale         bool
}

// experimentOrders are what the list can be sorted by, best first.
var experimentOrders = []struct {
	name string
	less func(a, b experiments.Experiment) int
}{
	{"newest", func(a, b experiments.Experiment) int { return b.Start.Compare(a.Start) }},
	{"accuracy", func(a, b experiments.Experiment) int { return cmp.Compare(accuracyOf(b), accuracyOf(a)) }},
	{"eval", func(a, b experiments.Experiment) int { return cmp.Compare(lastEval(b), lastEval(a)) }},
	{"cost", func(a, b experiments.Experiment) int { return cmp.Compare(costSoFar(b), costSoFar(a)) }},
	{"name", func(a, b experiments.Experiment) int { return cmp.Compare(a.Name(), b.Name()) }},
}

func NewExperimentList(x *Experiments) *experimentList {
	return &experimentList{Experiments: x, table: widget.NewTable(
		widget.Heading{Title: "EXPERIMENT", Minimum: 12},
		widget.Heading{Title: "DATA SET", Width: 14, Drop: 5},
		widget.Heading{Title: "MODEL", Width: 12, Drop: 7},
		widget.Heading{Title: "STATUS", Width: 10},
		widget.Heading{Title: "TASKS", Width: 11, Right: true},
		widget.Heading{Title: "ACC", Width: 6, Right: true},
		widget.Heading{Title: "EVAL", Width: 13, Right: true, Drop: 2},
		widget.Heading{Title: "BULLETS", Width: 7, Right: true, Drop: 3},
		widget.Heading{Title: "COST", Width: 7, Right: true, Drop: 6},
		widget.Heading{Title: "AGE", Width: 5, Right: true, Drop: 4},
	)}
}

func (v *experimentList) Name() string  { return "Experiments" }
func (v *experimentList) Title() string { return "Experiments" }

func (v *experimentList) Footer() string {
	dot := " " + v.styles.Glyphs.Dot + " "
	parts := []string{}
	if n := len(v.Marks); n > 0 {
		parts = append(parts, text.Count(int64(n))+" marked")
	}
	if v.Order > 0 {
		parts = append(parts, "by "+experimentOrders[v.Order].name)
	}
	if v.Filter != "" {
		parts = append(parts, "/"+text.Cut(text.Safe(v.Filter, " "), 20, ""))
	}
	if v.data != nil && v.data.More > 0 {
		parts = append(parts, text.Count(v.data.More)+" older not listed")
	}
	if at := v.table.Position(); at != "" {
		parts = append(parts, at)
	}
	return strings.Join(parts, dot)
}

func (v *experimentList) Bindings() []tui.Binding {
	own := []tui.Binding{
		{Action: "experiments.curves", Keys: []string{"enter"}, Help: "its learning curves, with those that are marked", Short: "curves",
			Do: func(s tui.Shell) tea.Cmd { s.Focus(1); return nil }},
		{Action: "experiments.mark", Keys: []string{"space"}, Help: "mark to plot several together", Short: "mark",
			Do: func(s tui.Shell) tea.Cmd { v.mark(s, v.Cursor); return nil }},
		{Action: "experiments.sort", Keys: []string{"s"}, Help: "sort by newest, accuracy, eval, cost, name", Short: "sort",
			Do: func(tui.Shell) tea.Cmd { v.Order = (v.Order + 1) % len(experimentOrders); v.stale = true; return nil }},
		{Action: "experiments.filter", Keys: []string{"/"}, Help: "list those whose name, data set or model holds a text", Do: v.askFilter},
		{Action: "experiments.next_error", Keys: []string{"e"}, Help: "next that did not succeed", Do: v.toError(1)},
		{Action: "experiments.previous_error", Keys: []string{"E"}, Help: "previous that did not succeed", Do: v.toError(-1)},
	}
	return append(append(widget.Motions("experiments", v), own...), v.plotting("experiments")...)
}

func (v *experimentList) askFilter(s tui.Shell) tea.Cmd {
	s.Ask(tui.Prompt{Label: "/", Value: v.Filter, Hint: "part of a name, data set or model",
		Done: func(typed string) tea.Cmd { v.Filter, v.stale = strings.TrimSpace(typed), true; return nil }})
	return nil
}

func (v *experimentList) toError(by int) func(tui.Shell) tea.Cmd {
	return func(s tui.Shell) tea.Cmd {
		for at := v.table.Cursor + by; at >= 0 && at < len(v.rows); at += by {
			if exit := v.rows[at].Exit; exit != ace.Success && exit != ace.Running {
				v.Scroll(at - v.table.Cursor)
				return nil
			}
		}
		s.Note("no other experiment that did not succeed")
		return nil
	}
}

// Copy gives the experiment's id.
func (v *experimentList) Copy() (what, content string) {
	r, ok := v.row(v.Cursor)
	if !ok {
		return "", ""
	}
	return "experiment id", r.Name()
}

func (v *experimentList) SetShown(shown bool) {
	v.feed.Look(shown)
	if shown {
		v.pair = nil
		v.ask()
	}
}

func (v *experimentList) SetStyles(s theme.Styles) { v.styles = s }

func (v *experimentList) SetSize(width, height int) {
	v.width, v.height = width, height
	v.table.SetSize(width, height)
}

func (v *experimentList) Refresh() {
	conn := v.controls.Connection()
	v.state, v.file = conn.State, conn.Mode == cluster.ModeFile
	if data := v.feed.Value(); v.data != data {
		v.data, v.stale = data, true
	}
	v.arrange()
}

// arrange sorts and filters, and keeps the cursor on its experiment.
func (v *experimentList) arrange() {
	if !v.stale {
		return
	}
	v.stale, v.rows = false, nil
	if v.data != nil {
		for _, r := range v.data.Rows {
			if v.Filter == "" || widget.Holds(v.Filter, r.Name(), r.Dataset, r.Model) {
				v.rows = append(v.rows, r)
			}
		}
	}
	slices.SortStableFunc(v.rows, experimentOrders[v.Order].less)
	v.table.SetRows(len(v.rows))
	at := slices.IndexFunc(v.rows, func(r experiments.Experiment) bool { return r.WorkflowID == v.Cursor })
	if at < 0 {
		at = v.table.Cursor
	}
	v.Scroll(at - v.table.Cursor)
}

func (v *experimentList) Page() int { return v.table.Page() }

func (v *experimentList) Scroll(by int) {
	v.table.Scroll(by)
	if len(v.rows) > 0 {
		v.Cursor = v.rows[v.table.Cursor].WorkflowID
	}
	v.ask()
}

func (v *experimentList) Draw(now time.Time, focused bool) []string {
	v.arrange()
	s := v.styles
	var lines []string
	if v.data != nil && v.data.Err != "" {
		lines = append(lines, s.Error.Paint(text.Fit(" "+s.Glyphs.Failed+" "+text.Safe(v.data.Err, " "), v.width, s.Glyphs.Ellipsis)))
	}
	if len(v.rows) == 0 {
		return widget.Fill(append(lines, widget.Centre(v.empty(), v.width, v.height-len(lines), s)...), v.width, v.height)
	}
	v.table.SetSize(v.width, v.height-len(lines))
	return append(lines, v.table.Draw(s, focused, func(i int) []widget.Cell { return v.cells(v.rows[i], now) })...)
}

func (v *experimentList) empty() []string {
	e := v.styles.Glyphs.Ellipsis
	switch {
	case v.data != nil && v.data.Err != "":
		return nil
	case v.data == nil && v.state == cluster.ConnLost:
		return []string{"the server is away", "nothing was read from it yet"}
	case v.data == nil || v.data.Loaded.IsZero():
		return []string{"reading the experiments" + e}
	case v.Filter != "":
		return []string{"no experiment holds", text.Safe(v.Filter, " "), "/ to look for others"}
	}
	if v.file {
		return []string{"there is no history of an experiment in the files"}
	}
	return []string{"no experiments yet", "start one:  acescope run --dataset FILE"}
}

func (v *experimentList) cells(r experiments.Experiment, now time.Time) []widget.Cell {
	s, g := v.styles, v.styles.Glyphs
	status := s.Status(string(r.Exit))
	name := "  " + text.Safe(r.Name(), " ")
	if at := slices.Index(v.Marks, r.WorkflowID); at >= 0 {
		name = widget.SeriesMark(at, g) + name[1:]
	}
	p := r.Progress
	if p == nil {
		p = &ace.ExperimentProgress{}
	}
	return []widget.Cell{
		{name, s.Text}, {console.OrDash(r.Dataset, g), s.Muted}, {console.OrDash(r.Model, g), s.Muted},
		{status.Glyph + " " + console.OrDash(status.Word, g), status.Ink},
		{tasksCell(p, g), s.Text}, {rateCell(accuracyOf(r), g), s.Text}, {evalCell(p.Eval, g), s.Text},
		{countOrDash(p.Bullets, g), s.Text}, {console.CostCell(p.Usage, g), s.Muted}, {text.Span(now.Sub(r.Start)), s.Muted},
	}
}
