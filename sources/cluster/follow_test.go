package cluster

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"

	"acescope/sources/historytest"
)

// TestFollowerWaitsLonger checks that a follower whose page tokens the server refuses, or whose server is
// away, waits longer before each retry.
func TestFollowerWaitsLonger(t *testing.T) {
	const times = 7
	for name, failure := range map[string]error{
		"refused": serviceerror.NewInvalidArgument("invalid page token"),
		"away":    serviceerror.NewUnavailable("away"),
	} {
		c := historytest.NewClient()
		c.Put("r", &historypb.HistoryEvent{EventId: 1})
		c.Fail(func(string) error { return failure })
		var delays []time.Duration
		enough := errors.New("enough")
		f := follower{Pages: Pages{c, "n", "w", "r"}, token: []byte("t"),
			sleep: func(_ context.Context, d time.Duration) error {
				if delays = append(delays, d); len(delays) == times {
					return enough
				}
				return nil
			}}
		err := error(nil)
		for range 10 * times {
			if f.token == nil {
				f.token = []byte("t") // of another page that was read
			}
			if _, _, err = f.next(t.Context()); err != nil {
				break
			}
		}
		if !errors.Is(err, enough) || delays[0] != RetryDelay || delays[times-1] != maxRetryDelay ||
			!slices.IsSorted(delays) {
			t.Errorf("%s: %v, %v", name, delays, err)
		}
	}
}

// TestFollowerAtDeadline checks that the end of a follower's own time is not reported as an outage.
func TestFollowerAtDeadline(t *testing.T) {
	c := historytest.NewClient()
	c.Put("r", &historypb.HistoryEvent{EventId: 1})
	c.Fail(func(string) error { return serviceerror.NewDeadlineExceeded("deadline") })
	ctx, stop := context.WithTimeout(t.Context(), RetryDelay/2)
	defer stop()
	away := func(err error) { t.Errorf("reported %v", err) }
	err := Follow(ctx, c, "n", "w", "r", away, func(*historypb.HistoryEvent) error { return nil })
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}
