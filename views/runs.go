package views

import (
	"strings"

	tea "charm.land/bubbletea/v2"

	"acescope/engine/ace"
	"acescope/sources"
	"acescope/theme"
	"acescope/tui"
	"acescope/tui/text"
)

// moreWithin is how near to the last loaded row the screen comes before more are
// asked for.
const moreWithin = 50

// runs is the list of runs.
type runs struct {
	*console
	styles        theme.Styles
	width, height int
	shown         bool
	loaded        bool // a list was read at least once
	state         sources.ConnState
	file          bool // the runs come from files
	namespace     string
	cursor, top   int
	asked         asking // for what more runs were last asked
	goal          goal
	cols          []column
	bindings      []tui.Binding
	showsError    bool
	why           whyPlace
	heading       string
	cache         rowCache
	arranging     arranging
	sorting       sorting
	order         []int32      // places of rows, nil for the server's order
	ordered       *sources.Run // the first of the rows that order is of
	orderedBy     sorting
	panel         sidePanel
}

// asking is a request for more runs: from which end of what is held.
type asking struct {
	first int64
	rows  int
	newer bool
}

// goal is the end of the list that somebody is on the way to.
type goal uint8

const (
	nowhere goal = iota
	toFirst
	toLast
	halted // on the way to the last: where that was stopped
)

func newRuns(c *console) *runs { return &runs{console: c} }

func (v *runs) Name() string { return "Runs" }

func (v *runs) Title() string { return "Runs" }

// Footer is what is special about the list, then where the cursor is: "12/10,214", with
// a plus where the total is unknown.
func (v *runs) Footer() string {
	var parts []string
	add := func(s string) {
		if s != "" {
			parts = append(parts, s)
		}
	}
	if v.goal == toLast {
		add("walking to the last: " + text.Count(v.runs.Walking) + " of " + v.total() + ", any move stops")
	}
	if v.following && v.count() > 0 {
		add("following the newest")
	}
	add(v.orderState())
	if n := len(v.marks.runs); n > 0 {
		add(text.Count(int64(n)) + " marked")
	}
	add(v.columnsState())
	add(v.position())
	return strings.Join(parts, " "+v.styles.Glyphs.Dot+" ")
}

func (v *runs) position() string {
	switch {
	case v.count() == 0:
		return ""
	case v.sorting.on():
		return text.Count(int64(v.cursor+1)) + "/" + text.Count(int64(v.count()))
	}
	return text.Count(v.runs.First+int64(v.cursor+1)) + "/" + v.total()
}

// total is how many runs there are, as far as that is known.
func (v *runs) total() string {
	reached := v.runs.First + int64(len(v.runs.Rows))
	if v.runs.Total >= reached {
		return text.Count(v.runs.Total)
	}
	if v.runs.More {
		return text.Count(reached) + "+"
	}
	return text.Count(reached)
}

// Bindings are made once: they are asked for at each key and each frame.
func (v *runs) Bindings() []tui.Binding {
	if v.bindings == nil {
		v.bindings = v.listBindings()
	}
	if v.panel.kind == noPanel {
		return v.bindings[:len(v.bindings)-panelKeys]
	}
	return v.bindings
}

// panelKeys is how many bindings there are only while a panel is open.
const panelKeys = 2

