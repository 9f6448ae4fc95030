package runner

import "time"

// ViewOptions bound the answer of [QueryDispatcher].
type ViewOptions struct {
	Pending int `json:"pending,omitempty"` // runs that wait, at most; 0: 100
}

// View is what the dispatcher knows at a moment.
type View struct {
	At      time.Time    `json:"at"` // of the last notice
	Runners []RunnerView `json:"runners"`
	// Waiting counts the runs that wait; Pending are the oldest of them.
	Waiting int           `json:"waiting"`
	Pending []PendingView `json:"pending"`
	// Queues counts the waiting runs by what they demand.
	Queues  []QueueView `json:"queues"`
	Running int         `json:"running"`
	// Matched, Expired, Refused and Lost count what became of requests so far.
	Matched int64 `json:"matched"`
	Expired int64 `json:"expired"`
	Refused int64 `json:"refused"`
	Lost    int64 `json:"lost"`
	// Turned counts runners that were turned away, of more than [MaxRunners].
	Turned int64 `json:"turned,omitempty"`
	Runs   int   `json:"runs"` // runs of the dispatcher's workflow so far
}

// RunnerView is one runner as the dispatcher knows it.
type RunnerView struct {
	ID           string       `json:"runner_id"`
	Epoch        int64        `json:"epoch"`
	Status       Status       `json:"status"`
	Since        time.Time    `json:"since"`
	Capabilities Capabilities `json:"capabilities"`
	PID          int          `json:"pid,omitempty"`
	Version      string       `json:"version,omitempty"`
	Busy         int          `json:"busy"`
	Runs         []string     `json:"runs,omitempty"` // run ids
	Done         int64        `json:"done"`           // runs that it was given and that have ended
}

// QueueView is one set of demands that runs wait with.
type QueueView struct {
	Demands Demands `json:"demands"`
	Waiting int     `json:"waiting"`
	Oldest  string  `json:"oldest"` // run id
	// Able counts the runners that could take these runs, were they free; where there is none,
	// Nearest says which comes closest, and what it lacks.
	Able    int    `json:"able"`
	Nearest string `json:"nearest,omitempty"`
}

// PendingView is one run that waits.
type PendingView struct {
	RunID    string    `json:"run_id"`
	Name     string    `json:"name,omitempty"`
	Demands  Demands   `json:"demands"`
	Since    time.Time `json:"since"`
	Deadline time.Time `json:"deadline"`
	Parent   string    `json:"parent_session_id,omitempty"`
}
