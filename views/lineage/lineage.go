// Package lineage shows a run with its forks and resets as a tree.
package lineage

import (
	"strings"
	"time"

	"acescope/engine/ace"
	"acescope/sources/histories"
	"acescope/sources/runs"
	"acescope/tui"
	"acescope/tui/text"
	"acescope/tui/widget"
	"acescope/views/console"
)

// lineage shows the selected run with its forks, and their forks, as a tree. The cursor selects the run
// for all screens.
type lineage struct {
	nav      *console.Navigation
	listing  *console.Listing
	comparer *console.Comparer
	changes  bool // the console can change runs
	location *time.Location
	feed     console.Feed[*histories.LineageTree]
	console.List[histories.LineageNode]
	newest *histories.LineageTree
	doc    widget.Document // keeps texts wrapped
}

// Screen returns the tree with the facts of the selected run beside it.
func Screen(c *console.Console, feed console.Feed[*histories.LineageTree], facts tui.View) tui.Screen {
	v := &lineage{
		nav: c.Navigation, listing: c.Listing, comparer: c.Comparer, changes: c.Actor.Changes(),
		location: c.Location, feed: feed,
		List: console.NewList[histories.LineageNode]("Lineage", console.LineageHeadings()...),
	}
	return tui.Screen{Name: "lineage", Aliases: []string{"forks"}, Keys: []string{"T"}, Aside: true,
		Argument: c.RunArgument("lineage"),
		Help:     "the selected run and its forks as a tree: what was changed, and the effect",
		Share:    66, Views: []tui.View{v, facts}}
}

func (v *lineage) Title() string {
	t := v.tree()
	if t == nil {
		return "Lineage"
	}
	return "Lineage of " + text.Safe(ace.TaskIDOf(t.Root), " ")
}

func (v *lineage) Footer() string {
	t := v.tree()
	if t == nil {
		return ""
	}
	v.sync(t)
	return v.Join(ace.Count(t.Count(), "fork")+widget.Dropped(t.Dropped),
		widget.If(t.Unread > 0, ace.Number(t.Unread)+" not read", ""),
		console.MarkedText(len(v.listing.Marks.Runs)), v.Table.Position())
}

// tree returns the lineage of the selected run, or nil until it is read.
func (v *lineage) tree() *histories.LineageTree {
	if t := v.newest; t != nil && v.nav.Selected.Ok && t.Root == rootOf(v.nav.Selected.Run) {
		return t
	}
	return nil
}

func rootOf(r runs.Run) string {
	root, _ := ace.ForkRoot(r.WorkflowID)
	return root
}

// at returns the index of the selected run in the tree: if its run ID is unknown, the last run with its
// workflow ID.
func (v *lineage) at() int {
	t := v.tree()
	if i := t.Find(v.nav.Selected.Run.RunID); i >= 0 {
		return i
	}
	found := 0
	for i := range t.Nodes {
		if t.Nodes[i].Run.WorkflowID == v.nav.Selected.Run.WorkflowID {
			found = i
		}
	}
	return found
}

// sync lists the runs of the tree and puts the cursor on the selected one.
func (v *lineage) sync(t *histories.LineageTree) {
	v.Set(t.Nodes, nil)
	v.Table.Cursor = v.at()
	v.Table.Reveal()
}

// node returns the run under the cursor, or nil.
func (v *lineage) node() *histories.LineageNode {
	t := v.tree()
	if t == nil || len(t.Nodes) == 0 {
		return nil
	}
	return &t.Nodes[v.at()]
}

func (v *lineage) Bindings() []tui.Binding {
	return append(widget.Motions("lineage", v),
		console.Key("lineage.open", "open the run", "open", func(s tui.Shell) { s.Open("run") }, "enter"),
		console.Key("lineage.diff",
			"compare the marked runs, the marked run with this one, or a fork with its original", "compare",
			v.compare, "="),
		console.Key("lineage.origin", "go to the original of this fork", "", v.toOriginal, "("),
		console.Key("lineage.mark", "mark the run", "mark", v.mark, "space"),
		console.Key("lineage.unmark", "unmark all", "", func() { v.listing.Marks.Clear() }, "u"),
		console.Key("lineage.next_error", "next run that failed or answered wrong", "",
			func(s tui.Shell) { v.nextError(s, 1) }, "e"),
		console.Key("lineage.previous_error", "previous run that failed or answered wrong", "",
			func(s tui.Shell) { v.nextError(s, -1) }, "E"))
}

