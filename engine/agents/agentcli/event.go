package agentcli

import (
	"encoding/json"
	"strings"
	"time"

	"acescope/engine/ace"
)

// Kind is the kind of an [Event].
type Kind string

// Event kinds, common to all CLIs.
const (
	KindInit       Kind = "init"        // a session or a turn begins: SessionID, Model, Init
	KindText       Kind = "text"        // a complete text of the agent: Text
	KindThinking   Kind = "thinking"    // Text
	KindDelta      Kind = "delta"       // part of a text that follows whole, for display only: Text
	KindUser       Kind = "user"        // echo of a message to the agent: Text
	KindToolUse    Kind = "tool_use"    // Tool
	KindToolResult Kind = "tool_result" // Tool
	KindStatus     Kind = "status"      // retries, compaction, permissions, tasks, steps: Name and Text
	KindError      Kind = "error"       // an error that need not end the turn: Text, Status
	KindControl    Kind = "control"     // a line of the control protocol: Raw, see DecodeControl
	KindResult     Kind = "result"      // a turn has ended: Result
	KindOther      Kind = "other"       // valid JSON that is not shown: Name
	KindGarbage    Kind = "garbage"     // not an event: Name is a Garbage constant, Text the beginning
)

// Names of events of [KindGarbage].
const (
	GarbageText     = "text"     // a line that is not JSON, such as a warning
	GarbageOversize = "oversize" // a line of more than MaxLine bytes: Size is its length
	GarbageTorn     = "torn"     // a truncated last line
)

// Event is a text, a tool call or another report of an agent. Only the fields of its kind are set, as far as
// the CLI reports them. An event shares no memory with the line it was read from, except Raw.
type Event struct {
	Kind      Kind      `json:"kind"`
	Name      string    `json:"name,omitempty"` // the CLI's own name of the event
	At        time.Time `json:"at,omitzero"`
	SessionID string    `json:"session_id,omitempty"`
	MessageID string    `json:"message_id,omitempty"`
	UUID      string    `json:"uuid,omitempty"`
	ParentID  string    `json:"parent_id,omitempty"` // the tool call whose subagent speaks
	Model     string    `json:"model,omitempty"`
	Text      string    `json:"text,omitempty"`
	Tool      *Tool     `json:"tool,omitempty"`
	// Usage belongs to the message or, in a status event, to the step. Claude reports it as of
	// the beginning of the message and repeats it with every block: count it once per MessageID.
	Usage  *ace.Usage `json:"usage,omitempty"`
	Init   *Init      `json:"init,omitempty"`
	Result *Result    `json:"result,omitempty"`
	// Status is the HTTP status of an error, 0 if unknown.
	Status int `json:"status,omitempty"`
	// Size is the length of a line that was too long, in bytes.
	Size int64 `json:"size,omitempty"`
	// Line is the number of the line, from 1; 0 for an event made by the end of the stream. Part
	// is the event's index within its line.
	Line int64 `json:"line,omitempty"`
	Part int   `json:"part,omitempty"`
	// Raw is the whole line, valid until the next event is read. It is nil for oversize lines
	// and for events made by the end of the stream.
	Raw []byte `json:"-"`
}

// Tool is a tool call or its result.
type Tool struct {
	ID     string          `json:"id"`
	Name   string          `json:"name,omitempty"` // of a call; not every result repeats it
	Args   json.RawMessage `json:"args,omitempty"`
	Result json.RawMessage `json:"result,omitempty"`
	OK     bool            `json:"ok,omitempty"` // of a result
	Denied bool            `json:"denied,omitempty"`
	// Duration is 0 if unknown.
	Duration time.Duration `json:"duration,omitempty"`
}

// ResultText returns the result as text: a string, the texts of a list of blocks, or the JSON of
// another value.
func (t *Tool) ResultText() string {
	var text string
	if json.Unmarshal(t.Result, &text) == nil {
		return text
	}
	var blocks []struct{ Type, Text string }
	if json.Unmarshal(t.Result, &blocks) != nil {
		return string(t.Result)
	}
	var parts []string
	for _, b := range blocks {
		if b.Type != "text" && b.Text == "" {
			b.Text = "[" + b.Type + "]"
		}
		parts = append(parts, b.Text)
	}
	return strings.Join(parts, "\n")
}

// Init is what an agent reports about itself when it starts.
type Init struct {
	Version        string   `json:"version,omitempty"`
	WorkingDir     string   `json:"working_dir,omitempty"`
	PermissionMode string   `json:"permission_mode,omitempty"`
	Tools          []string `json:"tools,omitempty"`
	MCPServers     []string `json:"mcp_servers,omitempty"` // "name", or "name (status)" if not connected
}

// Result is the end of a turn as the CLI reports it. [Judge] interprets it.
type Result struct {
	Subtype  string        `json:"subtype,omitempty"`
	IsError  bool          `json:"is_error"`
	Text     string        `json:"text,omitempty"` // the last text of the agent
	Errors   []string      `json:"errors,omitempty"`
	Turns    int           `json:"turns,omitempty"`
	Duration time.Duration `json:"duration,omitempty"`
	// Usage is as the CLI counts it: its tokens are the sum over the session if Cumulative is set, its cost
	// if CostCumulative is set; a [Meter] derives those of the turn. Tokens written to a cache count as
	// input, tokens read from a cache only as CacheReadTokens.
	Usage          ace.Usage `json:"usage"`
	Cumulative     bool      `json:"cumulative,omitempty"`
	CostCumulative bool      `json:"cost_cumulative,omitempty"`
	Denials        int       `json:"denials,omitempty"` // denied tool calls
	StopReason     string    `json:"stop_reason,omitempty"`
	TerminalReason string    `json:"terminal_reason,omitempty"`
	// Status is the HTTP status of an API error, 0 without one.
	Status int `json:"status,omitempty"`
}
