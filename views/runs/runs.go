// Package runs is the list of runs: columns, sorting, facets, marks and the summary line.
package runs

import (
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"acescope/engine/ace"
	"acescope/sources/histories"
	"acescope/sources/runs"
	"acescope/theme"
	"acescope/tui"
	"acescope/tui/widget"
	"acescope/views/console"
)

type Runs struct {
	nav      *console.Navigation
	launcher *console.Launcher
	comparer *console.Comparer
	verifier *console.Verifier
	forks    *console.Forks
	controls console.Controls
	feeds    Feeds
	console.Pane
	table
	panel    sidePanel
	sections sections
	bindings []tui.Binding
	inPanel  []tui.Binding // those while a panel is open
	shown    bool
	query    string // of the list when it was last taken
	notices  notices
	tracker  tracker
	walker   walker
}

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
	// Show names the runs on the screen, by run ID; none while no run is shown.
	Show(runIDs []string)
}

func New(c *console.Console, feeds Feeds) *Runs {
	v := &Runs{Pane: console.NewPane("Runs"), nav: c.Navigation, launcher: c.Launcher, comparer: c.Comparer,
		verifier: c.Verifier, forks: c.Forks, controls: c.Controls, feeds: feeds}
	v.table = table{pane: &v.Pane, listing: c.Listing, Table: widget.NewTable()}
	v.Marked = func(i int) bool { return v.listing.Marks.Of[v.At(i).ID()] }
	v.sections = sections{listing: c.Listing, counts: feeds.Counts, table: &v.table}
	v.notices = notices{pane: &v.Pane, listing: c.Listing, table: &v.table}
	v.tracker = tracker{nav: c.Navigation, controls: c.Controls, table: &v.table}
	v.walker = walker{list: feeds.List, table: &v.table}
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
	return v.Join(append([]string{title}, v.common.shared(v.Styles.Glyphs)...)...)
}

// Footer shows the state of the list, then the position: "12/10,214", with a plus if the total is unknown.
func (v *Runs) Footer() string {
	return v.Join(v.walker.state(), v.searched(), v.reading(),
		widget.If(v.nav.Following && v.Count() > 0, "following the newest", ""), v.orderState(),
		console.MarkedText(len(v.listing.Marks.Runs)), v.columnsState(), v.position())
}

// searched says how far a search for a text or a cost has come, "" if all runs were searched.
func (v *Runs) searched() string {
	list := v.listing.Runs
	switch {
	case list.Bounded:
		return "searched the newest " + ace.Number(list.Searched)
	case list.Searched > 0 && list.More:
		return "searching: " + ace.Number(list.Searched) + " read"
	}
	return ""
}

// Bindings returns the keys. They are made once because the shell asks at each key and each frame.
func (v *Runs) Bindings() []tui.Binding {
	if v.bindings == nil {
		list := v.listBindings()
		v.bindings = append(slices.Clip(list), console.Key("runs.open", "open the run", "", v.open, "enter"))
		v.inPanel = append(slices.Clip(list),
			console.Key("runs.choose", "choose the item under the cursor", "choose", v.panel.choose, "enter"),
			console.Key("runs.close_panel", "close the panel", "close", func() { v.openPanel(noPanel) }, "esc"))
	}
	return widget.If(v.panel.open(), v.inPanel, v.bindings)
}

