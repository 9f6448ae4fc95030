package text

import (
	"fmt"
	"strconv"
	"time"
)

// Span is a duration as an age, in its largest unit and one more where that tells
// something: "4s", "3m", "2h05m", "5d". Less than a second is "0s", negative too.
func Span(d time.Duration) string {
	s := max(int64(d/time.Second), 0)
	switch {
	case s < 60:
		return strconv.FormatInt(s, 10) + "s"
	case s < 3600:
		return strconv.FormatInt(s/60, 10) + "m"
	case s < 10*3600:
		return fmt.Sprintf("%dh%02dm", s/3600, s/60%60)
	case s < 48*3600:
		return strconv.FormatInt(s/3600, 10) + "h"
	}
	return strconv.FormatInt(s/86400, 10) + "d"
}

// Took is a duration as a measurement: "40µs", "1.8ms", "12ms", "1.2s", "3m05s", "2h05m".
func Took(d time.Duration) string {
	switch {
	case d <= 0:
		return "0ms"
	case d < time.Millisecond:
		return strconv.FormatInt(max(int64(d/time.Microsecond), 1), 10) + "µs"
	case d < 10*time.Millisecond:
		return strconv.FormatFloat(float64(d)/float64(time.Millisecond), 'f', 1, 64) + "ms"
	case d < time.Second:
		return strconv.FormatInt(int64(d/time.Millisecond), 10) + "ms"
	case d < time.Minute:
		return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + "s"
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int64(d/time.Minute), int64(d/time.Second)%60)
	}
	return fmt.Sprintf("%dh%02dm", int64(d/time.Hour), int64(d/time.Minute)%60)
}

// Count is a number with thousands set apart: "10,214".
func Count(n int64) string {
	s := strconv.FormatInt(n, 10)
	start := 0
	if n < 0 {
		start = 1
	}
	for i := len(s) - 3; i > start; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
