package session

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"

	"acescope/engine/ace"
)

// Input is the input of a session's workflow.
type Input struct {
	SessionID string `json:"session_id"`
	// AgentSessionID is the agent's id of the conversation. If it is empty, the first turn reports
	// the id. Resume reports that the conversation exists.
	AgentSessionID string `json:"agent_session_id,omitempty"`
	Resume         bool   `json:"resume,omitempty"`
	Name           string `json:"name,omitempty"`
	Agent          string `json:"agent"` // claude, codex, gemini, opencode
	Model          string `json:"model,omitempty"`
	WorkingDir     string `json:"working_dir"`
	SystemPrompt   string `json:"system_prompt,omitempty"` // appended to the agent's own
	PermissionMode string `json:"permission_mode,omitempty"`
	// AllowedTools are the tools that the agent may use without asking.
	AllowedTools []string `json:"allowed_tools,omitempty"`
	// Rules decide tool calls; see [Policy]. If they do not decide on a call that the agent asks
	// about, DefaultAction applies, or the user decides if it is empty.
	Rules         []Rule `json:"rules,omitempty"`
	DefaultAction Action `json:"otherwise,omitempty"`
	// Served are the tools that the session itself offers: read_file, write_file, run_command.
	// They are confined to the working directory.
	Served    []string `json:"served_tools,omitempty"`
	MaxTurns  int      `json:"max_turns,omitempty"` // of the agent, within one turn of the session
	BudgetUSD float64  `json:"budget_usd,omitempty"`
	// MCPServers are additional MCP servers for the agent, in the agent's configuration format;
	// see [CheckServers].
	MCPServers map[string]json.RawMessage `json:"mcp_servers,omitempty"`
	// Host is set if the host was chosen before the start. Then no host claims the session; the
	// first turn checks the host instead.
	Host *Host `json:"host,omitempty"`
	// First is the optional first message.
	First *Message `json:"first,omitempty"`
	// By is who started the session, such as user@host.
	By string `json:"by,omitempty"`

	// Carried is the state of the previous run of the session, after continue-as-new.
	Carried *State `json:"carried,omitempty"`
	// Revision is the revision of the contract that the starter asks the session to follow; see [Revision].
	Revision int `json:"revision,omitempty"`
}

// Revision is the current value of [Input.Revision]. From revision 1 on, the messages of a turn whose
// attempts all failed stay in the queue; before, they were given up.
const Revision = 1

