package views

import (
	"slices"
	"strconv"
	"strings"

	tea "charm.land/bubbletea/v2"

	"acescope/sources"
	"acescope/theme"
	"acescope/tui"
)

// DiffControls steers which runs are compared.
type DiffControls interface {
	// DiffRuns compares two runs anew, with all also in what differs between any two.
	DiffRuns(a, b sources.DiffRef, all bool)
}

func diffScreen(c *console) tui.Screen {
	v := &runDiff{console: c, unfolded: map[int]bool{}, table: newTable(
		heading{title: "", width: diffWord + 2},
		heading{title: "STEP", minimum: 20},
		heading{title: "EVENTS", width: 13, right: true, drop: 1},
		heading{title: "TOOK", width: 17, right: true, drop: 2},
	)}
	return tui.Screen{Name: "diff", Help: "two runs step by step", Aside: true, Share: 48, Views: []tui.View{v, &pairDetail{v: v}}}
}

// diffRuns opens the comparison of two runs.
func (c *console) diffRuns(s tui.Shell, a, b sources.Run) {
	ref := func(r sources.Run) sources.DiffRef {
		return sources.DiffRef{WorkflowID: r.WorkflowID, RunID: r.RunID, TaskID: r.TaskID}
	}
	c.Controls.DiffRuns(ref(a), ref(b), false)
	s.Open("diff")
}

// diffPair compares the two marked runs, or the marked one and the selected. The one that
// began first is A.
func (c *console) diffPair(s tui.Shell) {
	c.marks.refresh(c.runs.Rows)
	pair := slices.Clone(c.marks.runs)
	if len(pair) == 1 && c.selected.ok && keyOf(&pair[0]) != keyOf(&c.selected.run) {
		pair = append(pair, c.selected.run)
	}
	if len(pair) != 2 {
		s.Note("mark two runs with space to compare them")
		return
	}
	if pair[1].Start.Before(pair[0].Start) {
		slices.Reverse(pair)
	}
	c.diffRuns(s, pair[0], pair[1])
}

// runDiff is the steps of two runs beside each other.
type runDiff struct {
	*console
	styles        theme.Styles
	width, height int
	of            *sources.RunDiff // newest, nil while nothing is compared
	table         *table
	rows          []pairRow
	unfolded      map[int]bool // stretches of same pairs, by their first
	open          bool         // all of them are unfolded
	kind          string       // only steps of this kind, "" for all
	onlyDiffer    bool
	second        bool // enter opens the second's run
	stale         bool // rows are not those of what is compared
}

// pairRow is a pair, a stretch of pairs that are the same, or the whole.
type pairRow struct {
	pair int // in Pairs; -1 for the whole
	n    int // of a stretch, 0 for a pair
}

func (v *runDiff) Name() string  { return "Steps" }
func (v *runDiff) Title() string { return "Diff" }

func (v *runDiff) diff() *sources.Diff {
	if v.of == nil {
		return nil
	}
	return v.of.Diff
}

func (v *runDiff) Footer() string {
	side := "A"
	if v.second {
		side = "B"
	}
	parts := []string{"enter opens side " + side}
	if v.kind != "" {
		parts = append(parts, "only "+v.kind)
	}
	if v.onlyDiffer {
		parts = append(parts, "only differences")
	}
	if v.of != nil && v.of.AllFields {
		parts = append(parts, "all fields")
	}
	if at := v.table.position(); at != "" {
		parts = append(parts, at)
	}
	return strings.Join(parts, " "+v.styles.Glyphs.Dot+" ")
}

func (v *runDiff) Bindings() []tui.Binding { return append(motions("diff", v), v.keys("diff")...) }

