package widget

import (
	"math"
	"strconv"
	"strings"

	"acescope/engine/learning/stats"
	"acescope/theme"
)

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
	if s == "" {
		return ""
	}
	return " (" + s + ")"
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
