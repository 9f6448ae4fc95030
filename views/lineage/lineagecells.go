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

// LineageCells is a run of a lineage as safe texts, for the screen and the command line.
type LineageCells struct {
	Branch  string // the lines that lead to its original
	Name    string
	At      string // where it was forked: the last event that counts, and the first phase executed anew
	Changed string
	Status  theme.Mark
	Cost    string
	Answer  string
	Effect  string // beside the original: better, worse, same, other
}

// LineageCellsOf is a run of the tree as texts.
func LineageCellsOf(n *histories.LineageNode, s theme.Styles) LineageCells {
	g := s.Glyphs
	c := LineageCells{Branch: branchOf(n, g), Name: console.NameOf(n.Run), Status: console.MarkOf(n.Run, s), Cost: console.CostOf(n.Run, n.Run.Start, s),
		At: g.Dash, Changed: g.Dash, Answer: g.Dash, Effect: cmp.Or(string(n.Effect), g.Dash)}
	if n.Nth > 0 {
		c.Name += " run " + strconv.Itoa(n.Nth)
	}
	if f := n.Run.Fork; f != nil {
		c.At = strconv.FormatInt(f.Event, 10) + " " + text.Safe(string(f.Phase), " ")
		c.Changed = ChangedText(f, g)
	}
	if n.Run.ResetFrom != "" {
		c.At, c.Changed = "reset", g.Dash
	}
	if n.Outcome != nil {
		c.Answer = cmp.Or(text.Safe(strings.TrimSpace(widget.Bounded(n.Outcome.Answer, 400)), " "), g.Dash)
	}
	return c
}

// branchOf draws the lines from a run to its original.
func branchOf(n *histories.LineageNode, g theme.Glyphs) string {
	var b strings.Builder
	for depth, more := range n.More {
		switch {
		case depth == 0: // the roots stand side by side
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

// ChangedText is what was changed for a fork, in a line of bounded length.
func ChangedText(f *ace.Forked, g theme.Glyphs) string {
	const most = 40 // cells of a value
	return strings.Join(changeTexts(f, most, g), "; ")
}

// changeTexts lists what was changed for a fork, a safe text for each field, by name, with no
// more than most cells of a value.
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
		parts = append(parts, text.Safe(strings.TrimSuffix(name, "_hash"), " ")+": "+value(c.From)+" "+g.Arrow+" "+value(c.To))
	}
	if len(parts) == 0 {
		return []string{"nothing"}
	}
	return parts
}

// isHash tells whether a value is the hash of a version of a playbook, of which the begin
// is enough.
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

// lineageTitles head the columns of a lineage.
var lineageTitles = [...]string{"RUN", "FORKED AT", "CHANGED", "STATUS", "COST", "ANSWER", "EFFECT"}

func (c LineageCells) texts() [len(lineageTitles)]string {
	return [...]string{c.Branch + c.Name, c.At, c.Changed, c.Status.Glyph + " " + c.Status.Word, c.Cost, c.Answer, c.Effect}
}

// maxLineageCell bounds the columns of [LineageLines], in cells.
const maxLineageCell = 60

// LineageLines is the tree as lines of text with a heading; here marks the run of that id.
func LineageLines(t *histories.LineageTree, here string, s theme.Styles) []string {
	rows := [][len(lineageTitles)]string{lineageTitles}
	for i := range t.Nodes {
		rows = append(rows, LineageCellsOf(&t.Nodes[i], s).texts())
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
			line += "  asked for"
		}
		lines = append(lines, strings.TrimRight(line, " "))
	}
	return lines
}

// forkText says in a sentence what a fork is, plain text.
func forkText(t *histories.LineageTree, n *histories.LineageNode) string {
	f := n.Run.Fork
	switch {
	case n.Run.ResetFrom != "":
		return "reset from run " + n.Run.ResetFrom
	case f == nil:
		return "not forked from another run"
	}
	said := "forked from " + ace.TaskIDOf(f.WorkflowID) + " at event " + text.Count(f.Event)
	if n.Original < 0 || t.Nodes[n.Original].Run.RunID != f.RunID {
		said += " (run " + f.RunID + ", no longer listed)"
	}
	return said + "; " + strings.Join(phasesFrom(f.Phase), ", ") + " executed anew"
}

// phasesFrom lists a phase and those that follow it.
func phasesFrom(p ace.Phase) (names []string) {
	for _, step := range ace.Steps() {
		if step == p || len(names) > 0 {
			names = append(names, string(step))
		}
	}
	return names
}

// effectText says whether a fork helped, plain text; "" where that is not known.
func effectText(t *histories.LineageTree, n *histories.LineageNode) string {
	if n.Effect == histories.EffectUnknown {
		return ""
	}
	of := &t.Nodes[n.Original]
	said := map[histories.Effect]string{histories.EffectBetter: "better than ", histories.EffectWorse: "worse than ", histories.EffectSame: "the same as ",
		histories.EffectOther: "neither better nor worse than "}[n.Effect] + of.Run.TaskID
	return said + ", which " + outcomeText(of)
}

// outcomeText says how a run ended, after its name.
func outcomeText(n *histories.LineageNode) string {
	o := n.Outcome
	switch {
	case o == nil && n.Run.Open():
		return "is still open"
	case o == nil:
		return "ended as " + cmp.Or(string(n.Run.Exit), "unknown")
	}
	said := "answered " + cmp.Or(strings.TrimSpace(widget.Bounded(o.Answer, 400)), "nothing")
	switch {
	case o.Correct == nil:
		return said
	case *o.Correct:
		return said + ", rightly"
	}
	return said + ", wrongly"
}
