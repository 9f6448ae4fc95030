package widget

import (
	"math"
	"strconv"

	"acescope/engine/ace"
	"acescope/theme"
	"acescope/tui/text"
)

// Metric is a number of A and of B. TakenA and TakenB are the parts of reused steps, which A and B do not include.
// The unit is "ms", "USD", "rate", or "" for a count. NaN is unknown. An Unlike metric has no difference.
type Metric struct {
	Name, Unit     string
	A, B           float64
	TakenA, TakenB float64
	Unlike         bool
}

// Quantity formats a number with its unit, an unknown number as a dash.
func Quantity(f float64, unit string, g theme.Glyphs) string {
	switch {
	case math.IsNaN(f):
		return g.Dash
	case unit == "ms":
		return Milliseconds(f, g)
	case unit == "USD":
		return ace.Dollars(f)
	case unit == "rate":
		return strconv.FormatFloat(f*100, 'f', 1, 64) + "%"
	}
	return text.Count(int64(math.Round(f)))
}

// Cells returns the values of A and B, and the difference with its sign: "=" for zero, "" if it is unknown.
func (m Metric) Cells(g theme.Glyphs) (a, b, by string) {
	with := func(own, taken float64) string {
		if taken == 0 {
			return Quantity(own, m.Unit, g)
		}
		return Quantity(own, m.Unit, g) + " (+" + Quantity(taken, m.Unit, g) + ")"
	}
	unit := m.Unit
	d := m.B + m.TakenB - m.A - m.TakenA
	if unit == "rate" {
		d *= 100
	}
	switch {
	case math.IsNaN(d):
	case m.Unlike:
		return with(m.A, m.TakenA), with(m.B, m.TakenB), "not alike"
	case d == 0:
		by = "="
	case unit == "rate":
		by = strconv.FormatFloat(math.Abs(d), 'f', 1, 64) + " pp"
	default:
		by = Quantity(math.Abs(d), unit, g)
	}
	if d < 0 {
		by = "-" + by
	} else if d > 0 {
		by = "+" + by
	}
	return with(m.A, m.TakenA), with(m.B, m.TakenB), by
}

// Metrics writes a table of metrics. Equal values are muted.
func (w *Writer) Metrics(list []Metric) {
	wide := 16
	for _, m := range list {
		if m.TakenA != 0 || m.TakenB != 0 {
			wide = 19
		}
	}
	row := func(ink theme.Ink, name, a, b, by string) {
		w.End(w.Line().Add(w.S.Muted, text.Fit(" "+name, 22, "")).
			Add(ink, text.FitLeft(a, wide, "")+text.FitLeft(b, wide, "")+text.FitLeft(by, 16, "")))
	}
	row(w.S.Muted, "", "A", "B", "B"+w.S.Glyphs.Dash+"A")
	for _, m := range list {
		a, b, by := m.Cells(w.S.Glyphs)
		row(Unless(by == "=", w.S.Muted, w.S.Text), m.Name, a, b, by)
	}
	if wide > 16 {
		w.Prose(" ", w.S.Muted, "(+N) comes from reused steps of the original and counts in the difference.")
	}
}
