package server

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

// The clock follows the wall clock forward, never goes back, and lets the wall clock catch up.
func TestHostClock(t *testing.T) {
	t.Parallel()
	began := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	c := newHostClock(func() time.Time { return began }, time.Time{})
	wall := began
	for i, step := range []struct{ elapsed, wall, want, ahead time.Duration }{
		{time.Second, time.Second, time.Second, 0},
		{time.Second, -29 * time.Second, 900 * time.Millisecond, 30 * time.Second}, // set back by 30 s
		{time.Second, time.Second, 900 * time.Millisecond, 30 * time.Second},
		{400 * time.Second, 400 * time.Second, 370*time.Second + 200*time.Millisecond, 0}, // caught up
		{time.Second, time.Hour, time.Hour, 0},                                            // jumped forward
	} {
		before := c.last
		wall = wall.Add(step.wall)
		c.advance(step.elapsed, wall)
		if got := c.last.Sub(before); got != step.want {
			t.Errorf("%d: advanced %s, want %s", i, got, step.want)
		}
		if got := c.noticed.Ahead; got < step.ahead.Seconds()-0.2 || got > step.ahead.Seconds() {
			t.Errorf("%d: %.1f s ahead, want %s", i, got, step.ahead)
		}
		if held := !c.hold.IsZero(); held != (i >= 3) { // a gap of 400 s counts as a pause
			t.Errorf("%d: timeouts wait: %v", i, held)
		}
	}
}

// steppedClock is a wall clock that a test sets.
type steppedClock struct{ offset atomic.Int64 }

func (c *steppedClock) now() time.Time       { return time.Now().Add(time.Duration(c.offset.Load())) }
func (c *steppedClock) step(d time.Duration) { c.offset.Add(int64(d)) }

// waits executes an activity with heartbeats until it is released, and then a timer.
func waits(ctx workflow.Context) error {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: 24 * time.Hour, HeartbeatTimeout: 5 * time.Second})
	if err := workflow.ExecuteActivity(ctx, "beat").Get(ctx, nil); err != nil {
		return err
	}
	return workflow.Sleep(ctx, time.Second)
}

// TestClockSteps sets the machine's clock while an activity with heartbeats runs. Neither does the
// activity fail, nor does the timer after it wait for the size of the step.
func TestClockSteps(t *testing.T) {
	t.Parallel()
	for name, step := range map[string]time.Duration{"back": -time.Hour, "forward": time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var wall steppedClock
			n := join(t, Options{Dir: t.TempDir(), wall: wall.now})
			c := dial(t, n)
			started, release := make(chan struct{}), make(chan struct{})
			w := worker.New(c, queue, worker.Options{MaxHeartbeatThrottleInterval: time.Second})
			w.RegisterWorkflow(waits)
			w.RegisterActivityWithOptions(func(ctx context.Context) error {
				close(started)
				for {
					activity.RecordHeartbeat(ctx)
					select {
					case <-release:
						return nil
					case <-ctx.Done():
						return ctx.Err()
					case <-time.After(100 * time.Millisecond):
					}
				}
			}, activity.RegisterOptions{Name: "beat"})
			if err := w.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(w.Stop)
			run, err := c.ExecuteWorkflow(testContext(t),
				client.StartWorkflowOptions{ID: name, TaskQueue: queue}, waits)
			if err != nil {
				t.Fatal(err)
			}
			<-started
			wall.step(step)
			await(t, "the warning", func() bool { return n.Endpoint().Clock.Warning() != "" })
			if warning := n.Endpoint().Clock.Warning(); !strings.Contains(warning, "1h0m0s") {
				t.Errorf("%q", warning)
			}
			h := n.ownHost()
			await(t, "the end of the wait for heartbeats", func() bool {
				h.clock.mu.Lock()
				defer h.clock.mu.Unlock()
				return time.Now().After(h.clock.hold.Add(time.Second))
			})
			close(release)
			if err := run.Get(testContext(t), nil); err != nil {
				t.Error(err)
			}
		})
	}
}

// The next host starts at the time of the last one if the clock was set back in between.
func TestClockOfLastHost(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	leave(t, join(t, Options{Dir: dir}))
	later := time.Now().Add(time.Hour)
	if err := os.Chtimes(filepath.Join(dir, lockFile), later, later); err != nil {
		t.Fatal(err)
	}
	leave(t, join(t, Options{Dir: dir})) // passes the time on, however short it hosts
	n := join(t, Options{Dir: dir})
	if now := n.ownHost().clock.Now(); now.Before(later) {
		t.Errorf("the clock says %s, before %s", now, later)
	}
	if n.Endpoint().Clock.Ahead < 3590 {
		t.Errorf("%+v", n.Endpoint().Clock)
	}
	c := dial(t, n)
	work(t, c)
	start(t, c, "runs")
	finish(t, c, "runs")
}
