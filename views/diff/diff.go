// Package diff shows two runs step by step.
package diff

import (
	"slices"
	"strconv"
	"strings"

	tea "charm.land/bubbletea/v2"

	"acescope/sources/histories"
	"acescope/sources/runs"
	"acescope/theme"
	"acescope/tui"
	"acescope/tui/widget"
	"acescope/views/console"
)

// Feed compares two runs.
type Feed interface {
	console.Feed[*histories.RunDiff]
	Want(histories.DiffAsk)
	Again()
}

func DiffScreen(c *console.Console, feed Feed) tui.Screen {
	v := &diffList{Console: c, feed: feed, unfolded: map[int]bool{}, table: widget.NewTable(
		widget.Heading{Title: "", Width: diffWord + 2},
		widget.Heading{Title: "STEP", Minimum: 20},
		widget.Heading{Title: "EVENTS", Width: 13, Right: true, Drop: 1},
		widget.Heading{Title: "TOOK", Width: 17, Right: true, Drop: 2},
	)}
	return tui.Screen{Name: "diff", Help: "two runs step by step", Aside: true, Share: 48, Views: []tui.View{v, &pairDetail{v: v}}}
}

// diffList is the steps of two runs beside each other.
type diffList struct {
	*console.Console
	feed          Feed
	styles        theme.Styles
	width, height int
	of            *histories.RunDiff // newest, nil while nothing is compared
	table         *widget.Table
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

func (v *diffList) Name() string  { return "Steps" }
func (v *diffList) Title() string { return "Diff" }

func (v *diffList) diff() *histories.Diff {
	if v.of == nil {
		return nil
	}
	return v.of.Diff
}

func (v *diffList) Footer() string {
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
	if at := v.table.Position(); at != "" {
		parts = append(parts, at)
	}
	return strings.Join(parts, " "+v.styles.Glyphs.Dot+" ")
}

func (v *diffList) Bindings() []tui.Binding {
	return append(widget.Motions("diff", v), v.keys("diff")...)
}

// keys work in both panes.
func (v *diffList) keys(view string) []tui.Binding {
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
		all = append(all, v.ForkOf(view, v.forkPoint))
	}
	return all
}

// forkPoint is the run on the side that is chosen, at the step under the cursor.
func (v *diffList) forkPoint() (r runs.Run, point string, ok bool) {
	if v.of == nil {
		return r, "", false
	}
	r, step := v.side(v.second)
	if step != nil && step.Event > 1 {
		point = "at=" + strconv.FormatInt(step.Event, 10)
	}
	return r, point, true
}

func (v *diffList) Update(tea.Msg) tea.Cmd   { return nil }
func (v *diffList) SetStyles(s theme.Styles) { v.styles = s }
func (v *diffList) SetSize(width, height int) {
	v.width, v.height = width, height
}
func (v *diffList) SetShown(shown bool) { v.feed.Look(shown) }

func (v *diffList) Refresh() {
	next := v.feed.Value()
	if v.of == next {
		return
	}
	fresh := v.of == nil || next == nil || v.of.A != next.A || v.of.B != next.B
	v.of, v.stale = next, true
	if fresh {
		v.unfolded, v.open, v.kind = map[int]bool{}, false, ""
		v.table.Cursor, v.table.Top = 0, 0
	}
}

