package experiments

import (
	"math"
	"strconv"

	"acescope/engine/ace"
	"acescope/sources/experiments"
	"acescope/theme"
	"acescope/tui/text"
	"acescope/tui/widget"
	"acescope/views/console"
)

// comparison is the numbers of two experiments and how their tasks were aligned.
func comparison(w *widget.Writer, c *experiments.Comparison) {
	s, g := w.S, w.S.Glyphs
	head := w.Line().Add(s.Muted, " A ").Add(s.Strong, text.Safe(c.A.Name(), " ")).Add(s.Muted, "  "+g.Arrow+"  B ").Add(s.Strong, text.Safe(c.B.Name(), " "))
	w.End(head)
	from, to := console.OrDash(c.A.Input.DatasetID, g), console.OrDash(c.B.Input.DatasetID, g)
	how, ink := " same data set "+from+": aligned by epoch and index", s.Muted
	switch {
	case !c.SameData && from == to:
		how, ink = " data sets differ: aligned by equal prompts (both named "+from+")", s.Warning
	case !c.SameData:
		how, ink = " data sets differ: aligned by equal prompts ("+from+", "+to+")", s.Warning
	}
	w.End(w.Line().Add(ink, how))
	w.End(w.Line().Add(s.Text, " "+text.Count(int64(len(c.Pairs)))+" aligned").
		Add(s.Muted, ", "+text.Count(int64(c.OnlyA))+" only in A, "+text.Count(int64(c.OnlyB))+" only in B"))
	comparedRow(w, "", "A", "B", "B"+g.Dash+"A", s.Muted)
	for _, r := range compared(c, w, g) {
		comparedRow(w, r.Name, r.A, r.B, r.By, s.Text)
	}
	for _, x := range []*experiments.Series{c.A, c.B} {
		if x.Err != "" {
			w.Prose(" "+g.Failed+" "+text.Safe(x.Name(), " ")+": ", s.Error, x.Err)
		}
	}
}

func comparedRow(w *widget.Writer, name, a, b, by string, ink theme.Ink) {
	ComparedCells(w, ComparedNumber{name, a, b, by}, 16, ink)
}

// ComparedCells is a row whose two values have cells of a width.
func ComparedCells(w *widget.Writer, r ComparedNumber, wide int, ink theme.Ink) {
	w.End(w.Line().Add(w.S.Muted, text.Fit(" "+r.Name, 22, "")).Add(ink, text.FitLeft(r.A, wide, "")+text.FitLeft(r.B, wide, "")+text.FitLeft(r.By, 16, "")))
}

// ComparedNumber is a number of both experiments and its difference, written.
type ComparedNumber struct{ Name, A, B, By string }

func compared(c *experiments.Comparison, w *widget.Writer, g theme.Glyphs) []ComparedNumber {
	a, b := c.TotalsA, c.TotalsB
	count := func(name string, a, b int64) ComparedNumber {
		return ComparedNumber{name, text.Count(a), text.Count(b), Signed(float64(b-a), func(f float64) string { return text.Count(int64(f)) })}
	}
	rate := func(name string, a, b float64) ComparedNumber {
		points := func(f float64) string { return strconv.FormatFloat(f*100, 'f', 1, 64) + " pp" }
		return ComparedNumber{name, rateCell(a, g), rateCell(b, g), Signed(b-a, points)}
	}
	span := func(name string, a, b float64) ComparedNumber {
		return ComparedNumber{name, tookOrDash(a, g), tookOrDash(b, g), Signed(b-a, func(ms float64) string { return widget.TookMS(ms, g) })}
	}
	rows := []ComparedNumber{rate("accuracy", a.Accuracy, b.Accuracy)}
	if c.OnlyA+c.OnlyB > 0 {
		rows = append(rows, rate("  of aligned tasks", c.AlignedA, c.AlignedB))
	}
	if e := c.Evaluations; e != nil {
		rows = append(rows, rate("last evaluation", e.A.Accuracy, e.B.Accuracy))
	}
	if a.Cost > 0 || b.Cost > 0 {
		usd := func(f float64) string { return console.CostCell(ace.Usage{InputTokens: 1, CostUSD: f}, g) }
		rows = append(rows, ComparedNumber{"cost", usd(a.Cost), usd(b.Cost), Signed(b.Cost-a.Cost, usd)})
	}
	return append(rows, count("tokens", a.Tokens, b.Tokens),
		ComparedNumber{"per right answer", perRight(a, g), perRight(b, g), ""},
		span("a task", a.MeanTookMS, b.MeanTookMS),
		span("all of it", float64(c.A.Took(w.Now).Milliseconds()), float64(c.B.Took(w.Now).Milliseconds())),
		count("bullets", int64(a.Bullets), int64(b.Bullets)),
		count("operations accepted", int64(a.Accepted), int64(b.Accepted)),
		count("operations rejected", int64(a.Rejected), int64(b.Rejected)))
}

// Signed writes a difference with its sign, "" where there is none to write.
func Signed(f float64, write func(float64) string) string {
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
