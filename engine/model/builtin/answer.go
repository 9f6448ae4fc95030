package builtin

import (
	"strconv"
	"strings"
)

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
