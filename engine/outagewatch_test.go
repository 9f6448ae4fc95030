package engine

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"
)

// TestOutageWatch checks that a long outage is reported once, with its end, and a short one is not.
func TestOutageWatch(t *testing.T) {
	refused := errors.New("connection\nrefused")
	answers := []error{
		nil,
		refused, refused, nil, // 10 s, seen for 5
		refused, refused, refused, refused, refused, nil,
		nil, refused, refused, refused, nil,
		nil, // taken after the line about the end
	}
	ctx, cancel := context.WithCancel(t.Context())
	probes, tick, start := 0, make(chan time.Time), time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	var lines []string
	w := outageWatch{"the store", func(context.Context) error {
		probes++
		return answers[probes-1]
	}, func(line string) { lines = append(lines, line) }}
	ended := inBackground(func(context.Context) { w.run(ctx, tick) })
	for i := range answers {
		tick <- start.Add(time.Duration(i) * probeEvery)
	}
	cancel()
	<-ended.done
	want := []string{
		"the store has been unavailable since 12:00:20; runs wait, and this process retries: connection refused",
		"the store is available again, after 25s",
		"the store has been unavailable since 12:00:55; runs wait, and this process retries: connection refused",
		"the store is available again, after 15s",
	}
	if !slices.Equal(lines, want) {
		t.Errorf("%q", lines)
	}
}
