package views

import (
	"math"
	"strconv"

	"acescope/engine/ace"
	"acescope/sources"
	"acescope/theme"
	"acescope/tui/text"
)

// comparison is the numbers of two experiments and how their tasks were aligned.
func (w *writer) comparison(c *sources.Comparison) {
	s, g := w.s, w.s.Glyphs
	head := w.line().Add(s.Muted, " A ").Add(s.Strong, text.Safe(c.A.Name(), " ")).Add(s.Muted, "  "+g.Arrow+"  B ").Add(s.Strong, text.Safe(c.B.Name(), " "))
	w.end(head)
	from, to := orDash(c.A.Input.DatasetID, g), orDash(c.B.Input.DatasetID, g)
	how, ink := " same data set "+from+": aligned by epoch and index", s.Muted
	switch {
	case !c.SameData && from == to:
		how, ink = " data sets differ: aligned by equal prompts (both named "+from+")", s.Warning
	case !c.SameData:
		how, ink = " data sets differ: aligned by equal prompts ("+from+", "+to+")", s.Warning
	}
	w.end(w.line().Add(ink, how))
	w.end(w.line().Add(s.Text, " "+text.Count(int64(len(c.Pairs)))+" aligned").
		Add(s.Muted, ", "+text.Count(int64(c.OnlyA))+" only in A, "+text.Count(int64(c.OnlyB))+" only in B"))
	w.comparedRow("", "A", "B", "B"+g.Dash+"A", s.Muted)
	for _, r := range compared(c, w, g) {
		w.comparedRow(r.name, r.a, r.b, r.by, s.Text)
	}
	for _, x := range []*sources.Series{c.A, c.B} {
		if x.Err != "" {
			w.prose(" "+g.Failed+" "+text.Safe(x.Name(), " ")+": ", s.Error, x.Err)
		}
	}
}

func (w *writer) comparedRow(name, a, b, by string, ink theme.Ink) {
	w.comparedCells(comparedNumber{name, a, b, by}, 16, ink)
}

// comparedCells is a row whose two values have cells of a width.
func (w *writer) comparedCells(r comparedNumber, wide int, ink theme.Ink) {
	w.end(w.line().Add(w.s.Muted, text.Fit(" "+r.name, 22, "")).Add(ink, text.FitLeft(r.a, wide, "")+text.FitLeft(r.b, wide, "")+text.FitLeft(r.by, 16, "")))
}

// comparedNumber is a number of both experiments and its difference, written.
type comparedNumber struct{ name, a, b, by string }

func compared(c *sources.Comparison, w *writer, g theme.Glyphs) []comparedNumber {
	a, b := c.TotalsA, c.TotalsB
	count := func(name string, a, b int64) comparedNumber {
		return comparedNumber{name, text.Count(a), text.Count(b), signed(float64(b-a), func(f float64) string { return text.Count(int64(f)) })}
	}
	rate := func(name string, a, b float64) comparedNumber {
		points := func(f float64) string { return strconv.FormatFloat(f*100, 'f', 1, 64) + " pp" }
		return comparedNumber{name, rateCell(a, g), rateCell(b, g), signed(b-a, points)}
	}
	span := func(name string, a, b float64) comparedNumber {
		return comparedNumber{name, tookOrDash(a, g), tookOrDash(b, g), signed(b-a, func(ms float64) string { return tookMS(ms, g) })}
	}
	rows := []comparedNumber{rate("accuracy", a.Accuracy, b.Accuracy)}
	if c.OnlyA+c.OnlyB > 0 {
		rows = append(rows, rate("  of aligned tasks", c.AlignedA, c.AlignedB))
	}
	if e := c.Evaluations; e != nil {
		rows = append(rows, rate("last evaluation", e.A.Accuracy, e.B.Accuracy))
	}
	if a.Cost > 0 || b.Cost > 0 {
		usd := func(f float64) string { return costCell(ace.Usage{InputTokens: 1, CostUSD: f}, g) }
		rows = append(rows, comparedNumber{"cost", usd(a.Cost), usd(b.Cost), signed(b.Cost-a.Cost, usd)})
	}
	return append(rows, count("tokens", a.Tokens, b.Tokens),
		comparedNumber{"per right answer", perRight(a, g), perRight(b, g), ""},
		span("a task", a.MeanTookMS, b.MeanTookMS),
		span("all of it", float64(c.A.Took(w.now).Milliseconds()), float64(c.B.Took(w.now).Milliseconds())),
		count("bullets", int64(a.Bullets), int64(b.Bullets)),
		count("operations accepted", int64(a.Accepted), int64(b.Accepted)),
		count("operations rejected", int64(a.Rejected), int64(b.Rejected)))
}

// signed writes a difference with its sign, "" where there is none to write.
func signed(f float64, write func(float64) string) string {
	switch {
	case math.IsNaN(f):
		return ""
	case f < 0:
		return "-" + write(-f)
	case f > 0:
		return "+" + write(f)
	}
	return "="
}
