package views

import (
	"cmp"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"acescope/engine/ace"
	"acescope/sources"
	"acescope/theme"
	"acescope/tui"
	"acescope/tui/text"
)

// ExperimentControls asks for what the experiments' screens show.
type ExperimentControls interface {
	// ShowExperiments asks for the series of experiments, by workflow id.
	ShowExperiments(workflowIDs []string)
}

// experiments is what the screens of experiments share: what is listed, which are
// marked, and how they are plotted.
type experiments struct {
	*console
	data   *sources.Experiments // nil before the first reading
	state  sources.ConnState
	file   bool     // they come from files
	marks  []string // workflow ids in the order of marking, at most sources.MaxSeries
	cursor string   // workflow id of the row that the list is on
	pair   []string // the two that are compared, nil while none are
	asked  []string

	metric int // of plotMetrics, or allMetrics
	window int // of windows
	byTime bool
}

// allMetrics plots every metric side by side, where there is room.
const allMetrics = -1

// windows are the windows of rates that one can go through; 0 is all tasks so far.
var windows = []int{sources.DefaultWindow, 100, 20, 0}

// chosen are the experiments that are plotted: the marked ones, else that under the
// cursor.
func (x *experiments) chosen() []string {
	switch {
	case len(x.marks) > 0:
		return x.marks
	case x.cursor != "":
		return []string{x.cursor}
	}
	return nil
}

// ask asks for the series of what is shown, if it is not what was asked for before.
func (x *experiments) ask() {
	want := x.chosen()
	if x.pair != nil {
		want = x.pair
	}
	if !slices.Equal(want, x.asked) {
		x.asked = slices.Clone(want)
		x.Controls.ShowExperiments(x.asked)
	}
}

