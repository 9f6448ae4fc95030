package experiments

import (
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"

	"acescope/engine/ace"
	"acescope/sources/experiments"
	"acescope/sources/runs"
	"acescope/theme"
	"acescope/tui"
	"acescope/tui/text"
	"acescope/tui/widget"
	"acescope/views/console"
)

// experimentCompare is two experiments beside each other: their numbers, and what became
// of each task from the first to the second.
type experimentCompare struct {
	*Experiments
	styles        theme.Styles
	width, height int
	of            *experiments.Comparison // of the newest series, nil while one is not read
	table         *widget.Table
	rows          []compareRow
	only          int  // of compareFilters
	second        bool // enter opens the second's run
}

// compareRow is a task, or a task of the evaluation.
type compareRow struct {
	pair experiments.Pair
	eval bool
}

// compareFilters are which tasks are listed.
var compareFilters = []struct {
	name  string
	flips []experiments.Flip
}{
	{"flipped", []experiments.Flip{experiments.FlipFixed, experiments.FlipBroken}},
	{"fixed", []experiments.Flip{experiments.FlipFixed}},
	{"broken", []experiments.Flip{experiments.FlipBroken}},
	{"both wrong", []experiments.Flip{experiments.FlipBothWrong}},
	{"both right", []experiments.Flip{experiments.FlipBothRight}},
	{"unjudged", []experiments.Flip{experiments.FlipUnjudged}},
	{"eval", nil},
}

func NewExperimentCompare(x *Experiments) *experimentCompare {
	return &experimentCompare{Experiments: x, table: widget.NewTable(
		widget.Heading{Title: "WHAT", Width: 13},
		widget.Heading{Title: "EPOCH", Width: 5, Right: true, Drop: 2},
		widget.Heading{Title: "#", Width: 5, Right: true, Drop: 1},
		widget.Heading{Title: "A", Minimum: 15},
		widget.Heading{Title: "ANSWER A", Minimum: 8},
		widget.Heading{Title: "B", Minimum: 15},
		widget.Heading{Title: "ANSWER B", Minimum: 8},
	)}
}

func (v *experimentCompare) Name() string  { return "Compare" }
func (v *experimentCompare) Title() string { return "Compare" }

func (v *experimentCompare) Footer() string {
	side := "A"
	if v.second {
		side = "B"
	}
	out := "enter opens side " + side
	if at := v.table.Position(); at != "" {
		out += " " + v.styles.Glyphs.Dot + " " + at
	}
	return out
}

func (v *experimentCompare) Bindings() []tui.Binding {
	b := func(name, help, short string, do func(s tui.Shell), keys ...string) tui.Binding {
		return tui.Binding{Action: "compare." + name, Keys: keys, Help: help, Short: short,
			Do: func(s tui.Shell) tea.Cmd { do(s); return nil }}
	}
	all := append(widget.Motions("compare", v),
		b("open", "open the task's run on the side that is chosen", "open", func(s tui.Shell) { v.open(s, v.second) }, "enter"),
		b("other", "open the task's run on the other side", "other side", func(s tui.Shell) { v.open(s, !v.second) }, "o"),
		b("left", "choose the first side", "", func(tui.Shell) { v.second = false }, "h", "left"),
		b("right", "choose the second side", "side", func(tui.Shell) { v.second = true }, "l", "right"),
		b("filter", "which tasks: flipped, fixed, broken, both wrong, both right, unjudged, eval", "filter", func(tui.Shell) { v.filter(1) }, "F"),
		b("filter_back", "the same, backwards", "", func(tui.Shell) { v.filter(-1) }),
		b("diff", "compare the task's two runs step by step", "diff", v.diffTask, "d"),
		b("swap", "swap the two", "swap", func(tui.Shell) { v.swap() }, "r"),
		b("next_error", "next broken task", "", func(s tui.Shell) { v.toBroken(s, 1) }, "e"),
		b("previous_error", "previous broken task", "", func(s tui.Shell) { v.toBroken(s, -1) }, "E"),
	)
	if v.actor.Actions != nil {
		all = append(all, v.actor.ForkOf("compare", func() (runs.Run, string, bool) { r, ok := v.taskRun(v.second); return r, "", ok }))
	}
	return all
}

func (v *experimentCompare) filter(by int) {
	v.only = (v.only + by + len(compareFilters)) % len(compareFilters)
	v.table.Cursor, v.table.Top = 0, 0
	v.fillRows()
}

func (v *experimentCompare) swap() {
	if len(v.pair) == 2 {
		v.pair = []string{v.pair[1], v.pair[0]}
		v.ask()
		v.compareAgain()
	}
}

