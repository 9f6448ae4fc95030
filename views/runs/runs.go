// Package runs is the list of runs: columns, sorting, facets, marks and the summary line.
package runs

import (
	"slices"
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

// loadMargin is the distance of the cursor from the end of the loaded rows at which more are loaded.
const loadMargin = 50

// Runs is the view of the list of runs.
type Runs struct {
	nav      *console.Navigation
	launcher *console.Launcher
	comparer *console.Comparer
	verifier *console.Verifier
	controls console.Controls
	feeds    Feeds
	console.Pane
	table
	panel     sidePanel
	sections  sections
	bindings  []tui.Binding
	shown     bool
	loaded    bool   // the list was read at least once
	query     string // of the list when it was taken last
	state     cluster.ConnState
	file      bool // the runs come from files
	address   string
	namespace string
	asked     request // last request for more runs
	goal      goal
}

// request is a request for more runs at one end of the loaded rows.
type request struct {
	first int64
	rows  int
	newer bool
}

// goal is the end of the list that is being loaded.
type goal uint8

const (
	noGoal goal = iota
	toFirst
	toLast
	halted // loading the last rows was stopped
)

// Feeds are the data of the list.
type Feeds struct {
	List   List
	Facets console.Feed[*runs.Facets]
	Counts Counts
	Detail console.Value[*histories.Detail] // of the selected run
}

// List loads the rows around the user's position.
type List interface {
	console.Value[runs.RunList]
	Load(part runs.Load)
}

func New(c *console.Console, feeds Feeds) *Runs {
	v := &Runs{Pane: console.NewPane("Runs"), nav: c.Navigation, launcher: c.Launcher, comparer: c.Comparer,
		verifier: c.Verifier, controls: c.Controls, feeds: feeds}
	v.table = table{pane: &v.Pane, listing: c.Listing}
	v.sections = sections{listing: c.Listing, counts: feeds.Counts, table: &v.table}
	v.panel = sidePanel{pane: &v.Pane, listing: c.Listing, controls: c.Controls, table: &v.table,
		sections: &v.sections}
	v.panel.close = func() { v.openPanel(noPanel) }
	return v
}

// Title says what all loaded rows have in common, if there is no column for it.
func (v *Runs) Title() string {
	title := v.Pane.Title()
	if v.Layout.Chosen != nil || v.Layout.wide {
		return title
	}
	return v.Join(append([]string{title}, v.common.said(v.Styles.Glyphs)...)...)
}

// Footer shows the state of the list, then the position: "12/10,214", with a plus if the total is unknown.
func (v *Runs) Footer() string {
	var loading, following, marked string
	if v.goal == toLast {
		loading = "loading up to the last: " + text.Count(v.listing.Runs.Walking) + " of " + v.total() +
			", any move stops it"
	}
	if v.nav.Following && v.Count() > 0 {
		following = "following the newest"
	}
	if n := len(v.listing.Marks.Runs); n > 0 {
		marked = text.Count(int64(n)) + " marked"
	}
	return v.Join(loading, v.searched(), following, v.orderState(), marked, v.columnsState(), v.position())
}

// searched says how far a search for a text or a cost has come, "" if all runs were searched.
func (v *Runs) searched() string {
	list := v.listing.Runs
	switch {
	case list.Bounded:
		return "searched the newest " + text.Count(list.Searched)
	case list.Searched > 0 && list.More:
		return "searching: " + text.Count(list.Searched) + " read"
	}
	return ""
}

// Bindings returns the keys. They are made once because the shell asks at each key and each frame.
func (v *Runs) Bindings() []tui.Binding {
	if v.bindings == nil {
		v.bindings = v.listBindings()
	}
	if !v.panel.open() {
		return v.bindings[:len(v.bindings)-panelKeys]
	}
	return v.bindings
}

// panelKeys is the number of last bindings that exist only while a panel is open.
const panelKeys = 2

func (v *Runs) listBindings() []tui.Binding {
	own := []tui.Binding{
		console.Key("runs.filter", "narrow the list by values, with counts", "facets",
			func() { v.openPanel(facetPanel) }, "F"),
		console.Key("runs.back", "clear the picked values from the query", "", v.panel.clearPicks, "backspace"),
		console.Key("runs.next_section", "list the runs of the next filter", "section",
			func(s tui.Shell) { v.sections.turn(s, 1) }, "]"),
		console.Key("runs.previous_section", "list the runs of the previous filter", "",
			func(s tui.Shell) { v.sections.turn(s, -1) }, "["),
		console.Key("runs.filters", "choose a saved filter", "", func() { v.openPanel(filterPanel) }, "ctrl+o"),
		console.Key("runs.save_filter", "save the query as a filter", "", v.listing.SaveFilter, "ctrl+s"),
		console.Key("runs.sort", "sort the loaded runs by the next column", "sort",
			func() { v.sortNext(); v.Resorted() }, "s"),
		console.Key("runs.reverse", "reverse the order", "",
			func() { v.Sorting.Reverse = v.Sorting.By != "" && !v.Sorting.Reverse; v.Resorted() }, "S"),
		console.Key("runs.retrying", "switch between runs with a retrying activity and all runs", "",
			func() { v.Sorting.retrying = !v.Sorting.retrying; v.Resorted() }, "R"),
		console.Key("runs.verify_all", "verify all runs of the filter against the current code", "",
			func(s tui.Shell) { v.verifier.VerifyAll(s, false) }, "V"),
		console.Key("runs.columns", "choose columns", "", func() { v.openPanel(columnPanel) }, "C"),
		console.Key("runs.mode", "show all columns, or only those that fit", "", v.widen, "m"),
		console.Key("runs.left", "scroll the columns left", "", func() { v.slide(-1) }, "left"),
		console.Key("runs.right", "scroll the columns right", "", func() { v.slide(1) }, "right"),
		console.Key("runs.mark", "mark the run, or choose in a panel", "mark", v.space, "space"),
		console.Key("runs.mark_wrong", "mark all loaded runs with a wrong answer; f forks the marked runs", "",
			v.listing.MarkWrong, "ctrl+a"),
		console.Key("runs.unmark", "unmark all", "", v.listing.Marks.Clear, "u"),
		console.Key("runs.diff", "compare two runs step by step: both marked, or the marked and the selected one", "",
			v.comparer.CompareMarked, "d"),
		console.Key("runs.next_error", "next run that failed, timed out or is retrying", "",
			func(s tui.Shell) { v.nextError(s, 1) }, "e"),
		console.Key("runs.previous_error", "previous run that failed, timed out or is retrying", "",
			func(s tui.Shell) { v.nextError(s, -1) }, "E"),
		console.Key("runs.choose", "choose the item under the cursor", "choose", v.panel.choose, "enter"),
		console.Key("runs.close_panel", "close the panel", "close", func() { v.openPanel(noPanel) }, "esc"),
	}
	return slices.Concat(widget.Motions("runs", v), v.launcher.LaunchBinding("runs"), own)
}

func (v *Runs) space(s tui.Shell) tea.Cmd {
	if v.panel.open() {
		return v.panel.choose(s)
	}
	v.mark(s)
	return nil
}

func (v *Runs) Update(msg tea.Msg) tea.Cmd {
	if m, ok := msg.(console.FilterSaved); ok {
		cmd := v.listing.FilterWasSaved(m)
		v.sections.look(v.shown)
		return cmd
	}
	return nil
}

// openPanel opens a panel, or closes it if it is open.
func (v *Runs) openPanel(kind panelKind) {
	if v.panel.kind == kind {
		kind = noPanel
	}
	v.panel.turn(kind)
	v.look()
	v.arrange()
	v.reveal()
}

// look reads facets while they are shown.
func (v *Runs) look() {
	v.feeds.Facets.Look(v.shown && v.panel.kind == facetPanel)
}

func (v *Runs) panelBeside() bool { return v.panel.open() && v.Width >= panelMinWidth }

// arrange gives the table the width beside the panel.
func (v *Runs) arrange() {
	if v.table.width = v.Width; v.panelBeside() {
		v.table.width -= panelWidth + 1
	}
	v.table.arrange()
}

func (v *Runs) reveal() { v.table.reveal(v.Page()) }

func (v *Runs) SetShown(shown bool) {
	v.shown = shown
	v.sections.look(shown)
	if v.panel.open() {
		v.look()
	}
}

func (v *Runs) SetStyles(s theme.Styles) {
	v.Styles = s
	v.arrange()
}

func (v *Runs) SetSize(width, height int) {
	if width == v.Width && height == v.Height {
		return
	}
	v.Width, v.Height = width, height
	v.arrange()
	v.reveal()
}

// Keep returns the query, the order, and the columns.
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
	v.Layout.keep(to)
	return to
}

