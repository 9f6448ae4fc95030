package views

import (
	"slices"
	"testing"
	"time"

	"acescope/engine/ace"
	"acescope/sources/runs"
)

// continuedRun is a run that goes on as another, and that one, as a list has both.
func continuedRun(rows []runs.Run, at int) (was, next runs.Run) {
	was = rows[at]
	next = was
	next.RunID, next.Start = "run-next", was.Start.Add(time.Second)
	return was, next
}

// goesOn is a snapshot with the detail of a run that has been continued.
func goesOn(rows []runs.Run, was, next runs.Run) *snapshot {
	s := ready(rows...)
	s.Detail = detailOf(was)
	s.Detail.Close, s.Detail.ContinuedAs, s.Detail.Phase.ExitStatus = next.Start, next.RunID, ace.Continued
	return s
}

func (s *screen) wantSelected(what string, r runs.Run) {
	s.t.Helper()
	if got := s.shared.Selected.Run; got.WorkflowID != r.WorkflowID || got.RunID != r.RunID {
		s.t.Errorf("%s: %s %s is selected, want %s %s", what, got.WorkflowID, got.RunID, r.WorkflowID, r.RunID)
	}
	if got, want := s.last("select "), r.WorkflowID+" "+r.RunID; got != want {
		s.t.Errorf("%s: it reads %s, want %s", what, got, want)
	}
}

func TestSelectedRunGoesOnAsAnother(t *testing.T) {
	rows := many(20)
	was, next := continuedRun(rows, 1)
	sc := newScreen(t, ready(rows...), plainLook, 80, 24)
	sc.press("j")
	sc.wantSelected("at first", was)
	sc.show(goesOn(rows, was, next))
	sc.wantSelected("the list has the old run still", next)
	list := sc.list()
	if list.At(list.Cursor).RunID != was.RunID {
		t.Error("the cursor has moved")
	}
	newer := slices.Concat([]runs.Run{next}, rows[:1], rows[2:])
	sc.show(goesOn(newer, was, next))
	sc.wantSelected("the list has the new run", next)
	if list.Cursor != 0 || sc.shared.Elsewhere {
		t.Errorf("the cursor is on row %d", list.Cursor)
	}
	last := next
	last.RunID, last.Start = "run-last", next.Start.Add(time.Second)
	sc.show(goesOn(newer, next, last))
	sc.wantSelected("it goes on again", last)
}

func TestSelectedRunGoesOnInTheListFirst(t *testing.T) {
	rows := many(20)
	was, next := continuedRun(rows, 1)
	sc := newScreen(t, ready(rows...), plainLook, 80, 24)
	sc.press("j")
	sc.show(ready(slices.Concat([]runs.Run{next}, rows[:1], rows[2:])...))
	sc.wantSelected("the list says so before the history", next)
	if sc.list().Cursor != 0 {
		t.Errorf("the cursor is on row %d", sc.list().Cursor)
	}
	sc.show(goesOn(slices.Concat([]runs.Run{next}, rows[:1], rows[2:]), was, next))
	sc.wantSelected("the history says so too", next)
}

// A run that had ended when it was opened stays: somebody wants to see that one.
func TestOpenedEarlierRunStays(t *testing.T) {
	rows := many(20)
	was, next := continuedRun(rows, 1)
	newer := slices.Concat([]runs.Run{next}, rows[:1], rows[2:])
	sc := newScreen(t, ready(newer...), plainLook, 80, 24)
	for _, opened := range []runs.Run{{WorkflowID: was.WorkflowID, RunID: was.RunID}, {WorkflowID: was.WorkflowID, RunID: was.RunID, Start: was.Start, Close: next.Start}} {
		sc.shared.GoFrom(opened)
		sc.show(goesOn(newer, was, next))
		sc.wantSelected("an earlier run", was)
	}
}