func (v *experimentCompare) toBroken(s tui.Shell, by int) {
	for at := v.table.Cursor + by; at >= 0 && at < len(v.rows); at += by {
		if v.rows[at].pair.Flip == experiments.FlipBroken {
			v.table.Scroll(at - v.table.Cursor)
			return
		}
	}
	s.Note("no other broken task is listed")
}

// diffTask compares the two runs of the task under the cursor.
func (v *experimentCompare) diffTask(s tui.Shell) {
	r, ok := v.current()
	switch {
	case !ok:
		return
	case r.eval:
		s.Note("a task of an evaluation has no run of its own")
		return
	}
	side := func(second bool) runs.Run {
		id := v.taskID(r, second)
		return runs.Run{WorkflowID: ace.WorkflowID(id), TaskID: id}
	}
	v.actor.Compare(s, side(false), side(true))
}

// open shows the run of the task under the cursor in one of the experiments.
func (v *experimentCompare) open(s tui.Shell, second bool) {
	r, ok := v.current()
	switch {
	case !ok:
		return
	case r.eval:
		s.Note("a task of an evaluation has no run of its own")
		return
	}
	run, _ := v.taskRun(second)
	v.nav.Show(run)
	s.Open("run")
}

// taskRun is the run of the task under the cursor in one of the experiments; a task of an
// evaluation has none.
func (v *experimentCompare) taskRun(second bool) (runs.Run, bool) {
	r, ok := v.current()
	if !ok || r.eval {
		return runs.Run{}, false
	}
	id := v.taskID(r, second)
	return runs.Run{WorkflowID: ace.WorkflowID(id), TaskID: id, Type: ace.TaskWorkflow}, true
}

func (v *experimentCompare) taskID(r compareRow, second bool) string {
	if second {
		return v.of.B.Tasks.TaskID[r.pair.B]
	}
	return v.of.A.Tasks.TaskID[r.pair.A]
}

func (v *experimentCompare) current() (compareRow, bool) {
	if v.of == nil || v.table.Cursor >= len(v.rows) {
		return compareRow{}, false
	}
	return v.rows[v.table.Cursor], true
}

// Copy gives the task's ids.
func (v *experimentCompare) Copy() (what, content string) {
	r, ok := v.current()
	if !ok || r.eval {
		return "", ""
	}
	return "task ids", v.taskID(r, false) + " " + v.taskID(r, true)
}

func (v *experimentCompare) SetShown(shown bool) {
	v.feed.Look(shown)
	if shown {
		if v.pair == nil && len(v.Marks) == 2 {
			v.pair = v.Marks
		}
		v.ask()
		v.compareAgain()
	}
}

func (v *experimentCompare) SetStyles(s theme.Styles) { v.styles = s }

func (v *experimentCompare) SetSize(width, height int) { v.width, v.height = width, height }

func (v *experimentCompare) Refresh() {}

// compareAgain compares anew where a series is another than before. What grows keeps the
// cursor on its task.
func (v *experimentCompare) compareAgain() {
	if len(v.pair) != 2 {
		v.of = nil
		return
	}
	a, b := v.series(v.pair[0]), v.series(v.pair[1])
	switch {
	case a == nil || b == nil || a.Reading || b.Reading:
		v.of = nil
	case v.of == nil || v.of.A != a || v.of.B != b:
		before, had := v.current()
		v.of = experiments.Compare(a, b)
		v.fillRows()
		if had {
			v.find(before)
		}
	}
}

func (v *experimentCompare) find(r compareRow) {
	at := slices.IndexFunc(v.rows, func(o compareRow) bool {
		return o.eval == r.eval && o.pair.Epoch == r.pair.Epoch && o.pair.IndexA == r.pair.IndexA
	})
	if at >= 0 {
		v.table.Scroll(at - v.table.Cursor)
	}
}

func (v *experimentCompare) fillRows() {
	v.rows = nil
	if v.of == nil {
		v.table.SetRows(0)
		return
	}
	only := compareFilters[v.only]
	if e := v.of.Evaluations; only.flips == nil && e != nil {
		for _, flip := range []struct {
			of []int
			as experiments.Flip
		}{{e.Fixed, experiments.FlipFixed}, {e.Broken, experiments.FlipBroken}} {
			for _, i := range flip.of {
				v.rows = append(v.rows, compareRow{experiments.Pair{Flip: flip.as, IndexA: i, IndexB: i, Epoch: e.A.Epoch}, true})
			}
		}
	}
	for _, p := range v.of.Pairs {
		if slices.Contains(only.flips, p.Flip) {
			v.rows = append(v.rows, compareRow{pair: p})
		}
	}
	v.table.SetRows(len(v.rows))
}

