package sources

import (
	"context"
	"testing"

	historypb "go.temporal.io/api/history/v1"

	"acescope/sources/historytest"
)

// untilReplay waits for a snapshot that satisfies.
func untilReplay(t *testing.T, s *Store, want func(*Replay) bool) *Replay {
	t.Helper()
	for {
		if r := s.Snapshot().Replay; r != nil && want(r) {
			return r
		}
		select {
		case <-s.Changed():
		case <-t.Context().Done():
			t.Fatal("it never came")
		}
	}
}

// The time machine reads the selected run, goes where it is told, and verifies beside.
func TestReplayPart(t *testing.T) {
	c := historytest.NewClient()
	events := historytest.Task(true).Events
	c.Put("r", events...)
	s := NewStore()
	s.Select("ace/t", "r")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	verified := make(chan int, 1)
	deps := Deps{Client: c, Verify: func(_ context.Context, e []*historypb.HistoryEvent, strict bool) ReplayVerdict {
		verified <- len(e)
		return ReplayVerdict{Outcome: "same", Events: len(e)}
	}}
	go func() { defer close(done); s.readReplay(ctx, deps) }()
	r := untilReplay(t, s, func(r *Replay) bool { return r.Frame != nil })
	if r.Frame.Position != len(events) || !r.Closed || len(r.Phases) == 0 || len(r.Known) == 0 {
		t.Errorf("the end: %+v", r)
	}
	s.StepTo(1)
	untilReplay(t, s, func(r *Replay) bool { return r.Frame.Position == 1 })
	s.StepMove(StepPhase, true)
	r = untilReplay(t, s, func(r *Replay) bool { return r.Frame.Position > 1 })
	if r.Frame.Position != r.Phases[1] {
		t.Errorf("to %d, the phases change at %v", r.Frame.Position, r.Phases)
	}
	s.StepTo(100_000)
	untilReplay(t, s, func(r *Replay) bool { return r.Said != "" })
	s.WatchValue("phase")
	r = untilReplay(t, s, func(r *Replay) bool { return r.Watched == "phase" })
	if r.Seen == "" || r.Said != "" {
		t.Errorf("watching: %+v", r)
	}
	s.NextWatched(true)
	untilReplay(t, s, func(r *Replay) bool { return r.Frame.Position > r.Phases[1] })
	s.VerifyRun(false)
	r = untilReplay(t, s, func(r *Replay) bool { return r.Verdict != nil })
	if n := <-verified; n != len(events) || r.Verifying || r.Verdict.Outcome != "same" {
		t.Errorf("verdict: %+v", r.Verdict)
	}
	cancel()
	<-done
	if n := len(s.Snapshot().Work); n != 0 {
		t.Errorf("%d works go on", n)
	}
}
