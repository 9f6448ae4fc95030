// Package session defines the contract of agent sessions and their fold: the input of a
// session's workflow, its updates, signals, query and activities, and the [State] derived from
// its facts.
//
// A session is one workflow, "session/<id>" of type [Workflow]. It gives a coding agent one
// turn after another; each turn is one activity on the task queue of the machine that has the
// agent's files. As with a run, state = fold(facts): the workflow answers queries with it, and
// a reader of the history computes the same value.
//
// Order: messages reach the agent in the order in which they were accepted and come out with
// increasing cursors. Bounds: see the Max constants; dropped items are counted. Loss: an
// accepted message is kept until the agent has answered it, across continue-as-new. Messages that
// the agent did not get, or whose turn failed in all its attempts, stay in the queue; the session is
// blocked until another message or a move makes it try again. An outgoing message is kept until it is
// acknowledged or [MaxOut] newer ones exist.
package session

import (
	"crypto/sha1"
	"fmt"
	"strconv"
	"strings"
)

// Workflow is the workflow type of a session. Its workflow id is IDPrefix and the session id.
const (
	Workflow = "AceSessionWorkflow"
	IDPrefix = "session/"
)

// Updates and the query of a session.
const (
	UpdateSend      = "send"         // [Message] → [Receipt]; the update id is the message id
	UpdateReceive   = "receive"      // [Receive] → [Received]
	UpdateTool      = "request_tool" // [ToolRequest] → [ToolAnswer]; the update id is the call id
	UpdateDecide    = "decide"       // [Decision] → [State]
	UpdateInterrupt = "interrupt"    // [Note] → [State]
	UpdateStop      = "stop"         // [Note] → [State]
	UpdateMove      = "move"         // [Move] → [State]

	QuerySession = "get_session" // → [State]
)

// Signals between a session and other workflows.
const (
	SignalDeliver  = "deliver"    // [Message], like [UpdateSend]; ignored if the id was seen before
	SignalWithdraw = "withdraw"   // [Withdraw], may arrive before its message
	SignalAttempt  = "turn_again" // [TurnAttempt], from the host that tries a turn again
	SignalReport   = "turn_ended" // [Report], sent to the [Message.ReplyTo] of each message of a turn
)

// Activities of a session. ActivityClaim runs on the contract's task queue, the others on the
// task queue of the host that claimed the session.
const (
	ActivityClaim = "claim_session"    // [Input] → [Host]
	ActivityTurn  = "run_turn"         // [TurnInput] → [TurnResult]
	ActivityTool  = "run_session_tool" // [ToolCall] → [ToolResult]
	ActivityClose = "close_session"    // [CloseInput] → nothing
)

// Bounds of a session's state. Larger texts travel as artifacts.
const (
	MaxText       = 32 << 10 // bytes of one message to the agent
	MaxQueue      = 100      // messages waiting for the agent, without callbacks
	MaxOut        = 500      // unacknowledged outgoing messages
	MaxOutBytes   = 256 << 10
	MaxQueueBytes = 512 << 10
	MaxRecent     = 50        // turn records kept
	MaxPending    = 100       // tool calls waiting for the user
	MaxDecided    = 200       // answers to tool calls kept
	MaxTurnBytes  = 256 << 10 // of the messages of one turn
	MaxSeen       = 500       // message ids kept for deduplication, besides those of waiting messages
	MaxTools      = 200       // tools counted by name
	// A signal cannot be rejected, so signaled messages have their own, higher bounds: callbacks
	// beyond MaxQueueBytes are cut to MaxBrief, messages beyond the two others are dropped.
	MaxHeld      = 3000
	MaxHeldBytes = 1 << 20
	MaxBrief     = 256
	MaxWithdrawn = 100      // ids of withdrawn messages kept, for messages that arrive later
	MaxID        = 200      // bytes of a message id, a sender and a workflow id
	MaxContext   = 64 << 10 // bytes of the recorded turns that a rebuilt conversation starts with
)

// WorkflowID returns the workflow id of a session.
func WorkflowID(sessionID string) string { return IDPrefix + sessionID }

// IDOf returns the session id in a workflow id, or "" if the workflow is not a session.
func IDOf(workflowID string) string {
	id, ok := strings.CutPrefix(workflowID, IDPrefix)
	if !ok {
		return ""
	}
	return id
}

// namespace is the UUID namespace of [UUID].
var namespace = [16]byte{0x6b, 0x1c, 0x3f, 0x52, 0x0d, 0x8e, 0x4a, 0x6b, 0x9e, 0x11, 0x5a, 0x27, 0xc4, 0x90,
	0x33, 0xd8}

// UUID returns the version-5 UUID (RFC 9562) of the parts. It is deterministic, so an id is
// known before the process that uses it starts.
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
