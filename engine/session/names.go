package session

import (
	"crypto/sha1"
	"fmt"
	"strconv"
	"strings"
)

// Workflow is the type of a session's workflow, IDPrefix what its id begins with.
const (
	Workflow = "AceSessionWorkflow"
	IDPrefix = "session/"
)

// Updates and the query that a session answers.
const (
	UpdateSend      = "send"         // [Message] → [Receipt]; the update's id is the message's
	UpdateReceive   = "receive"      // [Receive] → [Received]
	UpdateTool      = "request_tool" // [ToolRequest] → [ToolAnswer]; the update's id is the tool call's
	UpdateDecide    = "decide"       // [Decision] → [State]
	UpdateInterrupt = "interrupt"    // [Note] → [State]
	UpdateStop      = "stop"         // [Note] → [State]

	QuerySession = "get_session" // → [State]
)

// Signals that other workflows send to a session, and that it sends to them.
const (
	SignalDeliver  = "deliver"    // [Message]: as [UpdateSend]; of an id that is known, nothing happens
	SignalWithdraw = "withdraw"   // [Withdraw]: a message is not to be answered any more; it may come before its message
	SignalReport   = "turn_ended" // [Report], to the [Message.ReplyTo] of each message of a turn
)

// Activities of a session. The first is asked for on the contract's queue, the others on
// the queue of the machine that answered.
const (
	ActivityClaim = "claim_session"    // [Input] → [Host]
	ActivityTurn  = "run_turn"         // [TurnInput] → [TurnResult]
	ActivityTool  = "run_session_tool" // [ToolCall] → [ToolResult]
	ActivityClose = "close_session"    // [CloseInput] → nothing
)

// Bounds of what a session holds. What is larger travels as an artifact.
const (
	MaxText       = 32 << 10 // bytes of one message to the agent
	MaxQueue      = 100      // messages that wait for the agent, but for callbacks
	MaxOut        = 500      // messages that wait to be acknowledged
	MaxOutBytes   = 256 << 10
	MaxQueueBytes = 512 << 10
	MaxRecent     = 50        // turns that are remembered one by one
	MaxPending    = 100       // tool calls that wait for a person
	MaxDecided    = 200       // answers to tool calls that are remembered one by one
	MaxTurnBytes  = 256 << 10 // of the messages of one turn
	MaxSeen       = 500       // message ids that are known beside those that wait, so that none is taken twice
	MaxTools      = 200       // tools that are counted by name
	// What is signalled cannot be refused by an answer, so more of it may wait than MaxQueue.
	// Callbacks beyond MaxQueueBytes are shortened to MaxBrief; what is above the two others
	// is dropped.
	MaxHeld      = 3000
	MaxHeldBytes = 1 << 20
	MaxBrief     = 256
	MaxWithdrawn = 100 // ids of messages that were withdrawn, for those that come afterwards
	MaxID        = 200 // bytes of a message's id, of its sender and of a workflow's id
)

// WorkflowID is the id of a session's workflow.
func WorkflowID(sessionID string) string { return IDPrefix + sessionID }

// IDOf is the session id of a workflow id, "" for other workflows.
func IDOf(workflowID string) string {
	id, ok := strings.CutPrefix(workflowID, IDPrefix)
	if !ok {
		return ""
	}
	return id
}

// namespace is the UUID namespace of what is derived from session ids.
var namespace = [16]byte{0x6b, 0x1c, 0x3f, 0x52, 0x0d, 0x8e, 0x4a, 0x6b, 0x9e, 0x11, 0x5a, 0x27, 0xc4, 0x90, 0x33, 0xd8}

// UUID is the version-5 UUID (RFC 9562) of the parts: the same wherever it is made, so
// that an identity is known before the process that is to bear it begins.
func UUID(parts ...string) string {
	name := string(namespace[:])
	for _, p := range parts {
		name += strconv.Itoa(len(p)) + ":" + p
	}
	u := sha1.Sum([]byte(name))
	u[6] = u[6]&0x0f | 0x50
	u[8] = u[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:16])
}
