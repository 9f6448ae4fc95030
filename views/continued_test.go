package views

import (
	"slices"
	"testing"
	"time"

	"acescope/engine/ace"
	"acescope/sources/runs"
)

// continuedRun returns a run that continued as new, and its successor.
func continuedRun(rows []runs.Run, at int) (was, next runs.Run) {
	was = rows[at]
	next = was
	next.RunID, next.Start = "run-next", was.Start.Add(time.Second)
	return was, next
}

// continued returns a snapshot with the detail of a run that continued as new.
func continued(rows []runs.Run, was, next runs.Run) *snapshot {
	s := ready(rows...)
	s.Detail = detailOf(was)
	s.Detail.Close, s.Detail.ContinuedAs, s.Detail.Phase.Status = next.Start, next.RunID, ace.ContinuedAsNew
	return s
}

func (s *screen) wantSelected(what string, r runs.Run) {
	s.t.Helper()
	if got := s.shared.Navigation.Selected.Run; got.WorkflowID != r.WorkflowID || got.RunID != r.RunID {
		s.t.Errorf("%s: %s %s is selected, want %s %s", what, got.WorkflowID, got.RunID, r.WorkflowID,
			r.RunID)
	}
	if got, want := s.last("select "), r.WorkflowID+" "+r.RunID; got != want {
		s.t.Errorf("%s: it reads %s, want %s", what, got, want)
	}
}

func TestSelectionFollowsContinuedRun(t *testing.T) {
	rows := many(20)
	was, next := continuedRun(rows, 1)
	sc := newScreen(t, ready(rows...), plainLook, 80, 24)
	sc.press("j")
	sc.wantSelected("at first", was)
	sc.show(continued(rows, was, next))
	sc.wantSelected("the list has the old run still", next)
	list := sc.list()
	if list.At(list.Cursor).RunID != was.RunID {
		t.Error("the cursor has moved")
	}
	newer := slices.Concat([]runs.Run{next}, rows[:1], rows[2:])
	sc.show(continued(newer, was, next))
	sc.wantSelected("the list has the new run", next)
	if list.Cursor != 0 || sc.shared.Navigation.Elsewhere {
		t.Errorf("the cursor is on row %d", list.Cursor)
	}
	last := next
	last.RunID, last.Start = "run-last", next.Start.Add(time.Second)
	sc.show(continued(newer, next, last))
	sc.wantSelected("continued again", last)
}

func TestSelectionFollowsContinuedRunInList(t *testing.T) {
	rows := many(20)
	was, next := continuedRun(rows, 1)
	sc := newScreen(t, ready(rows...), plainLook, 80, 24)
	sc.press("j")
	sc.show(ready(slices.Concat([]runs.Run{next}, rows[:1], rows[2:])...))
	sc.wantSelected("the list says so before the history", next)
	if sc.list().Cursor != 0 {
		t.Errorf("the cursor is on row %d", sc.list().Cursor)
	}
	sc.show(continued(slices.Concat([]runs.Run{next}, rows[:1], rows[2:]), was, next))
	sc.wantSelected("the history says so too", next)
}

// A run that was closed when it was opened stays selected: the user wants to see that run.
func TestOpenedEarlierRunStays(t *testing.T) {
	rows := many(20)
	was, next := continuedRun(rows, 1)
	newer := slices.Concat([]runs.Run{next}, rows[:1], rows[2:])
	sc := newScreen(t, ready(newer...), plainLook, 80, 24)
	for _, opened := range []runs.Run{{WorkflowID: was.WorkflowID, RunID: was.RunID},
		{WorkflowID: was.WorkflowID, RunID: was.RunID, Start: was.Start, Close: next.Start}} {
		sc.shared.Navigation.GoFrom(opened)
		sc.show(continued(newer, was, next))
		sc.wantSelected("an earlier run", was)
	}
}
