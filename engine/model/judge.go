package model

import (
	"math"
	"strconv"
	"strings"
)

// RelativeTolerance is how far an answer may lie from its label, as a share of the
// label, and still be right.
const RelativeTolerance = 1e-5

// SameAnswer tells whether an answer is right: two numbers by [SameNumber], other texts
// when they are equal but for case and outer space.
func SameAnswer(answer, label string) bool {
	a, okA := ParseNumber(answer)
	l, okL := ParseNumber(label)
	if !okA || !okL {
		return strings.EqualFold(strings.TrimSpace(answer), strings.TrimSpace(label))
	}
	return SameNumber(a, l)
}

// SameNumber tells whether two numbers are equal after rounding to two decimals, or
// differ by at most [RelativeTolerance] of the label.
func SameNumber(v, label float64) bool {
	d := math.Abs(v - label)
	if d <= RelativeTolerance*math.Abs(label) {
		return true
	}
	return d <= 0.0100001 && round2(v) == round2(label)
}

// ParseNumber reads a number as people write it: with a sign of currency, thousands
// separators or a percent sign.
func ParseNumber(s string) (float64, bool) {
	s = strings.TrimSpace(s)
	s = strings.ReplaceAll(strings.TrimLeft(s, "$€£"), ",", "")
	v, err := strconv.ParseFloat(strings.TrimSuffix(s, "%"), 64)
	return v, err == nil && !math.IsNaN(v) && !math.IsInf(v, 0)
}

// round2 rounds the decimal writing of a number, as those who write labels do.
func round2(v float64) float64 {
	r, err := strconv.ParseFloat(strconv.FormatFloat(v, 'f', 2, 64), 64)
	if err != nil {
		return v
	}
	return r + 0 // -0 becomes 0
}
