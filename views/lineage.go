package views

import (
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"acescope/engine/ace"
	"acescope/sources"
	"acescope/theme"
	"acescope/tui"
	"acescope/tui/text"
)

// lineage is the selected run with all its forks, and the forks of those, as a tree. The
// run under the cursor is the selected one, so that what works on that works on it.
type lineage struct {
	*console
	styles        theme.Styles
	width, height int
	newest        *sources.LineageTree
	table         *table
	doc           document // keeps texts wrapped
}

func lineageScreen(c *console, facts *run) tui.Screen {
	v := &lineage{console: c, table: newTable(lineageHeadings()...)}
	return tui.Screen{Name: "lineage", Aliases: []string{"forks"}, Keys: []string{"T"}, Help: "the selected run with its forks, as a tree: what was changed, and did it help",
		Aside: true, Share: 66, Views: []tui.View{v, facts}}
}

func lineageHeadings() []heading {
	t := lineageTitles
	return []heading{{title: t[0], minimum: 12}, {title: t[1], width: 12, drop: 3}, {title: t[2], minimum: 12}, {title: t[3], width: 10},
		{title: t[4], width: 6, right: true, drop: 2}, {title: t[5], width: 8, drop: 1}, {title: t[6], width: 6}}
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
	said := counted(t.Count(), "fork") + dropped(t.Dropped)
	if n := len(v.marks.runs); n > 0 {
		said += dot + text.Count(int64(n)) + " marked"
	}
	v.table.setRows(len(t.Nodes))
	return said + dot + v.table.position()
}

// tree is that of the selected run, nil while it is not read.
func (v *lineage) tree() *sources.LineageTree {
	if t := v.newest; t != nil && v.selected.ok && t.Root == rootOf(v.selected.run) {
		return t
	}
	return nil
}

func rootOf(r sources.Run) string {
	root, _ := ace.ForkRoot(r.WorkflowID)
	return root
}

// at is the number of the selected run in the tree; of several under its id the newest
// where no run was named.
func (v *lineage) at() int {
	t := v.tree()
	if i := t.Find(v.selected.run.RunID); i >= 0 {
		return i
	}
	found := 0
	for i := range t.Nodes {
		if t.Nodes[i].Run.WorkflowID == v.selected.run.WorkflowID {
			found = i
		}
	}
	return found
}

// node is the run under the cursor, nil where there is none.
func (v *lineage) node() *sources.LineageNode {
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
	return append(motions("lineage", v),
		b("open", "open the run", "open", func(s tui.Shell) { s.Open("run") }, "enter", "o"),
		b("diff", "compare the two marked runs; the marked one and this; or a fork with its original", "compare", v.compare, "d"),
		b("original", "to the run that this one was forked from", "", v.toOriginal, "b"),
		b("mark", "mark the run", "mark", v.mark, "space"),
		b("unmark", "take all marks away", "", func(tui.Shell) { v.marks.clear() }, "u"),
		b("next_error", "to the next run that failed or answered wrong", "", func(s tui.Shell) { v.nextError(s, 1) }, "e"),
		b("previous_error", "to the one before", "", func(s tui.Shell) { v.nextError(s, -1) }, "E"))
}

// compare opens the comparison of two marked runs, or of a fork with its original.
func (v *lineage) compare(s tui.Shell) {
	n := v.node()
	switch {
	case n == nil:
	case len(v.marks.runs) > 0:
		v.diffPair(s)
	default:
		v.diffOriginal(s, v.tree(), n)
	}
}

