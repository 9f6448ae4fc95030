package history

import (
	"time"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine/ace"
	"acescope/engine/temporal/compare"
	rundiff "acescope/sources/diff"
	"acescope/theme"
	"acescope/tui/widget"
)

// diffText returns a comparison of two runs as painted lines: the summary, the selected pairs with their
// changes unless stat is set, and the metrics.
func diffText(d *compare.Diff, sides [2]*diffSide, f diffFlags, width int, s theme.Styles) []string {
	w := &diffWriter{only: f.only}
	w.Writer = widget.Writer{Doc: &widget.Document{}, S: s, Width: width, Now: time.Now(), Loc: time.Local}
	for i, a := range []*compare.About{&d.A, &d.B} {
		name := cli.SafeText(sides[i].name + "  " + a.Status)
		w.End(w.Line().Add(s.Muted, " "+"AB"[i:i+1]+" ").Add(s.Strong, name).
			Add(s.Muted, "  "+cli.SafeText(rundiff.About(a))))
	}
	for _, line := range rundiff.First(d) {
		w.Prose(" ", s.Text, line)
	}
	for _, note := range d.Notes {
		w.Prose(" ", s.Warning, note)
	}
	w.Say(s.Muted, " "+rundiff.Counts(d))
	w.Say(s.Text, "")
	if !f.stat {
		w.pairs(d)
		w.Say(s.Text, "")
	}
	var metrics []widget.Metric
	for _, m := range d.Metrics {
		metrics = append(metrics, widget.Metric(m))
	}
	w.Metrics(metrics)
	return w.Lines
}

type diffWriter struct {
	widget.Writer
	only rundiff.Only
}

// pairs writes the selected pairs. Many equal pairs in a row become one line.
func (w *diffWriter) pairs(d *compare.Diff) {
	for i := 0; i < len(d.Pairs); i++ {
		p := &d.Pairs[i]
		if !w.only.Shows(p) {
			continue
		}
		n := rundiff.EqualFrom(d, i)
		if n < rundiff.FoldFrom {
			w.pair(p)
			continue
		}
		keys := p.Step().Key + " " + w.S.Glyphs.Ellipsis + " " + d.Pairs[i+n-1].Step().Key
		w.Say(w.S.Muted, cli.SafeText(" = "+ace.Count(n, "equal step")+": "+keys))
		i += n - 1
	}
}

func (w *diffWriter) pair(p *compare.Pair) {
	s, g := w.S, w.S.Glyphs
	glyph, ink := "=", s.Muted
	switch p.Status {
	case compare.Changed:
		glyph, ink = g.Updated, s.Updated
	case compare.OnlyA:
		glyph, ink = g.Removed, s.Removed
	case compare.OnlyB:
		glyph, ink = g.Added, s.Added
	case compare.Moved, compare.NotReached, compare.Unreadable:
		glyph, ink = g.Unknown, s.Warning
	}
	duration := func(x *compare.Step) string {
		if x.Taken {
			return "reused"
		}
		return widget.Milliseconds(x.DurationMS, g)
	}
	word := rundiff.StatusWord(p.Status)
	w.End(w.Line().Add(ink, " "+glyph+" "+word).Pad(s.Text, rundiff.StatusWidth+4).
		Add(s.Text, cli.SafeText(p.Step().Key)).
		Add(s.Muted, "  "+g.Replace(rundiff.Facts(p, duration))))
	if w.only != rundiff.OnlyResult {
		w.changes("input", p.Input)
	}
	if w.only != rundiff.OnlyInput {
		w.changes("result", p.Result)
	}
	a, b := rundiff.Errors(p)
	w.value(g.Removed+" error: ", s.Removed, a)
	w.value(g.Added+" error: ", s.Added, b)
	for _, line := range rundiff.Rest(p) {
		w.Prose("    ", s.Muted, line)
	}
}

// changes writes changes by path, both values below each other.
func (w *diffWriter) changes(what string, list []compare.Change) {
	for _, c := range list {
		path := c.Path
		if path == "" {
			path = "(root)"
		}
		w.End(w.Line().Add(w.S.Strong, "    "+what).Add(w.S.Accent, " "+cli.SafeText(path)))
		a, _ := widget.ValueText(c.A)
		b, _ := widget.ValueText(c.B)
		w.value(w.S.Glyphs.Removed+" ", w.S.Removed, a)
		w.value(w.S.Glyphs.Added+" ", w.S.Added, b)
		if c.Cut {
			w.Say(w.S.Muted, "      (only the beginning)")
		}
	}
}

// value writes a value unless it is missing.
func (w *diffWriter) value(label string, ink theme.Ink, value string) {
	if value != "" {
		w.Spans("      "+label, ink, []widget.Span{{Ink: ink, Text: value}})
	}
}
