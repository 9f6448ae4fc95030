package experiments

import (
	"slices"
	"time"

	"acescope/engine/ace"
	"acescope/sources/experiments"
	"acescope/sources/runs"
	"acescope/theme"
	"acescope/tui"
	"acescope/tui/text"
	"acescope/tui/widget"
	"acescope/views/console"
)

// compareView compares two experiments: their metrics, and how the verdict on each task changed.
type compareView struct {
	*Experiments
	console.List[compareRow]
	of     *experiments.Comparison // of the newest series, nil until both are read
	only   int                     // index into compareFilters
	second bool                    // enter opens the run of B
}

// compareRow is a task of the experiments, or of the evaluation if eval is set.
type compareRow struct {
	experiments.Pair
	eval  bool
	index int // of a task of the evaluation
}

// compareFilters select the listed tasks.
var compareFilters = []struct {
	name  string
	flips []experiments.Flip
}{
	{"flipped", []experiments.Flip{experiments.FlipFixed, experiments.FlipBroken}},
	{"fixed", []experiments.Flip{experiments.FlipFixed}},
	{"broken", []experiments.Flip{experiments.FlipBroken}},
	{"both wrong", []experiments.Flip{experiments.FlipBothWrong}},
	{"both correct", []experiments.Flip{experiments.FlipBothCorrect}},
	{"ungraded", []experiments.Flip{experiments.FlipUngraded}},
	{"eval", nil},
}

func newCompareView(x *Experiments) *compareView {
	return &compareView{Experiments: x, List: console.NewList[compareRow]("Compare",
		widget.Heading{Title: "CHANGE", Width: 13},
		widget.Heading{Title: "EPOCH", Width: 5, Right: true, Drop: 2},
		widget.Heading{Title: "#", Width: 5, Right: true, Drop: 1},
		widget.Heading{Title: "A", Minimum: 15},
		widget.Heading{Title: "ANSWER A", Minimum: 8},
		widget.Heading{Title: "B", Minimum: 15},
		widget.Heading{Title: "ANSWER B", Minimum: 8},
	)}
}

func (v *compareView) Footer() string {
	return v.Join("enter opens side "+widget.If(v.second, "B", "A"), v.Table.Position())
}

func (v *compareView) Bindings() []tui.Binding {
	all := append(widget.Motions("compare", v),
		console.Key("compare.open", "open the task's run in the chosen experiment", "open",
			func(s tui.Shell) { v.open(s, v.second) }, "enter"),
		console.Key("compare.related", "open the task's run in the other experiment", "other side",
			func(s tui.Shell) { v.open(s, !v.second) }, "O"),
		console.Key("compare.left", "choose experiment A", "", func() { v.second = false }, "h", "left"),
		console.Key("compare.right", "choose experiment B", "side", func() { v.second = true }, "l", "right"),
		console.Key("compare.filter", "next filter: flipped, fixed, broken, both wrong, both correct, ungraded, eval",
			"filter", func() { v.filter(1) }, "F"),
		console.Key("compare.filter_back", "previous filter", "", func() { v.filter(-1) }),
		console.Key("compare.diff", "compare the task's two runs step by step", "diff", v.diffTask, "="),
		console.Key("compare.swap", "swap A and B", "swap", v.swap, "~"),
		console.Key("compare.next_error", "go to the next task whose answer became wrong", "", v.toBroken(1), "e"),
		console.Key("compare.previous_error", "previous broken task", "", v.toBroken(-1), "E"),
	)
	if v.forks.Changes() {
		point := func() (runs.Run, string, bool) { r, ok := v.taskRun(v.second); return r, "", ok }
		all = append(all, v.forks.ForkOf("compare", point))
	}
	return all
}

func (v *compareView) filter(by int) {
	v.only = (v.only + by + len(compareFilters)) % len(compareFilters)
	v.Table.Cursor, v.Table.Top = 0, 0
	v.fillRows(nil)
}

func (v *compareView) swap() {
	if len(v.pair) == 2 {
		v.pair = []string{v.pair[1], v.pair[0]}
		v.ask()
		v.compareAgain()
	}
}

func (v *compareView) toBroken(by int) func(tui.Shell) {
	broken := func(r compareRow) bool { return r.Flip == experiments.FlipBroken }
	return func(s tui.Shell) { v.Next(s, by, broken, "no other broken task is listed") }
}