var sessionID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$`)

// Check reports the first problem of the input in one sentence, or nil.
func (in Input) Check() error {
	switch {
	case !sessionID.MatchString(in.SessionID):
		return fmt.Errorf("session id %q: use at most 100 letters, digits, dots, dashes and underscores",
			in.SessionID)
	case !filepath.IsAbs(in.WorkingDir):
		return fmt.Errorf("working directory %q: use an absolute path", in.WorkingDir)
	case in.First != nil && in.First.check() != nil:
		return in.First.check()
	case in.Host != nil && in.Host.Queue == "":
		return errors.New("the host has no task queue")
	case in.Resume && in.AgentSessionID == "":
		return errors.New("the conversation to resume has no id")
	}
	if err := CheckServers(in.MCPServers, len(in.Served) > 0); err != nil {
		return err
	}
	if !ace.IsAgent(in.Agent) {
		return fmt.Errorf("agent %q: use one of %v", in.Agent, ace.Agents())
	}
	return in.checkPolicy()
}

// Host is the machine that a session runs on.
type Host struct {
	Name    string `json:"name"`
	Queue   string `json:"queue"`
	Version string `json:"version,omitempty"` // of the agent, as it reports itself
}

// Message is one message to the agent.
type Message struct {
	ID   string   `json:"id"`
	Text string   `json:"text,omitempty"`
	Ref  *ace.Ref `json:"text_ref,omitempty"` // replaces a text above [MaxText]
	From string   `json:"from,omitempty"`     // the sender: a user, a session, a program
	// Callback marks a report of another run. Consecutive waiting callbacks share one turn.
	Callback bool `json:"callback,omitempty"`
	// ReplyTo is the id of a workflow that receives exactly one [SignalReport] about the turn
	// that answers this message.
	ReplyTo string `json:"reply_to,omitempty"`
}

// Named returns the message with its id, which defaults to the update id.
func (m Message) Named(updateID string) Message {
	m.ID = cmp.Or(m.ID, updateID)
	return m
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

// Receipt confirms that a message was accepted.
type Receipt struct {
	MessageID string `json:"message_id"`
	Waiting   int    `json:"waiting"` // messages before it
	Duplicate bool   `json:"duplicate,omitempty"`
}

// Receive asks for the outgoing messages after a cursor and acknowledges those up to Ack.
type Receive struct {
	After int64 `json:"after"`
	Ack   int64 `json:"ack,omitempty"`
	Limit int   `json:"limit,omitempty"` // 0: 100
	// Wait delays the answer until there is a message or the session has ended.
	Wait bool `json:"wait,omitempty"`
}

// Received is the answer to [Receive]. Next equals After if there are no messages.
type Received struct {
	Messages []Out  `json:"messages"`
	Next     int64  `json:"next"`
	Status   Status `json:"status"`
	// Lost counts the messages after the cursor that were dropped unacknowledged.
	Lost int64 `json:"lost,omitempty"`
	// Continued reports that the session continues as a new run: receive again.
	Continued bool `json:"continued,omitempty"`
}

// Out is one outgoing message of a session.
type Out struct {
	Cursor int64           `json:"cursor"`
	Turn   int             `json:"turn"`
	Kind   OutKind         `json:"kind"`
	Text   string          `json:"text,omitempty"` // cut to 8×[ace.PreviewBytes]; the log has the whole text
	Tool   string          `json:"tool,omitempty"`
	CallID string          `json:"call_id,omitempty"`
	Args   json.RawMessage `json:"args,omitempty"`
	OK     *bool           `json:"ok,omitempty"`
}

// OutKind is the kind of an [Out].
type OutKind string

// Kinds of outgoing messages.
const (
	OutAssistant  OutKind = "assistant"
	OutToolUse    OutKind = "tool_use"
	OutToolResult OutKind = "tool_result"
	OutApproval   OutKind = "approval" // a tool call waits for the user
	OutResult     OutKind = "result"   // a turn has ended
	OutError      OutKind = "error"
	OutEnded      OutKind = "ended" // the session has ended
)

// Note gives the reason and the author of a request.
type Note struct {
	Reason string `json:"reason,omitempty"`
	By     string `json:"by,omitempty"`
}

// Interrupt and Stop are the arguments of [UpdateInterrupt] and [UpdateStop].
type (
	Interrupt Note
	Stop      Note
)

// Move is the argument of [UpdateMove]. It assigns the session to another machine, or to the same one
// again, where the messages in its queue are sent to the agent. A turn in progress is interrupted,
// and its messages are sent again.
type Move struct {
	Host       Host   `json:"host"`                  // the first turn on it checks the agent
	WorkingDir string `json:"working_dir,omitempty"` // "" keeps the session's
	Note
}

// CloseInput is the input of [ActivityClose], which ends the agent's process.
type CloseInput struct {
	SessionID string `json:"session_id"`
}

// TurnInput is the input of [ActivityTurn].
type TurnInput struct {
	SessionID  string `json:"session_id"`
	WorkflowID string `json:"workflow_id"`
	RunID      string `json:"run_id"`
	Turn       int    `json:"turn"` // 1-based, over all runs of the session
	// AgentSessionID is the agent's id of the conversation. Resume reports that the conversation
	// exists.
	AgentSessionID string    `json:"agent_session_id,omitempty"`
	Resume         bool      `json:"resume,omitempty"`
	Messages       []Message `json:"messages"`
	// UUID identifies the turn's message in the agent's transcript, at the first attempt.
	UUID string `json:"uuid"`
	// CostSeen and UsageSeen are the conversation's totals counted so far, for agents that
	// report totals.
	CostSeen  float64   `json:"cost_seen,omitempty"`
	UsageSeen ace.Usage `json:"usage_seen"`

	Agent          string   `json:"agent"`
	Model          string   `json:"model,omitempty"`
	WorkingDir     string   `json:"working_dir"`
	SystemPrompt   string   `json:"system_prompt,omitempty"`
	PermissionMode string   `json:"permission_mode,omitempty"`
	AllowedTools   []string `json:"allowed_tools,omitempty"`
	Served         []string `json:"served_tools,omitempty"`
	// Policy is the session's. Turns that a workflow started up to commit 0d05089 have none.
	Policy    *Policy `json:"policy,omitempty"`
	MaxTurns  int     `json:"max_turns,omitempty"`
	BudgetUSD float64 `json:"budget_usd,omitempty"`

	MCPServers map[string]json.RawMessage `json:"mcp_servers,omitempty"`
	// Unclaimed reports that no host has checked yet whether it can run the session.
	Unclaimed bool `json:"unclaimed,omitempty"`
}

// TurnStatus is the outcome of a turn.
type TurnStatus string

// Turn statuses.
const (
	TurnCompleted   TurnStatus = "completed"
	TurnFailed      TurnStatus = "failed"
	TurnInterrupted TurnStatus = "interrupted"
)

// TurnResult is the result of one turn: facts and references. Its log has the full texts.
type TurnResult struct {
	Turn   int          `json:"turn"`
	Status TurnStatus   `json:"status"`
	Failed *ace.Failure `json:"failure,omitempty"`
	// AgentSessionID is the agent's id of the conversation from now on.
	AgentSessionID string `json:"agent_session_id"`
	Model          string `json:"model,omitempty"`
	Version        string `json:"version,omitempty"` // of the agent, if this turn was the first to check it
	// Text is the agent's last text, cut to [MaxText]/4. Messages are the newest [MaxRecent]
	// messages of the turn, and Omitted counts the older ones.
	Text     string `json:"text,omitempty"`
	Messages []Out  `json:"messages,omitempty"`
	Omitted  int    `json:"omitted,omitempty"`
	Summary  string `json:"summary"`

	Log     *ace.Ref `json:"log,omitempty"`
	LogPath string   `json:"log_path,omitempty"`
	// Usage is the turn's own. CostSeen and UsageSeen are the conversation's totals, for agents
	// that report totals.
	Usage      ace.Usage `json:"usage"`
	CostSeen   float64   `json:"cost_seen,omitempty"`
	UsageSeen  ace.Usage `json:"usage_seen"`
	DurationMS float64   `json:"duration_ms"`
	Attempt    int32     `json:"attempt"`
	Warm       bool      `json:"warm,omitempty"`      // the agent's process was already running
	Recovered  bool      `json:"recovered,omitempty"` // found completed after a crash
	Continued  bool      `json:"continued,omitempty"` // found started after a crash, and continued
	// Rebuilt reports that the agent's conversation was gone: the turn started another one, with the
	// recorded turns as its context.
	Rebuilt *Rebuilt `json:"rebuilt,omitempty"`
	// Undelivered reports that the agent did not get the messages, or cannot process them until a user
	// removes the cause of the failure. They stay in the queue.
	Undelivered bool `json:"undelivered,omitempty"`
}

// Rebuilt counts the recorded turns of a conversation that was rebuilt.
type Rebuilt struct {
	Turns   int `json:"turns"`
	Omitted int `json:"omitted,omitempty"` // older ones that the agent did not get
}

// Withdraw takes a waiting message back, or interrupts the turn that answers it.
type Withdraw struct {
	MessageID string `json:"message_id"`
	Note
}

// TurnAttempt reports that a turn is tried again: the agent's process of earlier attempts is gone.
type TurnAttempt struct {
	Turn    int   `json:"turn"`
	Attempt int32 `json:"attempt"`
}

// ReportStatus is the outcome of a message, for the workflow that waits for it.
type ReportStatus string

// Report statuses: the status of the turn, or ended if the session ended before the agent had
// the message. A message withdrawn before the agent had it is interrupted, and a message that
// was not accepted has failed; both have no turn.
const (
	ReportCompleted   = ReportStatus(TurnCompleted)
	ReportFailed      = ReportStatus(TurnFailed)
	ReportInterrupted = ReportStatus(TurnInterrupted)
	ReportEnded       = ReportStatus("ended")
)

// Report tells the [Message.ReplyTo] of a message how its turn ended. Each message of a turn
// has its own report; only the first one has the usage.
type Report struct {
	MessageID  string       `json:"message_id"`
	SessionID  string       `json:"session_id"`
	Turn       int          `json:"turn,omitempty"` // 0 if the agent never had the message
	Status     ReportStatus `json:"status"`
	Text       string       `json:"text,omitempty"` // the agent's last text, as in [TurnResult]
	Usage      ace.Usage    `json:"usage"`
	DurationMS float64      `json:"duration_ms"` // of the turn
	Log        *ace.Ref     `json:"log,omitempty"`
	LogPath    string       `json:"log_path,omitempty"`
	Failure    *ace.Failure `json:"failure,omitempty"`
}
