package runs

import (
	"cmp"
	"slices"
	"time"

	enumspb "go.temporal.io/api/enums/v1"

	"acescope/engine/ace"
	"acescope/sources/cluster"
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
	TaskID     string         `json:"task_id"`
	WorkflowID string         `json:"workflow_id"`
	RunID      string         `json:"run_id"`
	Type       string         `json:"workflow_type,omitempty"`
	Experiment string         `json:"experiment_id,omitempty"`
	Dataset    string         `json:"dataset_id,omitempty"`
	Model      string         `json:"model,omitempty"`
	Adapter    string         `json:"adapter,omitempty"`
	Phase      ace.Phase      `json:"phase,omitempty"`
	Exit       ace.ExitStatus `json:"exit_status"`
	Start      time.Time      `json:"start,omitzero"`
	Close      time.Time      `json:"close,omitzero"`              // zero while it runs
	Events     int64          `json:"events,omitempty"`            // history length in visibility
	Summary    *ace.Summary   `json:"summary,omitempty"`           // nil if it has not set one
	Attempt    int32          `json:"attempt,omitempty"`           // of a retried pending activity, otherwise 0
	LastError  string         `json:"last_error,omitempty"`        // of that activity
	Fork       *ace.Forked    `json:"forked_from,omitempty"`       // the original of a fork, otherwise nil
	Blueprint  string         `json:"blueprint,omitempty"`         // of a blueprint run, otherwise ""
	Runner     string         `json:"runner_id,omitempty"`         // current or last runner
	Session    string         `json:"session_id,omitempty"`        // session that a blueprint run is or belongs to
	Parent     string         `json:"parent_session_id,omitempty"` // of the session that started it, or ""
	ResetFrom  string         `json:"reset_from,omitempty"`        // original of a reset; "" in lists
}

// ID returns the ID of the run.
func (r Run) ID() ID { return ID{r.WorkflowID, r.RunID} }

// attributes are the fields of a run by the search attribute that sets or names them.
var attributes = map[string]func(*Run) *string{
	"WorkflowId":       func(r *Run) *string { return &r.WorkflowID },
	"RunId":            func(r *Run) *string { return &r.RunID },
	ace.AttrTask:       func(r *Run) *string { return &r.TaskID },
	ace.AttrExperiment: func(r *Run) *string { return &r.Experiment },
	ace.AttrDataset:    func(r *Run) *string { return &r.Dataset },
	ace.AttrModel:      func(r *Run) *string { return &r.Model },
	ace.AttrAdapter:    func(r *Run) *string { return &r.Adapter },
	ace.AttrPhase:      func(r *Run) *string { return (*string)(&r.Phase) },
	ace.AttrExit:       func(r *Run) *string { return (*string)(&r.Exit) },
	ace.AttrBlueprint:  func(r *Run) *string { return &r.Blueprint },
	ace.AttrRunner:     func(r *Run) *string { return &r.Runner },
}

// Value returns the value of a search attribute, "" if the run does not hold it.
func (r *Run) Value(attribute string) string {
	if field := attributes[attribute]; field != nil {
		return *field(r)
	}
	return ""
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

// exits are the outcomes that follow from the server's status. Any other status is a failure.
var exits = map[enumspb.WorkflowExecutionStatus]ace.ExitStatus{
	enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING:          ace.Running,
	enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED:        ace.Success,
	enumspb.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW: ace.Continued,
	enumspb.WORKFLOW_EXECUTION_STATUS_CANCELED:         ace.Canceled,
	enumspb.WORKFLOW_EXECUTION_STATUS_TIMED_OUT:        ace.Timeout,
}

func exitOfStatus(s enumspb.WorkflowExecutionStatus) ace.ExitStatus {
	return cmp.Or(exits[s], ace.Failed)
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
	FromQuery   Origin = "live query" // the run's worker answered
	FromHistory Origin = "history"    // the run is closed, or no worker answers
)

// RecentRuns is the number of closed tasks in the summary of a list.
const RecentRuns = 100

// Recent summarizes the tasks that closed last.
type Recent struct {
	Runs   int                    `json:"runs"`
	Counts map[ace.ExitStatus]int `json:"counts"` // by outcome
	Sum    ace.Summary            `json:"summary"`
	P50MS  float64                `json:"p50_ms"`
	P95MS  float64                `json:"p95_ms"`
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
	out.P50MS = cluster.Millis(took[(len(took)-1)/2])
	out.P95MS = cluster.Millis(took[(len(took)-1)*95/100])
	return out
}
