package run

import (
	"time"

	"acescope/engine/ace"
	"acescope/engine/runner"
)

// State is what is known of a run: the value of the fold, and the answer of [QueryRun]. The
// zero State knows nothing. It is bounded, and not safe for concurrent use.
type State struct {
	Input  Input         `json:"input"`
	Status Status        `json:"status"`
	Try    int           `json:"try"` // how often it has asked for a runner
	Claim  *runner.Claim `json:"claim,omitempty"`
	Began  *Began        `json:"began,omitempty"`
	Result *Result       `json:"result,omitempty"`
	// Moves are the runners that it was given to before, and how each ended.
	Moves []MoveRecord `json:"moves,omitempty"`
	Stop  *StopRequest `json:"stop,omitempty"`
	// Ignored counts signals that did not fit the claim in force: late or forged ones.
	Ignored int `json:"ignored,omitempty"`
	// Told says how the parent session was told, "" where that is not yet so: told, ended
	// (there is no such open session) or none (there is no parent to be told).
	Told      string    `json:"told,omitempty"`
	TimeoutAt time.Time `json:"timeout_at,omitzero"`
	// TimedOut tells that an agent had its time and is being stopped for that.
	TimedOut bool           `json:"timed_out,omitempty"`
	Exit     ace.ExitStatus `json:"exit_status"`

	given   bool // the claim in force is being executed
	arrived arrivals
}

// MoveRecord is a claim that came to nothing.
type MoveRecord struct {
	Claim  int64  `json:"claim"`
	Runner string `json:"runner_id"`
	Queue  string `json:"queue"` // of that runner's registration
	Why    string `json:"why"`
}
