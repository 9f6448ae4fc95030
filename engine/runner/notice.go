package runner

import (
	"time"

	"acescope/engine/ace"
)

// Registration is what a runner's process says when it comes.
type Registration struct {
	ID           string       `json:"runner_id"`
	Capabilities Capabilities `json:"capabilities"`
	// Token tells one process of a runner from another; it is made anew at each start.
	Token string `json:"token"`
	// Last is the token of the process that had the runner's directory before and has ended, or
	// this one would not have it; "" where there was none.
	Last    string `json:"last,omitempty"`
	PID     int    `json:"pid"`
	Version string `json:"version,omitempty"`
	// SessionQueue is the task queue of the agent sessions of its machine, "" where it has none.
	SessionQueue string `json:"session_queue,omitempty"`
	// HeartbeatMS is after how long without a heartbeat it is stale, RemoveMS after how long
	// its runs are given up; 0 for [Stale] and [Remove].
	HeartbeatMS int64 `json:"heartbeat_ms,omitempty"`
	RemoveMS    int64 `json:"remove_ms,omitempty"`
}

// Defaults of a [Registration].
const (
	Stale  = 20 * time.Second
	Remove = 10 * time.Minute
)

// Lease is the answer to a registration: what the process is known under until it ends.
type Lease struct {
	RunnerID string `json:"runner_id"`
	Epoch    int64  `json:"epoch"` // grows with each registration of the runner; about when it was, in milliseconds
	Queue    string `json:"queue"` // of this epoch: a later process gets another one
}

// LeaseInput is what the activity that holds a lease is given. A process whose lease ends
// before it leaves registers again, with the same token.
type LeaseInput struct {
	Lease Lease  `json:"lease"`
	Token string `json:"token"` // of the process that may hold it
}

// Status says how a runner is.
type Status string

// Statuses of runners. A stale one has not been heard of for a while; it gets no runs.
const (
	Online   Status = "online"
	StaleNow Status = "stale"
	Draining Status = "draining"
	Gone     Status = "gone"
)

// Info is what is known of one runner by its own workflow.
type Info struct {
	Registration Registration `json:"registration"`
	Lease        Lease        `json:"lease"`
	Status       Status       `json:"status"`
	Since        time.Time    `json:"since"` // of the status
	Registered   time.Time    `json:"registered"`
	Reason       string       `json:"reason,omitempty"`
}

// Note says why and by whom something was asked for.
type Note struct {
	Reason string `json:"reason,omitempty"`
	By     string `json:"by,omitempty"`
	Token  string `json:"token,omitempty"` // of the process that asks, "" of a person
}

// Notices are told to the dispatcher, in order.
type Notices []Notice

// NoticeKind is the kind of a [Notice].
type NoticeKind string

// Kinds of notices. The first four are told by runs, the others by runners.
const (
	Enqueue  NoticeKind = "enqueue"  // a run wants a runner
	Withdraw NoticeKind = "withdraw" // it does not want one any more
	Release  NoticeKind = "release"  // it has ended, its slot is free
	Holds    NoticeKind = "holds"    // it was given to a runner, by an earlier dispatcher

	Registered NoticeKind = "registered" // also after a change
	WentStale  NoticeKind = "stale"
	CameBack   NoticeKind = "back"
	Drains     NoticeKind = "draining"
	Left       NoticeKind = "left"    // its programs have ended, its agents' sessions go on
	Removed    NoticeKind = "removed" // its runs are lost
)

// Notice is one of them. Only the fields of its kind are set.
type Notice struct {
	Kind NoticeKind `json:"kind"`

	Run     string   `json:"run,omitempty"`     // run id, of the first four
	Request *Request `json:"request,omitempty"` // of Enqueue and Holds
	Claim   int64    `json:"claim,omitempty"`   // of Release: which claim has ended
	Held    *Claim   `json:"held,omitempty"`    // of Holds

	Runner       string        `json:"runner,omitempty"`
	Epoch        int64         `json:"epoch,omitempty"`
	Registration *Registration `json:"registration,omitempty"` // of Registered
	Queue        string        `json:"queue,omitempty"`        // of Registered
}

// Request is a run that wants a runner.
type Request struct {
	RunID string `json:"run_id"`
	// Execution is the run id of its workflow, so that a later run of the same id hears nothing
	// of this one.
	Execution string    `json:"execution"`
	Demands   Demands   `json:"demands"`
	Deadline  time.Time `json:"deadline"` // when it gives up
	// Asked is when the run asked, the zero time for when the dispatcher heard of it.
	Asked time.Time `json:"asked,omitzero"`
	// Parent is the session that is told how the run ended, "" for none.
	Parent string `json:"parent,omitempty"`
	Name   string `json:"name,omitempty"` // of its blueprint
	// Try counts from 1 how often the run has asked, so that a late word on an earlier claim
	// is told from one on this.
	Try int `json:"try"`
	// Avoid are the queues of the registrations that lost the run before. A runner that has
	// registered anew has another, and may take it.
	Avoid []string `json:"avoid,omitempty"`
}

// Claim says which runner a run is given to. Number is the dispatcher's; a run that is
// claimed twice goes by the higher one.
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

// Unmatched says why no runner took a run: which came nearest, and what it lacked.
type Unmatched struct {
	Try     int    `json:"try"`
	Message string `json:"message"`
	Reason  string `json:"reason"` // no_runner, queue_full or bad_demands
}

// Lost says that the runner of a run is gone.
type Lost struct {
	Claim    int64  `json:"claim"`
	RunnerID string `json:"runner_id"`
	Message  string `json:"message"`
}

// Answers are told to runs by [ActivityTellRuns]: as the result of [ActivityTell] to those that
// wait for it, else each as the signal of its kind.
type Answers []Answer

// Answer is one of them: exactly one of the last three is set.
type Answer struct {
	RunID     string `json:"run_id"`
	Execution string `json:"execution"`
	// Parent is that of the request, for a run that turns out to have ended.
	Parent    string     `json:"parent,omitempty"`
	Name      string     `json:"name,omitempty"`
	Claimed   *Claim     `json:"claimed,omitempty"`
	Unmatched *Unmatched `json:"unmatched,omitempty"`
	Lost      *Lost      `json:"lost,omitempty"`
}

// Told are the runs that could not be told: those that have ended, and those of which it is
// not known yet, which are to be told again.
type Told struct {
	Ended []string `json:"ended,omitempty"`
	Later []string `json:"later,omitempty"`
}

// Check asks how runs are that hold a slot for long.
type Check struct {
	Runs []Request `json:"runs"`
}

// Checked are those that have ended without saying so, and with what status.
type Checked struct {
	Ended map[string]ace.ExitStatus `json:"ended,omitempty"`
}
