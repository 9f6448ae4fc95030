// Package experiments lists experiments, plots their metrics and compares two of them task by task.
package experiments

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"acescope/engine/ace"
	"acescope/sources/cluster"
	"acescope/sources/experiments"
	"acescope/sources/runs"
	"acescope/tui"
	"acescope/tui/text"
	"acescope/tui/widget"
	"acescope/views/console"
)

// Experiments is the state that the screens share: the experiments, the marks, and how they are plotted.
type Experiments struct {
	nav      *console.Navigation
	listing  *console.Listing
	launcher *console.Launcher
	forks    *console.Forks
	comparer *console.Comparer
	controls console.Controls
	location *time.Location
	feed     Feed
	data     *experiments.Experiments // nil before the first reading
	state    cluster.ConnState
	file     bool     // the experiments come from files
	Marks    []string // workflow IDs in the order of marking, at most MaxSeries
	Cursor   string   // workflow ID of the row under the cursor
	pair     []string // workflow IDs of the compared experiments, or nil
	asked    []string

	Metric int // index into PlotMetrics, or AllMetrics
	Window int // index into windows
	ByTime bool
}

// Feed lists experiments and reads the series of some of them.
type Feed interface {
	console.Feed[*experiments.Experiments]
	// Show reads the series of these experiments, by workflow ID.
	Show(workflowIDs []string)
}

// Screens returns the list of experiments with their curves, and the comparison of two.
func Screens(x *Experiments) (list, compare tui.Screen) {
	l := NewList(x)
	curves := NewCurves(x, x.chosen)
	curves.list = l
	list = tui.Screen{Name: "experiments", Short: "exps", Keys: []string{"5"}, Share: 42,
		Aliases: []string{"experiment"},
		Argument: &tui.Argument{Name: "ID", Help: "ID selects one", Candidates: x.candidates, Check: x.check,
			Do: x.choose}, Help: "experiments and their learning curves", Views: []tui.View{l, curves}}
	compare = tui.Screen{Name: "compare", Help: "the two marked experiments, task by task",
		Aside: true, Views: []tui.View{newCompareView(x)}}
	return list, compare
}

// New returns the shared state of the screens.
func New(c *console.Console, feed Feed) *Experiments {
	x := &Experiments{nav: c.Navigation, listing: c.Listing, launcher: c.Launcher, forks: c.Forks,
		comparer: c.Comparer, controls: c.Controls, location: c.Location, feed: feed, Metric: AllMetrics}
	c.Comparer.Experiments = x.openPair
	return x
}

// AllMetrics plots every metric side by side, where there is room.
const AllMetrics = -1

// windows are the numbers of last tasks over which rates are computed; 0 stands for all tasks so far.
var windows = []int{experiments.DefaultWindow, 100, 20, 0}

// chosen returns the plotted experiments: the marked ones, or the one under the cursor.
func (x *Experiments) chosen() []string {
	switch {
	case len(x.Marks) > 0:
		return x.Marks
	case x.Cursor != "":
		return []string{x.Cursor}
	}
	return nil
}

func (x *Experiments) candidates() (list []tui.Candidate) {
	if x.data == nil {
		return nil
	}
	for _, r := range x.data.Rows {
		list = append(list, tui.Candidate{Value: r.Name(), Help: string(r.Status) + "  " + r.Dataset})
	}
	return list
}

func (x *Experiments) check(name string) error {
	if _, ok := x.row(name); !ok {
		return fmt.Errorf("experiment %q not found; tab lists the experiments", name)
	}
	return nil
}

func (x *Experiments) choose(s tui.Shell, name string) tea.Cmd {
	r, _ := x.row(name)
	x.Cursor = r.WorkflowID
	s.Open("experiments")
	s.Focus(0)
	return nil
}

// row returns the experiment with a workflow ID or a name.
func (x *Experiments) row(id string) (r experiments.Experiment, ok bool) {
	if x.data != nil {
		for _, r := range x.data.Rows {
			if id == r.WorkflowID || id == r.Name() {
				return r, true
			}
		}
	}
	return r, false
}

// ask requests the series of the shown experiments if they changed.
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

// Read reads the series of one experiment for another screen. The list requests its series when it is shown.
func (x *Experiments) Read(workflowID string) {
	x.asked = []string{workflowID}
	x.feed.Show(x.asked)
}

// series returns the series of an experiment, or nil until it is read.
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

