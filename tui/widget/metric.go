package widget

import (
	"math"
	"strconv"
	"strings"
	"time"

	"acescope/engine/ace"
	"acescope/engine/learning/stats"
	"acescope/theme"
	"acescope/tui/text"
)

// Metric is a number of A and of B. TakenA and TakenB are the parts of reused steps, which A and B do not
// include. The unit is "ms", "USD", "rate", or "" for a count. NaN is unknown. RangeA and RangeB are the
// limits of the intervals of A and B, zero if unknown. An Unlike metric has no difference.
type Metric struct {
	Name, Unit     string
	A, B           float64
	TakenA, TakenB float64
	RangeA, RangeB [2]float64
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
	return ace.Number(int64(math.Round(f)))
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

// Widths of the columns of [Writer.Metrics].
const (
	metricName     = 22
	metricValue    = 16
	metricReused   = 19
	metricRange    = 18 // the interval of a rate
	metricAnyRange = 26
	metricBy       = 16
)

// Metrics writes a table of metrics. Equal values are muted. An interval that does not fit is left out. If
// the columns exceed the width, they are as narrow as their texts allow.
func (w *Writer) Metrics(list []Metric) {
	wide, label := metricValue, ""
	for _, m := range list {
		switch {
		case m.TakenA != 0 || m.TakenB != 0:
			wide = metricReused
		case m.RangeA != [2]float64{} || m.RangeB != [2]float64{}:
			wide, label = metricRange, "(95% interval)"
			if w.Width > metricName+2*metricAnyRange+metricBy {
				wide = metricAnyRange
			}
		}
	}
	ranged := func(value string, limits [2]float64, unit string) string {
		if limits == [2]float64{} {
			return value
		}
		full := value + InParentheses(Range(stats.Interval{Low: limits[0], High: limits[1]}, unit,
			w.S.Glyphs))
		if text.Width(full) >= wide {
			return value
		}
		return full
	}
	rows := [][4]string{{label, "A", "B", "B" + w.S.Glyphs.Dash + "A"}}
	for _, m := range list {
		a, b, by := m.Cells(w.S.Glyphs)
		rows = append(rows, [4]string{m.Name, ranged(a, m.RangeA, m.Unit), ranged(b, m.RangeB, m.Unit), by})
	}
	widths := [4]int{metricName, wide, wide, metricBy}
	if metricName+2*wide+metricBy > w.Width {
		widths = [4]int{}
		for _, r := range rows {
			for i, cell := range r {
				widths[i] = max(widths[i], text.Width(cell)+2)
			}
		}
	}
	for i, r := range rows {
		ink := If(i == 0 || r[3] == "=", w.S.Muted, w.S.Text)
		values := text.FitLeft(r[1], widths[1], "") + text.FitLeft(r[2], widths[2], "") +
			text.FitLeft(r[3], widths[3], "")
		w.End(w.Line().Add(w.S.Muted, text.Fit(" "+r[0], widths[0], "")).Add(ink, values))
	}
	if wide == metricReused {
		w.Prose(" ", w.S.Muted, "(+N) comes from reused steps of the original and counts in the difference.")
	}
}

// Accuracy formats the share of correct answers to labeled tasks with its interval, see [Range]: "42.0%
// (33–52)". It is a dash without labeled tasks.
func Accuracy(correct, labeled int, g theme.Glyphs) string {
	interval := Range(stats.Wilson(correct, labeled), "rate", g)
	return Quantity(stats.Share(correct, labeled), "rate", g) + InParentheses(interval)
}

// MeanScore formats what [ace.ExperimentInput.MeanScore] returns, to follow an accuracy: ", mean score
// 0.750". It is "" for nil.
func MeanScore(mean *float64) string {
	if mean == nil {
		return ""
	}
	return ", mean score " + strconv.FormatFloat(*mean, 'f', 3, 64)
}

// InParentheses returns " (s)", or "" for "".
func InParentheses(s string) string {
	return If(s == "", "", " ("+s+")")
}

// Range formats an interval of numbers with a unit as in [Quantity]: "33–52" percent, "$0.0180–$0.0290" or
// "610–750". It is "" if the interval is unknown. An infinite upper limit is "610 or more".
func Range(i stats.Interval, unit string, g theme.Glyphs) string {
	number := func(f float64) string { return Quantity(f, unit, g) }
	if unit == "rate" {
		digits := 0
		if i.High-i.Low < 0.02 { // whole percents would hide it
			digits = 1
		}
		number = func(f float64) string { return strconv.FormatFloat(f*100, 'f', digits, 64) }
	}
	switch {
	case !i.Known():
		return ""
	case math.IsInf(i.High, 1):
		return number(i.Low) + " or more"
	}
	return number(i.Low) + g.Dash + number(i.High)
}

// Points formats a difference of two rates in percentage points with its sign: "+12.5", "0".
func Points(f float64) string {
	text := strconv.FormatFloat(100*f, 'f', 1, 64)
	switch {
	case strings.Trim(text, "-0.") == "":
		return "0"
	case f > 0:
		return "+" + text
	}
	return text
}

// Duration is [text.Duration] in characters that the terminal can show.
func Duration(d time.Duration, g theme.Glyphs) string {
	return strings.Replace(text.Duration(d), "µ", g.Micro, 1)
}

// Milliseconds is [Duration] of a number of milliseconds.
func Milliseconds(ms float64, g theme.Glyphs) string {
	return Duration(time.Duration(ms*float64(time.Millisecond)), g)
}
