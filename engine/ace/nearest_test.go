package ace

import (
	"strings"
	"testing"
)

func TestDistance(t *testing.T) {
	for pair, want := range map[string]int{"abc abc": 0, "abc ab": 1, "kitten sitting": 3,
		"a-e1-001 a-e1-0001": 1, "x yyy": 3, "lsit list": 1, "heatlh health": 1, "ab cd": 2, " list": 4} {
		a, b, _ := strings.Cut(pair, " ")
		if got := Distance(a, b); got != want || got != Distance(b, a) {
			t.Errorf("%s: %d, want %d", pair, got, want)
		}
	}
}
