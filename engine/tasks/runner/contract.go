package runner

import (
	"strings"
	"time"

	"acescope/engine/ace"
)

// Workflow is the type of a runner's workflow and IDPrefix the prefix of its id.
// DispatcherWorkflow is the type of the dispatcher's workflow.
const (
	Workflow           = "AceRunnerWorkflow"
	IDPrefix           = "acescope-runner/"
	DispatcherWorkflow = "AceDispatcherWorkflow"

	dispatcherID = "acescope-dispatcher"
)

// Earlier versions used these ids, which other programs may use too.
const (
	OldDispatcherID = "dispatcher"
	oldIDPrefix     = "runner/"
)

// DispatcherID returns the workflow id of the dispatcher of the workers of a task queue.
func DispatcherID(queue string) string {
	if queue == ace.TaskQueue {
		return dispatcherID
	}
	return dispatcherID + "/" + queue
}

// Updates and the query of a runner's workflow.
const (
	UpdateRegister = "register" // [Registration] → [Lease]; sent with the start of the workflow
	UpdateDrain    = "drain"    // [Note] → [Info]: assign no more runs
	UpdateLeave    = "leave"    // [Note] → [Info]: the runner ends, its programs have ended

	QueryRunner = "get_runner" // → [Info]
)

// Signals and the query of the dispatcher.
const (
	SignalNotices = "notices" // [Notices]
	// SignalAskAgain makes a run or a runner notify a new dispatcher of its state. It has no
	// argument.
	SignalAskAgain  = "ask_again"
	QueryDispatcher = "get_dispatcher" // [ViewOptions] → [View]
)

// Activities. ActivityLease runs on the runner's own queue; the others are local activities of
// the workers that serve workflows.
const (
	// ActivityLease holds a lease: [LeaseInput] → nothing. It ends by its heartbeat timeout, or
	// when the runner leaves.
	ActivityLease = "hold_runner_lease"
	// ActivityTell notifies the dispatcher, and starts it if needed: [Notices] → [Answer], the
	// immediate answer to an Enqueue, or null.
	ActivityTell       = "tell_dispatcher"
	ActivityNotifyRuns = "tell_runs"  // [Answers] → [DeliveryResult]
	ActivityRecall     = "recall"     // page → next page, or nil: sends SignalAskAgain to runs and runners
	ActivityCheckRuns  = "check_runs" // [CheckInput] → [CheckResult]
)

// Bounds.
const (
	MaxPending = 20_000
	MaxRunners = 1_000
	MaxTags    = 64
	MaxSlots   = 1_000
	MaxTypes   = 32 // executor types of a runner
)

// Defaults of a [Registration].
const (
	DefaultStaleAfter  = 20 * time.Second
	DefaultRemoveAfter = 10 * time.Minute
)

// ErrTypeHeld is the error type of a registration that is refused because another process is
// the runner. Its detail is the [Info] of that process.
const ErrTypeHeld = "RunnerHeld"

// WorkflowID returns the workflow id of a runner.
func WorkflowID(id string) string { return IDPrefix + id }

// IDOf returns the runner id of a workflow id, or "" for other workflows.
func IDOf(workflowID string) string {
	for _, prefix := range []string{IDPrefix, oldIDPrefix} {
		if id, ok := strings.CutPrefix(workflowID, prefix); ok {
			return id
		}
	}
	return ""
}

// Registration describes a runner and its process. The process sends it when it starts.
type Registration struct {
	ID           string       `json:"runner_id"`
	Capabilities Capabilities `json:"capabilities"`
	Token        string       `json:"token"` // identifies the process; new at each start
	// LastToken is the token of the previous process of the runner's directory, which has
	// ended; "" without one.
	LastToken    string `json:"last,omitempty"`
	PID          int    `json:"pid"`
	Version      string `json:"version,omitempty"`
	SessionQueue string `json:"session_queue,omitempty"` // for agent sessions on its machine, if any
	// HeartbeatMS is the time without a heartbeat after which the runner is stale, RemoveMS the
	// time after which its runs are lost. 0: [DefaultStaleAfter] and [DefaultRemoveAfter].
	HeartbeatMS int64 `json:"heartbeat_ms,omitempty"`
	RemoveMS    int64 `json:"remove_ms,omitempty"`
}

