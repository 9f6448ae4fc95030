// Package runs is the list of runs: columns, sorting, facets, marks and the summary line.
package runs

import (
	"strings"

	tea "charm.land/bubbletea/v2"

	"acescope/engine/ace"
	"acescope/sources/cluster"
	"acescope/sources/histories"
	"acescope/sources/runs"
	"acescope/theme"
	"acescope/tui"
	"acescope/tui/text"
	"acescope/tui/widget"
	"acescope/views/console"
)

// moreWithin is how near to the last loaded row the screen comes before more are
// asked for.
const moreWithin = 50

// Runs is the list of runs.
type Runs struct {
	nav           *console.Navigation
	listing       *console.Listing
	actor         *console.Actor
	controls      console.Controls
	feeds         Feeds
	Styles        theme.Styles
	width, height int
	shown         bool
	loaded        bool // a list was read at least once
	state         cluster.ConnState
	file          bool // the runs come from files
	namespace     string
	Cursor, top   int
	asked         asking // for what more runs were last asked
	goal          goal
	cols          []Column
	bindings      []tui.Binding
	showsError    bool
	why           whyPlace
	heading       string
	cache         rowCache
	Arranging     arranging
	Sorting       Sorting
	Order         []int32   // places of rows, nil for the server's order
	ordered       *runs.Run // the first of the rows that order is of
	orderedBy     Sorting
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

// Feeds are what the list of runs shows.
type Feeds struct {
	List   List
	Facets console.Feed[*runs.Facets]
	Detail console.Value[*histories.Detail] // of the selected run
}

// List holds the part of the list that was scrolled through.
type List interface {
	console.Value[runs.RunList]
	// LoadMore holds more of the older runs, LoadNewer of the newer ones.
	LoadMore()
	LoadNewer()
	// LoadFirst goes to the newest runs, LoadLast walks to the oldest; StopWalk ends the walk.
	LoadFirst()
	LoadLast()
	StopWalk()
}

func NewRuns(c *console.Console, feeds Feeds) *Runs {
	return &Runs{nav: c.Navigation, listing: c.Listing, actor: c.Actor, controls: c.Controls, feeds: feeds}
}

func (v *Runs) Name() string { return "Runs" }

func (v *Runs) Title() string { return "Runs" }

// Footer is what is special about the list, then where the cursor is: "12/10,214", with
// a plus where the total is unknown.
func (v *Runs) Footer() string {
	var parts []string
	add := func(s string) {
		if s != "" {
			parts = append(parts, s)
		}
	}
	if v.goal == toLast {
		add("walking to the last: " + text.Count(v.listing.Runs.Walking) + " of " + v.total() + ", any move stops")
	}
	if v.nav.Following && v.Count() > 0 {
		add("following the newest")
	}
	add(v.orderState())
	if n := len(v.listing.Marks.Runs); n > 0 {
		add(text.Count(int64(n)) + " marked")
	}
	add(v.columnsState())
	add(v.position())
	return strings.Join(parts, " "+v.Styles.Glyphs.Dot+" ")
}

func (v *Runs) position() string {
	switch {
	case v.Count() == 0:
		return ""
	case v.Sorting.on():
		return text.Count(int64(v.Cursor+1)) + "/" + text.Count(int64(v.Count()))
	}
	return text.Count(v.listing.Runs.First+int64(v.Cursor+1)) + "/" + v.total()
}

// total is how many runs there are, as far as that is known.
func (v *Runs) total() string {
	reached := v.listing.Runs.First + int64(len(v.listing.Runs.Rows))
	if v.listing.Runs.Total >= reached {
		return text.Count(v.listing.Runs.Total)
	}
	if v.listing.Runs.More {
		return text.Count(reached) + "+"
	}
	return text.Count(reached)
}

// Bindings are made once: they are asked for at each key and each frame.
func (v *Runs) Bindings() []tui.Binding {
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

func (v *Runs) listBindings() []tui.Binding {
	do := func(fn func()) func(tui.Shell) tea.Cmd { return func(tui.Shell) tea.Cmd { fn(); return nil } }
	tell := func(fn func(tui.Shell)) func(tui.Shell) tea.Cmd {
		return func(s tui.Shell) tea.Cmd { fn(s); return nil }
	}
	b := append(widget.Motions("runs", v), []tui.Binding{
		{Action: "runs.facets", Keys: []string{"F"}, Help: "narrow the list by values, with counts", Short: "facets", Do: do(func() { v.openPanel(facetPanel) })},
		{Action: "runs.unpick", Keys: []string{"-", "backspace"}, Help: "take the picked values out of the query", Do: tell(v.clearPicks)},
		{Action: "runs.filters", Keys: []string{"ctrl+o"}, Help: "choose a saved filter", Do: do(func() { v.openPanel(filterPanel) })},
		{Action: "runs.save_filter", Keys: []string{"ctrl+s"}, Help: "save the query as a filter", Do: v.listing.SaveFilter},
		{Action: "runs.sort", Keys: []string{"s"}, Help: "sort what is loaded by the next column", Short: "sort", Do: do(v.sortNext)},
		{Action: "runs.reverse", Keys: []string{"S"}, Help: "sort the other way round", Do: do(func() { v.Sorting.Reverse = v.Sorting.By != "" && !v.Sorting.Reverse; v.Resorted() })},
		{Action: "runs.retrying", Keys: []string{"R"}, Help: "only runs that are being retried, or all again", Do: do(func() { v.Sorting.retrying = !v.Sorting.retrying; v.Resorted() })},
		{Action: "runs.verify_all", Keys: []string{"V"}, Help: "verify all runs of the filter against today's code", Do: func(s tui.Shell) tea.Cmd { v.actor.VerifyAll(s, false); return nil }},
		{Action: "runs.columns", Keys: []string{"c"}, Help: "choose columns", Do: do(func() { v.openPanel(columnPanel) })},
		{Action: "runs.wide", Keys: []string{"w"}, Help: "all columns, or those that fit", Do: do(v.widen)},
		{Action: "runs.left", Keys: []string{"left"}, Help: "scroll the columns back", Do: do(func() { v.slide(-1) })},
		{Action: "runs.right", Keys: []string{"right"}, Help: "scroll the columns on", Do: do(func() { v.slide(1) })},
		{Action: "runs.mark", Keys: []string{"space"}, Help: "mark the run, or choose in a panel", Short: "mark", Do: v.space},
		{Action: "runs.unmark", Keys: []string{"u"}, Help: "take all marks away", Do: do(v.listing.Marks.Clear)},
		{Action: "runs.diff", Keys: []string{"d"}, Help: "compare two runs step by step: the two marked, or the marked one and this", Do: tell(v.actor.CompareMarked)},
		{Action: "runs.next_error", Keys: []string{"e"}, Help: "to the next run that failed, timed out or is retrying", Do: tell(func(s tui.Shell) { v.nextError(s, 1) })},
		{Action: "runs.previous_error", Keys: []string{"E"}, Help: "to the one before", Do: tell(func(s tui.Shell) { v.nextError(s, -1) })},
	}...)
	return append(b,
		tui.Binding{Action: "runs.choose", Keys: []string{"enter"}, Help: "choose what the panel's cursor is on", Short: "choose", Do: func(s tui.Shell) tea.Cmd { return v.panel.choose(s) }},
		tui.Binding{Action: "runs.close_panel", Keys: []string{"esc"}, Help: "close the panel", Short: "close", Do: do(func() { v.openPanel(noPanel) })})
}

func (v *Runs) space(s tui.Shell) tea.Cmd {
	if v.panel.kind != noPanel {
		return v.panel.choose(s)
	}
	v.mark(s)
	return nil
}

func (v *Runs) Update(msg tea.Msg) tea.Cmd {
	if m, ok := msg.(console.FilterSaved); ok {
		return v.listing.FilterWasSaved(m)
	}
	return nil
}

func (v *Runs) SetShown(shown bool) {
	v.shown = shown
	if v.panel.kind != noPanel {
		v.look()
	}
}

func (v *Runs) SetStyles(s theme.Styles) {
	v.Styles = s
	v.arrange()
}

func (v *Runs) SetSize(width, height int) {
	if width == v.width && height == v.height {
		return
	}
	v.width, v.height = width, height
	v.arrange()
	v.reveal()
}

// Keep is what outlives the process: the query, the order, and the columns.
func (v *Runs) Keep() map[string]string {
	to := map[string]string{}
	if v.listing.Runs.Query != "" {
		to["query"] = v.listing.Runs.Query
	}
	if v.Sorting.By != "" {
		to["sort"] = v.Sorting.By
	}
	if v.Sorting.Reverse {
		to["reverse"] = "true"
	}
	v.Arranging.keep(to)
	return to
}

// Restore takes up what was kept. A query takes the place of the default filter's.
func (v *Runs) Restore(from map[string]string) {
	if _, ok := columnBy(from["sort"]); ok {
		v.Sorting.By, v.Sorting.Reverse = from["sort"], from["reverse"] == "true"
	}
	v.Arranging.restore(from)
	v.arrange()
	if q := from["query"]; q != "" {
		v.controls.SetQuery(q)
	}
}

// Refresh keeps the selection on its run and, where new runs came in above, the
// rows on screen where they are; only at the very top do new runs come into sight.
// While it follows the newest, the selection moves on when its run has closed.
func (v *Runs) Refresh() {
	list, conn := v.feeds.List.Value(), v.controls.Connection()
	queryChanged := v.loaded && list.Query != v.listing.Runs.Query
	wasFirst := v.listing.Runs.First
	v.listing.Runs, v.state, v.namespace, v.listing.Counted = list, conn.State, conn.Namespace, v.feeds.Facets.Value()
	v.file = conn.Mode == cluster.ModeFile
	v.loaded = v.loaded || !list.Loaded.IsZero() || len(list.Rows) > 0
	v.nav.FollowContinued(v.feeds.Detail.Value())
	v.reorder()
	before, at := v.Cursor, v.find()
	if at >= 0 {
		v.nav.Elsewhere = false
	}
	switch {
	case at >= 0:
		v.Cursor = at
	case queryChanged:
		v.Cursor = 0
	}
	if queryChanged {
		v.top, v.asked, v.goal = 0, asking{}, nowhere
	} else if v.top > 0 || wasFirst > 0 {
		v.top += v.Cursor - before
	}
	v.arrive()
	if v.nav.Following {
		v.follow(at)
	}
	v.reveal()
	if !v.nav.Elsewhere {
		v.selectRow()
	}
}

// arrive puts the cursor on the end that somebody was on the way to, once that is held;
// or on the end of what was reached, where the walk was stopped.
func (v *Runs) arrive() {
	switch {
	case v.goal == toFirst && v.listing.Runs.First == 0:
		v.Cursor, v.top = 0, 0
	case v.goal == toLast && v.listing.Runs.Walking == 0 && !v.listing.Runs.More, v.goal == halted && v.listing.Runs.Walking == 0:
		v.Cursor = v.Count() - 1
	case v.goal == toLast && v.listing.Runs.Err != "": // the problem is shown
	default:
		return
	}
	v.goal = nowhere
}

// follow keeps the cursor on its run, at row at, while that is open and in sight of
// the newest; then it goes to the newest open one, or to the newest where none is open.
func (v *Runs) follow(at int) {
	v.top = 0
	page := min(v.Page(), v.Count())
	if at >= 0 && at < page && v.At(at).Open() {
		return
	}
	for i := range page {
		if v.At(i).Open() {
			v.Cursor = i
			return
		}
	}
	v.Cursor = 0
}

// find is where the selected run is now, -1 if it is gone. It looks near the cursor
// first.
func (v *Runs) find() int {
	n := v.Count()
	if !v.nav.Selected.Ok {
		return -1
	}
	for near := 0; near <= n; near++ {
		up, down := v.Cursor-near, v.Cursor+near
		if up >= 0 && up < n && v.sameRun(v.At(up)) {
			return up
		}
		if down < n && v.sameRun(v.At(down)) {
			return down
		}
		if up < 0 && down >= n {
			break
		}
	}
	return v.successorRow()
}

func (v *Runs) sameRun(r *runs.Run) bool {
	return r.RunID == v.nav.Selected.Run.RunID && r.WorkflowID == v.nav.Selected.Run.WorkflowID
}

// selectRow makes the row under the cursor the selected run and, if it was another
// one before, asks for its detail.
func (v *Runs) selectRow() {
	if v.Count() == 0 {
		v.nav.Selected = console.Selection{}
		return
	}
	r := v.At(v.Cursor)
	changed := !v.nav.Selected.Ok || !v.sameRun(r)
	v.nav.Selected = console.Selection{*r, true}
	if changed {
		v.controls.Select(runs.ID{WorkflowID: r.WorkflowID, RunID: r.RunID})
	}
}

func (v *Runs) Page() int {
	return max(v.height-1-len(v.problem())-v.summaryLines(), 1)
}

func (v *Runs) summaryLines() int {
	if v.listing.Runs.Recent == nil || v.height < summaryFrom {
		return 0
	}
	return 1
}

// Scroll moves in the panel where one is open, else in the list. Going to an end of the
// list that is not held walks there; any other move ends that.
func (v *Runs) Scroll(lines int) {
	if v.panel.kind != noPanel {
		v.panel.move(widget.Clamp(lines, -len(v.panel.items), len(v.panel.items)))
		return
	}
	switch v.goal {
	case toLast:
		v.goal = halted
		v.feeds.List.StopWalk()
		return
	case toFirst:
		v.goal = nowhere
	}
	switch {
	case lines == -widget.AllLines && v.listing.Runs.First > 0:
		v.goal = toFirst
		v.feeds.List.LoadFirst()
	case lines == widget.AllLines && v.listing.Runs.More && !v.Sorting.on():
		v.goal = toLast
		v.feeds.List.LoadLast()
	}
	v.nav.Following, v.nav.Elsewhere = lines == -widget.AllLines, false
	v.Cursor = max(min(v.Cursor+lines, v.Count()-1), 0)
	v.reveal()
	v.selectRow()
	if v.goal == nowhere {
		v.more()
	}
}

// reveal moves the visible part so that it holds the cursor.
func (v *Runs) reveal() {
	v.Cursor = max(min(v.Cursor, v.Count()-1), 0)
	page := v.Page()
	v.top = widget.Clamp(v.top, v.Cursor-page+1, v.Cursor)
	v.top = max(min(v.top, v.Count()-page), 0)
}

// more asks for older runs when the end comes near, and for newer ones when the
// beginning does: once for each stretch that is held.
func (v *Runs) more() {
	now := asking{first: v.listing.Runs.First, rows: len(v.listing.Runs.Rows)}
	switch {
	case v.listing.Runs.More && v.Cursor+moreWithin >= v.Count() && v.asked != now:
		v.asked = now
		v.feeds.List.LoadMore()
	case v.listing.Runs.First > 0 && v.Cursor < moreWithin:
		if now.newer = true; v.asked != now {
			v.asked = now
			v.feeds.List.LoadNewer()
		}
	}
}

// nextError goes to the next row, down or up, whose run needs looking at.
func (v *Runs) nextError(s tui.Shell, by int) {
	for i := v.Cursor + by; i >= 0 && i < v.Count(); i += by {
		if r := v.At(i); retrying(r) || r.Exit == ace.Failed || r.Exit == ace.Timeout {
			v.Scroll(i - v.Cursor)
			return
		}
	}
	s.Note("no failed or retrying run further on, in what is loaded")
}
