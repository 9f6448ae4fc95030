package diff

import (
	"acescope/engine/learning/playbook"
	"acescope/engine/temporal/compare"
	"acescope/sources/diff"
	"acescope/theme"
	"acescope/tui/text"
	"acescope/tui/widget"
)

// writeSummary writes the two runs, the first difference, notes, and the number of pairs by status.
func writeSummary(w *widget.Writer, d *compare.Diff, a, b string) {
	writeSide(w, "A", a, &d.A)
	writeSide(w, "B", b, &d.B)
	writeVerdict(w, d)
	w.Say(w.S.Muted, " "+diff.Counts(d))
}

func writeSide(w *widget.Writer, side, name string, a *compare.About) {
	name = text.Middle(text.Safe(name, " "), w.Width/2, w.S.Glyphs.Ellipsis)
	l := w.Line().Add(w.S.Muted, " "+side+" ").Add(w.S.Strong, name)
	w.End(l.Add(statusInk(a.Status, w.S), "  "+text.Safe(a.Status, " ")).
		Add(w.S.Muted, "  "+text.Safe(diff.About(a), " ")))
}

func statusInk(status string, s theme.Styles) theme.Ink {
	switch status {
	case "done": // the status says nothing about the answer
		return s.Text
	case "open", "continued as new":
		return s.Running
	case "cancelled":
		return s.Canceled
	}
	return s.Failed
}

// writeVerdict writes the first difference, the first different result, and notes.
func writeVerdict(w *widget.Writer, d *compare.Diff) {
	label, ink := " ", w.S.Text
	if d.First == nil {
		label, ink = " "+w.S.Glyphs.Success+" ", w.S.Success
	}
	for _, line := range diff.First(d) {
		w.Prose(label, ink, line)
	}
	for _, note := range d.Notes {
		w.Prose(" ", w.S.Warning, note)
	}
}

func statusMark(status string, s theme.Styles) theme.Mark {
	g := s.Glyphs
	m := theme.Mark{Glyph: "=", Ink: s.Muted}
	switch status {
	case compare.Changed:
		m = theme.Mark{Glyph: g.Updated, Ink: s.Updated}
	case compare.OnlyA:
		m = theme.Mark{Glyph: g.Removed, Ink: s.Removed}
	case compare.OnlyB:
		m = theme.Mark{Glyph: g.Added, Ink: s.Added}
	case compare.Moved:
		m = theme.Mark{Glyph: g.Arrow, Ink: s.Warning}
	case compare.NotReached:
		m = theme.Mark{Glyph: g.Pending, Ink: s.Muted}
	case compare.Unreadable:
		m = theme.Mark{Glyph: g.Unknown, Ink: s.Warning}
	}
	m.Word = diff.StatusWord(status)
	return m
}

// writeStep writes status, name and facts of a pair in one line.
func writeStep(w *widget.Writer, p *compare.Pair) {
	m := statusMark(p.Status, w.S)
	l := w.Line().Add(m.Ink, " "+m.Glyph+" "+text.Fit(m.Word, diff.StatusWidth, "")).
		Add(w.S.Text, " "+text.Safe(p.Step().Key, " "))
	duration := func(x *compare.Step) string { return stepDuration(x, w.S.Glyphs) }
	w.End(l.Add(w.S.Muted, "  "+w.S.Glyphs.Replace(diff.Facts(p, duration))))
}

func stepDuration(s *compare.Step, g theme.Glyphs) string {
	if s.Taken {
		return "reused"
	}
	return widget.Milliseconds(s.DurationMS, g)
}

// writeRest writes errors that differ, and which changes are not listed.
func writeRest(w *widget.Writer, p *compare.Pair) {
	a, b := diff.Errors(p)
	if a != "" || b != "" {
		w.Say(w.S.Strong, " error")
	}
	if a != "" {
		w.Prose("   "+w.S.Glyphs.Removed+" ", w.S.Removed, a)
	}
	if b != "" {
		w.Prose("   "+w.S.Glyphs.Added+" ", w.S.Added, b)
	}
	for _, line := range diff.Rest(p) {
		w.Prose(" ", w.S.Muted, line)
	}
}

// besideWidth is the width from which values are written side by side.
const besideWidth = 96

// writeChanges writes changes by path, both values side by side if they fit.
func writeChanges(w *widget.Writer, list []compare.Change) {
	for i := range list {
		c := &list[i]
		path := c.Path
		if path == "" {
			path = "(root)"
		}
		w.End(w.Line().Add(w.S.Strong, " "+w.S.Glyphs.Delta).Add(w.S.Accent, " "+text.Safe(path, " ")))
		a, b := valuesOf(c, w.S)
		if w.Width >= besideWidth {
			writeBeside(w, a, b)
		} else {
			w.Spans("   "+w.S.Glyphs.Removed+" ", w.S.Removed, a)
			w.Spans("   "+w.S.Glyphs.Added+" ", w.S.Added, b)
		}
		if c.Cut {
			w.Say(w.S.Muted, "   (only the beginning)")
		}
	}
}

// valuesOf returns both values of a change, nil for a value that does not exist. In two texts the words
// that differ are highlighted.
func valuesOf(c *compare.Change, s theme.Styles) (a, b []widget.Span) {
	x, isText := widget.ValueText(c.A)
	y, isText2 := widget.ValueText(c.B)
	if isText && isText2 {
		for _, h := range playbook.Words(x, y) {
			switch h.Kind {
			case playbook.HunkRemoved:
				a = append(a, widget.Span{s.Removed, h.Text})
			case playbook.HunkAdded:
				b = append(b, widget.Span{s.Added, h.Text})
			default:
				a, b = append(a, widget.Span{s.Text, h.Text}), append(b, widget.Span{s.Text, h.Text})
			}
		}
		return a, b
	}
	if c.A != nil {
		a = []widget.Span{{s.Removed, x}}
	}
	if c.B != nil {
		b = []widget.Span{{s.Added, y}}
	}
	return a, b
}

// writeBeside writes both values side by side.
func writeBeside(w *widget.Writer, a, b []widget.Span) {
	const indent = 3
	g := w.S.Glyphs
	half := (w.Width - indent - 3) / 2
	left, right := widget.WrapSpans(a, half-3), widget.WrapSpans(b, half-3)
	for i := range max(len(left), len(right)) {
		l := w.Line().Add(w.S.Text, text.Spaces(indent))
		put := func(glyph string, ink theme.Ink, lines [][]widget.Span, until int) {
			if i < len(lines) {
				if i > 0 {
					glyph = " "
				}
				widget.AddSpans(l.Add(ink, glyph+" "), lines[i])
			}
			l.Pad(w.S.Text, until)
		}
		put(g.Removed, w.S.Removed, left, indent+half)
		l.Add(w.S.Border, g.Plain.Side+" ")
		put(g.Added, w.S.Added, right, w.Width)
		w.End(l)
	}
}
