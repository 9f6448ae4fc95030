package model

import (
	"math"
	"strconv"
	"strings"
)

// SameAnswer tells whether an answer matches its label. Two numbers match when they
// differ by at most half of the second decimal, or by one part in a million for large
// ones; signs of currency, thousands separators and a trailing full stop do not count.
// Other texts match when they are equal but for case and surrounding space.
func SameAnswer(answer, label string) bool {
	a, aok := number(answer)
	l, lok := number(label)
	if aok && lok {
		return math.Abs(a-l) <= max(0.005+1e-9, math.Abs(l)*1e-6)
	}
	return aok == lok && strings.EqualFold(strings.TrimSpace(answer), strings.TrimSpace(label))
}

func number(text string) (float64, bool) {
	text = strings.TrimSuffix(strings.TrimSpace(text), ".")
	text = strings.NewReplacer("$", "", "€", "", "£", "", ",", "", "%", "").Replace(text)
	v, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	return v, err == nil && !math.IsNaN(v) && !math.IsInf(v, 0)
}
