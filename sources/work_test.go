package sources

import (
	"context"
	"testing"
)

func TestWorkIsShownAndCancelled(t *testing.T) {
	s := NewFeeds()
	first, progress, end := s.Link.StartWork(t.Context(), "reading")
	second, _, endSecond := s.Link.StartWork(t.Context(), "searching")
	progress(3, 10)
	before := s.Link.Status()
	if w := before.Work; len(w) != 2 || w[0].Done != 3 || w[0].Total != 10 || w[1].Label != "searching" {
		t.Fatalf("work is %+v", before.Work)
	}
	s.Link.CancelWork(before.Work[0].ID)
	if first.Err() != context.Canceled || second.Err() != nil {
		t.Errorf("after one was canceled: %v, %v", first.Err(), second.Err())
	}
	end()
	end()
	progress(4, 10)
	if w := s.Link.Status().Work; len(w) != 1 || w[0].Label != "searching" {
		t.Errorf("work is %+v", w)
	}
	if before.Work[0].Label != "reading" || len(before.Work) != 2 {
		t.Error("an older status changed")
	}
	endSecond()
	s.Link.CancelWork(99)
	if w := s.Link.Status().Work; w != nil || second.Err() == nil {
		t.Errorf("work is %+v", w)
	}
}