// Lease is the answer to a registration. It is valid until the process ends.
type Lease struct {
	RunnerID string `json:"runner_id"`
	Epoch    int64  `json:"epoch"` // increases with each registration; about its time in milliseconds
	Queue    string `json:"queue"` // of this epoch only
}

// LeaseInput is the input of [ActivityLease]. A process that loses its lease registers again
// with the same token.
type LeaseInput struct {
	Lease Lease  `json:"lease"`
	Token string `json:"token"` // of the process that may hold the lease
}

// Status is the status of a runner.
type Status string

// Statuses of runners. A stale runner misses heartbeats. Only an online runner gets runs.
const (
	Online   Status = "online"
	Stale    Status = "stale"
	Draining Status = "draining"
	Gone     Status = "gone"
)

func statusOf(gone, stale, draining bool) Status {
	switch {
	case gone:
		return Gone
	case stale:
		return Stale
	case draining:
		return Draining
	}
	return Online
}

// Info is the state of a runner according to its own workflow.
type Info struct {
	Registration Registration `json:"registration"`
	Lease        Lease        `json:"lease"`
	Status       Status       `json:"status"`
	Since        time.Time    `json:"since"` // of the status
	Registered   time.Time    `json:"registered"`
	Reason       string       `json:"reason,omitempty"`
}

// Note is the argument of an update: the user or process that requests it, and the reason.
type Note struct {
	Reason string `json:"reason,omitempty"`
	By     string `json:"by,omitempty"`
	Token  string `json:"token,omitempty"` // of the requesting process, "" for a user
}

// Notices are notices to the dispatcher, in order.
type Notices []Notice

// NoticeKind is the kind of a [Notice].
type NoticeKind string

// Kinds of notices: first those of runs, then those of runners.
const (
	Enqueue  NoticeKind = "enqueue"  // the run wants a runner
	Withdraw NoticeKind = "withdraw" // the run does not want a runner anymore
	Release  NoticeKind = "release"  // the run has ended, its slot is free
	Holds    NoticeKind = "holds"    // an earlier dispatcher assigned the run to a runner

	Registered   NoticeKind = "registered" // sent again after each change
	WentStale    NoticeKind = "stale"
	Recovered    NoticeKind = "back"
	DrainStarted NoticeKind = "draining"
	Left         NoticeKind = "left"    // its programs have ended, its agents' sessions continue
	Removed      NoticeKind = "removed" // its runs are lost
)

// Notice tells the dispatcher about a run or a runner. Only the fields of its kind are set.
type Notice struct {
	Kind NoticeKind `json:"kind"`

	Run     string   `json:"run,omitempty"`     // run id
	Request *Request `json:"request,omitempty"` // of Enqueue and Holds
	Claim   int64    `json:"claim,omitempty"`   // of Release
	Held    *Claim   `json:"held,omitempty"`    // of Holds

	Runner       string        `json:"runner,omitempty"` // runner id
	Epoch        int64         `json:"epoch,omitempty"`
	Registration *Registration `json:"registration,omitempty"` // of Registered
	Queue        string        `json:"queue,omitempty"`        // of Registered
}

// Request asks for a runner for a run.
type Request struct {
	RunID string `json:"run_id"`
	// Execution is the workflow's run id: a later workflow of the same id gets no answer to
	// this request.
	Execution    string       `json:"execution"`
	Requirements Requirements `json:"demands"`
	Deadline     time.Time    `json:"deadline"`         // when the run gives up
	Asked        time.Time    `json:"asked,omitzero"`   // zero: when the dispatcher received the request
	Parent       string       `json:"parent,omitempty"` // session to notify of the end, if any
	Name         string       `json:"name,omitempty"`   // of the blueprint
	Try          int          `json:"try"`              // counts the run's requests from 1
	// Avoid lists the queues of the registrations that lost the run. A runner that has
	// registered again has another queue and may execute it.
	Avoid []string `json:"avoid,omitempty"`
}

