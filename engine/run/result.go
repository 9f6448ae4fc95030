package run

import (
	"encoding/json"
	"time"

	"acescope/engine/ace"
)

// Status is where a run stands.
type Status string

// Statuses of runs. Running is what the document calls started; a run that ran out of time
// has failed, with the reason [Timeout].
const (
	Pending   Status = "pending"
	Claimed   Status = "claimed"
	Running   Status = "running"
	Stopping  Status = "stopping"
	Completed Status = "completed"
	Failed    Status = "failed"
	Stopped   Status = "stopped"
)

// Over tells whether a run with the status has ended.
func (s Status) Over() bool { return s == Completed || s == Failed || s == Stopped }

// Reason says why a run failed, in a word.
type Reason string

// Reasons.
const (
	NoRunner      Reason = "no_runner"  // none came within the time
	QueueFull     Reason = "queue_full" // too many wait already
	BadDemands    Reason = "bad_demands"
	RunnerLost    Reason = "runner_lost"
	NotStarted    Reason = "not_started" // the program is missing, or may not be executed
	ExitCode      Reason = "exit_code"   // it ended with another code than 0
	Signalled     Reason = "signalled"
	Timeout       Reason = "timeout"
	BadParameters Reason = "bad_parameters" // the runner found them not to fit the schema
	AgentFailed   Reason = "agent_failed"
	SessionEnded  Reason = "session_ended"
	Terminated    Reason = "terminated"
	Internal      Reason = "internal"
)

// Result is what came of a run.
type Result struct {
	RunID     string `json:"run_id"`
	SessionID string `json:"session_id"`
	Status    Status `json:"status"`
	Reason    Reason `json:"reason,omitempty"` // of one that failed
	Error     string `json:"error,omitempty"`  // in one sentence

	// Output is what a program wrote to stdout, where that is JSON, or what an agent said
	// last, as a JSON string; OutputRef names it where it is above [MaxOutput]. OutputIs says
	// which it is: json, text, none or invalid (JSON that is cut, or followed by something).
	Output    json.RawMessage `json:"output,omitempty"`
	OutputRef *ace.Ref        `json:"output_ref,omitempty"`
	OutputIs  string          `json:"output_is,omitempty"`
	// Stdout and Stderr are the beginning and the end, at most [MaxText]; the references name
	// all of it, up to [MaxCapture]. Dropped counts bytes that are nowhere.
	Stdout    string   `json:"stdout"`
	Stderr    string   `json:"stderr"`
	StdoutRef *ace.Ref `json:"stdout_ref,omitempty"`
	StderrRef *ace.Ref `json:"stderr_ref,omitempty"`
	Dropped   int64    `json:"dropped_bytes,omitempty"`

	ExitCode        *int      `json:"exit_code"` // nil where it did not end by itself
	Signal          string    `json:"signal,omitempty"`
	DurationSeconds float64   `json:"duration_seconds"`
	StartedAt       time.Time `json:"started_at,omitzero"`

	Log     *ace.Ref  `json:"log,omitempty"` // sealed
	LogPath string    `json:"log_path,omitempty"`
	Usage   ace.Usage `json:"usage"`
	Turn    int       `json:"turn,omitempty"` // of the session
	Runner  string    `json:"runner_id,omitempty"`
	Claim   int64     `json:"claim,omitempty"`
}
