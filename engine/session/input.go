package session

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"

	"acescope/engine/ace"
)

// Input is what a session is started with.
type Input struct {
	SessionID string `json:"session_id"`
	// AgentSessionID is the agent's own id of the conversation, known before it begins. An
	// agent that chooses its own id tells it with its first turn.
	AgentSessionID string `json:"agent_session_id,omitempty"`
	Name           string `json:"name,omitempty"`
	Agent          string `json:"agent"` // claude, codex, gemini, opencode
	Model          string `json:"model,omitempty"`
	WorkingDir     string `json:"working_dir"`
	SystemPrompt   string `json:"system_prompt,omitempty"` // appended to the agent's own
	PermissionMode string `json:"permission_mode,omitempty"`
	// AllowedTools are those that the agent may use without asking.
	AllowedTools []string `json:"allowed_tools,omitempty"`
	// Rules decide tool calls that the agent asks about; the first that matches counts.
	// Where none does, it is Otherwise, or a person where that is empty.
	Rules     []Rule `json:"rules,omitempty"`
	Otherwise Action `json:"otherwise,omitempty"`
	// Served are the tools that the session itself offers to the agent: read_file,
	// write_file, run_command. They are confined to the working directory.
	Served    []string `json:"served_tools,omitempty"`
	MaxTurns  int      `json:"max_turns,omitempty"` // of the agent, within one turn of the session
	BudgetUSD float64  `json:"budget_usd,omitempty"`
	// MCPServers are servers of tools that the agent is given beside those of the session, as
	// its own configuration has them; see [CheckServers].
	MCPServers map[string]json.RawMessage `json:"mcp_servers,omitempty"`
	// Host is where the session lives, where that was decided before it began: nobody claims
	// it then, and whether it can live there is seen at its first turn.
	Host *Host `json:"host,omitempty"`
	// First is the first message, where there is one from the start.
	First *Message `json:"first,omitempty"`

	// Carried is what was known when an earlier run of the session continued as this one.
	Carried *State `json:"carried,omitempty"`
}

var sessionID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$`)

// Agents are the agents that a session can talk to.
func Agents() []string { return []string{"claude", "codex", "gemini", "opencode"} }

// Check says in one sentence what is wrong with the input, nil where nothing is.
func (in Input) Check() error {
	switch {
	case !sessionID.MatchString(in.SessionID):
		return fmt.Errorf("session id %q: letters, digits, dot, dash and underscore only, at most 100", in.SessionID)
	case !filepath.IsAbs(in.WorkingDir):
		return fmt.Errorf("working directory %q: an absolute path is needed", in.WorkingDir)
	case in.First != nil && in.First.check() != nil:
		return in.First.check()
	case in.Host != nil && in.Host.Queue == "":
		return errors.New("a host without a task queue")
	}
	if err := CheckServers(in.MCPServers, len(in.Served) > 0); err != nil {
		return err
	}
	known := false
	for _, a := range Agents() {
		known = known || a == in.Agent
	}
	if !known {
		return fmt.Errorf("agent %q: one of %v is needed", in.Agent, Agents())
	}
	for _, r := range in.Rules {
		if err := r.Check(); err != nil {
			return err
		}
	}
	return nil
}

// Host is the machine that a session lives on.
type Host struct {
	Name  string `json:"name"`
	Queue string `json:"queue"`
	// Version is the agent's, as it says itself.
	Version string `json:"version,omitempty"`
}

// Message is one message to the agent.
type Message struct {
	ID   string   `json:"id"`
	Text string   `json:"text,omitempty"`
	Ref  *ace.Ref `json:"text_ref,omitempty"` // in place of a text above [MaxText]
	From string   `json:"from,omitempty"`     // who sent it: a person, a session, a program
	// Callback tells that it is a report of another run; several of those that wait are
	// given to the agent in one turn.
	Callback bool `json:"callback,omitempty"`
	// ReplyTo is the id of a workflow that is told by [SignalReport] how the turn ended that
	// this message was given to the agent in, exactly once; "" for none.
	ReplyTo string `json:"reply_to,omitempty"`
}

func (m Message) check() error {
	switch {
	case m.ID == "":
		return errors.New("the message has no id")
	case m.Text == "" && m.Ref == nil:
		return errors.New("the message is empty")
	case len(m.Text) > MaxText:
		return fmt.Errorf("the message has %d bytes; above %d it must be an artifact", len(m.Text), MaxText)
	case len(m.ID) > MaxID || len(m.From) > MaxID || len(m.ReplyTo) > MaxID:
		return fmt.Errorf("an id or a name of the message is longer than %d bytes", MaxID)
	}
	return nil
}

// Receipt says that a message was taken.
type Receipt struct {
	MessageID string `json:"message_id"`
	Waiting   int    `json:"waiting"` // messages before it
	Duplicate bool   `json:"duplicate,omitempty"`
}

// Receive asks for what came out after a cursor, and acknowledges what came up to another.
type Receive struct {
	After int64 `json:"after"`
	Ack   int64 `json:"ack,omitempty"`
	Limit int   `json:"limit,omitempty"` // 0: 100
	// Wait lets the answer come when there is something to say, or the session has ended.
	Wait bool `json:"wait,omitempty"`
}

// Received is the answer to [Receive]. Where Next equals After, there was nothing.
type Received struct {
	Messages []Out  `json:"messages"`
	Next     int64  `json:"next"`
	Status   Status `json:"status"`
	// Lost counts messages after the cursor that were dropped unacknowledged.
	Lost int64 `json:"lost,omitempty"`
	// Continued tells that the session continues as a new run: ask again.
	Continued bool `json:"continued,omitempty"`
}

// Out is one message that came out of a session.
type Out struct {
	Cursor int64           `json:"cursor"`
	Turn   int             `json:"turn"`
	Kind   OutKind         `json:"kind"`
	Text   string          `json:"text,omitempty"` // cut to [ace.PreviewBytes]×8; the log has it whole
	Tool   string          `json:"tool,omitempty"`
	CallID string          `json:"call_id,omitempty"`
	Args   json.RawMessage `json:"args,omitempty"`
	OK     *bool           `json:"ok,omitempty"`
}

// OutKind is the kind of an [Out].
type OutKind string

// Kinds of what comes out.
const (
	OutAssistant OutKind = "assistant"
	OutToolUse   OutKind = "tool_use"
	OutToolEnd   OutKind = "tool_result"
	OutApproval  OutKind = "approval" // a tool call waits for a person
	OutResult    OutKind = "result"   // a turn has ended
	OutError     OutKind = "error"
	OutEnded     OutKind = "ended" // the session has
)

// Note says why and by whom something was asked for.
type Note struct {
	Reason string `json:"reason,omitempty"`
	By     string `json:"by,omitempty"`
}

// CloseInput asks a session's host to end the agent's process.
type CloseInput struct {
	SessionID string `json:"session_id"`
}