func (v *Runs) listBindings() []tui.Binding {
	own := []tui.Binding{
		console.Key("runs.filter", "narrow the list by values, with counts", "facets",
			func() { v.openPanel(facetPanel) }, "F"),
		console.Key("runs.back", "clear the picked values from the query", "", v.panel.clearPicks,
			"backspace"),
		console.Key("runs.next_section", "list the runs of the next filter", "section",
			func(s tui.Shell) { v.sections.turn(s, 1) }, "]"),
		console.Key("runs.previous_section", "list the runs of the previous filter", "",
			func(s tui.Shell) { v.sections.turn(s, -1) }, "["),
		console.Key("runs.filters", "choose a saved filter", "", func() { v.openPanel(filterPanel) },
			"ctrl+o"),
		console.Key("runs.save_filter", "save the query as a filter", "", v.listing.SaveFilter, "ctrl+s"),
		console.Key("runs.sort", "sort the loaded runs by the next column", "",
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
		console.Key("runs.mark_all", "mark all runs that the filter matches; f forks the marked runs",
			"mark all", v.markAll, "ctrl+a"),
		console.Key("runs.unmark", "unmark all", "", v.listing.Marks.Clear, "u"),
		console.Key("runs.diff", "compare two runs step by step: both marked, or the marked and the selected one", "",
			v.comparer.CompareMarked, "="),
		console.Key("runs.next_error", "next run that failed, is retrying or answered wrong", "",
			func(s tui.Shell) { v.nextError(s, 1) }, "e"),
		console.Key("runs.previous_error", "previous run that failed, is retrying or answered wrong", "",
			func(s tui.Shell) { v.nextError(s, -1) }, "E"),
	}
	return slices.Concat(widget.Motions("runs", v), v.launcher.LaunchBinding("runs"), own)
}

func (v *Runs) open(s tui.Shell) tea.Cmd {
	if !v.nav.Selected.Ok {
		return nil
	}
	return v.nav.OpenRun(s, v.nav.Selected.Run)
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

// look makes the feed read facets while they are shown.
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

// reveal scrolls so that the cursor is visible.
func (v *Runs) reveal() {
	v.Rows = v.Count()
	v.Table.SetSize(v.table.width, v.Page()+1)
	v.show()
}

func (v *Runs) SetShown(shown bool) {
	v.shown, v.listing.ShowsMarks = shown, shown
	v.sections.look(shown)
	v.show()
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

func (v *Runs) Unfilter() bool { return v.listing.Unfilter() }

// Refresh keeps the selection on its run and the rows on screen in place: new runs appear only at the very
// top. While following the newest, the selection moves on when its run closes.
func (v *Runs) Refresh() {
	list := v.feeds.List.Value()
	queryChanged := v.notices.loaded && list.Query != v.query
	v.query = list.Query
	wasFirst := v.listing.Runs.First
	v.listing.Runs = list
	v.notices.take(v.controls.Connection())
	v.listing.Counted = v.feeds.Facets.Value()
	if queryChanged {
		v.sections.left()
	}
	if v.common.look(&list, list.Loaded, v.Styles) {
		v.arrange()
	}
	v.nav.FollowContinued(v.feeds.Detail.Value())
	v.tracker.reconcile(v.feeds.Detail.Value())
	v.reorder()
	before, at := v.Cursor, v.tracker.find()
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
		v.Top = 0
		v.nav.Elsewhere = false
		v.walker.reset()
	} else if v.Top > 0 || wasFirst > 0 {
		v.Top += v.Cursor - before
	}
	v.walker.reach()
	if v.nav.Following {
		v.tracker.follow(at, v.Page())
	}
	v.reveal()
	if !v.nav.Elsewhere {
		v.tracker.choose()
	}
}

func (v *Runs) Draw(now time.Time, focused bool) []string {
	if !v.panel.open() {
		return v.drawList(v.Width, v.Height, now, focused)
	}
	if !v.panelBeside() {
		return v.panel.draw(v.Width, v.Height, focused)
	}
	left := v.panel.draw(panelWidth, v.Height, focused)
	right := v.drawList(v.table.width, v.Height, now, false)
	side := v.Styles.Border.Paint(v.Styles.Glyphs.Plain.Side)
	for i := range left {
		left[i] += side + right[i]
	}
	return left
}

// shownRows identifies what the rows show. A list has rows of its own, which do not change.
type shownRows struct {
	first   *runs.Run
	count   int
	sorting Sorting
	second  int64
}

func (v *Runs) drawList(width, height int, now time.Time, focused bool) []string {
	lines := make([]string, 0, height)
	if v.sectionLines() > 0 {
		lines = append(lines, v.sections.draw(width, v.Styles))
	}
	lines = append(lines, v.notices.problem()...)
	if v.Count() == 0 {
		lines = append(lines, widget.Center(v.notices.empty(), width, height-len(lines), v.Styles)...)
		return widget.Fill(lines, width, height)
	}
	v.reveal()
	v.Version = shownRows{v.At(0), v.Count(), v.Sorting, now.Unix()}
	lines = append(lines, v.Table.Draw(v.Styles, focused, func(i int) []widget.Cell {
		return v.cells(*v.At(i), now)
	})...)
	if v.summaryLines() > 0 {
		lines = append(widget.Fill(lines, width, height-1),
			recentLine(v.listing.Runs.Recent, width, v.Styles))
	}
	return widget.Fill(lines, width, height)
}

func (v *Runs) Page() int {
	return max(v.Height-1-len(v.notices.problem())-v.sectionLines()-v.summaryLines(), 1)
}

func (v *Runs) sectionLines() int {
	return widget.If(len(v.listing.Filters) == 0 || v.notices.file || v.Height < recentMinHeight, 0, 1)
}

func (v *Runs) summaryLines() int {
	return widget.If(v.listing.Runs.Recent == nil || v.Height < recentMinHeight, 0, 1)
}

// Scroll moves in the open panel, or in the list. Going to an end that is not loaded loads it; any other move
// stops loading.
func (v *Runs) Scroll(lines int) {
	if v.panel.open() {
		v.panel.move(widget.Clamp(lines, -len(v.panel.items), len(v.panel.items)))
		return
	}
	if !v.walker.begin(lines) {
		return
	}
	v.nav.Following, v.nav.Elsewhere = lines == -widget.AllLines, false
	v.Cursor = max(min(v.Cursor+lines, v.Count()-1), 0)
	v.reveal()
	v.tracker.choose()
	v.walker.more()
}

// nextError goes to the next run that failed, is retrying or answered wrong.
func (v *Runs) nextError(s tui.Shell, by int) {
	for i := v.Cursor + by; i >= 0 && i < v.Count(); i += by {
		r := v.At(i)
		if r.Retries() || r.Verdict == ace.Wrong || r.Status.Bad() && r.Status != ace.Canceled {
			v.Scroll(i - v.Cursor)
			return
		}
	}
	s.Note("no further failed, retrying or wrong run among the loaded ones")
}

// Resorted applies a new order and goes to the first row.
func (v *Runs) Resorted() {
	v.nav.Following = false
	v.arrange()
	v.reorder()
	v.Cursor, v.Top = 0, 0
	v.reveal()
	v.tracker.choose()
}

// mark marks the run under the cursor and moves to the next.
func (v *Runs) mark(s tui.Shell) {
	if v.Count() > 0 && v.listing.ToggleMark(s, *v.At(v.Cursor)) {
		v.Scroll(1)
	}
}

// markAll marks all runs that the filter matches, also those that are not loaded.
func (v *Runs) markAll(s tui.Shell) tea.Cmd {
	if !v.Sorting.retrying {
		return v.forks.MarkMatching(s)
	}
	shown := make([]runs.Run, v.Count())
	for i := range shown {
		shown[i] = *v.At(i)
	}
	v.listing.Mark(s, shown)
	return nil
}

func (v *Runs) Commands() []tui.Command { return v.listing.Commands() }

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
		return ace.Number(n) + " workflow IDs", strings.Join(list, "\n")
	}
}

func (v *Runs) Copies() []tui.Copy { return v.nav.SelectedCopies() }