// Restore applies what Keep returned. The query replaces that of the default filter.
func (v *Runs) Restore(from map[string]string) {
	if _, ok := columnBy(from["sort"]); ok {
		v.Sorting.By, v.Sorting.Reverse = from["sort"], from["reverse"] == "true"
	}
	v.Layout.restore(from)
	v.arrange()
	if q := from["query"]; q != "" {
		v.controls.SetQuery(q)
	}
}

// Unfilter implements [tui.Filtered].
func (v *Runs) Unfilter() bool {
	if v.listing.Runs.Query == "" {
		return false
	}
	v.controls.SetQuery("")
	return true
}

// Refresh keeps the selection on its run and the rows on screen in place: new runs appear only at the very top. While
// following the newest, the selection moves on when its run closes.
func (v *Runs) Refresh() {
	list, conn := v.feeds.List.Value(), v.controls.Connection()
	queryChanged := v.loaded && list.Query != v.query
	v.query = list.Query
	wasFirst := v.listing.Runs.First
	v.listing.Runs, v.state, v.address, v.namespace = list, conn.State, conn.Address, conn.Namespace
	v.listing.Counted = v.feeds.Facets.Value()
	if queryChanged {
		v.sections.left()
	}
	if v.common.look(&list, list.Loaded, v.Styles) {
		v.arrange()
	}
	v.file = conn.Mode == cluster.ModeFile
	v.loaded = v.loaded || !list.Loaded.IsZero() || len(list.Rows) > 0
	v.nav.FollowContinued(v.feeds.Detail.Value())
	v.reconcile(v.feeds.Detail.Value())
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
		v.top, v.asked, v.goal = 0, request{}, noGoal
	} else if v.top > 0 || wasFirst > 0 {
		v.top += v.Cursor - before
	}
	v.reachGoal()
	if v.nav.Following {
		v.follow(at)
	}
	v.reveal()
	if !v.nav.Elsewhere {
		v.selectRow()
	}
}