func (x *Experiments) mark(s tui.Shell, id string) {
	if at := slices.Index(x.Marks, id); at >= 0 {
		x.Marks = slices.Delete(slices.Clone(x.Marks), at, at+1)
	} else if len(x.Marks) >= experiments.MaxSeries {
		s.Note("at most " + ace.Number(experiments.MaxSeries) + " experiments can be marked")
	} else if id != "" {
		x.Marks = append(slices.Clone(x.Marks), id)
	}
	x.ask()
}

// compare compares the two marked experiments, or the marked one and the one under the cursor. The older one
// is A.
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
	x.openPair(s, pair[0], pair[1])
}

// openPair compares two experiments, by workflow ID.
func (x *Experiments) openPair(s tui.Shell, a, b string) {
	x.pair = []string{a, b}
	s.Open("compare")
}

// plotBindings returns the keys of the plots, which work in the list too.
func (x *Experiments) plotBindings(view string) []tui.Binding {
	return []tui.Binding{
		console.Key(view+".filter", "list its runs", "list its runs", x.listRuns, "F"),
		console.Key(view+".metric",
			"show the next metric: all, accuracy, playbook size, operations, cost per correct answer",
			"metric", func() { x.nextMetric(1) }, "]"),
		console.Key(view+".metric_back", "show the previous metric", "", func() { x.nextMetric(-1) }, "["),
		console.Key(view+".axis", "plot over tasks or over time", "tasks/time",
			func() { x.ByTime = !x.ByTime }, "X"),
		console.Key(view+".window", "average rates over the last 50, 100 or 20 tasks, or all", "window",
			func() { x.Window = (x.Window + 1) % len(windows) }, "."),
		console.Key(view+".diff",
			"compare two experiments task by task: both marked, or the marked and the selected one",
			"compare", x.compare, "="),
		console.Key(view+".unmark", "unmark all", "", func() { x.Marks = nil; x.ask() }, "u"),
		console.Key(view+".related", "open this experiment as a run", "", func(s tui.Shell) tea.Cmd {
			r, ok := x.row(x.Cursor)
			if !ok {
				return nil
			}
			return x.nav.OpenRun(s, r.Run)
		}, "O"),
		console.Key(view+".versions", "show its evaluations item by item", "items", x.open("evaluations"),
			"v"),
		console.Key(view+".bullets", "show what each bullet does, by an ablation", "", x.open("effects"),
			"b"),
	}
}

// listRuns lists the runs of the experiment under the cursor.
func (x *Experiments) listRuns(s tui.Shell) {
	r, ok := x.row(x.Cursor)
	if ok && x.listing.ApplyFilter(s, ace.AttrExperiment+" = "+runs.Quote(r.Name())) {
		s.Open("runs")
	}
}

// open selects the experiment under the cursor and opens a screen.
func (x *Experiments) open(screen string) func(tui.Shell) {
	return func(s tui.Shell) {
		if r, ok := x.row(x.Cursor); ok {
			x.nav.Show(r.Run)
			s.Open(screen)
		}
	}
}

func (x *Experiments) nextMetric(by int) {
	n := len(PlotMetrics) + 1
	x.Metric = (x.Metric+1+by+n)%n - 1
}

type list struct {
	*Experiments
	console.List[experiments.Experiment] // sorted and filtered

	Filter string
	Order  int // index into orders
	stale  bool
	shown  bool
}

// orders are the sort orders, best first.
var orders = []struct {
	name string
	less func(a, b experiments.Experiment) int
}{
	{"newest", func(a, b experiments.Experiment) int { return b.Start.Compare(a.Start) }},
	{"accuracy", func(a, b experiments.Experiment) int { return cmp.Compare(accuracyOf(b), accuracyOf(a)) }},
	{"eval", func(a, b experiments.Experiment) int { return cmp.Compare(lastEval(b), lastEval(a)) }},
	{"cost", func(a, b experiments.Experiment) int { return cmp.Compare(costSoFar(b), costSoFar(a)) }},
	{"name", func(a, b experiments.Experiment) int { return cmp.Compare(a.Name(), b.Name()) }},
}

