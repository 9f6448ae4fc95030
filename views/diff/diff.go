// Package diff shows two runs step by step, on the screen and as text for the command line.
package diff

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"acescope/engine/ace"
	"acescope/engine/temporal/compare"
	"acescope/sources/diff"
	"acescope/sources/histories"
	"acescope/sources/runs"
	"acescope/theme"
	"acescope/tui"
	"acescope/tui/text"
	"acescope/tui/widget"
	"acescope/views/console"
)

// Feed compares two runs.
type Feed interface {
	console.Feed[*histories.RunDiff]
	Want(histories.DiffAsk) (changed bool)
	Again()
}

// Screen returns the steps of two runs with the selected one beside them.
func Screen(c *console.Console, feed Feed) tui.Screen {
	v := &list{nav: c.Navigation, forks: c.Forks, location: c.Location, feed: feed, unfolded: map[int]bool{},
		List: console.NewList[row]("Steps",
			widget.Heading{Title: "", Width: diff.StatusWidth + 2},
			widget.Heading{Title: "STEP", Minimum: 20},
			widget.Heading{Title: "EVENTS", Width: 13, Right: true, Drop: 1},
			widget.Heading{Title: "DURATION", Width: 17, Right: true, Drop: 2})}
	return tui.Screen{Name: "diff", Help: "two runs step by step", Aside: true, Share: 48,
		Argument: c.PairArgument(),
		Views:    []tui.View{v, &detail{v: v, Reader: console.NewReader("Difference", c.Location)}}}
}

// list lists the steps of two runs side by side.
type list struct {
	nav      *console.Navigation
	forks    *console.Forks
	location *time.Location
	feed     Feed
	console.List[row]

	of *histories.RunDiff // newest, or nil
	// groups of equal steps that the user folded or unfolded, by the index of their first pair
	unfolded   map[int]bool
	open       bool   // equal steps are not folded by default
	kind       string // only steps of this kind, "" for all
	onlyDiffer bool
	second     bool // side B is selected
}

func (v *list) Title() string { return "Diff" }

func (v *list) diff() *compare.Diff {
	if v.of == nil {
		return nil
	}
	return v.of.Diff
}

func (v *list) Footer() string {
	return v.Join("enter opens side "+widget.If(v.second, "B", "A"),
		widget.If(v.kind != "", "only "+v.kind, ""), widget.If(v.onlyDiffer, "only differences", ""),
		widget.If(v.of != nil && v.of.AllFields, "all fields", ""), v.Table.Position())
}

func (v *list) Bindings() []tui.Binding {
	return append(widget.Motions("diff", v), v.keys("diff")...)
}

// keys returns the keys of both panes.
func (v *list) keys(view string) []tui.Binding {
	b := func(name, help, short string, do func(s tui.Shell), keys ...string) tui.Binding {
		return console.Key(view+"."+name, help, short, do, keys...)
	}
	jump := func(by int, is func(*compare.Pair) bool, none string) func(tui.Shell) {
		return func(s tui.Shell) {
			if v.diff() == nil {
				return
			}
			v.Next(s, by, func(r row) bool { p := r.pair(); return p != nil && is(p) }, none)
		}
	}
	all := []tui.Binding{
		b("next_match", "next difference", "next", jump(1, differs, "no further difference"),
			"ctrl+n"),
		b("previous_match", "previous difference", "", jump(-1, differs, "no previous difference"),
			"ctrl+p"),
		b("next_section", "next step that is not a tool call", "",
			jump(1, startsSection, "no further section"), "]"),
		b("previous_section", "previous step that is not a tool call", "",
			jump(-1, startsSection, "no previous section"), "["),
		b("next_error", "next step that failed in A or B", "", jump(1, failed, "no further error"), "e"),
		b("previous_error", "previous step that failed in A or B", "", jump(-1, failed, "no previous error"),
			"E"),
		b("open", "open the run of the selected side, or unfold equal steps", "open", v.enter, "enter"),
		b("related", "open the run of the selected side", "", v.openRun, "O"),
		b("left", "select side A", "", func(tui.Shell) { v.second = false }, "h", "left"),
		b("right", "select side B", "side", func(tui.Shell) { v.second = true }, "l", "right"),
		b("event", "go to the event of the step on the timeline of the selected side; esc leads back",
			"event", v.toEvent, "J"),
		b("fold", "fold or unfold equal steps", "fold", func(tui.Shell) { v.fold() }, "c"),
		b("all", "fold or unfold all equal steps", "",
			func(tui.Shell) { v.open = !v.open; v.unfolded = map[int]bool{}; v.refill() }, "a"),
		b("filter", "only steps of the next kind: all, activities, tool calls, …", "filter",
			func(tui.Shell) { v.nextKind(1) }, "F"),
		b("filter_back", "only steps of the previous kind", "", func(tui.Shell) { v.nextKind(-1) }),
		b("mode", "only differences, or all steps", "",
			func(tui.Shell) { v.onlyDiffer = !v.onlyDiffer; v.refill() }, "m"),
		b("full", "also compare fields that always differ: IDs, times, durations", "", v.allFields, "P"),
		b("swap", "swap A and B", "", func(s tui.Shell) { v.again(s, true) }, "~"),
		b("refresh", "read both runs again", "", func(s tui.Shell) { v.again(s, false) }, "ctrl+r"),
	}
	if v.forks.Changes() {
		all = append(all, v.forks.ForkOf(view, v.forkPoint))
	}
	return all
}

