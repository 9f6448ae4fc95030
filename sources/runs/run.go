package runs

import (
	"slices"
	"time"

	enumspb "go.temporal.io/api/enums/v1"

	"acescope/engine/ace"
)

// RunList holds the runs that match the query, newest first, as far as they are loaded.
type RunList struct {
	Query    string // visibility query, "" for all
	Rows     []Run
	First    int64 // number of newer runs before Rows[0]
	Walking  int64 // number of runs passed on the way to the oldest run, 0 if no walk is running
	Total    int64 // the server's count; -1 while unknown
	Counts   map[ace.ExitStatus]int64
	More     bool      // older rows are not loaded
	Loaded   time.Time // time of the last reading, zero before the first
	Interval time.Duration
	Paused   bool
	Loading  bool
	Err      string // why the last reading failed
	ErrAt    int    // byte offset of a syntax error in Query, or -1
	Recent   *Recent
	Retries  RetryState
	Missing  []string // search attributes of the contract that the server lacks
}

// ID names a run. An empty RunID is the newest run of the workflow; an empty WorkflowID is no run.
type ID struct {
	WorkflowID string
	RunID      string
}

// Run is one run in a list.
type Run struct {
	WorkflowID string
	RunID      string
	Type       string // workflow type
	TaskID     string
	Experiment string
	Dataset    string
	Model      string
	Adapter    string
	Phase      ace.Phase
	Exit       ace.ExitStatus
	Start      time.Time
	Close      time.Time    // zero while it runs
	Events     int64        // history length in visibility
	Summary    *ace.Summary // nil if it has not set one
	Attempt    int32        // of a retried pending activity, otherwise 0
	LastError  string       // of that activity
	Fork       *ace.Forked  // the original of a fork, otherwise nil
	Blueprint  string       // of a blueprint run, otherwise ""
	Runner     string       // current or last runner
	Session    string       // id of the session that a blueprint run is or belongs to
	Parent     string       // id of the session that started it, or ""
	ResetFrom  string       // run id of the original of a reset; "" if unknown, because lists do not contain it
}

// Open reports whether the run has not closed.
func (r Run) Open() bool { return r.Close.IsZero() }

// Age returns how long the run took, or has taken so far; never negative.
func (r Run) Age(now time.Time) time.Duration {
	if r.Open() {
		return max(now.Sub(r.Start), 0)
	}
	return max(r.Close.Sub(r.Start), 0)
}

// Origins. FromQuery: the run's worker answered. FromHistory: the history was folded here, because the run is
// closed or no worker answers.

func exitOfStatus(s enumspb.WorkflowExecutionStatus) ace.ExitStatus {
	switch s {
	case enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING:
		return ace.Running
	case enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED:
		return ace.Success
	case enumspb.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW:
		return ace.Continued
	case enumspb.WORKFLOW_EXECUTION_STATUS_CANCELED:
		return ace.Canceled
	case enumspb.WORKFLOW_EXECUTION_STATUS_TIMED_OUT:
		return ace.Timeout
	}
	return ace.Failed
}

// LogLine is an event of a run in one line. Text is untrusted.
type LogLine struct {
	Event int64 // history event id
	At    time.Time
	Kind  string // phase, skill, delta, status, error
	Text  string
}

// Origin is the source of a detail.
type Origin string

const (
	FromQuery   Origin = "live query"
	FromHistory Origin = "folded from history"
)

// RecentRuns is the number of closed tasks in the summary of a list.
const RecentRuns = 100

// Recent summarizes the tasks that closed last.
type Recent struct {
	Runs     int
	Counts   map[ace.ExitStatus]int
	Sum      ace.Summary
	P50, P95 time.Duration
}

// LastEnded returns at most n tasks of rows that closed last, newest first.
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

// RecentOf summarizes at most n tasks of rows that closed last; nil if no task has closed.
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
