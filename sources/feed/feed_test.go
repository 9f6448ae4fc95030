package feed_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"acescope/sources/feed"
)

// start runs a feed whose reader publishes "ASK N", N being the number of the reader, and then waits.
func start(t *testing.T) (f *feed.Feed[string, string], ended *[]string) {
	ended = new([]string)
	n := 0
	f = feed.New(func() {}, func(ctx context.Context, ask string, publish func(string)) {
		n++
		value := fmt.Sprintf("%s %d", ask, n)
		publish(value)
		<-ctx.Done()
		publish(value + " late")
		*ended = append(*ended, value)
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); f.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	return f, ended
}

func expect(t *testing.T, f *feed.Feed[string, string], want string) {
	t.Helper()
	synctest.Wait()
	if got := f.Value(); got != want {
		t.Errorf("value %q, want %q", got, want)
	}
}

func TestReadsWhileLookedAt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, ended := start(t)
		f.Want("a")
		expect(t, f, "")
		f.Look(true)
		expect(t, f, "a 1")
		f.Look(false)
		expect(t, f, "a 1")
		if len(*ended) != 1 {
			t.Errorf("ended readers: %q", *ended)
		}
	})
}

func TestNewAskReplacesValueAndReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, _ := start(t)
		f.Look(true)
		f.Want("a")
		expect(t, f, "a 1")
		f.Want("a")
		expect(t, f, "a 1")
		f.Want("b")
		if f.Value() != "" {
			t.Error("the value of the old ask is still there")
		}
		expect(t, f, "b 2")
	})
}

func TestAgainKeepsValueUntilNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, ended := start(t)
		f.Look(true)
		f.Want("a")
		expect(t, f, "a 1")
		f.Again()
		if f.Value() != "a 1" {
			t.Errorf("value %q", f.Value())
		}
		expect(t, f, "a 2")
		if len(*ended) != 1 {
			t.Errorf("ended readers: %q", *ended)
		}
	})
}

func TestWakesForEachValue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var woken atomic.Int64
		f := feed.New(func() { woken.Add(1) }, func(_ context.Context, n int, publish func(int)) {
			for i := range n {
				publish(i)
			}
		})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); f.Run(ctx) }()
		f.Look(true)
		f.Want(3)
		synctest.Wait()
		if woken.Load() != 4 || f.Value() != 2 {
			t.Errorf("woken %d times, value %d", woken.Load(), f.Value())
		}
		f.Look(false)
		f.Look(true)
		synctest.Wait()
		if woken.Load() != 4 {
			t.Error("a reader that had returned was started again")
		}
		cancel()
		<-done
	})
}