// diffTask compares the runs of the task under the cursor.
func (v *compareView) diffTask(s tui.Shell) {
	a, ok := v.runOf(s, false)
	if b, _ := v.runOf(s, true); ok {
		v.comparer.Compare(s, a, b)
	}
}

// open opens the run of the task under the cursor.
func (v *compareView) open(s tui.Shell, second bool) {
	if run, ok := v.runOf(s, second); ok {
		v.nav.Show(run)
		s.Open("run")
	}
}

// runOf is like taskRun and notes that evaluation tasks have no runs.
func (v *compareView) runOf(s tui.Shell, second bool) (runs.Run, bool) {
	if r, ok := v.Current(); ok && r.eval {
		s.Note("evaluation tasks have no runs")
	}
	return v.taskRun(second)
}

// taskRun returns the run of the task under the cursor in A, or in B if second. Evaluation tasks have no
// runs.
func (v *compareView) taskRun(second bool) (runs.Run, bool) {
	r, ok := v.Current()
	if !ok || r.eval {
		return runs.Run{}, false
	}
	id := r.side(second).TaskID
	return runs.Run{WorkflowID: ace.WorkflowID(id), TaskID: id, Type: ace.TaskWorkflow}, true
}

// side returns the task of A, or of B if second.
func (r compareRow) side(second bool) *experiments.Task {
	return widget.If(second, r.B, r.A)
}

func (v *compareView) Copy() (what, content string) {
	r, ok := v.Current()
	if !ok || r.eval {
		return "", ""
	}
	return "task ids", r.A.TaskID + " " + r.B.TaskID
}

func (v *compareView) SetShown(shown bool) {
	v.feed.Look(shown)
	if shown {
		if v.pair == nil && len(v.Marks) == 2 {
			v.pair = v.Marks
		}
		v.ask()
		v.compareAgain()
	}
}

// compareAgain updates the comparison if a series changed, and keeps the cursor on its task.
func (v *compareView) compareAgain() {
	if len(v.pair) != 2 {
		v.clear()
		return
	}
	a, b := v.series(v.pair[0]), v.series(v.pair[1])
	switch {
	case a == nil || b == nil || a.Reading || b.Reading:
		v.clear()
	case v.of == nil || v.of.A != a || v.of.B != b:
		was, had := v.Current()
		v.of = experiments.Compare(a, b)
		v.fillRows(func(r compareRow) bool { return had && r.same(was) })
	}
}

// same reports whether two rows are the same task.
func (r compareRow) same(o compareRow) bool {
	if r.eval || o.eval {
		return o.eval == r.eval && o.index == r.index
	}
	return o.Epoch == r.Epoch && o.A.Index == r.A.Index
}

func (v *compareView) clear() {
	v.of = nil
	v.Set(nil, nil)
}

// fillRows lists the tasks that match the filter. The cursor goes to the task that satisfies the function is.
func (v *compareView) fillRows(is func(compareRow) bool) {
	if v.of == nil {
		return
	}
	var rows []compareRow
	only := compareFilters[v.only]
	if e := v.of.Eval; only.flips == nil && e != nil {
		for _, i := range e.Fixed {
			rows = append(rows, compareRow{experiments.Pair{Flip: experiments.FlipFixed}, true, i})
		}
		for _, i := range e.Broken {
			rows = append(rows, compareRow{experiments.Pair{Flip: experiments.FlipBroken}, true, i})
		}
	}
	for _, p := range v.of.Pairs {
		if slices.Contains(only.flips, p.Flip) {
			rows = append(rows, compareRow{Pair: p})
		}
	}
	v.Set(rows, is)
}

func (v *compareView) Draw(now time.Time, focused bool) []string {
	v.compareAgain()
	if v.of == nil {
		return v.Message(nil, v.empty()...)
	}
	w := &widget.Writer{Doc: &widget.Document{}, S: v.Styles, Width: v.Width, Now: now, Loc: v.location}
	WriteComparison(w, v.of)
	lines := append(w.Lines[:min(len(w.Lines), max(v.Height-6, 0))], v.filterLine())
	if len(v.Rows) == 0 {
		return v.Message(lines, v.noRows())
	}
	return v.DrawRows(lines, focused, v.cells)
}

func (v *compareView) empty() []string {
	if len(v.pair) != 2 {
		return []string{"no experiments to compare",
			"in the list of experiments, mark two with space, then press ="}
	}
	return []string{"reading the tasks of both" + v.Styles.Glyphs.Ellipsis}
}

