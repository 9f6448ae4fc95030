package cluster_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"

	"acescope/sources/cluster"
	"acescope/sources/historytest"
)

func newLink(c *historytest.Client) *cluster.Link {
	l := cluster.NewLink()
	l.Deps = cluster.Deps{Client: c, Namespace: "test"}
	return l
}

// collect returns the ids of all events that a follower gets until the run closes.
func collect(t *testing.T, h *cluster.History, after int64) []int64 {
	t.Helper()
	var ids []int64
	err := h.Follow(t.Context(), after, nil, func(events []*historypb.HistoryEvent) error {
		for _, e := range events {
			ids = append(ids, e.GetEventId())
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	return ids
}

func complete(t *testing.T, ids []int64, after, n int) {
	t.Helper()
	if len(ids) != n-after {
		t.Fatalf("%d events after %d, want %d", len(ids), after, n-after)
	}
	for i, id := range ids {
		if id != int64(after+i+1) {
			t.Fatalf("event %d is number %d", id, i)
		}
	}
}

// Followers that read at the same time and later ones get all events, and each page is read once.
func TestHistoryIsReadOnce(t *testing.T) {
	c := historytest.NewClient()
	events := historytest.Long(3_000).Events
	c.Put("r", events...)
	link := newLink(c)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() { complete(t, collect(t, link.History("w", "r"), 0), 0, len(events)) })
	}
	wg.Wait()
	pages := c.Calls("forward")
	if want := (len(events) + 255) / 256; pages > want+1 {
		t.Errorf("%d pages were read, of %d", pages, want)
	}
	complete(t, collect(t, link.History("w", "r"), 100), 100, len(events))
	whole, err := link.History("w", "r").Events(t.Context())
	if err != nil || len(whole) != len(events) {
		t.Errorf("%d events, %v", len(whole), err)
	}
	if n := c.Calls("forward"); n != pages {
		t.Errorf("%d pages were read again", n-pages)
	}
	for _, id := range []int64{1, 64, 65, 1_000, int64(len(events))} {
		e, err := link.History("w", "r").Event(id)
		if err != nil || e.GetEventId() != id {
			t.Errorf("event %d is %v, %v", id, e, err)
		}
	}
	if e, err := link.History("w", "r").Event(int64(len(events) + 1)); e != nil || err != nil {
		t.Errorf("an event after the last: %v, %v", e, err)
	}
}

// When the follower that reads stops, another one reads on.
func TestAnotherFollowerReadsOn(t *testing.T) {
	c := historytest.NewClient()
	events := historytest.Long(600).Events
	c.Put("r", events[:300]...)
	h := newLink(c).History("w", "r")
	first, stop := context.WithCancel(t.Context())
	waiting := make(chan struct{})
	stopped := make(chan error)
	go func() {
		seen := 0
		stopped <- h.Follow(first, 0, nil, func(events []*historypb.HistoryEvent) error {
			if seen += len(events); seen == 300 {
				close(waiting)
			}
			return nil
		})
	}()
	<-waiting
	done := make(chan []int64)
	go func() { done <- collect(t, h, 0) }()
	stop()
	if err := <-stopped; !errors.Is(err, context.Canceled) {
		t.Errorf("the first follower: %v", err)
	}
	c.Put("r", events[300:]...)
	complete(t, <-done, 0, len(events))
}

// A closed run that was read at once is not read again for a follower.
func TestEventsOfClosedRunAreKept(t *testing.T) {
	c := historytest.NewClient()
	events := historytest.Task(true).Events
	c.Put("r", events...)
	h := newLink(c).History("w", "r")
	if all, err := h.Events(t.Context()); err != nil || len(all) != len(events) {
		t.Errorf("%d events, %v", len(all), err)
	}
	pages := c.Calls("forward")
	complete(t, collect(t, h, 0), 0, len(events))
	if n := c.Calls("forward"); n != pages {
		t.Errorf("%d pages were read again", n-pages)
	}
}

func TestForgottenHistoryIsReadAgain(t *testing.T) {
	c := historytest.NewClient()
	c.Put("r", historytest.Task(true).Events...)
	link := newLink(c)
	h := link.History("w", "r")
	if link.History("w", "r") != h || link.History("w", "") == link.History("w", "") {
		t.Error("only a history with a run id is shared")
	}
	link.ForgetHistories()
	if link.History("w", "r") == h {
		t.Error("the history is still shared")
	}
}

// A block of large events ends before its 64 events are reached, so that reading one event unpacks little.
func TestLargeEventsMakeSmallBlocks(t *testing.T) {
	large := &historypb.HistoryEvent_WorkflowExecutionSignaledEventAttributes{
		WorkflowExecutionSignaledEventAttributes: &historypb.WorkflowExecutionSignaledEventAttributes{
			SignalName: strings.Repeat("x", 100<<10)}}
	var events []*historypb.HistoryEvent
	for id := range int64(64) {
		events = append(events, &historypb.HistoryEvent{EventId: id + 1, Attributes: large})
	}
	h := cluster.HistoryOf(events)
	encoded, last := h.Block(1)
	if len(encoded) != 3 || last != 3 {
		t.Errorf("%d events to %d are in the first block", len(encoded), last)
	}
	complete(t, collect(t, h, 0), 0, len(events))
}

// A follower that stopped during an outage leaves no report of it to the next one.
func TestOutageIsForgotten(t *testing.T) {
	c := historytest.NewClient()
	c.Put("r", historytest.Task(true).Events...)
	c.Fail(func(string) error { return serviceerror.NewUnavailable("down") })
	h := newLink(c).History("w", "r")
	first, stop := context.WithCancel(t.Context())
	away := func(err error) {
		if err != nil {
			stop()
		}
	}
	ignore := func([]*historypb.HistoryEvent) error { return nil }
	if err := h.Follow(first, 0, away, ignore); !errors.Is(err, context.Canceled) {
		t.Errorf("the first follower: %v", err)
	}
	c.Fail(nil)
	if err := h.Follow(t.Context(), 0, func(err error) { t.Errorf("reported %v", err) }, ignore); err != nil {
		t.Error(err)
	}
}

// An outage is reported once, however often the server is tried meanwhile.
func TestFollowReportsOutageOnce(t *testing.T) {
	c := historytest.NewClient()
	events := historytest.Task(true).Events
	c.Put("r", events...)
	failures := 3
	c.Fail(func(string) error {
		if failures--; failures < 0 {
			return nil
		}
		return serviceerror.NewUnavailable("down")
	})
	var reported []string
	seen := 0
	away := func(err error) { reported = append(reported, cluster.PlainError(err)) }
	err := cluster.Follow(t.Context(), c, "test", "w", "r", away, func(*historypb.HistoryEvent) error {
		seen++
		return nil
	})
	if err != nil || seen != len(events) {
		t.Errorf("%d events, %v", seen, err)
	}
	if len(reported) != 2 || reported[0] == "" || reported[1] != "" {
		t.Errorf("reported %q", reported)
	}
}