func (v *experimentCompare) Page() int     { return v.table.Page() }
func (v *experimentCompare) Scroll(by int) { v.table.Scroll(by) }

func (v *experimentCompare) Draw(now time.Time, focused bool) []string {
	v.compareAgain()
	s := v.styles
	if v.of == nil {
		return widget.Centre(v.nothing(), v.width, v.height, s)
	}
	w := &widget.Writer{Doc: &widget.Document{}, S: s, Width: v.width, Now: now, Loc: v.location}
	comparison(w, v.of)
	lines := w.Lines[:min(len(w.Lines), max(v.height-6, 0))]
	lines = append(lines, v.filterLine())
	v.table.SetSize(v.width, v.height-len(lines))
	if len(v.rows) == 0 {
		return widget.Fill(append(lines, widget.Centre([]string{v.noRows()}, v.width, v.height-len(lines), s)...), v.width, v.height)
	}
	return append(lines, v.table.Draw(s, focused, func(i int) []widget.Cell { return v.cells(v.rows[i]) })...)
}

func (v *experimentCompare) nothing() []string {
	if len(v.pair) != 2 {
		return []string{"no two experiments are chosen", "mark two with space in the list of experiments, then d"}
	}
	return []string{"reading the tasks of both" + v.styles.Glyphs.Ellipsis}
}

func (v *experimentCompare) noRows() string {
	switch name := compareFilters[v.only].name; {
	case name == "eval" && v.of.Evaluations == nil:
		return "they were not both measured on the same second data set"
	case name == "eval":
		return "no task of the evaluation was answered differently"
	case len(v.of.Pairs) == 0:
		return "no task of one is a task of the other: only their curves can be compared"
	default:
		return "no task is " + name
	}
}

// filterLine is how many tasks there are of each kind; the kind that is listed stands in
// brackets.
func (v *experimentCompare) filterLine() string {
	s := v.styles
	l := text.Line{Max: v.width, Tail: s.Glyphs.Ellipsis}
	for i, f := range compareFilters {
		n := 0
		for _, flip := range f.flips {
			n += v.of.Counts[flip]
		}
		if e := v.of.Evaluations; f.flips == nil && e != nil {
			n = len(e.Fixed) + len(e.Broken)
		}
		if n == 0 && i != v.only && f.name == "unjudged" {
			continue
		}
		what := f.name + " " + text.Count(int64(n))
		if i == v.only {
			l.Add(s.Title, "["+what+"]")
		} else {
			l.Add(s.Muted, " "+what+" ")
		}
	}
	return l.String(s.Text)
}

func (v *experimentCompare) cells(r compareRow) []widget.Cell {
	s, g := v.styles, v.styles.Glyphs
	p := r.pair
	label, ink := flipLabel(p.Flip, s)
	if r.eval {
		return []widget.Cell{{label, ink}, {g.Dash, s.Muted}, {text.Count(int64(p.IndexA)), s.Muted},
			{"evaluation " + text.Safe(v.of.Evaluations.Dataset, " "), s.Muted}, {g.Dash, s.Muted}, {"", s.Muted}, {g.Dash, s.Muted}}
	}
	a, b := v.of.A.Tasks, v.of.B.Tasks
	left, right := s.Strong, s.Text
	if v.second {
		left, right = right, left
	}
	return []widget.Cell{{label, ink}, {text.Count(int64(p.Epoch)), s.Muted}, {text.Count(int64(p.IndexA)), s.Muted},
		{text.Safe(a.TaskID[p.A], " "), left}, {console.OrDash(a.Answer[p.A], g), left},
		{text.Safe(b.TaskID[p.B], " "), right}, {console.OrDash(b.Answer[p.B], g), right}}
}

// flipLabel says what became of a task, in glyphs and words.
func flipLabel(f experiments.Flip, s theme.Styles) (string, theme.Ink) {
	g := s.Glyphs
	switch f {
	case experiments.FlipFixed:
		return g.Wrong + g.Arrow + g.Success + " fixed", s.Success
	case experiments.FlipBroken:
		return g.Success + g.Arrow + g.Wrong + " broken", s.Wrong
	case experiments.FlipBothWrong:
		return g.Wrong + " both wrong", s.Muted
	case experiments.FlipBothRight:
		return g.Success + " both right", s.Text
	}
	return g.Unknown + " unjudged", s.Muted
}