// reachGoal moves the cursor to the requested end of the list once it is loaded, or to the last loaded row if loading
// was stopped.
func (v *Runs) reachGoal() {
	switch {
	case v.goal == toFirst && v.listing.Runs.First == 0:
		v.Cursor, v.top = 0, 0
	case v.listing.Runs.Walking == 0 && (v.goal == toLast && !v.listing.Runs.More || v.goal == halted):
		v.Cursor = v.Count() - 1
	case v.goal == toLast && v.listing.Runs.Err != "": // the problem is shown
	default:
		return
	}
	v.goal = noGoal
}

// follow keeps the cursor on its run, at row at, while the run is open and on the first page. Otherwise it moves to the
// newest open run, or to the newest run.
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

// find returns the row of the selected run or of its successor, or -1. It searches from the cursor outward.
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
	return r.ID() == v.nav.Selected.Run.ID()
}

// reconcile shows the selected run as closed as soon as its detail does, so that list and preview agree.
func (v *Runs) reconcile(d *histories.Detail) {
	if d == nil || d.Close.IsZero() {
		return
	}
	rows := v.listing.Runs.Rows
	at := slices.IndexFunc(rows, func(r runs.Run) bool { return r.Open() && r.RunID == d.RunID })
	if at >= 0 {
		rows = slices.Clone(rows) // the feed's own
		rows[at], _ = histories.Reconcile(rows[at], d)
		v.listing.Runs.Rows = rows
	}
}

// selectRow selects the run under the cursor and reads its detail if it changed.
func (v *Runs) selectRow() {
	if v.Count() == 0 {
		v.nav.Selected = console.Selection{}
		return
	}
	r := v.At(v.Cursor)
	changed := !v.nav.Selected.Ok || !v.sameRun(r)
	v.nav.Selected = console.Selection{*r, true}
	if changed {
		v.controls.Select(r.ID())
	}
}

func (v *Runs) Page() int {
	return max(v.Height-1-len(v.problem())-v.sectionLines()-v.summaryLines(), 1)
}