func NewList(x *Experiments) *list {
	return &list{Experiments: x, List: console.NewList[experiments.Experiment]("Experiments",
		widget.Heading{Title: "EXPERIMENT", Minimum: 12},
		widget.Heading{Title: "DATA SET", Width: 14, Drop: 6},
		widget.Heading{Title: "MODEL", Width: 12, Drop: 8},
		widget.Heading{Title: "STATUS", Width: 11},
		widget.Heading{Title: "TASKS", Width: 11, Right: true, Drop: 2},
		widget.Heading{Title: "ACC", Width: 6, Right: true, Drop: 1},
		widget.Heading{Title: "95%", Width: 6, Drop: 3},
		widget.Heading{Title: "EVAL", Width: 13, Right: true},
		widget.Heading{Title: "95%", Width: 6, Drop: 3},
		widget.Heading{Title: "BULLETS", Width: 7, Right: true, Drop: 4},
		widget.Heading{Title: "COST", Width: 7, Right: true, Drop: 7},
		widget.Heading{Title: "AGE", Width: 5, Right: true, Drop: 5},
	)}
}

func (v *list) Footer() string {
	older := ""
	if v.data != nil && v.data.More > 0 {
		older = ace.Number(v.data.More) + " older not listed"
	}
	return v.Join(console.MarkedText(len(v.Marks)), widget.If(v.Order > 0, "by "+orders[v.Order].name, ""),
		console.FilterText(v.Filter), older, v.Table.Position())
}

func (v *list) Bindings() []tui.Binding {
	own := []tui.Binding{
		console.Key("experiments.curves", "show its learning curves, with those of the marked ones", "curves",
			func(s tui.Shell) { s.Focus(1) }, "enter"),
		console.Key("experiments.mark", "mark, to plot several together", "mark",
			func(s tui.Shell) { v.mark(s, v.Cursor) }, "space"),
		console.Key("experiments.sort", "sort by newest, accuracy, eval, cost, name", "sort",
			func() { v.Order = (v.Order + 1) % len(orders); v.stale = true }, "s"),
		console.Key("experiments.search", "filter by name, data set or model", "", v.askFilter, "/"),
		console.Key("experiments.next_error", "next failed experiment", "", v.toError(1), "e"),
		console.Key("experiments.previous_error", "previous failed experiment", "", v.toError(-1), "E"),
	}
	own = append(own, v.launcher.LaunchBinding("experiments")...)
	return slices.Concat(widget.Motions("experiments", v), own, v.plotBindings("experiments"))
}

func (v *list) askFilter(s tui.Shell) {
	s.Ask(tui.Prompt{Label: "/", Value: v.Filter, Hint: "part of a name, data set or model",
		Done: func(typed string) tea.Cmd { v.Filter, v.stale = strings.TrimSpace(typed), true; return nil }})
}

func (v *list) Unfilter() (was bool) {
	if was = v.Filter != ""; was {
		v.Filter, v.stale = "", true
	}
	return was
}

func (v *list) toError(by int) func(tui.Shell) {
	failed := func(r experiments.Experiment) bool { return r.Status.Bad() }
	return func(s tui.Shell) {
		if v.Next(s, by, failed, "no other failed experiment") {
			v.Scroll(0)
		}
	}
}

func (v *list) Copy() (what, content string) {
	r, _ := v.row(v.Cursor)
	return "experiment id", r.Name()
}

func (v *list) Copies() []tui.Copy {
	if r, ok := v.row(v.Cursor); ok {
		return v.CopiesOf(r)
	}
	return nil
}

// CopiesOf returns the forms in which an experiment can be copied.
func (x *Experiments) CopiesOf(r experiments.Experiment) []tui.Copy {
	return []tui.Copy{{Key: "i", What: "workflow ID", Text: r.WorkflowID}, console.JSONCopy(r),
		x.nav.CommandCopy("experiment", "show", r.Name())}
}

func (v *list) SetShown(shown bool) {
	v.shown = shown
	v.feed.Look(shown)
	v.nav.UnderCursor = nil
	if shown {
		v.nav.UnderCursor = v.run
		v.pair = nil
		v.stale = v.stale || v.nav.Experiment != ""
		v.ask()
	} else {
		v.nav.Experiment = ""
	}
}

// run returns the workflow of the experiment under the cursor, if it has one.
func (v *list) run() (runs.Run, bool) {
	r, _ := v.row(v.Cursor)
	return r.Run, r.RunID != ""
}

func (v *list) Refresh() {
	conn := v.controls.Connection()
	v.state, v.file = conn.State, conn.Mode == cluster.ModeFile
	if data := v.feed.Value(); v.data != data {
		v.data, v.stale = data, true
	}
	v.arrange()
}