// Claim assigns a run to a runner. If a run gets two claims, the one with the higher number
// counts.
type Claim struct {
	Number       int64        `json:"claim"`
	Try          int          `json:"try"`
	RunnerID     string       `json:"runner_id"`
	Epoch        int64        `json:"epoch"`
	Queue        string       `json:"queue"`
	SessionQueue string       `json:"session_queue,omitempty"`
	Capabilities Capabilities `json:"capabilities"`
	At           time.Time    `json:"at"`
}

// Unmatched reports why no runner took a run.
type Unmatched struct {
	Try     int    `json:"try"`
	Message string `json:"message"`
	Reason  string `json:"reason"` // no_runner, queue_full or bad_demands
}

// Lost reports that the runner of a run is gone.
type Lost struct {
	Claim    int64  `json:"claim"`
	RunnerID string `json:"runner_id"`
	Message  string `json:"message"`
}

// Answers are answers to runs. [ActivityNotifyRuns] delivers them as the result of a waiting
// [ActivityTell], or as signals.
type Answers []Answer

// Answer is an answer to a run. Exactly one of Claimed, Unmatched and Lost is set.
type Answer struct {
	RunID     string     `json:"run_id"`
	Execution string     `json:"execution"`
	Parent    string     `json:"parent,omitempty"` // of the request, if the run turns out to have ended
	Name      string     `json:"name,omitempty"`
	Claimed   *Claim     `json:"claimed,omitempty"`
	Unmatched *Unmatched `json:"unmatched,omitempty"`
	Lost      *Lost      `json:"lost,omitempty"`
}

// DeliveryResult lists the runs that did not receive their answers: runs that have ended, and runs for which
// the delivery is to be repeated.
type DeliveryResult struct {
	Ended []string `json:"ended,omitempty"`
	Later []string `json:"later,omitempty"`
}

// CheckInput is the input of [ActivityCheckRuns]: runs that have held a slot for long.
type CheckInput struct {
	Runs []Request `json:"runs"`
}

// CheckResult holds the status of the runs that ended without a notice, by run id.
type CheckResult struct {
	Ended map[string]ace.Status `json:"ended,omitempty"`
}

// ViewOptions bounds the answer to [QueryDispatcher].
type ViewOptions struct {
	Pending int `json:"pending,omitempty"` // waiting runs, at most; 0: 100
}

// View is the state of the dispatcher.
type View struct {
	At      time.Time     `json:"at"` // of the last notice
	Runners []RunnerView  `json:"runners"`
	Waiting int           `json:"waiting"` // number of waiting runs
	Pending []PendingView `json:"pending"` // the oldest waiting runs
	Queues  []QueueView   `json:"queues"`  // waiting runs by their requirements
	Running int           `json:"running"`
	Counts
	Runs int `json:"runs"` // runs of the dispatcher's workflow so far
}

// Counts are the numbers of requests so far, by outcome.
type Counts struct {
	Matched    int64 `json:"matched"`
	Expired    int64 `json:"expired"`
	Refused    int64 `json:"refused"`
	Lost       int64 `json:"lost"`
	TurnedAway int64 `json:"turned,omitempty"` // registrations above [MaxRunners]
}

// RunnerView is a runner in a [View].
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
	Done         int64        `json:"done"`           // number of its runs that have ended
}

// QueueView is a set of waiting runs with equal requirements.
type QueueView struct {
	Requirements Requirements `json:"demands"`
	Waiting      int          `json:"waiting"`
	Oldest       string       `json:"oldest"`            // run id
	Able         int          `json:"able"`              // runners that meet the requirements
	Nearest      string       `json:"nearest,omitempty"` // if Able is 0: the best runner and what it lacks
}

// PendingView is a waiting run.
type PendingView struct {
	RunID        string       `json:"run_id"`
	Name         string       `json:"name,omitempty"`
	Requirements Requirements `json:"demands"`
	Since        time.Time    `json:"since"`
	Deadline     time.Time    `json:"deadline"`
	Parent       string       `json:"parent_session_id,omitempty"`
}