func (v *Runs) sectionLines() int {
	if len(v.listing.Filters) == 0 || v.file || v.Height < recentMinHeight {
		return 0
	}
	return 1
}

func (v *Runs) summaryLines() int {
	if v.listing.Runs.Recent == nil || v.Height < recentMinHeight {
		return 0
	}
	return 1
}

// Scroll moves in the open panel, or in the list. Going to an end that is not loaded loads it; any other move stops
// loading.
func (v *Runs) Scroll(lines int) {
	if v.panel.open() {
		v.panel.move(widget.Clamp(lines, -len(v.panel.items), len(v.panel.items)))
		return
	}
	switch v.goal {
	case toLast:
		v.goal = halted
		v.feeds.List.Load(runs.StopWalk)
		return
	case toFirst:
		v.goal = noGoal
	}
	switch {
	case lines == -widget.AllLines && v.listing.Runs.First > 0:
		v.goal = toFirst
		v.feeds.List.Load(runs.LoadFirst)
	case lines == widget.AllLines && v.listing.Runs.More && !v.Sorting.on():
		v.goal = toLast
		v.feeds.List.Load(runs.LoadLast)
	}
	v.nav.Following, v.nav.Elsewhere = lines == -widget.AllLines, false
	v.Cursor = max(min(v.Cursor+lines, v.Count()-1), 0)
	v.reveal()
	v.selectRow()
	if v.goal == noGoal {
		v.more()
	}
}

// more loads older runs near the end and newer runs near the beginning, once for the same loaded rows.
func (v *Runs) more() {
	now := request{first: v.listing.Runs.First, rows: len(v.listing.Runs.Rows)}
	switch {
	case v.listing.Runs.More && v.Cursor+loadMargin >= v.Count() && v.asked != now:
		v.asked = now
		v.feeds.List.Load(runs.LoadOlder)
	case v.listing.Runs.First > 0 && v.Cursor < loadMargin:
		if now.newer = true; v.asked != now {
			v.asked = now
			v.feeds.List.Load(runs.LoadNewer)
		}
	}
}

// nextError goes to the next run that failed, timed out or is retrying.
func (v *Runs) nextError(s tui.Shell, by int) {
	for i := v.Cursor + by; i >= 0 && i < v.Count(); i += by {
		if r := v.At(i); retrying(r) || r.Status.Bad() && r.Status != ace.Canceled {
			v.Scroll(i - v.Cursor)
			return
		}
	}
	s.Note("no further failed or retrying run among the loaded ones")
}

// Resorted applies a new order and goes to the first row.
func (v *Runs) Resorted() {
	v.nav.Following = false
	v.arrange()
	v.reorder()
	v.Cursor, v.top = 0, 0
	v.reveal()
	v.selectRow()
}

// mark marks the run under the cursor and moves to the next.
func (v *Runs) mark(s tui.Shell) {
	if v.Count() == 0 {
		return
	}
	if !v.listing.Marks.Toggle(*v.At(v.Cursor)) {
		s.Note("at most " + text.Count(console.MaxMarks) + " runs can be marked")
		return
	}
	v.Scroll(1)
}

// Commands returns the commands that filter the list.
func (v *Runs) Commands() []tui.Command { return v.listing.Commands() }

// Copy returns the workflow IDs of the marked runs, or of the selected one.
func (v *Runs) Copy() (what, ids string) {
	switch n := len(v.listing.Marks.Runs); {
	case n == 0 && !v.nav.Selected.Ok:
		return "", ""
	case n == 0:
		return "workflow ID", v.nav.Selected.Run.WorkflowID
	default:
		list := make([]string, n)
		for i, r := range v.listing.Marks.Runs {
			list[i] = r.WorkflowID
		}
		return text.Count(int64(n)) + " workflow IDs", strings.Join(list, "\n")
	}
}

// Copies implements [tui.MultiCopier].
func (v *Runs) Copies() []tui.Copy { return v.nav.SelectedCopies() }

// successorRow returns the row of the run that continues the selected one, or -1.
func (v *Runs) successorRow() int {
	if !v.nav.Live() {
		return -1
	}
	was := &v.nav.Selected.Run
	for i := range v.Count() {
		if r := v.At(i); r.WorkflowID == was.WorkflowID && r.RunID != was.RunID && !r.Start.Before(was.Start) {
			return i
		}
	}
	return -1
}
