package runs

import (
	"slices"
	"time"

	"acescope/engine/ace"
	"acescope/sources/cluster"
)

// RecentRuns is the number of closed tasks in the summary of a list.
const RecentRuns = 100

// Recent summarizes the tasks that closed last.
type Recent struct {
	Runs   int                `json:"runs"`
	Status map[ace.Status]int `json:"status"` // number of tasks by status
	// number of completed tasks by verdict; without those of unknown verdict
	Verdict map[ace.Verdict]int `json:"verdict"`
	Sum     ace.Summary         `json:"summary"`
	P50MS   float64             `json:"p50_ms"`
	P95MS   float64             `json:"p95_ms"`
}

// RecentOf summarizes the [RecentRuns] tasks of rows that closed last; nil if no task has closed.
func RecentOf(rows []Run) *Recent {
	var last []Run
	for _, r := range rows {
		if r.Type == ace.TaskWorkflow && !r.Open() {
			last = append(last, r)
		}
	}
	slices.SortStableFunc(last, func(a, b Run) int { return b.Close.Compare(a.Close) })
	last = last[:min(len(last), RecentRuns)]
	if len(last) == 0 {
		return nil
	}
	out := &Recent{Runs: len(last), Status: map[ace.Status]int{}, Verdict: map[ace.Verdict]int{}}
	var took []time.Duration
	for _, r := range last {
		out.Status[r.Status]++
		if r.Status == ace.Completed && r.Verdict != "" {
			out.Verdict[r.Verdict]++
		}
		if r.Summary != nil {
			out.Sum = out.Sum.Add(*r.Summary)
		}
		took = append(took, r.Age(r.Close))
	}
	slices.Sort(took)
	out.P50MS = cluster.Millis(took[(len(took)-1)/2])
	out.P95MS = cluster.Millis(took[(len(took)-1)*95/100])
	return out
}
