package runs

import (
	"slices"
	"strings"
	"time"

	"acescope/engine/ace"
	"acescope/engine/temporal/history"
	"acescope/engine/trace"
	"acescope/sources/cluster"
)

// ID names a run. An empty RunID is the newest run of the workflow; an empty WorkflowID is no run.
type ID struct {
	WorkflowID string
	RunID      string
}

// Run is one run in a list.
type Run struct {
	TaskID     string       `json:"task_id"`
	WorkflowID string       `json:"workflow_id"`
	RunID      string       `json:"run_id"`
	Type       string       `json:"workflow_type,omitempty"`
	Experiment string       `json:"experiment_id,omitempty"`
	Dataset    string       `json:"dataset_id,omitempty"`
	Model      string       `json:"model,omitempty"`
	Adapter    string       `json:"adapter,omitempty"`
	Phase      ace.Phase    `json:"phase,omitempty"`
	Status     ace.Status   `json:"status"`            // the server's
	Verdict    ace.Verdict  `json:"verdict,omitempty"` // on the answer of a task, "" if unknown
	Start      time.Time    `json:"start,omitzero"`
	Close      time.Time    `json:"close,omitzero"`    // zero while it runs
	Events     int64        `json:"events,omitempty"`  // history length in visibility
	Summary    *ace.Summary `json:"summary,omitempty"` // nil if it has not set one
	// Trace says what the agents of another workflow type did, without their calls; nil if it is not read.
	Trace *trace.Summary `json:"trace,omitempty"`
	// TraceEvents is the number of events that the trace is of if the history has more, otherwise 0.
	TraceEvents int64 `json:"trace_events,omitempty"`
	Retry
	Fork      *ace.Forked `json:"forked_from,omitempty"` // the original of a fork, otherwise nil
	Blueprint string      `json:"blueprint,omitempty"`   // of a blueprint run, otherwise ""
	Flow      string      `json:"flow,omitempty"`        // name of the flow of a flow run, otherwise ""
	Runner    string      `json:"runner_id,omitempty"`   // current or last runner
	// session that a blueprint run is or belongs to
	Session   string `json:"session_id,omitempty"`
	Parent    string `json:"parent_session_id,omitempty"` // of the session that started it, or ""
	By        string `json:"started_by,omitempty"`        // such as user@host, "" if unknown
	ResetFrom string `json:"reset_from,omitempty"`        // original of a reset; "" in lists
	// Review is set while the run waits for the review of its operations.
	Review   *ace.ReviewMemo `json:"review,omitempty"`
	Observed *Span           `json:"observed,omitempty"` // of an observed run, otherwise nil
}

// Retry is the retried pending activity of a run, or its workflow task, if it fails or no worker takes it.
type Retry struct {
	Retried   string    `json:"retried,omitempty"` // type of the activity, or WorkflowTask
	Attempt   int32     `json:"attempt,omitempty"` // 0 if unknown or without one
	LastError string    `json:"last_error,omitempty"`
	Since     time.Time `json:"retried_since,omitzero"`
}

// Span is when an observed run happened. The server may have recorded it later. End is zero while it is
// unknown. SessionID is the agent's, "" if the observer does not report it.
type Span struct {
	Start     time.Time `json:"start"`
	End       time.Time `json:"end,omitzero"`
	Source    string    `json:"source,omitempty"`
	SessionID string    `json:"session_id,omitempty"`
}

// ID returns the ID of the run.
func (r Run) ID() ID { return ID{r.WorkflowID, r.RunID} }

// Open reports whether the run has not closed.
func (r Run) Open() bool { return r.Close.IsZero() }

// Age returns how long the run took, or has taken so far; never negative.
func (r Run) Age(now time.Time) time.Duration {
	end := now
	if !r.Open() {
		end = r.Close
		if r.Observed != nil && !r.Observed.End.IsZero() {
			end = r.Observed.End
		}
	}
	return max(end.Sub(r.Began()), 0)
}

// WorkflowTask is the value of Retried for a workflow task.
const WorkflowTask = history.TaskType

// Retries reports whether an activity of the run is retried, or its workflow task fails or waits.
func (r *Run) Retries() bool { return r.Open() && (r.Attempt > 1 || r.Retried != "") }

// Reason returns why the run retries, why its answer is wrong, or why it failed; "" if unknown. It is
// untrusted.
func (r *Run) Reason() string {
	switch {
	case r.Retries() && r.Retried == WorkflowTask:
		return cluster.Join(r.Retried, r.LastError)
	case r.Retries():
		return r.LastError
	}
	if r.Summary != nil {
		return r.Summary.Cause
	}
	return ""
}

// Mentions reports whether a part of a text, in lower case, is in the run's task, IDs, subject, answers or
// reason.
func (r *Run) Mentions(lower string) bool {
	fields := []string{r.TaskID, r.WorkflowID, r.RunID, r.Reason()}
	if r.Summary != nil {
		fields = append(fields, r.Summary.Subject, r.Summary.Answer, r.Summary.Expected)
	}
	return slices.ContainsFunc(fields, func(f string) bool {
		return strings.Contains(strings.ToLower(f), lower)
	})
}

// Began returns when the run began.
func (r Run) Began() time.Time {
	if r.Observed != nil {
		return r.Observed.Start
	}
	return r.Start
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
