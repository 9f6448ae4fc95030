// Package lineage shows a run with its forks and resets as a tree.
package lineage

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
	"acescope/tui/text"
	"acescope/tui/widget"
	"acescope/views/console"
)

// lineage is the selected run with all its forks, and the forks of those, as a tree. The
// run under the cursor is the selected one, so that what works on that works on it.
type lineage struct {
	*console.Console
	feed          console.Feed[*histories.LineageTree]
	styles        theme.Styles
	width, height int
	newest        *histories.LineageTree
	table         *widget.Table
	doc           widget.Document // keeps texts wrapped
}

func LineageScreen(c *console.Console, feed console.Feed[*histories.LineageTree], facts tui.View) tui.Screen {
	v := &lineage{Console: c, feed: feed, table: widget.NewTable(LineageHeadings()...)}
	return tui.Screen{Name: "lineage", Aliases: []string{"forks"}, Keys: []string{"T"}, Help: "the selected run with its forks, as a tree: what was changed, and did it help",
		Aside: true, Share: 66, Views: []tui.View{v, facts}}
}

func LineageHeadings() []widget.Heading {
	t := lineageTitles
	return []widget.Heading{{Title: t[0], Minimum: 12}, {Title: t[1], Width: 12, Drop: 3}, {Title: t[2], Minimum: 12}, {Title: t[3], Width: 10},
		{Title: t[4], Width: 6, Right: true, Drop: 2}, {Title: t[5], Width: 8, Drop: 1}, {Title: t[6], Width: 6}}
}

func (v *lineage) Name() string { return "Lineage" }

func (v *lineage) Title() string {
	t := v.tree()
	if t == nil {
		return "Lineage"
	}
	return "Lineage of " + text.Safe(ace.TaskIDOf(t.Root), " ")
}

// Footer is how many forks there are, and where the cursor is.
func (v *lineage) Footer() string {
	t := v.tree()
	if t == nil {
		return ""
	}
	dot := " " + v.styles.Glyphs.Dot + " "
	said := widget.Counted(t.Count(), "fork") + widget.Dropped(t.Dropped)
	if n := len(v.Marks.Runs); n > 0 {
		said += dot + text.Count(int64(n)) + " marked"
	}
	v.table.SetRows(len(t.Nodes))
	return said + dot + v.table.Position()
}

// tree is that of the selected run, nil while it is not read.
func (v *lineage) tree() *histories.LineageTree {
	if t := v.newest; t != nil && v.Selected.Ok && t.Root == rootOf(v.Selected.Run) {
		return t
	}
	return nil
}

func rootOf(r runs.Run) string {
	root, _ := ace.ForkRoot(r.WorkflowID)
	return root
}

// at is the number of the selected run in the tree; of several under its id the newest
// where no run was named.
func (v *lineage) at() int {
	t := v.tree()
	if i := t.Find(v.Selected.Run.RunID); i >= 0 {
		return i
	}
	found := 0
	for i := range t.Nodes {
		if t.Nodes[i].Run.WorkflowID == v.Selected.Run.WorkflowID {
			found = i
		}
	}
	return found
}

// node is the run under the cursor, nil where there is none.
func (v *lineage) node() *histories.LineageNode {
	t := v.tree()
	if t == nil || len(t.Nodes) == 0 {
		return nil
	}
	return &t.Nodes[v.at()]
}

func (v *lineage) Bindings() []tui.Binding {
	b := func(name, help, short string, do func(tui.Shell), keys ...string) tui.Binding {
		return tui.Binding{Action: "lineage." + name, Keys: keys, Help: help, Short: short, Do: func(s tui.Shell) tea.Cmd { do(s); return nil }}
	}
	return append(widget.Motions("lineage", v),
		b("open", "open the run", "open", func(s tui.Shell) { s.Open("run") }, "enter", "o"),
		b("diff", "compare the two marked runs; the marked one and this; or a fork with its original", "compare", v.compare, "d"),
		b("original", "to the run that this one was forked from", "", v.toOriginal, "b"),
		b("mark", "mark the run", "mark", v.mark, "space"),
		b("unmark", "take all marks away", "", func(tui.Shell) { v.Marks.Clear() }, "u"),
		b("next_error", "to the next run that failed or answered wrong", "", func(s tui.Shell) { v.nextError(s, 1) }, "e"),
		b("previous_error", "to the one before", "", func(s tui.Shell) { v.nextError(s, -1) }, "E"))
}

// compare opens the comparison of two marked runs, or of a fork with its original.
func (v *lineage) compare(s tui.Shell) {
	n := v.node()
	switch {
	case n == nil:
	case len(v.Marks.Runs) > 0:
		v.CompareMarked(s)
	default:
		v.CompareOriginal(s, v.tree(), n)
	}
}

func (v *lineage) toOriginal(s tui.Shell) {
	if n := v.node(); n != nil && n.Original >= 0 {
		v.move(n.Original)
		return
	}
	s.Note("there is no run before this one")
}

func (v *lineage) mark(s tui.Shell) {
	n := v.node()
	if n == nil {
		return
	}
	if !v.Marks.Toggle(n.Run) {
		s.Note("no more than " + text.Count(console.MaxMarks) + " runs can be marked")
		return
	}
	v.Scroll(1)
}

func (v *lineage) nextError(s tui.Shell, by int) {
	t := v.tree()
	if t == nil || len(t.Nodes) == 0 {
		return
	}
	bad := []ace.ExitStatus{ace.Failed, ace.Timeout, ace.Wrong}
	for i := v.at() + by; i >= 0 && i < len(t.Nodes); i += by {
		if slices.Contains(bad, t.Nodes[i].Run.Exit) {
			v.move(i)
			return
		}
	}
	s.Note("no run that failed or answered wrong further on")
}

