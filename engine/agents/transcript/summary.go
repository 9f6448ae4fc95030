package transcript

import (
	"time"

	"acescope/engine/ace"
)

// Bounds of a summary. Models and tools over the bound are counted under [Others].
const (
	maxPrompt     = 500 // bytes of the first prompt, of a title and of an error
	maxName       = 120 // of a model, a tool or a version
	maxPath       = 4096
	maxModels     = 16
	maxTools      = 200
	maxAgentCalls = 500
	maxDays       = 4000 // pairs of a day and a model; usage over the bound has no day
)

// Others is the name for all models or tools over the bound.
const Others = "(others)"

// Summary sums up a transcript.
type Summary struct {
	SessionID string `json:"session_id,omitempty"`
	AgentID   string `json:"agent_id,omitempty"` // of a subagent's transcript
	// Parent is the session that a subagent belongs to, Origin the session that was forked, where the lines
	// say so.
	Parent  string    `json:"parent_session,omitempty"`
	Origin  string    `json:"origin,omitempty"`
	WorkDir string    `json:"work_dir,omitempty"`
	Branch  string    `json:"branch,omitempty"`
	Version string    `json:"version,omitempty"`
	Prompt  string    `json:"prompt,omitempty"` // the first prompt, otherwise a slash command
	Title   string    `json:"title,omitempty"`  // by the user, otherwise generated
	Model   string    `json:"model,omitempty"`  // of the last answer
	Started time.Time `json:"started,omitzero"` // earliest and latest timestamp
	Last    time.Time `json:"last,omitzero"`

	Turns    int         `json:"turns"`    // prompts of the user
	Messages int         `json:"messages"` // of both sides, without tool results
	Models   []ModelUse  `json:"models,omitempty"`
	Days     []DayUse    `json:"days,omitempty"`
	Tools    []ToolUse   `json:"tools,omitempty"` // in the order of their first call
	Agents   []AgentCall `json:"agents,omitempty"`
	Totals

	Compactions int    `json:"compactions,omitempty"`
	Errors      int    `json:"errors,omitempty"` // of the API
	LastError   string `json:"last_error,omitempty"`
	// Unfinished reports that a prompt, a call or a result waits for an answer. After a crash
	// it means that the turn was cut off.
	Unfinished bool `json:"unfinished,omitempty"`

	LineCounts
	// First is the first uuid. Forks share it.
	First string `json:"first,omitempty"`
}

// LineCounts counts the lines of a transcript, and those of them that are not read as they are.
type LineCounts struct {
	Lines      int `json:"lines"`
	Unreadable int `json:"unreadable,omitempty"` // not JSON objects
	Unknown    int `json:"unknown,omitempty"`    // of unknown types
	Odd        int `json:"odd,omitempty"`        // messages with malformed content
	Oversized  int `json:"oversized,omitempty"`  // lines over MaxLine
	Repeated   int `json:"repeated,omitempty"`   // lines with a known uuid
}

// Totals is usage. CostUSD covers the Priced tokens; Unpriced tokens belong to models without
// a known price.
type Totals struct {
	Tokens   Tokens  `json:"tokens"`
	Priced   int64   `json:"priced_tokens,omitempty"`
	Unpriced int64   `json:"unpriced_tokens,omitempty"`
	CostUSD  float64 `json:"cost_usd,omitempty"`
	Calls    int     `json:"calls"` // of tools
	Failed   int     `json:"failed_calls,omitempty"`
	Denied   int     `json:"denied_calls,omitempty"`
}

// Add returns the sum of t and u.
func (t Totals) Add(u Totals) Totals {
	return Totals{
		t.Tokens.Add(u.Tokens), t.Priced + u.Priced, t.Unpriced + u.Unpriced, t.CostUSD + u.CostUSD,
		t.Calls + u.Calls, t.Failed + u.Failed, t.Denied + u.Denied,
	}
}

// Usage returns the tokens and the cost in the form of the contract.
func (t Totals) Usage() ace.Usage {
	return ace.Usage{
		InputTokens: t.Tokens.Input + t.Tokens.CacheWrite(), OutputTokens: t.Tokens.Output,
		CacheReadTokens: t.Tokens.CacheRead, CostUSD: t.CostUSD, Unpriced: t.Unpriced > 0,
	}
}

// ModelUse is the usage of a model in a session.
type ModelUse struct {
	Name     string  `json:"name"`
	Messages int     `json:"messages"`
	Tokens   Tokens  `json:"tokens"`
	CostUSD  float64 `json:"cost_usd,omitempty"`
	Priced   bool    `json:"priced"` // the price of the model is known
}

// DayUse is the usage of a model on a day of the local time zone, as 2006-01-02. The day is ""
// for messages without a time, the model "" for messages without a model.
type DayUse struct {
	Day     string  `json:"day,omitempty"`
	Model   string  `json:"model,omitempty"`
	Tokens  Tokens  `json:"tokens"`
	CostUSD float64 `json:"cost_usd,omitempty"`
	Priced  bool    `json:"priced"`
}

// ToolUse counts the calls of a tool. TotalMS is the sum of the durations of the Timed calls, from
// call to result, including the wait for permission.
type ToolUse struct {
	Name    string    `json:"name"`
	Calls   int       `json:"calls"`
	Failed  int       `json:"failed,omitempty"`
	Denied  int       `json:"denied,omitempty"`
	Ended   int       `json:"ended,omitempty"` // with a result
	Timed   int       `json:"timed,omitempty"`
	TotalMS float64   `json:"total_ms,omitempty"`
	MaxMS   float64   `json:"max_ms,omitempty"`
	Last    time.Time `json:"last,omitzero"` // time of the last call
}

// MeanMS returns the average duration of the timed calls, or 0.
func (u ToolUse) MeanMS() float64 {
	if u.Timed == 0 {
		return 0
	}
	return u.TotalMS / float64(u.Timed)
}

// AgentCall is a call that started a subagent.
type AgentCall struct {
	CallID      string `json:"call_id"`
	AgentID     string `json:"agent_id,omitempty"` // known from the result
	Type        string `json:"type,omitempty"`
	Description string `json:"description,omitempty"`
	Ended       bool   `json:"ended,omitempty"`
}
