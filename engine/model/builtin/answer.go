package builtin

import (
	"math"
	"strconv"
	"strings"
)

// RelativeTolerance is how far an answer may lie from its label, as a share of the
// label, and still be right.
const RelativeTolerance = 1e-5

// Equal tells whether an answer is right: both are numbers that are equal after
// rounding to two decimals or differ by at most [RelativeTolerance] of the label.
// Where either is no number the texts must be equal but for case and outer space.
func Equal(answer, label string) bool {
	a, okA := parseNumber(answer)
	l, okL := parseNumber(label)
	if !okA || !okL {
		return strings.EqualFold(strings.TrimSpace(answer), strings.TrimSpace(label))
	}
	return round2(a) == round2(l) || math.Abs(a-l) <= RelativeTolerance*math.Abs(l)
}

// format writes a number as the data sets write theirs: two decimals at most, one at
// least.
func format(v float64) string {
	s := strconv.FormatFloat(v, 'f', 2, 64)
	s = strings.TrimSuffix(s, "0")
	if s == "-0.0" {
		return "0.0"
	}
	return s
}

func parseNumber(s string) (float64, bool) {
	s = strings.TrimSpace(s)
	s = strings.ReplaceAll(strings.TrimLeft(s, "$€£"), ",", "")
	v, err := strconv.ParseFloat(strings.TrimSuffix(s, "%"), 64)
	return v, err == nil && !math.IsNaN(v) && !math.IsInf(v, 0)
}

// round2 rounds the decimal writing of the number, as format does.
func round2(v float64) float64 {
	r, err := strconv.ParseFloat(strconv.FormatFloat(v, 'f', 2, 64), 64)
	if err != nil {
		return v
	}
	return r + 0 // -0 becomes 0
}

// reproduces is Equal for the values that a search tries, without going through text
// for those that are far off.
func reproduces(v, label float64) bool {
	d := math.Abs(v - label)
	if d > 0.0100001 && d > RelativeTolerance*math.Abs(label) {
		return false
	}
	return d <= RelativeTolerance*math.Abs(label) || round2(v) == round2(label)
}
