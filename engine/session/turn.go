package session

import (
	"encoding/json"

	"acescope/engine/ace"
)

// TurnInput is what one turn is given.
type TurnInput struct {
	SessionID  string `json:"session_id"`
	WorkflowID string `json:"workflow_id"`
	RunID      string `json:"run_id"`
	Turn       int    `json:"turn"` // 1-based, over all runs of the session
	// AgentSessionID is the agent's id of the conversation; Resume tells that it has one
	// turn at least behind it.
	AgentSessionID string    `json:"agent_session_id,omitempty"`
	Resume         bool      `json:"resume,omitempty"`
	Messages       []Message `json:"messages"`
	// UUID is the identity of the turn's message in the agent's transcript, at its first
	// attempt.
	UUID string `json:"uuid"`
	// CostSeen is the cost of the conversation that was counted so far, of an agent that
	// reports sums.
	CostSeen float64 `json:"cost_seen,omitempty"`
	// UsageSeen is the same of tokens.
	UsageSeen ace.Usage `json:"usage_seen"`

	Agent          string   `json:"agent"`
	Model          string   `json:"model,omitempty"`
	WorkingDir     string   `json:"working_dir"`
	SystemPrompt   string   `json:"system_prompt,omitempty"`
	PermissionMode string   `json:"permission_mode,omitempty"`
	AllowedTools   []string `json:"allowed_tools,omitempty"`
	Served         []string `json:"served_tools,omitempty"`
	MaxTurns       int      `json:"max_turns,omitempty"`
	BudgetUSD      float64  `json:"budget_usd,omitempty"`

	MCPServers map[string]json.RawMessage `json:"mcp_servers,omitempty"`
	// Unclaimed tells that nobody has looked yet whether the session can live on this host.
	Unclaimed bool `json:"unclaimed,omitempty"`
}

// TurnStatus says how a turn ended.
type TurnStatus string

// Turn statuses.
const (
	TurnCompleted   TurnStatus = "completed"
	TurnFailed      TurnStatus = "failed"
	TurnInterrupted TurnStatus = "interrupted"
)

// TurnResult is what came of one turn: facts and references. What was said in full is in
// its log.
type TurnResult struct {
	Turn   int          `json:"turn"`
	Status TurnStatus   `json:"status"`
	Failed *ace.Failure `json:"failure,omitempty"`
	// AgentSessionID is the agent's id of the conversation from here on.
	AgentSessionID string `json:"agent_session_id"`
	Model          string `json:"model,omitempty"`
	// Version is the agent's, of a turn that was the first to ask for it.
	Version string `json:"version,omitempty"`
	// Text is what the agent said last, cut to [MaxText]/4; Messages what it said and did
	// on the way, the newest [MaxRecent] of it.
	Text     string `json:"text,omitempty"`
	Messages []Out  `json:"messages,omitempty"`
	Omitted  int    `json:"omitted,omitempty"`
	Summary  string `json:"summary"`

	Log     *ace.Ref `json:"log,omitempty"`
	LogPath string   `json:"log_path,omitempty"`
	// Usage is this turn's alone; CostSeen and UsageSeen are the conversation's, where the
	// agent reports sums.
	Usage      ace.Usage `json:"usage"`
	CostSeen   float64   `json:"cost_seen,omitempty"`
	UsageSeen  ace.Usage `json:"usage_seen"`
	DurationMS float64   `json:"duration_ms"`
	Attempt    int32     `json:"attempt"`
	// Warm tells that the agent's process was running already, Recovered that the turn was
	// found done after a crash, Continued that it was found begun.
	Warm      bool `json:"warm,omitempty"`
	Recovered bool `json:"recovered,omitempty"`
	Continued bool `json:"continued,omitempty"`
}