// series is what is read of an experiment, nil where nothing is yet.
func (x *experiments) series(workflowID string) *sources.Series {
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

func (x *experiments) row(workflowID string) (sources.Experiment, bool) {
	if x.data != nil {
		for _, r := range x.data.Rows {
			if r.WorkflowID == workflowID {
				return r, true
			}
		}
	}
	return sources.Experiment{}, false
}

func (x *experiments) mark(s tui.Shell, id string) {
	if at := slices.Index(x.marks, id); at >= 0 {
		x.marks = slices.Delete(slices.Clone(x.marks), at, at+1)
	} else if len(x.marks) >= sources.MaxSeries {
		s.Note("no more than " + text.Count(sources.MaxSeries) + " experiments fit on one plot")
	} else if id != "" {
		x.marks = append(slices.Clone(x.marks), id)
	}
	x.ask()
}

// compare opens the comparison of two: those that are marked, or the marked one and that
// under the cursor. The one that began first is the first.
func (x *experiments) compare(s tui.Shell) {
	pair := slices.Clone(x.marks)
	if len(pair) == 1 && x.cursor != pair[0] {
		pair = append(pair, x.cursor)
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
func (x *experiments) plotting(view string) []tui.Binding {
	b := func(name, keys, help, short string, do func(s tui.Shell)) tui.Binding {
		return tui.Binding{Action: view + "." + name, Keys: strings.Fields(keys), Help: help, Short: short,
			Do: func(s tui.Shell) tea.Cmd { do(s); return nil }}
	}
	return []tui.Binding{
		b("metric", "m ]", "next metric: all four, accuracy, playbook size, operations, cost per right answer", "metric", func(tui.Shell) { x.nextMetric(1) }),
		b("metric_back", "[", "previous metric", "", func(tui.Shell) { x.nextMetric(-1) }),
		b("axis", "t", "plot over tasks or over time", "tasks/time", func(tui.Shell) { x.byTime = !x.byTime }),
		b("window", "w", "over how many of the last tasks rates go: 50, 100, 20, all", "window", func(tui.Shell) { x.window = (x.window + 1) % len(windows) }),
		b("compare", "d", "compare two experiments task by task: the two marked, or the marked one and this", "compare", x.compare),
		b("unmark", "u", "unmark all", "", func(tui.Shell) { x.marks = nil; x.ask() }),
		b("run", "o", "open this experiment as a run", "", func(s tui.Shell) {
			if r, ok := x.row(x.cursor); ok {
				x.show(r.Run)
				s.Open("run")
			}
		}),
	}
}

func (x *experiments) nextMetric(by int) {
	n := len(plotMetrics) + 1
	x.metric = (x.metric+1+by+n)%n - 1
}

// experimentList is the list of experiments.
type experimentList struct {
	*experiments
	styles        theme.Styles
	width, height int
	table         *table
	rows          []sources.Experiment // as they are sorted and filtered
	filter        string
	order         int // of experimentOrders
	stale         bool
}

// experimentOrders are what the list can be sorted by, best first.
var experimentOrders = []struct {
	name string
	less func(a, b sources.Experiment) int
}{
	{"newest", func(a, b sources.Experiment) int { return b.Start.Compare(a.Start) }},
	{"accuracy", func(a, b sources.Experiment) int { return cmp.Compare(accuracyOf(b), accuracyOf(a)) }},
	{"eval", func(a, b sources.Experiment) int { return cmp.Compare(lastEval(b), lastEval(a)) }},
	{"cost", func(a, b sources.Experiment) int { return cmp.Compare(costSoFar(b), costSoFar(a)) }},
	{"name", func(a, b sources.Experiment) int { return cmp.Compare(a.Name(), b.Name()) }},
}

func newExperimentList(x *experiments) *experimentList {
	return &experimentList{experiments: x, table: newTable(
		heading{title: "EXPERIMENT", minimum: 12},
		heading{title: "DATA SET", width: 14, drop: 5},
		heading{title: "MODEL", width: 12, drop: 7},
		heading{title: "STATUS", width: 10},
		heading{title: "TASKS", width: 11, right: true},
		heading{title: "ACC", width: 6, right: true},
		heading{title: "EVAL", width: 13, right: true, drop: 2},
		heading{title: "BULLETS", width: 7, right: true, drop: 3},
		heading{title: "COST", width: 7, right: true, drop: 6},
		heading{title: "AGE", width: 5, right: true, drop: 4},
	)}
}

func (v *experimentList) Name() string  { return "Experiments" }
func (v *experimentList) Title() string { return "Experiments" }

func (v *experimentList) Footer() string {
	dot := " " + v.styles.Glyphs.Dot + " "
	parts := []string{}
	if n := len(v.marks); n > 0 {
		parts = append(parts, text.Count(int64(n))+" marked")
	}
	if v.order > 0 {
		parts = append(parts, "by "+experimentOrders[v.order].name)
	}
	if v.filter != "" {
		parts = append(parts, "/"+text.Cut(text.Safe(v.filter, " "), 20, ""))
	}
	if v.data != nil && v.data.More > 0 {
		parts = append(parts, text.Count(v.data.More)+" older not listed")
	}
	if at := v.table.position(); at != "" {
		parts = append(parts, at)
	}
	return strings.Join(parts, dot)
}

func (v *experimentList) Bindings() []tui.Binding {
	own := []tui.Binding{
		{Action: "experiments.curves", Keys: []string{"enter"}, Help: "its learning curves, with those that are marked", Short: "curves",
			Do: func(s tui.Shell) tea.Cmd { s.Focus(1); return nil }},
		{Action: "experiments.mark", Keys: []string{"space"}, Help: "mark to plot several together", Short: "mark",
			Do: func(s tui.Shell) tea.Cmd { v.mark(s, v.cursor); return nil }},
		{Action: "experiments.sort", Keys: []string{"s"}, Help: "sort by newest, accuracy, eval, cost, name", Short: "sort",
			Do: func(tui.Shell) tea.Cmd { v.order = (v.order + 1) % len(experimentOrders); v.stale = true; return nil }},
		{Action: "experiments.filter", Keys: []string{"/"}, Help: "list those whose name, data set or model holds a text", Do: v.askFilter},
		{Action: "experiments.next_error", Keys: []string{"e"}, Help: "next that did not succeed", Do: v.toError(1)},
		{Action: "experiments.previous_error", Keys: []string{"E"}, Help: "previous that did not succeed", Do: v.toError(-1)},
	}
	return append(append(motions("experiments", v), own...), v.plotting("experiments")...)
}

func (v *experimentList) askFilter(s tui.Shell) tea.Cmd {
	s.Ask(tui.Prompt{Label: "/", Value: v.filter, Hint: "part of a name, data set or model",
		Done: func(typed string) tea.Cmd { v.filter, v.stale = strings.TrimSpace(typed), true; return nil }})
	return nil
}

func (v *experimentList) toError(by int) func(tui.Shell) tea.Cmd {
	return func(s tui.Shell) tea.Cmd {
		for at := v.table.cursor + by; at >= 0 && at < len(v.rows); at += by {
			if exit := v.rows[at].Exit; exit != ace.Success && exit != ace.Running {
				v.scroll(at - v.table.cursor)
				return nil
			}
		}
		s.Note("no other experiment that did not succeed")
		return nil
	}
}

// Copy gives the experiment's id.
func (v *experimentList) Copy() (what, content string) {
	r, ok := v.row(v.cursor)
	if !ok {
		return "", ""
	}
	return "experiment id", r.Name()
}

func (v *experimentList) Update(tea.Msg) tea.Cmd { return nil }

func (v *experimentList) SetShown(shown bool) {
	v.Controls.Look(sources.PartExperiments, shown)
	if shown {
		v.pair = nil
		v.ask()
	}
}

func (v *experimentList) SetStyles(s theme.Styles) { v.styles = s }

func (v *experimentList) SetSize(width, height int) {
	v.width, v.height = width, height
	v.table.setSize(width, height)
}

func (v *experimentList) SetSnapshot(s *sources.Snapshot) {
	v.state, v.file = s.Connection.State, s.Connection.Mode == sources.ModeFile
	if v.data != s.Experiments {
		v.data, v.stale = s.Experiments, true
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
			if v.filter == "" || holds(v.filter, r.Name(), r.Dataset, r.Model) {
				v.rows = append(v.rows, r)
			}
		}
	}
	slices.SortStableFunc(v.rows, experimentOrders[v.order].less)
	v.table.setRows(len(v.rows))
	at := slices.IndexFunc(v.rows, func(r sources.Experiment) bool { return r.WorkflowID == v.cursor })
	if at < 0 {
		at = v.table.cursor
	}
	v.scroll(at - v.table.cursor)
}

func holds(part string, in ...string) bool {
	return slices.ContainsFunc(in, func(s string) bool { return strings.Contains(strings.ToLower(s), strings.ToLower(part)) })
}

func (v *experimentList) page() int { return v.table.page() }

func (v *experimentList) scroll(by int) {
	v.table.scroll(by)
	if len(v.rows) > 0 {
		v.cursor = v.rows[v.table.cursor].WorkflowID
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
		return fill(append(lines, centre(v.empty(), v.width, v.height-len(lines), s)...), v.width, v.height)
	}
	v.table.setSize(v.width, v.height-len(lines))
	return append(lines, v.table.draw(s, focused, func(i int) []cell { return v.cells(v.rows[i], now) })...)
}

func (v *experimentList) empty() []string {
	e := v.styles.Glyphs.Ellipsis
	switch {
	case v.data != nil && v.data.Err != "":
		return nil
	case v.data == nil && v.state == sources.ConnLost:
		return []string{"the server is away", "nothing was read from it yet"}
	case v.data == nil || v.data.Loaded.IsZero():
		return []string{"reading the experiments" + e}
	case v.filter != "":
		return []string{"no experiment holds", text.Safe(v.filter, " "), "/ to look for others"}
	}
	if v.file {
		return []string{"there is no history of an experiment in the files"}
	}
	return []string{"no experiments yet", "start one:  acescope run --dataset FILE"}
}

func (v *experimentList) cells(r sources.Experiment, now time.Time) []cell {
	s, g := v.styles, v.styles.Glyphs
	status := s.Status(string(r.Exit))
	name := "  " + text.Safe(r.Name(), " ")
	if at := slices.Index(v.marks, r.WorkflowID); at >= 0 {
		name = seriesMark(at, g) + name[1:]
	}
	p := r.Progress
	if p == nil {
		p = &ace.ExperimentProgress{}
	}
	return []cell{
		{name, s.Text}, {orDash(r.Dataset, g), s.Muted}, {orDash(r.Model, g), s.Muted},
		{status.Glyph + " " + orDash(status.Word, g), status.Ink},
		{tasksCell(p, g), s.Text}, {rateCell(accuracyOf(r), g), s.Text}, {evalCell(p.Eval, g), s.Text},
		{countOrDash(p.Bullets, g), s.Text}, {costCell(p.Usage, g), s.Muted}, {text.Span(now.Sub(r.Start)), s.Muted},
	}
}
