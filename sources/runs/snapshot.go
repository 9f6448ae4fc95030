package runs

import (
	"time"

	"acescope/engine/ace"
)

// Connection states.

// RunList is the runs that match the query, newest first, as far as they are held.
type RunList struct {
	Query    string // the visibility query in force, "" for all
	Rows     []Run
	First    int64 // how many newer runs lie before Rows[0]
	Walking  int64 // how far a walk to the last run has come, 0 while there is none
	Total    int64 // as the server counts them; -1 while unknown
	Counts   map[ace.ExitStatus]int64
	More     bool      // older rows exist that are not held
	Loaded   time.Time // when the list was last read, zero before the first time
	Interval time.Duration
	Paused   bool
	Loading  bool
	Err      string // why the last reading failed, "" if it did not
	ErrAt    int    // byte offset in Query of a syntax error, -1 where unknown
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
	Events     int64        // history length, as visibility knows it
	Summary    *ace.Summary // nil where the run left none yet
	Attempt    int32        // of a pending activity that is being retried, else 0
	LastError  string       // of that activity
	Fork       *ace.Forked  // where it was forked from, nil for a run that began by itself
	Blueprint  string       // of a run of one, "" for others
	Runner     string       // that has or had it
	Session    string       // id of the session that a run of a blueprint is, or belongs to
	Parent     string       // id of the session that started it, "" for none
	ResetFrom  string       // run id that it was reset from, "" for none and where that is not known: no list tells
}

// Open tells whether the run has not closed.
func (r Run) Open() bool { return r.Close.IsZero() }

// Age is how long the run took, or has taken at now; never below 0, whatever the clocks say.
func (r Run) Age(now time.Time) time.Duration {
	if r.Open() {
		return max(now.Sub(r.Start), 0)
	}
	return max(r.Close.Sub(r.Start), 0)
}

// Origins: FromQuery means that the run's worker answered, FromHistory that the
// history was folded here, because the run is closed or no worker answers.
