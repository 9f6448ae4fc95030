package ace

import (
	"strconv"
	"strings"
)

type integer interface {
	~int | ~int32 | ~int64 | ~uint32 | ~uint64
}

// Number formats a number with thousands separators: "10,214".
func Number[N integer](n N) string {
	s := strconv.FormatInt(int64(n), 10)
	start := len(s) - len(strings.TrimPrefix(s, "-"))
	for i := len(s) - 3; i > start; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Count formats a number of things: "1 run", "10,214 runs", "2 histories". The noun is in the singular and ends
// with its main word.
func Count[N integer](n N, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return Number(n) + " " + plural(noun)
}

func plural(noun string) string {
	for _, end := range []string{"s", "x", "ch", "sh"} {
		if strings.HasSuffix(noun, end) {
			return noun + "es"
		}
	}
	if stem, ok := strings.CutSuffix(noun, "y"); ok && !strings.ContainsAny(noun[len(stem)-1:], "aeiou") {
		return stem + "ies"
	}
	return noun + "s"
}