// forkPoint returns the run of the selected side, and the selected step as fork point.
func (v *list) forkPoint() (r runs.Run, point string, ok bool) {
	if v.of == nil {
		return r, "", false
	}
	r, step := v.side(v.second)
	if step != nil && step.Event > 1 {
		point = "at=" + strconv.FormatInt(step.Event, 10)
	}
	return r, point, true
}

func (v *list) SetShown(shown bool) { v.feed.Look(shown) }

func (v *list) Refresh() {
	next := v.feed.Value()
	if v.of == next {
		return
	}
	if v.of == nil || next == nil || v.of.A != next.A || v.of.B != next.B {
		v.unfolded, v.open, v.kind = map[int]bool{}, false, ""
		v.Rows, v.Table.Cursor, v.Table.Top = nil, 0, 0
	}
	v.of = next
	v.refill()
}

// refill lists the rows again and keeps the cursor on its pair, or near it.
func (v *list) refill() {
	at := -1
	if r, ok := v.Current(); ok {
		at, _ = r.span()
	}
	d := v.diff()
	if d == nil {
		v.Set(nil, nil)
		return
	}
	rows := []row{summaryRow{v.of}}
	for i := 0; i < len(d.Pairs); {
		n := 0
		if v.kind == "" {
			n = diff.EqualFrom(d, i)
		}
		if n >= diff.FoldFrom && !v.onlyDiffer && v.open == v.unfolded[i] {
			rows = append(rows, equalRow{d, i, n})
			i += n
			continue
		}
		for range max(n, 1) {
			if p := &d.Pairs[i]; (v.kind == "" || p.Step().Kind == v.kind) && (!v.onlyDiffer || differs(p)) {
				rows = append(rows, pairRow{p, i})
			}
			i++
		}
	}
	v.Set(rows, func(r row) bool { _, last := r.span(); return last >= at })
}

// pair returns the first pair of the row under the cursor, or nil.
func (v *list) pair() *compare.Pair {
	if r, ok := v.Current(); ok {
		return r.pair()
	}
	return nil
}

func (v *list) fold() {
	r, _ := v.Current()
	if r == nil || r.pair() == nil {
		return
	}
	d := v.diff()
	from, _ := r.span()
	for from > 0 && d.Pairs[from].Status == compare.Same && diff.EqualFrom(d, from-1) > 0 {
		from--
	}
	if diff.EqualFrom(d, from) >= diff.FoldFrom {
		v.unfolded[from] = !v.unfolded[from]
		v.refill()
	}
}

func differs(p *compare.Pair) bool { return compare.Differs(p.Status) }

func startsSection(p *compare.Pair) bool { return p.Step().Kind != "tool call" }

func failed(p *compare.Pair) bool {
	bad := func(s *compare.Step) bool {
		return s != nil && (s.Error != "" || s.Status == "failed" || s.Status == "timed out")
	}
	return bad(p.A) || bad(p.B)
}

func (v *list) enter(s tui.Shell) {
	r, _ := v.Current()
	if _, ok := r.(equalRow); ok {
		v.fold()
		return
	}
	v.openRun(s)
}

// side returns the run of a side, and its step in the selected pair or nil.
func (v *list) side(second bool) (runs.Run, *compare.Step) {
	ref := widget.If(second, v.of.B, v.of.A)
	r := runs.Run{WorkflowID: ref.WorkflowID, RunID: ref.RunID, TaskID: ref.TaskID}
	d := v.diff()
	if d == nil {
		return r, nil
	}
	about := &d.A
	if second {
		about = &d.B
	}
	r.Type = about.Type
	if n := len(about.RunIDs); n > 0 {
		r.RunID = about.RunIDs[n-1]
	}
	p := v.pair()
	if p == nil {
		return r, nil
	}
	step := widget.If(second, p.B, p.A)
	if id := about.RunID(step); id != "" {
		r.RunID = id
	}
	return r, step
}

