package model

import "testing"

func TestSameAnswer(t *testing.T) {
	for _, c := range []struct {
		answer, label string
		want          bool
	}{
		{"2.0", "2.0", true}, {"$2,000.50", "2000.5", true}, {"33.333", "33.33", true},
		{"33.34", "33.33", false},
		{"27432.80", "27432.79", true}, {"27433.79", "27432.79", false}, {"-0.001", "0.0", true},
		{"0.2%", "0.2", true},
		{"Yes", " yes ", true}, {"yes", "no", false}, {"unknown: 3", "3", false}, {"", "", true},
		{"NaN", "NaN", true}, {"1", "NaN", false},
		{"27432.79", "27432.8", true}, {"1e6", "1000005", true}, {"1e6", "1000020", false},
	} {
		if got := SameAnswer(c.answer, c.label); got != c.want {
			t.Errorf("SameAnswer(%q, %q) = %t", c.answer, c.label, got)
		}
	}
}