func (v *runs) listBindings() []tui.Binding {
	do := func(fn func()) func(tui.Shell) tea.Cmd { return func(tui.Shell) tea.Cmd { fn(); return nil } }
	tell := func(fn func(tui.Shell)) func(tui.Shell) tea.Cmd {
		return func(s tui.Shell) tea.Cmd { fn(s); return nil }
	}
	b := append(motions("runs", v), []tui.Binding{
		{Action: "runs.facets", Keys: []string{"F"}, Help: "narrow the list by values, with counts", Short: "facets", Do: do(func() { v.openPanel(facetPanel) })},
		{Action: "runs.unpick", Keys: []string{"-", "backspace"}, Help: "take the picked values out of the query", Do: tell(v.clearPicks)},
		{Action: "runs.filters", Keys: []string{"ctrl+o"}, Help: "choose a saved filter", Do: do(func() { v.openPanel(filterPanel) })},
		{Action: "runs.save_filter", Keys: []string{"ctrl+s"}, Help: "save the query as a filter", Do: v.saveFilter},
		{Action: "runs.sort", Keys: []string{"s"}, Help: "sort what is loaded by the next column", Short: "sort", Do: do(v.sortNext)},
		{Action: "runs.reverse", Keys: []string{"S"}, Help: "sort the other way round", Do: do(func() { v.sorting.reverse = v.sorting.by != "" && !v.sorting.reverse; v.resorted() })},
		{Action: "runs.retrying", Keys: []string{"R"}, Help: "only runs that are being retried, or all again", Do: do(func() { v.sorting.retrying = !v.sorting.retrying; v.resorted() })},
		{Action: "runs.verify_all", Keys: []string{"V"}, Help: "verify all runs of the filter against today's code", Do: func(s tui.Shell) tea.Cmd { v.verifyAll(s, false); return nil }},
		{Action: "runs.columns", Keys: []string{"c"}, Help: "choose columns", Do: do(func() { v.openPanel(columnPanel) })},
		{Action: "runs.wide", Keys: []string{"w"}, Help: "all columns, or those that fit", Do: do(v.widen)},
		{Action: "runs.left", Keys: []string{"left"}, Help: "scroll the columns back", Do: do(func() { v.slide(-1) })},
		{Action: "runs.right", Keys: []string{"right"}, Help: "scroll the columns on", Do: do(func() { v.slide(1) })},
		{Action: "runs.mark", Keys: []string{"space"}, Help: "mark the run, or choose in a panel", Short: "mark", Do: v.space},
		{Action: "runs.unmark", Keys: []string{"u"}, Help: "take all marks away", Do: do(v.marks.clear)},
		{Action: "runs.diff", Keys: []string{"d"}, Help: "compare two runs step by step: the two marked, or the marked one and this", Do: tell(v.diffPair)},
		{Action: "runs.next_error", Keys: []string{"e"}, Help: "to the next run that failed, timed out or is retrying", Do: tell(func(s tui.Shell) { v.nextError(s, 1) })},
		{Action: "runs.previous_error", Keys: []string{"E"}, Help: "to the one before", Do: tell(func(s tui.Shell) { v.nextError(s, -1) })},
	}...)
	return append(b,
		tui.Binding{Action: "runs.choose", Keys: []string{"enter"}, Help: "choose what the panel's cursor is on", Short: "choose", Do: func(s tui.Shell) tea.Cmd { return v.panel.choose(s) }},
		tui.Binding{Action: "runs.close_panel", Keys: []string{"esc"}, Help: "close the panel", Short: "close", Do: do(func() { v.openPanel(noPanel) })})
}

func (v *runs) space(s tui.Shell) tea.Cmd {
	if v.panel.kind != noPanel {
		return v.panel.choose(s)
	}
	v.mark(s)
	return nil
}

func (v *runs) Update(msg tea.Msg) tea.Cmd {
	if m, ok := msg.(filterSaved); ok {
		return v.filterWasSaved(m)
	}
	return nil
}

func (v *runs) SetShown(shown bool) {
	v.shown = shown
	if v.panel.kind != noPanel {
		v.look()
	}
}

func (v *runs) SetStyles(s theme.Styles) {
	v.styles = s
	v.arrange()
}

func (v *runs) SetSize(width, height int) {
	if width == v.width && height == v.height {
		return
	}
	v.width, v.height = width, height
	v.arrange()
	v.reveal()
}

// Keep is what outlives the process: the query, the order, and the columns.
func (v *runs) Keep() map[string]string {
	to := map[string]string{}
	if v.runs.Query != "" {
		to["query"] = v.runs.Query
	}
	if v.sorting.by != "" {
		to["sort"] = v.sorting.by
	}
	if v.sorting.reverse {
		to["reverse"] = "true"
	}
	v.arranging.keep(to)
	return to
}

// Restore takes up what was kept. A query takes the place of the default filter's.
func (v *runs) Restore(from map[string]string) {
	if _, ok := columnBy(from["sort"]); ok {
		v.sorting.by, v.sorting.reverse = from["sort"], from["reverse"] == "true"
	}
	v.arranging.restore(from)
	v.arrange()
	if q := from["query"]; q != "" {
		v.Controls.SetQuery(q)
	}
}

// SetSnapshot keeps the selection on its run and, where new runs came in above, the
// rows on screen where they are; only at the very top do new runs come into sight.
// While it follows the newest, the selection moves on when its run has closed.
func (v *runs) SetSnapshot(s *sources.Snapshot) {
	queryChanged := v.loaded && s.Runs.Query != v.runs.Query
	wasFirst := v.runs.First
	v.runs, v.state, v.namespace, v.counted = s.Runs, s.Connection.State, s.Connection.Namespace, s.Facets
	v.file = s.Connection.Mode == sources.ModeFile
	v.loaded = v.loaded || !s.Runs.Loaded.IsZero() || len(s.Runs.Rows) > 0
	v.goOn(s.Detail)
	v.reorder()
	before, at := v.cursor, v.find()
	if at >= 0 {
		v.elsewhere = false
	}
	switch {
	case at >= 0:
		v.cursor = at
	case queryChanged:
		v.cursor = 0
	}
	if queryChanged {
		v.top, v.asked, v.goal = 0, asking{}, nowhere
	} else if v.top > 0 || wasFirst > 0 {
		v.top += v.cursor - before
	}
	v.arrive()
	if v.following {
		v.follow(at)
	}
	v.reveal()
	if !v.elsewhere {
		v.selectRow()
	}
}

