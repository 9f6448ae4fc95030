package sources

import (
	"context"
	"testing"
	"time"

	"acescope/sources/historytest"
)

// untilDiff compares and waits until that is done.
func untilDiff(t *testing.T, s *Store) *RunDiff {
	t.Helper()
	for {
		if d := s.Snapshot().RunDiff; d != nil && !d.Reading {
			return d
		}
		select {
		case <-s.Changed():
		case <-t.Context().Done():
			t.Fatal("it never came")
		}
	}
}

// diffing is a store that compares when it is told to.
func diffing(t *testing.T, c *historytest.Client, a, b DiffRef) *RunDiff {
	t.Helper()
	s := NewStore()
	s.DiffRuns(a, b, false)
	s.readDiff(t.Context(), Deps{Client: c})
	return untilDiff(t, s)
}

// Two runs of one workflow id are compared alone, others with their chains.
func TestDiffPart(t *testing.T) {
	c, _ := hops(3)
	c.Put("o", historytest.New("Hops", 1).Of("other", "o", "", "o").Close(time.Millisecond, "done").Events...)
	d := diffing(t, c, DiffRef{WorkflowID: "w", RunID: "r1"}, DiffRef{WorkflowID: "w", RunID: "r3"})
	if d.Diff == nil || d.Diff.A.Runs != 1 || d.Diff.A.RunIDs[0] != "r1" || d.Diff.B.RunIDs[0] != "r3" || d.ReadA != d.Diff.A.Events {
		t.Fatalf("%+v", d)
	}
	d = diffing(t, c, DiffRef{WorkflowID: "w", RunID: "r2"}, DiffRef{WorkflowID: "other", RunID: "o"})
	if d.Diff == nil || d.Diff.A.Runs != 3 || d.Diff.B.Runs != 1 {
		t.Errorf("%+v", d)
	}
	if p := d.Diff.Pairs[len(d.Diff.Pairs)-1]; d.Diff.A.RunID(p.A) != "r3" {
		t.Errorf("the end is of run %q", d.Diff.A.RunID(p.A))
	}
}

// A run that cannot be read is said so, beside the one that can.
func TestDiffOfARunThatIsGone(t *testing.T) {
	c, _ := hops(1)
	d := diffing(t, c, DiffRef{WorkflowID: "w", RunID: "r1"}, DiffRef{WorkflowID: "x", RunID: "gone"})
	if d.Diff != nil || d.ErrA != "" || d.ErrB == "" {
		t.Errorf("%+v", d)
	}
}

// What is compared already is not read again; a wish that changes is.
func TestDiffIsReadOnce(t *testing.T) {
	c, _ := hops(1)
	s := NewStore()
	ref := DiffRef{WorkflowID: "w", RunID: "r1"}
	s.DiffRuns(ref, ref, false)
	s.readDiff(t.Context(), Deps{Client: c})
	untilDiff(t, s)
	read := c.Calls("forward")
	s.readDiff(t.Context(), Deps{Client: c})
	if n := c.Calls("forward"); n != read {
		t.Errorf("read again: %d calls, then %d", read, n)
	}
	s.DiffRuns(ref, ref, true)
	s.readDiff(t.Context(), Deps{Client: c})
	if d := untilDiff(t, s); !d.AllFields || c.Calls("forward") == read {
		t.Errorf("%+v", d)
	}
	if n := len(s.Snapshot().Work); n != 0 {
		t.Errorf("%d works go on", n)
	}
}

// A comparison that was stopped says so.
func TestDiffIsStopped(t *testing.T) {
	c, _ := hops(1)
	s := NewStore()
	c.Fail(func(call string) error {
		if call == "describe" {
			for _, w := range s.Snapshot().Work {
				s.CancelWork(w.ID)
			}
			return context.Canceled
		}
		return nil
	})
	s.DiffRuns(DiffRef{WorkflowID: "w", RunID: "r1"}, DiffRef{WorkflowID: "v", RunID: "r1"}, false)
	s.readDiff(t.Context(), Deps{Client: c})
	if d := untilDiff(t, s); d.ErrA != "reading was stopped" || d.ErrB != "reading was stopped" {
		t.Errorf("%+v", d)
	}
}
