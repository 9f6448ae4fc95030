package text

import (
	"strings"
	"testing"
	"time"
)

func TestSpan(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second: "0s", 400 * time.Millisecond: "0s", 59 * time.Second: "59s", 61 * time.Second: "1m",
		125 * time.Minute: "2h05m", 30 * time.Hour: "30h", 49 * time.Hour: "2d",
	} {
		if got := Span(d); got != want {
			t.Errorf("Span(%v) = %q, want %q", d, got, want)
		}
	}
}

func TestTook(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0ms", 800 * time.Microsecond: "800µs", 1800 * time.Microsecond: "1.8ms", 500: "1µs",
		12 * time.Millisecond: "12ms", 1200 * time.Millisecond: "1.2s",
		185 * time.Second: "3m05s", 90 * time.Second: "1m30s", 125 * time.Minute: "2h05m",
	} {
		if got := Duration(d); got != want {
			t.Errorf("Duration(%v) = %q, want %q", d, got, want)
		}
	}
}

type brackets struct{}

func (brackets) Paint(s string) string { return s }

func TestLineIsExact(t *testing.T) {
	for _, parts := range [][]string{nil, {"ab"}, {"ab", "財務", "cdef"}, {"📈📈📈📈📈"},
		{strings.Repeat("x", 40), "y"}} {
		for w := range 15 {
			l := Line{Max: w, Tail: "…"}
			for _, p := range parts {
				l.Add(brackets{}, p)
			}
			if got := l.String(brackets{}); Width(got) != w {
				t.Errorf("line of %q at %d is %q, %d wide", parts, w, got, Width(got))
			}
		}
	}
}