// keys work in both panes.
func (v *runDiff) keys(view string) []tui.Binding {
	b := func(name, help, short string, do func(s tui.Shell), keys ...string) tui.Binding {
		return tui.Binding{Action: view + "." + name, Keys: keys, Help: help, Short: short,
			Do: func(s tui.Shell) tea.Cmd { do(s); return nil }}
	}
	all := []tui.Binding{
		b("next", "next difference", "next", func(s tui.Shell) { v.jumpTo(s, 1, v.differs, "no further difference") }, "n"),
		b("previous", "difference before", "", func(s tui.Shell) { v.jumpTo(s, -1, v.differs, "no difference before") }, "N"),
		b("next_section", "next step that is no tool call", "", func(s tui.Shell) { v.jumpTo(s, 1, v.begins, "no further section") }, "]"),
		b("previous_section", "the one before", "", func(s tui.Shell) { v.jumpTo(s, -1, v.begins, "no section before") }, "["),
		b("next_error", "next step that failed in one of them", "", func(s tui.Shell) { v.jumpTo(s, 1, v.failed, "no further error") }, "e"),
		b("previous_error", "the one before", "", func(s tui.Shell) { v.jumpTo(s, -1, v.failed, "no error before") }, "E"),
		b("open", "open the run on the side that is chosen; on a stretch of same steps, unfold it", "open", v.enter, "enter"),
		b("run", "open the run on the side that is chosen", "", func(s tui.Shell) { v.openRun(s, v.second) }, "o"),
		b("other", "open the run on the other side", "other side", func(s tui.Shell) { v.openRun(s, !v.second) }, "O"),
		b("left", "choose side A", "", func(tui.Shell) { v.second = false }, "h", "left"),
		b("right", "choose side B", "side", func(tui.Shell) { v.second = true }, "l", "right"),
		b("event", "go to the step's event on the timeline of the side that is chosen; esc leads back", "event", v.toEvent, "J"),
		b("fold", "fold or unfold steps that are the same", "fold", func(tui.Shell) { v.fold() }, "space"),
		b("fold_all", "fold or unfold all of them", "", func(tui.Shell) { v.open = !v.open; v.unfolded = map[int]bool{}; v.refill() }, "a"),
		b("filter", "only steps of one kind: all, activities, tool calls, …", "filter", func(tui.Shell) { v.nextKind(1) }, "F"),
		b("filter_back", "the same, backwards", "", func(tui.Shell) { v.nextKind(-1) }),
		b("only", "only differences, or all again", "", func(tui.Shell) { v.onlyDiffer = !v.onlyDiffer; v.refill() }, "d"),
		b("fields", "compare also what differs between any two runs: ids, times, durations", "", v.allFields, "v"),
		b("swap", "swap A and B", "", func(s tui.Shell) { v.again(s, true) }, "r"),
		b("refresh", "read both again now", "", func(s tui.Shell) { v.again(s, false) }, "ctrl+r"),
	}
	if v.Actions != nil {
		all = append(all, v.forkOf(view, v.forkPoint))
	}
	return all
}

// forkPoint is the run on the side that is chosen, at the step under the cursor.
func (v *runDiff) forkPoint() (r sources.Run, point string, ok bool) {
	if v.of == nil {
		return r, "", false
	}
	r, step := v.side(v.second)
	if step != nil && step.Event > 1 {
		point = "at=" + strconv.FormatInt(step.Event, 10)
	}
	return r, point, true
}

func (v *runDiff) Update(tea.Msg) tea.Cmd   { return nil }
func (v *runDiff) SetStyles(s theme.Styles) { v.styles = s }
func (v *runDiff) SetSize(width, height int) {
	v.width, v.height = width, height
}
func (v *runDiff) SetShown(shown bool) { v.Controls.Look(sources.PartDiff, shown) }

func (v *runDiff) SetSnapshot(s *sources.Snapshot) {
	if v.of == s.RunDiff {
		return
	}
	fresh := v.of == nil || s.RunDiff == nil || v.of.A != s.RunDiff.A || v.of.B != s.RunDiff.B
	v.of, v.stale = s.RunDiff, true
	if fresh {
		v.unfolded, v.open, v.kind = map[int]bool{}, false, ""
		v.table.cursor, v.table.top = 0, 0
	}
}

// refill works the rows out; the cursor stays on its pair, or near it.
func (v *runDiff) refill() {
	at := -1
	if v.table.cursor < len(v.rows) {
		at = v.rows[v.table.cursor].pair
	}
	v.stale, v.rows = false, nil
	d := v.diff()
	if d == nil {
		v.table.setRows(0)
		return
	}
	v.rows = append(v.rows, pairRow{pair: -1})
	for i := 0; i < len(d.Pairs); {
		n := v.stretch(d, i)
		if n >= foldFrom && !v.onlyDiffer && v.open == v.unfolded[i] {
			v.rows = append(v.rows, pairRow{i, n})
			i += n
			continue
		}
		for range max(n, 1) {
			if v.shows(&d.Pairs[i]) {
				v.rows = append(v.rows, pairRow{pair: i})
			}
			i++
		}
	}
	v.table.setRows(len(v.rows))
	if to := slices.IndexFunc(v.rows, func(r pairRow) bool { return r.pair >= at || r.pair+r.n > at }); to >= 0 {
		v.table.scroll(to - v.table.cursor)
	}
}

func (v *runDiff) shows(p *sources.DiffPair) bool {
	return (v.kind == "" || p.Step().Kind == v.kind) && (!v.onlyDiffer || sources.DiffDiffers(p.Status))
}

