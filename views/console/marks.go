package console

import (
	"slices"

	"acescope/sources/runs"
)

// marks are the runs that somebody marked, in the order in which that was done.
type marks struct {
	Runs []runs.Run
	Of   map[RowKey]bool
}

func KeyOf(r *runs.Run) RowKey { return RowKey{r.WorkflowID, r.RunID} }

// Toggle marks a run, or takes its mark away. It tells whether there was room.
func (m *marks) Toggle(r runs.Run) bool {
	k := KeyOf(&r)
	if m.Of[k] {
		delete(m.Of, k)
		m.Runs = slices.DeleteFunc(m.Runs, func(o runs.Run) bool { return KeyOf(&o) == k })
		return true
	}
	if len(m.Runs) >= MaxMarks {
		return false
	}
	if m.Of == nil {
		m.Of = map[RowKey]bool{}
	}
	m.Of[k] = true
	m.Runs = append(m.Runs, r)
	return true
}

func (m *marks) Clear() { *m = marks{} }

// refresh takes up what became of the marked runs that are in a list.
func (m *marks) refresh(rows []runs.Run) {
	if len(m.Runs) == 0 {
		return
	}
	now := map[RowKey]int{}
	for i := range rows {
		if k := KeyOf(&rows[i]); m.Of[k] {
			now[k] = i
		}
	}
	for i := range m.Runs {
		if at, ok := now[KeyOf(&m.Runs[i])]; ok {
			m.Runs[i] = rows[at]
		}
	}
}

// MaxMarks bounds the marks.
const MaxMarks = 10_000

type RowKey struct{ WorkflowID, RunID string }

// shownMarks is how many marked runs a question names.
const shownMarks = 8
