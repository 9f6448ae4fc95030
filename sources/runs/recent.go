package runs

import (
	"slices"
	"time"

	"acescope/engine/ace"
)

// RecentRuns is how many ended tasks a list sums up.
const RecentRuns = 100

// Recent sums up the tasks that ended last.
type Recent struct {
	Runs     int
	Counts   map[ace.ExitStatus]int
	Sum      ace.Summary
	P50, P95 time.Duration
}

// LastEnded is the at most n tasks among rows that ended last, newest first.
func LastEnded(rows []Run, n int) []Run {
	var last []Run
	for _, r := range rows {
		if r.Type == ace.TaskWorkflow && !r.Open() {
			last = append(last, r)
		}
	}
	slices.SortStableFunc(last, func(a, b Run) int { return b.Close.Compare(a.Close) })
	return last[:min(len(last), n):min(len(last), n)]
}

// RecentOf sums up the at most n tasks among rows that ended last; nil where none did.
func RecentOf(rows []Run, n int) *Recent {
	last := LastEnded(rows, n)
	if len(last) == 0 {
		return nil
	}
	out := &Recent{Runs: len(last), Counts: map[ace.ExitStatus]int{}}
	var took []time.Duration
	for _, r := range last {
		out.Counts[r.Exit]++
		if r.Summary != nil {
			out.Sum = out.Sum.Add(*r.Summary)
		}
		took = append(took, r.Age(r.Close))
	}
	slices.Sort(took)
	out.P50, out.P95 = took[(len(took)-1)/2], took[(len(took)-1)*95/100]
	return out
}