// stretch is how many pairs from i on are the same; where only one kind is shown there are
// none.
func (v *runDiff) stretch(d *sources.Diff, i int) int {
	if v.kind != "" {
		return 0
	}
	return sameFrom(d, i)
}

func (v *runDiff) page() int     { return v.table.page() }
func (v *runDiff) scroll(by int) { v.table.scroll(by) }

// current is the row under the cursor.
func (v *runDiff) current() (pairRow, bool) {
	if v.stale {
		v.refill()
	}
	if v.table.cursor >= len(v.rows) {
		return pairRow{}, false
	}
	return v.rows[v.table.cursor], true
}

// pair is the pair under the cursor, nil where there is none.
func (v *runDiff) pair() *sources.DiffPair {
	if r, ok := v.current(); ok && r.pair >= 0 {
		return &v.diff().Pairs[r.pair]
	}
	return nil
}

func (v *runDiff) fold() {
	r, ok := v.current()
	d := v.diff()
	if !ok || r.pair < 0 {
		return
	}
	from := r.pair
	for from > 0 && d.Pairs[from].Status == sources.DiffSame && sameFrom(d, from-1) > 0 {
		from--
	}
	if sameFrom(d, from) >= foldFrom {
		v.unfolded[from] = !v.unfolded[from]
		v.refill()
	}
}

func (v *runDiff) differs(p *sources.DiffPair) bool { return sources.DiffDiffers(p.Status) }

func (v *runDiff) begins(p *sources.DiffPair) bool { return p.Step().Kind != "tool call" }

func (v *runDiff) failed(p *sources.DiffPair) bool {
	bad := func(s *sources.DiffStep) bool {
		return s != nil && (s.Error != "" || s.Status == "failed" || s.Status == "timed out")
	}
	return bad(p.A) || bad(p.B)
}

// jumpTo goes to the next row whose pair is of a kind.
func (v *runDiff) jumpTo(s tui.Shell, by int, is func(*sources.DiffPair) bool, none string) {
	if v.current(); v.diff() == nil {
		return
	}
	for at := v.table.cursor + by; at >= 0 && at < len(v.rows); at += by {
		if r := v.rows[at]; r.pair >= 0 && is(&v.diff().Pairs[r.pair]) {
			v.table.scroll(at - v.table.cursor)
			return
		}
	}
	s.Note(none)
}

func (v *runDiff) enter(s tui.Shell) {
	if r, ok := v.current(); ok && r.n > 0 {
		v.fold()
		return
	}
	v.openRun(s, v.second)
}

// side is the run on a side, at the step under the cursor where there is one.
func (v *runDiff) side(second bool) (sources.Run, *sources.DiffStep) {
	ref := v.of.A
	if second {
		ref = v.of.B
	}
	r := sources.Run{WorkflowID: ref.WorkflowID, RunID: ref.RunID, TaskID: ref.TaskID}
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
	step := p.A
	if second {
		step = p.B
	}
	if id := about.RunID(step); id != "" {
		r.RunID = id
	}
	return r, step
}

func (v *runDiff) openRun(s tui.Shell, second bool) {
	if v.of == nil {
		return
	}
	r, _ := v.side(second)
	v.show(r)
	s.Open("run")
}

func (v *runDiff) toEvent(s tui.Shell) {
	if v.of == nil {
		return
	}
	r, step := v.side(v.second)
	if step == nil {
		s.Note("this side has no such step")
		return
	}
	v.show(r)
	v.jump = step.Event
	s.Open("timeline")
}

// nextKind goes through the kinds of steps that there are.
func (v *runDiff) nextKind(by int) {
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

func (v *runDiff) allFields(s tui.Shell) {
	if v.of == nil {
		return
	}
	if v.Controls.DiffRuns(v.of.A, v.of.B, !v.of.AllFields); v.of.AllFields {
		s.Note("without what differs between any two runs")
	} else {
		s.Note("with ids, times and durations")
	}
}

func (v *runDiff) again(s tui.Shell, swap bool) {
	switch {
	case v.of == nil:
		return
	case swap:
		v.Controls.DiffRuns(v.of.B, v.of.A, v.of.AllFields)
	default:
		v.Controls.DiffRuns(v.of.A, v.of.B, v.of.AllFields)
		s.Note("reading both again")
	}
}

// Copy gives the sentence about the first difference.
func (v *runDiff) Copy() (what, said string) {
	if d := v.diff(); d != nil && d.First != nil {
		return "the first difference", d.First.Text
	}
	return "", ""
}