// arrange sorts and filters the rows, and keeps the cursor on its experiment.
func (v *list) arrange() {
	if !v.stale {
		return
	}
	v.stale = false
	var rows []experiments.Experiment
	if v.data != nil {
		for _, r := range v.data.Rows {
			if v.Filter == "" || widget.Holds(v.Filter, r.Name(), r.Dataset, r.Model) {
				rows = append(rows, r)
			}
		}
	}
	slices.SortStableFunc(rows, orders[v.Order].less)
	started := func(r experiments.Experiment) bool { return r.WorkflowID == v.nav.Experiment }
	if slices.ContainsFunc(rows, started) {
		v.Cursor = v.nav.Experiment
		v.nav.Experiment = ""
	}
	v.Set(rows, func(r experiments.Experiment) bool { return r.WorkflowID == v.Cursor })
	v.Scroll(0)
}

func (v *list) Scroll(by int) {
	v.Table.Scroll(by)
	if r, ok := v.Current(); ok {
		v.Cursor = r.WorkflowID
	}
	if v.shown { // otherwise another screen may show other series
		v.ask()
	}
}

func (v *list) Draw(now time.Time, focused bool) []string {
	v.arrange()
	var lines []string
	if v.data != nil && v.data.Err != "" {
		lines = append(lines, v.Problem(v.Styles.Error, v.data.Err))
	}
	if len(v.Rows) == 0 {
		return v.Message(lines, v.empty()...)
	}
	return v.DrawRows(lines, focused, func(r experiments.Experiment) []widget.Cell { return v.cells(r, now) })
}

func (v *list) empty() []string {
	e := v.Styles.Glyphs.Ellipsis
	switch {
	case v.data != nil && v.data.Err != "":
		return nil
	case v.data == nil && v.state == cluster.ConnLost:
		return []string{"no connection to the server", "no experiments read yet"}
	case v.data == nil || v.data.Loaded.IsZero():
		return []string{"reading the experiments" + e}
	case v.Filter != "":
		return []string{"no experiment matches", text.Safe(v.Filter, " "), "/ changes the filter"}
	}
	if v.file {
		return []string{"the files contain no history of an experiment"}
	}
	return []string{"no experiments yet", "n starts one, and so does  acescope run --dataset FILE"}
}

func (v *list) cells(r experiments.Experiment, now time.Time) []widget.Cell {
	s, g := v.Styles, v.Styles.Glyphs
	status := s.Status(string(r.Status))
	name := "  " + text.Middle(text.Safe(r.Name(), " "), v.Table.Widths[0]-2, g.Ellipsis)
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
		{tasksCell(p, g), s.Text}, {rateCell(accuracyOf(r), g), s.Text}, {accuracyRange(p, g), s.Muted},
		{evalCell(p.Eval, g), s.Text}, {evalRange(p.Eval, g), s.Muted},
		{widget.If(p.Bullets == 0, g.Dash, ace.Number(p.Bullets)), s.Text},
		{console.CostCell(p.Usage, g), s.Muted},
		{text.Span(now.Sub(r.Start)), s.Muted},
	}
}

func (v *list) Keep() map[string]string {
	return map[string]string{
		"marks": strings.Join(v.Marks, "\n"), "cursor": v.Cursor, "filter": v.Filter,
		"order":  strconv.Itoa(v.Order),
		"metric": strconv.Itoa(v.Metric), "window": strconv.Itoa(v.Window),
		"time": strconv.FormatBool(v.ByTime),
	}
}

func (v *list) Restore(kept map[string]string) {
	number := func(name string, low, high int, into *int) {
		if n, err := strconv.Atoi(kept[name]); err == nil && n >= low && n < high {
			*into = n
		}
	}
	number("order", 0, len(orders), &v.Order)
	number("metric", AllMetrics, len(PlotMetrics), &v.Metric)
	number("window", 0, len(windows), &v.Window)
	v.ByTime = kept["time"] == "true"
	v.Cursor, v.Filter, v.stale = kept["cursor"], kept["filter"], true
	v.Marks = nil
	for _, id := range strings.Split(kept["marks"], "\n") {
		if id != "" && len(v.Marks) < len(plotKey{}.series) {
			v.Marks = append(v.Marks, id)
		}
	}
}