// diffOriginal compares a fork with the run that it was forked from.
func (c *console) diffOriginal(s tui.Shell, t *sources.LineageTree, n *sources.LineageNode) {
	switch f := n.Run.Fork; {
	case n.Original >= 0:
		c.diffRuns(s, t.Nodes[n.Original].Run, n.Run)
	case f != nil:
		c.diffRuns(s, sources.Run{WorkflowID: f.WorkflowID, RunID: f.RunID, TaskID: ace.TaskIDOf(f.WorkflowID)}, n.Run)
	default:
		s.Note(nameOf(n.Run) + " was not forked from another run: go to a fork, or mark two runs with space")
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
	if !v.marks.toggle(n.Run) {
		s.Note("no more than " + text.Count(maxMarks) + " runs can be marked")
		return
	}
	v.scroll(1)
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

func (v *lineage) scroll(by int) {
	if n := v.node(); n != nil {
		v.move(clamp(v.at()+by, 0, len(v.tree().Nodes)-1))
	}
}

// move selects a run of the tree.
func (v *lineage) move(to int) {
	if to != v.at() || v.selected.run.RunID == "" {
		v.show(v.tree().Nodes[to].Run)
	}
}

func (v *lineage) page() int { return v.table.page() }

func (v *lineage) Update(tea.Msg) tea.Cmd { return nil }

func (v *lineage) SetShown(shown bool) { v.Controls.Look(sources.PartLineage, shown) }

func (v *lineage) SetStyles(s theme.Styles) { v.styles = s }

func (v *lineage) SetSize(width, height int) { v.width, v.height = width, height }

func (v *lineage) SetSnapshot(s *sources.Snapshot) { v.newest = s.Lineage }

// Copy gives the workflow id of the run under the cursor.
func (v *lineage) Copy() (what, id string) {
	if n := v.node(); n != nil {
		return "workflow id", n.Run.WorkflowID
	}
	return "", ""
}

func (v *lineage) Draw(now time.Time, focused bool) []string {
	v.following = v.following && !focused
	t := v.tree()
	switch {
	case !v.selected.ok:
		return centre([]string{"no run is selected"}, v.width, v.height, v.styles)
	case t == nil:
		return centre([]string{"reading the lineage of " + nameOf(v.selected.run) + v.styles.Glyphs.Ellipsis}, v.width, v.height, v.styles)
	case len(t.Nodes) == 0 && t.Err == "":
		return centre([]string{"the server lists no run " + text.Safe(t.Root, " "), "one that began just now appears within moments"}, v.width, v.height, v.styles)
	}
	below := v.below(now)
	v.table.setSize(v.width, max(v.height-len(below), 2))
	v.table.setRows(len(t.Nodes))
	v.table.cursor = v.at()
	v.table.reveal()
	lines := v.table.draw(v.styles, focused, func(i int) []cell { return v.cells(&t.Nodes[i]) })
	return fill(append(lines, below...), v.width, v.height)
}

func (v *lineage) cells(n *sources.LineageNode) []cell {
	marked := ""
	if v.marks.of[keyOf(&n.Run)] {
		marked = "*"
	}
	return lineageRow(n, marked, v.table.widths[0], v.styles)
}

// lineageRow is the cells of a run, in the order of the headings.
func lineageRow(n *sources.LineageNode, marked string, width int, s theme.Styles) []cell {
	c := LineageCellsOf(n, s)
	name := placed(c.Branch+marked, c.Name, width, s.Glyphs)
	return []cell{{name, s.Text}, {c.At, s.Muted}, {c.Changed, s.Text}, {c.Status.Glyph + " " + c.Status.Word, c.Status.Ink},
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
	w := &writer{doc: &v.doc, s: v.styles, width: v.width, now: now, loc: v.Location}
	w.say(v.styles.Border, strings.Repeat(v.styles.Glyphs.Plain.Top, v.width))
	if t.Err != "" {
		w.prose(" "+v.styles.Glyphs.Failed+" ", v.styles.Error, t.Err)
	}
	if n != nil {
		w.node(t, n)
	}
	if len(t.Nodes) == 1 && n != nil && n.Run.Type == ace.TaskWorkflow && v.Actions != nil {
		w.say(v.styles.Muted, " no forks yet: f forks this run")
	}
	return w.lines[:min(len(w.lines), max(v.height/2, 1))]
}

// node writes what there is to know of a run of a lineage.
func (w *writer) node(t *sources.LineageTree, n *sources.LineageNode) {
	f := func(name, value string, ink theme.Ink) {
		if value != "" {
			w.prose(" "+text.Fit(name, 9, ""), ink, value)
		}
	}
	c := LineageCellsOf(n, w.s)
	w.end(w.line().Add(w.s.Strong, " "+c.Name).Add(w.s.Muted, "  run "+text.Safe(n.Run.RunID, " ")))
	said := c.Status.Glyph + " " + c.Status.Word
	if n.Outcome != nil {
		said += ": it " + outcomeText(n)
	}
	f("status", said, c.Status.Ink)
	f("effect", effectText(t, n), effectInk(n.Effect, w.s))
	f("from", forkText(t, n), w.s.Text)
	if n.Run.Fork != nil {
		f("changed", strings.Join(changeTexts(n.Run.Fork, maxText, w.s.Glyphs), "\n"), w.s.Text)
	}
	if n.Run.Summary != nil {
		cost := c.Cost + ", " + text.Count(n.Run.Summary.Usage.InputTokens+n.Run.Summary.Usage.OutputTokens) + " tokens"
		if n.Run.Fork != nil {
			cost += ", for what it executed itself"
		}
		f("cost", cost, w.s.Muted)
	}
}
