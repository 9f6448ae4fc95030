package model

import (
	"math"
	"strconv"
	"strings"
)

// RelativeTolerance is the difference between a correct answer and its label that is allowed,
// relative to the label.
const RelativeTolerance = 1e-5

// SameAnswer reports whether an answer is correct. It compares numbers by [SameNumber] and
// other texts without regard to case and outer white space.
func SameAnswer(answer, label string) bool {
	a, okA := ParseNumber(answer)
	l, okL := ParseNumber(label)
	if !okA || !okL {
		return strings.EqualFold(strings.TrimSpace(answer), strings.TrimSpace(label))
	}
	return SameNumber(a, l)
}

// SameNumber reports whether two numbers are equal after rounding to two decimals, or differ
// by at most [RelativeTolerance] of the label.
func SameNumber(v, label float64) bool {
	d := math.Abs(v - label)
	if d <= RelativeTolerance*math.Abs(label) {
		return true
	}
	return d <= 0.0100001 && round2(v) == round2(label)
}

// ParseNumber reads a number that may have a currency sign, thousands separators or a percent
// sign.
func ParseNumber(s string) (float64, bool) {
	s = strings.TrimSpace(s)
	s = strings.ReplaceAll(strings.TrimLeft(s, "$€£"), ",", "")
	v, err := strconv.ParseFloat(strings.TrimSuffix(s, "%"), 64)
	return v, err == nil && !math.IsNaN(v) && !math.IsInf(v, 0)
}

// round2 rounds the shortest decimal representation, as authors of labels do.
func round2(v float64) float64 {
	r, err := strconv.ParseFloat(strconv.FormatFloat(v, 'f', 2, 64), 64)
	if err != nil {
		return v
	}
	return r + 0 // -0 becomes 0
}
