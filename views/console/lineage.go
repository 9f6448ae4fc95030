package console

import (
	"cmp"
	"strings"

	"acescope/engine/ace"
	"acescope/sources/histories"
	"acescope/sources/lineage"
	"acescope/theme"
	"acescope/tui/text"
	"acescope/tui/widget"
)

// LineageHeadings returns the columns of a lineage.
func LineageHeadings() []widget.Heading {
	return []widget.Heading{
		{Title: "RUN", Minimum: 12}, {Title: "FORKED AT", Width: 12, Drop: 3},
		{Title: "CHANGED", Minimum: 12},
		{Title: "STATUS", Width: 10}, {Title: "COST", Width: 6, Right: true, Drop: 2},
		{Title: "ANSWER", Width: 8, Drop: 1}, {Title: "EFFECT", Width: 6},
	}
}

// safe returns a plain text in characters that the terminal can show.
func safe(s string, g theme.Glyphs) string { return g.Replace(text.Safe(s, " ")) }

// LineageRow returns the cells of a run in the order of the headings. The text marked is drawn after the
// place in the tree.
func LineageRow(n *histories.LineageNode, marked string, width int, s theme.Styles) []widget.Cell {
	g := s.Glyphs
	r := lineage.RowOf(n)
	status := StatusMark(n.Run, s)
	name := placed(g.Replace(r.Place)+marked, text.Safe(r.Name, " "), width, g)
	orDash := func(t string) string { return cmp.Or(safe(t, g), g.Dash) }
	answer := widget.Cell{Text: orDash(r.Answer), Ink: s.Text}
	graded := n.Run.Verdict == ace.Correct || n.Run.Verdict == ace.Wrong
	if v := s.Verdict(string(n.Run.Verdict)); r.Answer != "" && graded {
		answer = widget.Cell{Text: v.Glyph + " " + answer.Text, Ink: v.Ink}
	}
	return []widget.Cell{
		{name, s.Text}, {orDash(r.At), s.Muted}, {orDash(r.Changed), s.Text},
		{status.Glyph + " " + status.Word, status.Ink}, {CostOf(n.Run, n.Run.Start, s), s.Muted},
		answer, {orDash(r.Effect), effectInk(n.Effect, s)},
	}
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

// placed returns the place of a run in the tree and its name. A name that does not fit is shortened
// to the number of the fork, because the rest repeats the name of the root.
func placed(branch, name string, width int, g theme.Glyphs) string {
	space := width - text.Width(branch)
	if root, number := ace.ForkRoot(name); number > 0 && text.Width(name) > space {
		name = strings.TrimPrefix(name, root)
	}
	if space < 4 {
		return g.Ellipsis + text.Last(branch+name, width-1)
	}
	return branch + text.Middle(name, space, g.Ellipsis)
}

// WriteLineageNode writes the details of a run of a lineage.
func WriteLineageNode(w *widget.Writer, t *histories.LineageTree, n *histories.LineageNode) {
	g := w.S.Glyphs
	f := func(name, value string, ink theme.Ink) {
		if value != "" {
			w.Prose(" "+text.Fit(name, 9, ""), ink, g.Replace(value))
		}
	}
	r := lineage.RowOf(n)
	w.End(w.Line().Add(w.S.Strong, " "+text.Safe(r.Name, " ")).Add(w.S.Muted, "  run "+
		text.Safe(n.Run.RunID, " ")))
	status := StatusMark(n.Run, w.S)
	summary := status.Glyph + " " + status.Word
	if v := w.S.Verdict(string(n.Run.Verdict)); v.Word != "" {
		summary += "  " + v.Glyph + " " + text.Safe(v.Word, " ")
	}
	if n.Outcome != nil {
		summary += ": answered " + cmp.Or(r.Answer, g.Dash)
	}
	f("status", summary, status.Ink)
	f("effect", lineage.Effect(t, n), effectInk(n.Effect, w.S))
	f("from", lineage.Origin(t, n), w.S.Text)
	if n.Run.Fork != nil {
		f("changed", strings.Join(lineage.Changes(n.Run.Fork, widget.MaxText), "\n"), w.S.Text)
	}
	if n.Run.Summary != nil {
		usage := n.Run.Summary.Usage
		cost := CostCell(usage, g) + ", " + ace.Count(usage.InputTokens+usage.OutputTokens, "token")
		cost += widget.If(n.Run.Fork != nil, ", without reused steps", "")
		f("cost", cost, w.S.Muted)
	}
}
