package lineage

import (
	"cmp"
	"encoding/hex"
	"strconv"
	"strings"

	"acescope/engine/ace"
	"acescope/sources/histories"
	"acescope/theme"
	"acescope/tui/text"
	"acescope/tui/widget"
	"acescope/views/console"
)

// lineageCells is a run of a lineage as safe texts, for the screen and the command line.
type lineageCells struct {
	branch  string // lines to the original
	name    string
	at      string // fork point: the last reused event and the first phase that reruns
	changed string
	status  theme.Mark
	cost    string
	answer  string
	effect  string // compared with the original: better, worse, same, other
}

// lineageCellsOf returns the texts of a run.
func lineageCellsOf(n *histories.LineageNode, s theme.Styles) lineageCells {
	g := s.Glyphs
	c := lineageCells{branch: branchOf(n, g), name: console.NameOf(n.Run), status: console.StatusMark(n.Run, s),
		cost: console.CostOf(n.Run, n.Run.Start, s), at: g.Dash, changed: g.Dash, answer: g.Dash,
		effect: cmp.Or(string(n.Effect), g.Dash)}
	if n.RunNumber > 0 {
		c.name += " run " + strconv.Itoa(n.RunNumber)
	}
	if f := n.Run.Fork; f != nil {
		c.at = strconv.FormatInt(f.Event, 10) + " " + text.Safe(string(f.Phase), " ")
		c.changed = ChangedText(f, g)
	}
	if n.Run.ResetFrom != "" {
		c.at, c.changed = "reset", g.Dash
	}
	if n.Outcome != nil {
		c.answer = cmp.Or(text.Safe(strings.TrimSpace(widget.Bounded(n.Outcome.Answer, 400)), " "), g.Dash)
	}
	return c
}

// branchOf returns the lines from a run to its original.
func branchOf(n *histories.LineageNode, g theme.Glyphs) string {
	var b strings.Builder
	for depth, more := range n.More {
		switch {
		case depth == 0: // roots are not connected
		case more:
			b.WriteString(g.Trunk + "  ")
		default:
			b.WriteString("   ")
		}
	}
	switch {
	case n.Depth == 0:
	case n.Last:
		b.WriteString(g.Corner + g.Plain.Top + " ")
	default:
		b.WriteString(g.Branch + g.Plain.Top + " ")
	}
	return b.String()
}

// ChangedText returns what was changed for a fork in one line of bounded length.
func ChangedText(f *ace.Forked, g theme.Glyphs) string {
	const maxValue = 40 // cells
	return strings.Join(changeTexts(f, maxValue, g), "; ")
}

// changeTexts returns what was changed for a fork: a safe text per field, by name, with at most most
// cells of each value.
func changeTexts(f *ace.Forked, most int, g theme.Glyphs) (parts []string) {
	value := func(v string) string {
		if isHash(v) {
			return console.Short(v, g)
		}
		v = strings.Join(strings.Fields(text.Safe(widget.Bounded(v, widget.MaxText), " ")), " ")
		return cmp.Or(text.Cut(v, most, g.Ellipsis), "none")
	}
	for _, name := range console.ChangedNames(f) {
		c := f.Changed[name]
		parts = append(parts, text.Safe(strings.TrimSuffix(name, "_hash"), " ")+": "+value(c.From)+" "+
			g.Arrow+" "+value(c.To))
	}
	if len(parts) == 0 {
		return []string{"nothing"}
	}
	return parts
}

// isHash reports whether a value is the hash of a playbook version.
func isHash(v string) bool {
	raw, err := hex.DecodeString(v)
	return err == nil && len(raw) == 32
}

func effectInk(e histories.Effect, s theme.Styles) theme.Ink {
	switch e {
	case histories.EffectBetter:
		return s.Success
	case histories.EffectWorse:
		return s.Failed
	case histories.EffectOther:
		return s.Warning
	}
	return s.Muted
}

// lineageTitles are the titles of the columns.
var lineageTitles = [...]string{"RUN", "FORKED AT", "CHANGED", "STATUS", "COST", "ANSWER", "EFFECT"}

func (c lineageCells) texts() [len(lineageTitles)]string {
	return [...]string{c.branch + c.name, c.at, c.changed, c.status.Glyph + " " + c.status.Word, c.cost,
		c.answer, c.effect}
}

// maxLineageCell bounds the columns of LineageLines, in cells.
const maxLineageCell = 60

// LineageLines returns the tree as lines of text with a heading. The run with the run ID here is marked.
func LineageLines(t *histories.LineageTree, here string, s theme.Styles) []string {
	rows := [][len(lineageTitles)]string{lineageTitles}
	for i := range t.Nodes {
		rows = append(rows, lineageCellsOf(&t.Nodes[i], s).texts())
	}
	var widths [len(lineageTitles)]int
	for _, r := range rows {
		for i, cell := range r {
			widths[i] = max(widths[i], min(text.Width(cell), maxLineageCell))
		}
	}
	lines := make([]string, 0, len(rows))
	for n, r := range rows {
		cells := make([]string, len(r))
		for i, cell := range r {
			cells[i] = text.Fit(cell, widths[i], s.Glyphs.Ellipsis)
		}
		line := strings.Join(cells, "  ")
		if n > 0 && t.Nodes[n-1].Run.RunID == here {
			line += "  selected"
		}
		lines = append(lines, strings.TrimRight(line, " "))
	}
	return lines
}

// forkText returns where a fork comes from, unsafe.
func forkText(t *histories.LineageTree, n *histories.LineageNode) string {
	f := n.Run.Fork
	switch {
	case n.Run.ResetFrom != "":
		return "reset from run " + n.Run.ResetFrom
	case f == nil:
		return "not a fork"
	}
	said := "forked from " + ace.TaskIDOf(f.WorkflowID) + " at event " + text.Count(f.Event)
	if n.Original < 0 || t.Nodes[n.Original].Run.RunID != f.RunID {
		said += " (run " + f.RunID + ", no longer listed)"
	}
	return said + "; reruns " + strings.Join(phasesFrom(f.Phase), ", ")
}

// phasesFrom returns a phase and those after it.
func phasesFrom(p ace.Phase) (names []string) {
	for _, step := range ace.Steps() {
		if step == p || len(names) > 0 {
			names = append(names, string(step))
		}
	}
	return names
}

// effectText compares the outcome of a fork with that of its original, unsafe. It is "" if one is unknown.
func effectText(t *histories.LineageTree, n *histories.LineageNode) string {
	if n.Effect == histories.EffectUnknown {
		return ""
	}
	of := &t.Nodes[n.Original]
	said := map[histories.Effect]string{histories.EffectBetter: "better than ",
		histories.EffectWorse: "worse than ", histories.EffectSame: "the same as ",
		histories.EffectOther: "neither better nor worse than "}[n.Effect] + of.Run.TaskID
	return said + ", which " + outcomeText(of)
}

// outcomeText returns the outcome of a run as a verb phrase.
func outcomeText(n *histories.LineageNode) string {
	o := n.Outcome
	switch {
	case o == nil && n.Run.Open():
		return "is running"
	case o == nil:
		return "closed as " + cmp.Or(string(n.Run.Exit), "unknown")
	}
	said := "answered " + cmp.Or(strings.TrimSpace(widget.Bounded(o.Answer, 400)), "nothing")
	switch {
	case o.Correct == nil:
		return said
	case *o.Correct:
		return said + ", correct"
	}
	return said + ", wrong"
}