// compare compares the marked runs, or a fork with its original.
func (v *lineage) compare(s tui.Shell) {
	n := v.node()
	switch {
	case n == nil:
	case len(v.listing.Marks.Runs) > 0:
		v.comparer.CompareMarked(s)
	default:
		v.comparer.CompareOriginal(s, v.tree(), n)
	}
}

func (v *lineage) toOriginal(s tui.Shell) {
	if n := v.node(); n != nil && n.Original >= 0 {
		v.move(n.Original)
		return
	}
	s.Note("this run is not a fork")
}

func (v *lineage) mark(s tui.Shell) {
	if n := v.node(); n != nil && v.listing.ToggleMark(s, n.Run) {
		v.Scroll(1)
	}
}

func (v *lineage) nextError(s tui.Shell, by int) {
	t := v.tree()
	if t == nil || len(t.Nodes) == 0 {
		return
	}
	v.sync(t)
	failed := func(n histories.LineageNode) bool {
		return n.Run.Verdict == ace.Wrong || n.Run.Status.Bad() && n.Run.Status != ace.Canceled
	}
	if v.Next(s, by, failed, "no further run that failed or answered wrong") {
		v.move(v.Table.Cursor)
	}
}

func (v *lineage) Scroll(by int) {
	if n := v.node(); n != nil {
		v.move(widget.Clamp(v.at()+by, 0, len(v.tree().Nodes)-1))
	}
}

// move selects a run of the tree.
func (v *lineage) move(to int) {
	if to != v.at() || v.nav.Selected.Run.RunID == "" {
		v.nav.Show(v.tree().Nodes[to].Run)
	}
}

func (v *lineage) SetShown(shown bool) {
	v.feed.Look(shown)
	v.listing.ShowsMarks = shown
}

func (v *lineage) Refresh() { v.newest = v.feed.Value() }

func (v *lineage) Copy() (what, id string) {
	if n := v.node(); n != nil {
		return "workflow id", n.Run.WorkflowID
	}
	return "", ""
}

func (v *lineage) Copies() []tui.Copy {
	if n := v.node(); n != nil {
		return v.nav.RunCopies(n.Run)
	}
	return nil
}

func (v *lineage) Draw(now time.Time, focused bool) []string {
	v.nav.Following = v.nav.Following && !focused
	t := v.tree()
	switch {
	case !v.nav.Selected.Ok:
		return v.Message(nil, "no run is selected", "press 1 to choose one")
	case t == nil:
		return v.Message(nil, "reading the lineage of "+console.NameOf(v.nav.Selected.Run)+
			v.Styles.Glyphs.Ellipsis)
	case len(t.Nodes) == 0 && t.Err == "":
		return v.Message(nil, "the server lists no run "+text.Safe(t.Root, " "),
			"a run that just started appears in a moment")
	}
	below := v.below(now)
	v.sync(t)
	v.Table.SetSize(v.Width, max(v.Height-len(below), 2))
	lines := v.Table.Draw(v.Styles, focused, func(i int) []widget.Cell { return v.cells(&t.Nodes[i]) })
	return widget.Fill(append(lines, below...), v.Width, v.Height)
}

func (v *lineage) cells(n *histories.LineageNode) []widget.Cell {
	marked := widget.If(v.listing.Marks.Of[n.Run.ID()], "*", "")
	return console.LineageRow(n, marked, v.Table.Widths[0], v.Styles)
}

// below returns the details of the run under the cursor, in at most half of the height.
func (v *lineage) below(now time.Time) []string {
	t, n := v.tree(), v.node()
	w := &widget.Writer{Doc: &v.doc, S: v.Styles, Width: v.Width, Now: now, Loc: v.location}
	w.Say(v.Styles.Border, strings.Repeat(v.Styles.Glyphs.Plain.Top, v.Width))
	if t.Err != "" {
		w.Prose(" "+v.Styles.Glyphs.Failed+" ", v.Styles.Error, t.Err)
	}
	if n != nil {
		console.WriteLineageNode(w, t, n)
	}
	if len(t.Nodes) == 1 && n != nil && n.Run.Type == ace.TaskWorkflow && v.changes {
		w.Say(v.Styles.Muted, " no forks; press f to fork this run")
	}
	return w.Lines[:min(len(w.Lines), max(v.Height/2, 1))]
}