func (v *lineage) Scroll(by int) {
	if n := v.node(); n != nil {
		v.move(widget.Clamp(v.at()+by, 0, len(v.tree().Nodes)-1))
	}
}

// move selects a run of the tree.
func (v *lineage) move(to int) {
	if to != v.at() || v.Selected.Run.RunID == "" {
		v.Show(v.tree().Nodes[to].Run)
	}
}

func (v *lineage) Page() int { return v.table.Page() }

func (v *lineage) SetShown(shown bool) { v.feed.Look(shown) }

func (v *lineage) SetStyles(s theme.Styles) { v.styles = s }

func (v *lineage) SetSize(width, height int) { v.width, v.height = width, height }

func (v *lineage) Refresh() { v.newest = v.feed.Value() }

// Copy gives the workflow id of the run under the cursor.
func (v *lineage) Copy() (what, id string) {
	if n := v.node(); n != nil {
		return "workflow id", n.Run.WorkflowID
	}
	return "", ""
}

func (v *lineage) Draw(now time.Time, focused bool) []string {
	v.Following = v.Following && !focused
	t := v.tree()
	switch {
	case !v.Selected.Ok:
		return widget.Centre([]string{"no run is selected"}, v.width, v.height, v.styles)
	case t == nil:
		return widget.Centre([]string{"reading the lineage of " + console.NameOf(v.Selected.Run) + v.styles.Glyphs.Ellipsis}, v.width, v.height, v.styles)
	case len(t.Nodes) == 0 && t.Err == "":
		return widget.Centre([]string{"the server lists no run " + text.Safe(t.Root, " "), "one that began just now appears within moments"}, v.width, v.height, v.styles)
	}
	below := v.below(now)
	v.table.SetSize(v.width, max(v.height-len(below), 2))
	v.table.SetRows(len(t.Nodes))
	v.table.Cursor = v.at()
	v.table.Reveal()
	lines := v.table.Draw(v.styles, focused, func(i int) []widget.Cell { return v.cells(&t.Nodes[i]) })
	return widget.Fill(append(lines, below...), v.width, v.height)
}

func (v *lineage) cells(n *histories.LineageNode) []widget.Cell {
	marked := ""
	if v.Marks.Of[console.KeyOf(&n.Run)] {
		marked = "*"
	}
	return LineageRow(n, marked, v.table.Widths[0], v.styles)
}

// LineageRow is the cells of a run, in the order of the headings.
func LineageRow(n *histories.LineageNode, marked string, width int, s theme.Styles) []widget.Cell {
	c := LineageCellsOf(n, s)
	name := placed(c.Branch+marked, c.Name, width, s.Glyphs)
	return []widget.Cell{{name, s.Text}, {c.At, s.Muted}, {c.Changed, s.Text}, {c.Status.Glyph + " " + c.Status.Word, c.Status.Ink},
		{c.Cost, s.Muted}, {c.Answer, s.Text}, {c.Effect, effectInk(n.Effect, s)}}
}

// placed is a run's place in the tree and its name. Where there is no room, a fork is its
// number alone: the rest is the name of the run above that all come from.
func placed(branch, name string, width int, g theme.Glyphs) string {
	room := width - text.Width(branch)
	if root, number := ace.ForkRoot(name); number > 0 && text.Width(name) > room {
		name = strings.TrimPrefix(name, root)
	}
	if room < 4 {
		return g.Ellipsis + text.Last(branch+name, width-1)
	}
	return branch + text.Middle(name, room, g.Ellipsis)
}

// below is what there is to know of the run under the cursor, whole, below the tree. It
// takes no more than half of the room.
func (v *lineage) below(now time.Time) []string {
	t, n := v.tree(), v.node()
	w := &widget.Writer{Doc: &v.doc, S: v.styles, Width: v.width, Now: now, Loc: v.Location}
	w.Say(v.styles.Border, strings.Repeat(v.styles.Glyphs.Plain.Top, v.width))
	if t.Err != "" {
		w.Prose(" "+v.styles.Glyphs.Failed+" ", v.styles.Error, t.Err)
	}
	if n != nil {
		Node(w, t, n)
	}
	if len(t.Nodes) == 1 && n != nil && n.Run.Type == ace.TaskWorkflow && v.Actions != nil {
		w.Say(v.styles.Muted, " no forks yet: f forks this run")
	}
	return w.Lines[:min(len(w.Lines), max(v.height/2, 1))]
}

// Node writes what there is to know of a run of a lineage.
func Node(w *widget.Writer, t *histories.LineageTree, n *histories.LineageNode) {
	f := func(name, value string, ink theme.Ink) {
		if value != "" {
			w.Prose(" "+text.Fit(name, 9, ""), ink, value)
		}
	}
	c := LineageCellsOf(n, w.S)
	w.End(w.Line().Add(w.S.Strong, " "+c.Name).Add(w.S.Muted, "  run "+text.Safe(n.Run.RunID, " ")))
	said := c.Status.Glyph + " " + c.Status.Word
	if n.Outcome != nil {
		said += ": it " + outcomeText(n)
	}
	f("status", said, c.Status.Ink)
	f("effect", effectText(t, n), effectInk(n.Effect, w.S))
	f("from", forkText(t, n), w.S.Text)
	if n.Run.Fork != nil {
		f("changed", strings.Join(changeTexts(n.Run.Fork, widget.MaxText, w.S.Glyphs), "\n"), w.S.Text)
	}
	if n.Run.Summary != nil {
		cost := c.Cost + ", " + text.Count(n.Run.Summary.Usage.InputTokens+n.Run.Summary.Usage.OutputTokens) + " tokens"
		if n.Run.Fork != nil {
			cost += ", for what it executed itself"
		}
		f("cost", cost, w.S.Muted)
	}
}
