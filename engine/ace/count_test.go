package ace

import (
	"math"
	"testing"
)

func TestCount(t *testing.T) {
	t.Parallel()
	for want, got := range map[string]string{
		"1 run":                      Count(1, "run"),
		"0 runs":                     Count(0, "run"),
		"10,214 runs":                Count(int64(10_214), "run"),
		"2 histories":                Count(int32(2), "history"),
		"3 branches":                 Count(3, "branch"),
		"2 processes":                Count(2, "process"),
		"4 keys":                     Count(4, "key"),
		"1,000 more changes":         Count(1000, "more change"),
		"-1,234":                     Number(-1234),
		"0":                          Number(0),
		"-100":                       Number(-100),
		"999":                        Number(999),
		"10,214":                     Number(10_214),
		"1,000":                      Number(1000),
		"1,234,567":                  Number(1_234_567),
		"-9,223,372,036,854,775,808": Number(int64(math.MinInt64)),
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
