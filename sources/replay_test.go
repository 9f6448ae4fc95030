package sources

import (
	"context"
	"strings"
	"testing"

	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"

	"acescope/engine/stepper"
	"acescope/engine/temporal/replay"
	"acescope/engine/temporal/replayer"
	"acescope/sources/cluster"
	"acescope/sources/histories"
	"acescope/sources/historytest"
	"acescope/sources/runs"
)

// untilReplay waits for a value that satisfies want.
func untilReplay(t *testing.T, s *Feeds, want func(*histories.Replay) bool) *histories.Replay {
	t.Helper()
	for {
		if r := s.Replay.Value(); r != nil && want(r) {
			return r
		}
		select {
		case <-s.Link.Changed():
		case <-t.Context().Done():
			t.Fatal("it never came")
		}
	}
}

// The time machine reads the selected run, steps through it, and verifies it in parallel.
func TestReplayPart(t *testing.T) {
	c := historytest.NewClient()
	events := historytest.Task(true).Events
	c.Put("r", events...)
	s := NewFeeds()
	s.Select(runs.ID{WorkflowID: "ace/t", RunID: "r"})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	verified := make(chan int, 1)
	s.Link.Deps = cluster.Deps{Client: c, NewVerifier: verifierOf(func(_ context.Context,
		e []*historypb.HistoryEvent, strict bool) replay.Verdict {
		verified <- len(e)
		return replay.Verdict{Outcome: "deterministic", Events: len(e)}
	})}
	s.Replay.Look(true)
	go func() { defer close(done); s.Replay.Run(ctx) }()
	r := untilReplay(t, s, func(r *histories.Replay) bool { return r.Frame != nil })
	phases := histories.NewWalk(events, nil, nil).Marks(stepper.ByPhase)
	if r.Frame.Position != len(events) || !r.Closed || len(r.Known) == 0 || len(r.Sections) == 0 ||
		len(r.Log.Spans) == 0 ||
		r.Words != "the run completed" {
		t.Errorf("the end: %+v", r)
	}
	s.Replay.StepTo(1)
	untilReplay(t, s, func(r *histories.Replay) bool { return r.Frame.Position == 1 })
	s.Replay.StepMove(stepper.ByPhase, true)
	r = untilReplay(t, s, func(r *histories.Replay) bool { return r.Frame.Position > 1 })
	if r.Frame.Position != phases[1] {
		t.Errorf("to %d, the phases change at %v", r.Frame.Position, phases)
	}
	s.Replay.StepTo(100_000)
	untilReplay(t, s, func(r *histories.Replay) bool { return r.Message != "" })
	s.Replay.WatchValue("phase")
	r = untilReplay(t, s, func(r *histories.Replay) bool { return r.Watched == "phase" })
	if r.WatchedValue == "" || r.Message != "" {
		t.Errorf("watching: %+v", r)
	}
	s.Replay.NextWatched(true)
	untilReplay(t, s, func(r *histories.Replay) bool { return r.Frame.Position > phases[1] })
	s.VerifyRun(false)
	r = untilReplay(t, s, func(r *histories.Replay) bool { return r.Verdict != nil })
	if n := <-verified; n != len(events) || r.Verifying || r.Verdict.Outcome != "deterministic" {
		t.Errorf("verdict: %+v", r.Verdict)
	}
	cancel()
	<-done
	if n := len(s.Link.Status().Work); n != 0 {
		t.Errorf("%d works go on", n)
	}
}

// A step past the last event of a run leads to the next run of the chain, and back. A deleted run is named.
func TestReplayOverTheBorder(t *testing.T) {
	c, all := newChain(3)
	s := NewFeeds()
	s.Select(runs.ID{WorkflowID: "w", RunID: "r2"})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	s.Link.Deps = cluster.Deps{Client: c}
	s.Replay.Look(true)
	go func() { defer close(done); s.Replay.Run(ctx) }()
	in := func(run string, at int) *histories.Replay {
		t.Helper()
		return untilReplay(t, s, func(r *histories.Replay) bool {
			return r.RunID == run && r.Frame != nil && r.Frame.Position == at
		})
	}
	last := len(all[1].Events)
	if r := in("r2", last); len(r.Chain.RunIDs) != 3 || r.Chain.At != 1 {
		t.Errorf("%+v", r.Chain)
	}
	s.Replay.StepMove(stepper.ByEvent, true)
	if r := in("r3", 1); r.Chain.At != 2 || r.Selected != "r2" || r.About.RunID != "r3" {
		t.Errorf("%+v", r)
	}
	s.Replay.StepMove(stepper.ByEvent, false)
	in("r2", last)
	s.Replay.StepMove(stepper.ByError, true)
	untilReplay(t, s, func(r *histories.Replay) bool { return strings.Contains(r.Message, "in this run") })
	c.Fail(func(string) error { return serviceerror.NewNotFound("it is gone") })
	s.Replay.StepMove(stepper.ByEvent, true)
	in("r3", 1) // it was read before
	s.Replay.StepMove(stepper.ByEvent, false)
	in("r2", last)
	s.Replay.StepTo(1)
	s.Replay.StepMove(stepper.ByEvent, false)
	untilReplay(t, s, func(r *histories.Replay) bool {
		return strings.Contains(r.Message, "the previous run, r1, cannot be read")
	})
	cancel()
	<-done
}

// verifierOf returns verifiers that call verify.
func verifierOf(verify func(context.Context, []*historypb.HistoryEvent, bool) replay.Verdict) func(
	context.Context, bool) cluster.Verifier {
	return func(_ context.Context, strict bool) cluster.Verifier { return verifier{verify, strict} }
}

type verifier struct {
	verify func(context.Context, []*historypb.HistoryEvent, bool) replay.Verdict
	strict bool
}

func (v verifier) Verify(ctx context.Context, e []*historypb.HistoryEvent, _ replayer.Stored) replay.Verdict {
	return v.verify(ctx, e, v.strict)
}

func (verifier) Unknown(string) string                                       { return "" }
func (verifier) Start([]*historypb.HistoryEvent) (v replay.Verdict, ok bool) { return v, false }
func (verifier) Close()                                                      {}
