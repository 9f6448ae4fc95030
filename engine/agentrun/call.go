package agentrun

import (
	"sync"
	"time"

	"acescope/engine/ace"
	"acescope/engine/agentcli"
	"acescope/engine/artifact"
)

// Classes of ends that are not the agent's own words.
const (
	// ClassRefused is a call that policy does not allow, or that the CLI has no way for.
	ClassRefused agentcli.Class = "refused"
	// ClassBadInput is a call that cannot be made, such as in a directory that is not there.
	ClassBadInput agentcli.Class = "bad_input"
	// ClassCannotStart is a program that is there, but could not be started this time.
	ClassCannotStart agentcli.Class = "cannot_start"
	// ClassCancelled is a call that was ended because nobody wants it any more.
	ClassCancelled agentcli.Class = "cancelled"
	// ClassLogBroken is a call that was ended because its log cannot be written.
	ClassLogBroken agentcli.Class = "log_incomplete"
)

// Call is one call of an agent, as one attempt makes it.
type Call struct {
	// ID is the same for every attempt of one call, and another for every other call.
	ID          string
	CLI         agentcli.CLI
	Instruction string
	WorkingDir  string // "" for a directory of the run's own
	Resume      string // the session to go on with; "" begins one
	Model       string // "" for the configured one, or the CLI's choice
	// Permission is a mode of [agentcli.Permission], or "default".
	Permission      string
	AllowedTools    []string
	DisallowedTools []string
	SystemPrompt    string // of a CLI that has no way for it, it comes before the instruction
	MaxTurns        int
	MaxBudgetUSD    float64
	Timeout         time.Duration // 0 for none
	Log             artifact.LogName
	// Each is told of every event as it comes, without secrets; nil for nobody.
	Each func(agentcli.Event)
	// Progress, where it is set, is kept up to date.
	Progress *Progress
}

// End is how a call ended. Text is what the agent said last; it belongs into no history
// unless somebody wants it there.
type End struct {
	ace.AgentResult
	// Retry tells that the same call can succeed another time.
	Retry bool
	Text  string
}

// Progress is how far a call has come. It may be read while the call runs.
type Progress struct {
	mu  sync.Mutex
	now Beat
}

// Beat is what a call tells of itself while it runs.
type Beat struct {
	SessionID string `json:"session_id,omitempty"`
	LogPath   string `json:"log_path,omitempty"`
	Events    int64  `json:"events"`
}

// Now is how far it is.
func (p *Progress) Now() Beat {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.now
}

func (p *Progress) set(b Beat) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now = b
}
