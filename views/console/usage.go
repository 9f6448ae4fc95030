package console

import (
	"strconv"
)

// ShortCount formats a number in at most six cells: "980", "12.3k", "4.56M".
func ShortCount(n int64) string {
	for _, u := range []struct {
		of   float64
		name string
	}{{1e9, "G"}, {1e6, "M"}, {1e3, "k"}} {
		if f := float64(n) / u.of; f >= 0.9995 {
			digits := 2
			if f >= 99.95 {
				digits = 0
			} else if f >= 9.995 {
				digits = 1
			}
			return strconv.FormatFloat(f, 'f', digits, 64) + u.name
		}
	}
	return strconv.FormatInt(n, 10)
}
