package agentcli

import (
	"encoding/json"
	"time"

	"acescope/engine/ace"
)

// Kind says what an [Event] tells.
type Kind string

// Event kinds, of every agent.
const (
	KindInit       Kind = "init"        // a session or a turn begins: SessionID, Model, Init
	KindText       Kind = "text"        // the agent says something: Text
	KindThinking   Kind = "thinking"    // Text
	KindDelta      Kind = "delta"       // a part of a text to come, for eyes only: Text
	KindUser       Kind = "user"        // a message to the agent, as it was echoed: Text
	KindToolUse    Kind = "tool_use"    // Tool
	KindToolResult Kind = "tool_result" // Tool
	KindStatus     Kind = "status"      // retries, compaction, permissions, tasks: Name and Text
	KindError      Kind = "error"       // something went wrong that need not be the end: Text
	KindControl    Kind = "control"     // a request or an answer of the control protocol: Raw
	KindResult     Kind = "result"      // a turn has ended: Result
	KindOther      Kind = "other"       // understood as JSON, and nothing that is shown: Name
	KindGarbage    Kind = "garbage"     // no JSON: Text
)

// Event is one thing that an agent said or did, whichever CLI said so. Only the fields
// of its kind are set, and those that its CLI tells. It holds no part of the line that it
// was read from except Raw.
type Event struct {
	Kind      Kind       `json:"kind"`
	Name      string     `json:"name,omitempty"` // the CLI's own name of it
	At        time.Time  `json:"at,omitzero"`
	SessionID string     `json:"session_id,omitempty"`
	MessageID string     `json:"message_id,omitempty"`
	UUID      string     `json:"uuid,omitempty"`
	ParentID  string     `json:"parent_id,omitempty"` // the tool call of the subagent that speaks
	Model     string     `json:"model,omitempty"`
	Text      string     `json:"text,omitempty"`
	Tool      *Tool      `json:"tool,omitempty"`
	Usage     *ace.Usage `json:"usage,omitempty"` // of this message, where the CLI tells it
	Init      *Init      `json:"init,omitempty"`
	Result    *Result    `json:"result,omitempty"`
	// Raw is the line, valid until the next event is read.
	Raw []byte `json:"-"`
}

// Tool is a tool call, or what came of it.
type Tool struct {
	ID     string          `json:"id"`
	Name   string          `json:"name,omitempty"`
	Args   json.RawMessage `json:"args,omitempty"`
	Result json.RawMessage `json:"result,omitempty"`
	OK     bool            `json:"ok,omitempty"` // of a result
	Denied bool            `json:"denied,omitempty"`
	// Duration is zero where it is not told.
	Duration time.Duration `json:"duration,omitempty"`
}

// Init is what an agent says of itself when it begins.
type Init struct {
	Version        string   `json:"version,omitempty"`
	WorkingDir     string   `json:"working_dir,omitempty"`
	PermissionMode string   `json:"permission_mode,omitempty"`
	Tools          []string `json:"tools,omitempty"`
	MCPServers     []string `json:"mcp_servers,omitempty"`
}

// Result is how a turn ended, in the CLI's words. [Outcome] judges.
type Result struct {
	Subtype  string        `json:"subtype,omitempty"`
	IsError  bool          `json:"is_error"`
	Text     string        `json:"text,omitempty"`
	Errors   []string      `json:"errors,omitempty"`
	Turns    int           `json:"turns,omitempty"`
	Duration time.Duration `json:"duration,omitempty"`
	// Usage is as the CLI counts it: Cumulative tells that it is the sum over the session,
	// CostCumulative the same of its cost.
	Usage          ace.Usage `json:"usage"`
	Cumulative     bool      `json:"cumulative,omitempty"`
	CostCumulative bool      `json:"cost_cumulative,omitempty"`
	Denials        int       `json:"denials,omitempty"`
	StopReason     string    `json:"stop_reason,omitempty"`
}
