package sources

import (
	"context"
	"testing"
	"time"

	"acescope/sources/cluster"
	"acescope/sources/histories"
	"acescope/sources/historytest"
)

// untilDiff compares and waits for the result.
func untilDiff(t *testing.T, s *Feeds) *histories.RunDiff {
	t.Helper()
	for {
		if d := s.Diff.Value(); d != nil && !d.Reading {
			return d
		}
		select {
		case <-s.Link.Changed():
		case <-t.Context().Done():
			t.Fatal("it never came")
		}
	}
}

// runDiffs runs the feed of comparisons until the test ends.
func runDiffs(t *testing.T, s *Feeds, c *historytest.Client) {
	t.Helper()
	s.Link.Deps = cluster.Deps{Client: c}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); s.Diff.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	s.Diff.Look(true)
}

// diffing compares two runs.
func diffing(t *testing.T, c *historytest.Client, a, b histories.DiffRef) *histories.RunDiff {
	t.Helper()
	s := NewFeeds()
	runDiffs(t, s, c)
	s.Compare(histories.DiffAsk{A: a, B: b})
	return untilDiff(t, s)
}

// Two runs of one workflow id are compared alone, others with their chains.
func TestDiffPart(t *testing.T) {
	c, _ := newChain(3)
	c.Put("o", historytest.New("Hops", 1).Of("other", "o", "", "o").Close(time.Millisecond, "done").Events...)
	d := diffing(t, c, histories.DiffRef{WorkflowID: "w", RunID: "r1"},
		histories.DiffRef{WorkflowID: "w", RunID: "r3"})
	if d.Diff == nil || d.Diff.A.Runs != 1 || d.Diff.A.RunIDs[0] != "r1" || d.Diff.B.RunIDs[0] != "r3" ||
		d.ReadA != d.Diff.A.Events {
		t.Fatalf("%+v", d)
	}
	d = diffing(t, c, histories.DiffRef{WorkflowID: "w", RunID: "r2"},
		histories.DiffRef{WorkflowID: "other", RunID: "o"})
	if d.Diff == nil || d.Diff.A.Runs != 3 || d.Diff.B.Runs != 1 {
		t.Errorf("%+v", d)
	}
	if p := d.Diff.Pairs[len(d.Diff.Pairs)-1]; d.Diff.A.RunID(p.A) != "r3" {
		t.Errorf("the end is of run %q", d.Diff.A.RunID(p.A))
	}
}

// A run that cannot be read is reported beside the other run.
func TestDiffOfARunThatIsGone(t *testing.T) {
	c, _ := newChain(1)
	d := diffing(t, c, histories.DiffRef{WorkflowID: "w", RunID: "r1"},
		histories.DiffRef{WorkflowID: "x", RunID: "gone"})
	if d.Diff != nil || d.ErrA != "" || d.ErrB == "" {
		t.Errorf("%+v", d)
	}
}

// Compared runs are not read again until the ask changes.
func TestDiffIsReadOnce(t *testing.T) {
	c, _ := newChain(1)
	s := NewFeeds()
	ref := histories.DiffRef{WorkflowID: "w", RunID: "r1"}
	runDiffs(t, s, c)
	s.Compare(histories.DiffAsk{A: ref, B: ref})
	untilDiff(t, s)
	read := c.Calls("forward")
	s.Diff.Look(false)
	s.Diff.Look(true)
	s.Compare(histories.DiffAsk{A: ref, B: ref})
	if n := c.Calls("forward"); n != read {
		t.Errorf("read again: %d calls, then %d", read, n)
	}
	s.Compare(histories.DiffAsk{A: ref, B: ref, AllFields: true})
	if d := untilDiff(t, s); !d.AllFields || c.Calls("forward") == read {
		t.Errorf("%+v", d)
	}
	if n := len(s.Link.Status().Work); n != 0 {
		t.Errorf("%d works go on", n)
	}
}

// A canceled comparison is reported.
func TestDiffIsStopped(t *testing.T) {
	c, _ := newChain(1)
	s := NewFeeds()
	c.Fail(func(call string) error {
		if call == "describe" {
			for _, w := range s.Link.Status().Work {
				s.Link.CancelWork(w.ID)
			}
			return context.Canceled
		}
		return nil
	})
	runDiffs(t, s, c)
	s.Compare(histories.DiffAsk{A: histories.DiffRef{WorkflowID: "w", RunID: "r1"},
		B: histories.DiffRef{WorkflowID: "v", RunID: "r1"}})
	if d := untilDiff(t, s); d.ErrA != "reading was canceled" || d.ErrB != "reading was canceled" {
		t.Errorf("%+v", d)
	}
}
