package transcript

import (
	"slices"
	"time"
)

// Bounds of what a summary holds. What is over them is counted together, or left out where
// a field says so.
const (
	maxPrompt     = 500 // bytes of the first prompt, of a title and of an error
	maxName       = 120 // of a model, a tool, a version
	maxPath       = 4096
	maxModels     = 16
	maxTools      = 200
	maxAgentCalls = 500
)

// Others is the name under which models or tools over the bound are counted.
const Others = "(others)"

// Summary is what a transcript tells in all.
type Summary struct {
	SessionID string    `json:"session_id,omitempty"`
	AgentID   string    `json:"agent_id,omitempty"` // of a subagent's transcript
	WorkDir   string    `json:"work_dir,omitempty"`
	Branch    string    `json:"branch,omitempty"`
	Version   string    `json:"version,omitempty"`
	Prompt    string    `json:"prompt,omitempty"` // the first one, or a slash command where there is none
	Title     string    `json:"title,omitempty"`  // as it was named, or summed up
	Model     string    `json:"model,omitempty"`  // the last one that answered
	Started   time.Time `json:"started,omitzero"` // earliest and latest time of any line
	Last      time.Time `json:"last,omitzero"`

	Turns    int         `json:"turns"`    // prompts of a person
	Messages int         `json:"messages"` // of both sides, parts of one counted once, results of tools left out
	Models   []ModelUse  `json:"models,omitempty"`
	Tools    []ToolUse   `json:"tools,omitempty"` // in the order of their first call
	Agents   []AgentCall `json:"agents,omitempty"`
	Totals

	Compactions int    `json:"compactions,omitempty"`
	Errors      int    `json:"errors,omitempty"` // of the API
	LastError   string `json:"last_error,omitempty"`
	// Unfinished tells that the last turn has not come to its end: a prompt, a call or a
	// result waits for an answer. After a crash it means that the work was broken off.
	Unfinished bool `json:"unfinished,omitempty"`

	Lines      int `json:"lines"`
	Unreadable int `json:"unreadable,omitempty"` // no JSON objects
	Unknown    int `json:"unknown,omitempty"`    // of types that say nothing here
	Odd        int `json:"odd,omitempty"`        // messages without a content that is understood
	Oversized  int `json:"oversized,omitempty"`  // lines over MaxLine
	Repeated   int `json:"repeated,omitempty"`   // lines whose uuid was there before
	// First is the uuid of the first line that has one: forks begin with the same.
	First string `json:"first,omitempty"`
}

// Totals is what was spent. CostUSD holds what is known; Unpriced is the tokens of models
// whose price is not, and Priced those of the others.
type Totals struct {
	Tokens   Tokens  `json:"tokens"`
	Priced   int64   `json:"priced_tokens,omitempty"`
	Unpriced int64   `json:"unpriced_tokens,omitempty"`
	CostUSD  float64 `json:"cost_usd,omitempty"`
	Calls    int     `json:"calls"` // of tools
	Failed   int     `json:"failed_calls,omitempty"`
	Denied   int     `json:"denied_calls,omitempty"`
}

// Add is the sum of two.
func (t Totals) Add(u Totals) Totals {
	return Totals{t.Tokens.Add(u.Tokens), t.Priced + u.Priced, t.Unpriced + u.Unpriced, t.CostUSD + u.CostUSD,
		t.Calls + u.Calls, t.Failed + u.Failed, t.Denied + u.Denied}
}

// ModelUse is what a model did in a session.
type ModelUse struct {
	Name     string  `json:"name"`
	Messages int     `json:"messages"`
	Tokens   Tokens  `json:"tokens"`
	CostUSD  float64 `json:"cost_usd,omitempty"`
	Priced   bool    `json:"priced"` // its price is known
}

// ToolUse is the calls of a tool. Took is from the call to the result over the Timed calls
// for which the transcript tells it; waiting for a permission is in it.
type ToolUse struct {
	Name   string        `json:"name"`
	Calls  int           `json:"calls"`
	Failed int           `json:"failed,omitempty"`
	Denied int           `json:"denied,omitempty"`
	Ended  int           `json:"ended,omitempty"` // calls with a result
	Timed  int           `json:"timed,omitempty"`
	Took   time.Duration `json:"took,omitempty"`
	Max    time.Duration `json:"max,omitempty"`
	Last   time.Time     `json:"last,omitzero"` // when it was called last
}

// Mean is how long a call took, zero where no call tells.
func (u ToolUse) Mean() time.Duration {
	if u.Timed == 0 {
		return 0
	}
	return u.Took / time.Duration(u.Timed)
}

// AgentCall is a call that started a subagent.
type AgentCall struct {
	CallID      string `json:"call_id"`
	AgentID     string `json:"agent_id,omitempty"` // once its result tells
	Type        string `json:"type,omitempty"`
	Description string `json:"description,omitempty"`
	Ended       bool   `json:"ended,omitempty"`
}

func (s Summary) clone() Summary {
	s.Models, s.Tools, s.Agents = slices.Clone(s.Models), slices.Clone(s.Tools), slices.Clone(s.Agents)
	return s
}