// refill works the rows out; the cursor stays on its pair, or near it.
func (v *diffList) refill() {
	at := -1
	if v.table.Cursor < len(v.rows) {
		at = v.rows[v.table.Cursor].pair
	}
	v.stale, v.rows = false, nil
	d := v.diff()
	if d == nil {
		v.table.SetRows(0)
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
	v.table.SetRows(len(v.rows))
	if to := slices.IndexFunc(v.rows, func(r pairRow) bool { return r.pair >= at || r.pair+r.n > at }); to >= 0 {
		v.table.Scroll(to - v.table.Cursor)
	}
}

func (v *diffList) shows(p *histories.DiffPair) bool {
	return (v.kind == "" || p.Step().Kind == v.kind) && (!v.onlyDiffer || histories.DiffDiffers(p.Status))
}

// stretch is how many pairs from i on are the same; where only one kind is shown there are
// none.
func (v *diffList) stretch(d *histories.Diff, i int) int {
	if v.kind != "" {
		return 0
	}
	return sameFrom(d, i)
}

func (v *diffList) Page() int     { return v.table.Page() }
func (v *diffList) Scroll(by int) { v.table.Scroll(by) }

// current is the row under the cursor.
func (v *diffList) current() (pairRow, bool) {
	if v.stale {
		v.refill()
	}
	if v.table.Cursor >= len(v.rows) {
		return pairRow{}, false
	}
	return v.rows[v.table.Cursor], true
}

// pair is the pair under the cursor, nil where there is none.
func (v *diffList) pair() *histories.DiffPair {
	if r, ok := v.current(); ok && r.pair >= 0 {
		return &v.diff().Pairs[r.pair]
	}
	return nil
}

func (v *diffList) fold() {
	r, ok := v.current()
	d := v.diff()
	if !ok || r.pair < 0 {
		return
	}
	from := r.pair
	for from > 0 && d.Pairs[from].Status == histories.DiffSame && sameFrom(d, from-1) > 0 {
		from--
	}
	if sameFrom(d, from) >= foldFrom {
		v.unfolded[from] = !v.unfolded[from]
		v.refill()
	}
}

func (v *diffList) differs(p *histories.DiffPair) bool { return histories.DiffDiffers(p.Status) }

func (v *diffList) begins(p *histories.DiffPair) bool { return p.Step().Kind != "tool call" }

func (v *diffList) failed(p *histories.DiffPair) bool {
	bad := func(s *histories.DiffStep) bool {
		return s != nil && (s.Error != "" || s.Status == "failed" || s.Status == "timed out")
	}
	return bad(p.A) || bad(p.B)
}

// jumpTo goes to the next row whose pair is of a kind.
func (v *diffList) jumpTo(s tui.Shell, by int, is func(*histories.DiffPair) bool, none string) {
	if v.current(); v.diff() == nil {
		return
	}
	for at := v.table.Cursor + by; at >= 0 && at < len(v.rows); at += by {
		if r := v.rows[at]; r.pair >= 0 && is(&v.diff().Pairs[r.pair]) {
			v.table.Scroll(at - v.table.Cursor)
			return
		}
	}
	s.Note(none)
}

func (v *diffList) enter(s tui.Shell) {
	if r, ok := v.current(); ok && r.n > 0 {
		v.fold()
		return
	}
	v.openRun(s, v.second)
}

// side is the run on a side, at the step under the cursor where there is one.
func (v *diffList) side(second bool) (runs.Run, *histories.DiffStep) {
	ref := v.of.A
	if second {
		ref = v.of.B
	}
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
	step := p.A
	if second {
		step = p.B
	}
	if id := about.RunID(step); id != "" {
		r.RunID = id
	}
	return r, step
}

func (v *diffList) openRun(s tui.Shell, second bool) {
	if v.of == nil {
		return
	}
	r, _ := v.side(second)
	v.Show(r)
	s.Open("run")
}

func (v *diffList) toEvent(s tui.Shell) {
	if v.of == nil {
		return
	}
	r, step := v.side(v.second)
	if step == nil {
		s.Note("this side has no such step")
		return
	}
	v.Show(r)
	v.Event = step.Event
	s.Open("timeline")
}

// nextKind goes through the kinds of steps that there are.
func (v *diffList) nextKind(by int) {
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

func (v *diffList) allFields(s tui.Shell) {
	if v.of == nil {
		return
	}
	if v.feed.Want(histories.DiffAsk{A: v.of.A, B: v.of.B, AllFields: !v.of.AllFields}); v.of.AllFields {
		s.Note("without what differs between any two runs")
	} else {
		s.Note("with ids, times and durations")
	}
}

func (v *diffList) again(s tui.Shell, swap bool) {
	switch {
	case v.of == nil:
		return
	case swap:
		v.feed.Want(histories.DiffAsk{A: v.of.B, B: v.of.A, AllFields: v.of.AllFields})
	default:
		v.feed.Again()
		s.Note("reading both again")
	}
}

// Copy gives the sentence about the first difference.
func (v *diffList) Copy() (what, said string) {
	if d := v.diff(); d != nil && d.First != nil {
		return "the first difference", d.First.Text
	}
	return "", ""
}
