// Package agentcall makes one call of an agent CLI and keeps a log of it: it starts the
// process under supervision, writes every event to a live log, with secrets redacted, and
// interprets the end. It does not use Temporal; activities and the provider of ACE steps call
// it.
//
// A retried call finds what its earlier attempts did, in their logs and in the agent's own
// transcript. A finished call is not repeated: its result is returned. An interrupted call
// continues in the same session. The cost and tokens of a result include all attempts.
//
// Order: events are passed on, and logged, in the order of the agent's output. Bounds: one line
// of output at a time ([agentcli.MaxLine]); a log of at most [artifact.MaxLog] bytes; the first
// and the last [stderrKept] bytes of standard error. Loss: if the log cannot be written, the
// call ends with [ClassLogBroken] and the log is marked as incomplete.
package agentcall

import (
	"fmt"
	"sync/atomic"
	"time"

	"acescope/engine/ace"
	"acescope/engine/agents/agentcli"
	"acescope/engine/store/artifact"
)

// Classes besides those of agentcli.
const (
	// ClassRefused: policy forbids the call, or the CLI does not support it.
	ClassRefused agentcli.Class = "refused"
	// ClassBadInput: the call is invalid, for example its directory does not exist.
	ClassBadInput agentcli.Class = "bad_input"
	// ClassCannotStart: the program exists but could not be started this time.
	ClassCannotStart agentcli.Class = "cannot_start"
	// ClassCanceled: the context was canceled.
	ClassCanceled agentcli.Class = "cancelled"
	// ClassLogBroken: the call was stopped because its log cannot be written.
	ClassLogBroken agentcli.Class = "log_incomplete"
)

// Call is one attempt of a call of an agent. The runner sets Binary, AllowFull and SessionID of the embedded
// call. If WorkingDir is empty, the agent works in the run's own directory; if Model is empty, it uses the
// configured model. A CLI without a system prompt gets it before the instruction.
type Call struct {
	agentcli.Call
	// ID is the same for all attempts of a call and differs between calls.
	ID      string
	CLI     agentcli.CLI
	Timeout time.Duration // 0 for none
	Log     artifact.LogName
	// OnEvent, if set, gets every event as it comes, without secrets.
	OnEvent func(agentcli.Event)
	// Progress, if set, gets the progress of the call.
	Progress *Progress
}

// Result is how a call ended.
type Result struct {
	ace.AgentResult
	// Retry reports that the same call can succeed later, or on another machine.
	Retry bool
	// Text is the last text of the agent. It is not part of AgentResult, to keep histories small.
	Text string
}

// Elsewhere reports that this machine cannot make the call, but another worker of the task queue
// may have the agent.
func (r *Result) Elsewhere() bool {
	class := agentcli.Class(r.ExitClass)
	return r.Retry && (class == agentcli.ClassMissing || class == agentcli.ClassTooOld)
}

// failed is the result of a call that was not started or that did not end by itself.
func failed(c Call, class agentcli.Class, retry bool, format string, args ...any) *Result {
	return &Result{Retry: retry, AgentResult: ace.AgentResult{
		ExitClass: string(class), Error: fmt.Sprintf(format, args...), Provider: string(c.CLI),
		SessionID: c.Resume,
	}}
}

// setUsage sets the usage of all attempts.
func (r *Result) setUsage(u ace.Usage) *Result {
	r.Usage, r.CostUSD = u, u.CostUSD
	return r
}

// Progress is the progress of a call. It is safe for concurrent use.
type Progress struct{ now atomic.Value }

// Heartbeat is what a running call reports about itself.
type Heartbeat struct {
	SessionID string `json:"session_id,omitempty"`
	LogPath   string `json:"log_path,omitempty"`
	Events    int64  `json:"events"`
}

// Now returns the current progress.
func (p *Progress) Now() Heartbeat {
	h, _ := p.now.Load().(Heartbeat)
	return h
}