func (v *list) openRun(s tui.Shell) {
	if v.of == nil {
		return
	}
	r, _ := v.side(v.second)
	v.nav.Show(r)
	s.Open("run")
}

func (v *list) toEvent(s tui.Shell) {
	if v.of == nil {
		return
	}
	r, step := v.side(v.second)
	if step == nil {
		s.Note("the selected side does not have this step")
		return
	}
	v.nav.Show(r)
	v.nav.Event = step.Event
	s.Open("timeline")
}

// nextKind lists only steps of the next kind, and all steps after the last kind.
func (v *list) nextKind(by int) {
	d := v.diff()
	if d == nil {
		return
	}
	kinds := []string{""}
	for i := range d.Pairs {
		if k := d.Pairs[i].Step().Kind; !slices.Contains(kinds, k) {
			kinds = append(kinds, k)
		}
	}
	at := max(slices.Index(kinds, v.kind), 0)
	v.kind = kinds[(at+by+len(kinds))%len(kinds)]
	v.refill()
}

func (v *list) allFields(s tui.Shell) {
	if v.of == nil {
		return
	}
	if v.feed.Want(histories.DiffAsk{A: v.of.A, B: v.of.B, AllFields: !v.of.AllFields}); v.of.AllFields {
		s.Note("without fields that always differ")
	} else {
		s.Note("with IDs, times and durations")
	}
}

func (v *list) again(s tui.Shell, swap bool) {
	switch {
	case v.of == nil:
		return
	case swap:
		v.feed.Want(histories.DiffAsk{A: v.of.B, B: v.of.A, AllFields: v.of.AllFields})
	default:
		v.feed.Again()
		s.Note("reading both runs again")
	}
}

func (v *list) Copy() (what, value string) {
	if d := v.diff(); d != nil && d.First != nil {
		return "first difference", d.First.Text
	}
	return "", ""
}

func (v *list) Draw(now time.Time, focused bool) []string {
	d := v.diff()
	if d == nil {
		return v.Message(nil, v.emptyLines()...)
	}
	return v.DrawRows(v.header(d, now), focused, func(r row) []widget.Cell { return r.cells(v.Styles) })
}

// header returns the two runs, the first difference and the metrics, in as many lines as fit.
func (v *list) header(d *compare.Diff, now time.Time) []string {
	s := v.Styles
	w := &widget.Writer{Doc: &widget.Document{}, S: s, Width: v.Width, Now: now, Loc: v.location}
	writeSide(w, "A", v.of.A.Name(), &d.A)
	writeSide(w, "B", v.of.B.Name(), &d.B)
	space := max(v.Height/5, 2)
	from := len(w.Lines)
	writeVerdict(w, d)
	if len(w.Lines)-from > space {
		w.Lines = w.Lines[:from+space-1]
		w.Say(s.Muted, " "+s.Glyphs.Ellipsis+" select the first row to read all")
	}
	w.Say(s.Muted, " "+diff.Counts(d)+"; "+shortMetrics(d, s.Glyphs))
	return w.Lines[:min(len(w.Lines), max(v.Height-4, 0))]
}

// shortMetrics returns the most important metrics that differ, in one line.
func shortMetrics(d *compare.Diff, g theme.Glyphs) string {
	var parts []string
	for _, m := range d.Metrics {
		switch m.Name {
		case "duration", "input tokens", "output tokens", "cost", "skills":
			if a, b, by := widget.Metric(m).Cells(g); by != "=" {
				parts = append(parts, m.Name+" "+a+" "+g.Arrow+" "+b)
			}
		}
	}
	if len(parts) == 0 {
		return "same duration, tokens, cost and skills"
	}
	return strings.Join(parts, ", ")
}

// emptyLines explains why no comparison is shown.
func (v *list) emptyLines() []string {
	g := v.Styles.Glyphs
	if v.of == nil {
		return []string{"no runs are compared", "mark two with space in the list of runs, then press ="}
	}
	lines := []string{text.Safe(v.of.A.Name(), " "), "and", text.Safe(v.of.B.Name(), " "), ""}
	if v.of.Reading {
		return append(lines, fmt.Sprintf("reading%s %s and %s events", g.Ellipsis,
			ace.Number(v.of.ReadA), ace.Number(v.of.ReadB)))
	}
	for _, x := range []struct{ name, err string }{{"A", v.of.ErrA}, {"B", v.of.ErrB}} {
		if x.err != "" {
			lines = append(lines, g.Failed+" "+x.name+" cannot be read: "+text.Safe(x.err, " "))
		}
	}
	return append(lines, "", "ctrl+r tries again; O opens the run of the selected side")
}