func (v *compareView) noRows() string {
	switch name := compareFilters[v.only].name; {
	case name == "eval" && len(v.of.NoVerdict) > 0:
		return v.of.Refusal()
	case name == "eval" && v.of.Eval == nil:
		return "the experiments were not evaluated on the same data set"
	case name == "eval":
		return "no verdict changed in the evaluation"
	case len(v.of.Pairs) == 0:
		return "the experiments have no tasks in common; only their curves can be compared"
	default:
		return "no task matches the filter " + name
	}
}

// filterLine shows the number of tasks per filter, the chosen filter in brackets.
func (v *compareView) filterLine() string {
	s := v.Styles
	l := v.Line()
	for i, f := range compareFilters {
		n := 0
		for _, flip := range f.flips {
			n += v.of.Counts[flip]
		}
		if e := v.of.Eval; f.flips == nil && e != nil {
			n = len(e.Fixed) + len(e.Broken)
		}
		if n == 0 && i != v.only && f.name == "ungraded" {
			continue
		}
		label := f.name + " " + ace.Number(n)
		if i == v.only {
			l.Add(s.Title, "["+label+"]")
		} else {
			l.Add(s.Muted, " "+label+" ")
		}
	}
	return l.String(s.Text)
}

func (v *compareView) cells(r compareRow) []widget.Cell {
	s, g := v.Styles, v.Styles.Glyphs
	label, ink := flipLabel(r.Flip, s)
	if r.eval {
		return []widget.Cell{{label, ink}, {g.Dash, s.Muted}, {ace.Number(r.index), s.Muted},
			{"evaluation " + text.Safe(v.of.Eval.Dataset, " "), s.Muted}, {g.Dash, s.Muted}, {},
			{g.Dash, s.Muted}}
	}
	left, right := s.Strong, s.Text
	if v.second {
		left, right = right, left
	}
	return []widget.Cell{{label, ink}, {ace.Number(r.Epoch), s.Muted},
		{ace.Number(r.A.Index), s.Muted},
		{text.Safe(r.A.TaskID, " "), left}, {console.OrDash(r.A.Answer, g), left},
		{text.Safe(r.B.TaskID, " "), right}, {console.OrDash(r.B.Answer, g), right}}
}

// flipLabel names the change of a verdict.
func flipLabel(f experiments.Flip, s theme.Styles) (string, theme.Ink) {
	g := s.Glyphs
	switch f {
	case experiments.FlipFixed:
		return g.Wrong + g.Arrow + g.Success + " fixed", s.Success
	case experiments.FlipBroken:
		return g.Success + g.Arrow + g.Wrong + " broken", s.Wrong
	case experiments.FlipBothWrong:
		return g.Wrong + " both wrong", s.Muted
	case experiments.FlipBothCorrect:
		return g.Success + " both correct", s.Text
	}
	return g.Unknown + " ungraded", s.Muted
}

// WriteComparison writes the numbers of two experiments and how their tasks are aligned.
func WriteComparison(w *widget.Writer, c *experiments.Comparison) {
	s, g := w.S, w.S.Glyphs
	w.End(w.Line().Add(s.Muted, " A ").Add(s.Strong, text.Safe(c.A.Name(), " ")).
		Add(s.Muted, "  "+g.Arrow+"  B ").Add(s.Strong, text.Safe(c.B.Name(), " ")))
	w.Say(widget.If(c.SameData, s.Muted, s.Warning), " "+text.Safe(c.Alignment(), " "))
	w.End(w.Line().Add(s.Text, " "+ace.Number(len(c.Pairs))+" aligned").
		Add(s.Muted, ", "+ace.Number(c.OnlyA)+" only in A, "+ace.Number(c.OnlyB)+" only in B"))
	w.Prose(" ", s.Strong, c.Headline())
	for _, p := range c.Paired[min(len(c.Paired), 1):] {
		w.Prose(" ", s.Text, p.Where()+": "+p.Result())
	}
	if unlike := c.Likeness(); unlike != "" {
		w.Prose(" ", s.Warning, unlike)
	}
	if settings := c.Differing(); settings != "" {
		w.Prose(" ", s.Muted, settings)
	}
	var metrics []widget.Metric
	for _, m := range c.Metrics(w.Now) {
		metrics = append(metrics, widget.Metric(m))
	}
	w.Metrics(metrics)
	for _, x := range []*experiments.Series{c.A, c.B} {
		if x.Err != "" {
			w.Prose(" "+g.Failed+" "+text.Safe(x.Name(), " ")+": ", s.Error, x.Err)
		}
	}
}