// arrive puts the cursor on the end that somebody was on the way to, once that is held;
// or on the end of what was reached, where the walk was stopped.
func (v *runs) arrive() {
	switch {
	case v.goal == toFirst && v.runs.First == 0:
		v.cursor, v.top = 0, 0
	case v.goal == toLast && v.runs.Walking == 0 && !v.runs.More, v.goal == halted && v.runs.Walking == 0:
		v.cursor = v.count() - 1
	case v.goal == toLast && v.runs.Err != "": // the problem is shown
	default:
		return
	}
	v.goal = nowhere
}

// follow keeps the cursor on its run, at row at, while that is open and in sight of
// the newest; then it goes to the newest open one, or to the newest where none is open.
func (v *runs) follow(at int) {
	v.top = 0
	page := min(v.page(), v.count())
	if at >= 0 && at < page && v.at(at).Open() {
		return
	}
	for i := range page {
		if v.at(i).Open() {
			v.cursor = i
			return
		}
	}
	v.cursor = 0
}

// find is where the selected run is now, -1 if it is gone. It looks near the cursor
// first.
func (v *runs) find() int {
	n := v.count()
	if !v.selected.ok {
		return -1
	}
	for near := 0; near <= n; near++ {
		up, down := v.cursor-near, v.cursor+near
		if up >= 0 && up < n && v.sameRun(v.at(up)) {
			return up
		}
		if down < n && v.sameRun(v.at(down)) {
			return down
		}
		if up < 0 && down >= n {
			break
		}
	}
	return v.heir()
}

func (v *runs) sameRun(r *sources.Run) bool {
	return r.RunID == v.selected.run.RunID && r.WorkflowID == v.selected.run.WorkflowID
}

// selectRow makes the row under the cursor the selected run and, if it was another
// one before, asks for its detail.
func (v *runs) selectRow() {
	if v.count() == 0 {
		v.selected = selection{}
		return
	}
	r := v.at(v.cursor)
	changed := !v.selected.ok || !v.sameRun(r)
	v.selected = selection{*r, true}
	if changed {
		v.Controls.Select(r.WorkflowID, r.RunID)
	}
}

func (v *runs) page() int {
	return max(v.height-1-len(v.problem())-v.summaryLines(), 1)
}

func (v *runs) summaryLines() int {
	if v.runs.Recent == nil || v.height < summaryFrom {
		return 0
	}
	return 1
}

// scroll moves in the panel where one is open, else in the list. Going to an end of the
// list that is not held walks there; any other move ends that.
func (v *runs) scroll(lines int) {
	if v.panel.kind != noPanel {
		v.panel.move(clamp(lines, -len(v.panel.items), len(v.panel.items)))
		return
	}
	switch v.goal {
	case toLast:
		v.goal = halted
		v.Controls.StopWalk()
		return
	case toFirst:
		v.goal = nowhere
	}
	switch {
	case lines == -allLines && v.runs.First > 0:
		v.goal = toFirst
		v.Controls.LoadFirst()
	case lines == allLines && v.runs.More && !v.sorting.on():
		v.goal = toLast
		v.Controls.LoadLast()
	}
	v.following, v.elsewhere = lines == -allLines, false
	v.cursor = max(min(v.cursor+lines, v.count()-1), 0)
	v.reveal()
	v.selectRow()
	if v.goal == nowhere {
		v.more()
	}
}

// reveal moves the visible part so that it holds the cursor.
func (v *runs) reveal() {
	v.cursor = max(min(v.cursor, v.count()-1), 0)
	page := v.page()
	v.top = clamp(v.top, v.cursor-page+1, v.cursor)
	v.top = max(min(v.top, v.count()-page), 0)
}

// more asks for older runs when the end comes near, and for newer ones when the
// beginning does: once for each stretch that is held.
func (v *runs) more() {
	now := asking{first: v.runs.First, rows: len(v.runs.Rows)}
	switch {
	case v.runs.More && v.cursor+moreWithin >= v.count() && v.asked != now:
		v.asked = now
		v.Controls.LoadMore()
	case v.runs.First > 0 && v.cursor < moreWithin:
		if now.newer = true; v.asked != now {
			v.asked = now
			v.Controls.LoadNewer()
		}
	}
}

// nextError goes to the next row, down or up, whose run needs looking at.
func (v *runs) nextError(s tui.Shell, by int) {
	for i := v.cursor + by; i >= 0 && i < v.count(); i += by {
		if r := v.at(i); retrying(r) || r.Exit == ace.Failed || r.Exit == ace.Timeout {
			v.scroll(i - v.cursor)
			return
		}
	}
	s.Note("no failed or retrying run further on, in what is loaded")
}
