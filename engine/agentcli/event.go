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
	KindText       Kind = "text"        // the agent says something, whole: Text
	KindThinking   Kind = "thinking"    // Text
	KindDelta      Kind = "delta"       // a part of a text to come, for eyes only: Text
	KindUser       Kind = "user"        // a message to the agent, as it was echoed: Text
	KindToolUse    Kind = "tool_use"    // Tool
	KindToolResult Kind = "tool_result" // Tool
	KindStatus     Kind = "status"      // retries, compaction, permissions, tasks, steps: Name and Text
	KindError      Kind = "error"       // something went wrong that need not be the end: Text, Status
	KindControl    Kind = "control"     // a request or an answer of the control protocol: Raw, see DecodeControl
	KindResult     Kind = "result"      // a turn has ended: Result
	KindOther      Kind = "other"       // understood as JSON, and nothing that is shown: Name
	KindGarbage    Kind = "garbage"     // no event of the CLI: Name is one of the Garbage constants, Text the begin
)

// Names of events of [KindGarbage].
const (
	GarbageText     = "text"     // a line that is no JSON, such as a warning
	GarbageOversize = "oversize" // a line of more than MaxLine bytes: Size says how many
	GarbageTorn     = "torn"     // a last line that breaks off
)

// Event is one thing that an agent said or did, whichever CLI said so. Only the fields
// of its kind are set, and those that its CLI tells. It holds no part of the line that it
// was read from except Raw.
type Event struct {
	Kind      Kind      `json:"kind"`
	Name      string    `json:"name,omitempty"` // the CLI's own name of it
	At        time.Time `json:"at,omitzero"`
	SessionID string    `json:"session_id,omitempty"`
	MessageID string    `json:"message_id,omitempty"`
	UUID      string    `json:"uuid,omitempty"`
	ParentID  string    `json:"parent_id,omitempty"` // the tool call of the subagent that speaks
	Model     string    `json:"model,omitempty"`
	Text      string    `json:"text,omitempty"`
	Tool      *Tool     `json:"tool,omitempty"`
	// Usage is that of the message (or, of a status event, of the step) where the CLI tells
	// it. Claude tells it as at the message's begin, and again with every block: count it
	// once per MessageID.
	Usage  *ace.Usage `json:"usage,omitempty"`
	Init   *Init      `json:"init,omitempty"`
	Result *Result    `json:"result,omitempty"`
	// Status is the HTTP status of an error, 0 where it is not told.
	Status int `json:"status,omitempty"`
	// Size is the length in bytes of a line that was too long.
	Size int64 `json:"size,omitempty"`
	// Line is the number of the line, or of the array's element, from 1; 0 of an event that
	// the end of the stream made. Part is the event's place among those of its line, from 0.
	Line int64 `json:"line,omitempty"`
	Part int   `json:"part,omitempty"`
	// Raw is the whole line, valid until the next event is read; nil of oversize lines, and
	// of what the end of the stream made.
	Raw []byte `json:"-"`
}

// Tool is a tool call, or what came of it.
type Tool struct {
	ID     string          `json:"id"`
	Name   string          `json:"name,omitempty"` // not told again with every result
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
	MCPServers     []string `json:"mcp_servers,omitempty"` // "name", or "name (status)" where it is not connected
}

// Result is how a turn ended, in the CLI's words. A [Judge] judges.
type Result struct {
	Subtype  string        `json:"subtype,omitempty"`
	IsError  bool          `json:"is_error"`
	Text     string        `json:"text,omitempty"` // the last thing said
	Errors   []string      `json:"errors,omitempty"`
	Turns    int           `json:"turns,omitempty"`
	Duration time.Duration `json:"duration,omitempty"`
	// Usage is as the CLI counts it: Cumulative tells that its tokens are the sum over the
	// session, CostCumulative the same of its cost. Tokens written to a cache are counted as
	// input, those read from one only as CacheReadTokens. A [Meter] makes differences.
	Usage          ace.Usage `json:"usage"`
	Cumulative     bool      `json:"cumulative,omitempty"`
	CostCumulative bool      `json:"cost_cumulative,omitempty"`
	Denials        int       `json:"denials,omitempty"` // tool calls that were not allowed
	StopReason     string    `json:"stop_reason,omitempty"`
	TerminalReason string    `json:"terminal_reason,omitempty"`
	// Status is the HTTP status of the API's error, 0 where there is none.
	Status int `json:"status,omitempty"`
}
