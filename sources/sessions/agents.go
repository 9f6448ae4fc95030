package sessions

import (
	"time"

	"acescope/engine/agents/agentcli"
	"acescope/engine/agents/price"
	"acescope/engine/agents/transcript"
	"acescope/sources/transcripts"
)

// MaxSessions bounds the transcripts in a snapshot; the oldest are left out and counted.
const MaxSessions = 5000

// AgentKind says where a session of an agent is known from.
type AgentKind string

// Agent kinds.
const (
	AgentTranscript AgentKind = "transcript" // a file on this machine
)

// Types of what is known of a transcript, so that screens need no other package.
type (
	Transcript      = transcripts.Session
	TranscriptAgent = transcripts.Agent
	TranscriptEntry = transcripts.Entry
	Conversation    = transcripts.Conversation
	SessionState    = transcripts.State
	AgentTotals     = transcript.Totals
	ToolUse         = transcript.ToolUse
	ModelUse        = transcript.ModelUse
)

// What entries of a conversation are.
const (
	EntryUser     = agentcli.KindUser
	EntryText     = agentcli.KindText
	EntryThinking = agentcli.KindThinking
	EntryTool     = agentcli.KindToolUse
	EntryStatus   = agentcli.KindStatus
	EntryError    = agentcli.KindError
)

// States of sessions.
const (
	SessionLive  = transcripts.Live
	SessionIdle  = transcripts.Idle
	SessionEnded = transcripts.Ended
)

// AgentSession is one row of the list of agents' sessions, whatever it is known from. Texts
// are untrusted.
type AgentSession struct {
	Kind  AgentKind
	Key   string // tells it from all others
	ID    string
	Dir   string // where it works
	Name  string // its title or its first prompt, "" for none
	Model string
	State func(now time.Time) SessionState
	Last  time.Time // when something was said
	Known bool      // false while it was not read

	Turns      int
	Agents     int // subagents
	Totals     AgentTotals
	Bad        bool   // something went wrong
	Unfinished bool   // a turn waits for its end
	ForkedFrom string // id, "" for none

	Transcript *Transcript // of [AgentTranscript], and of [AgentEngine] where it is on this machine

	Engine  *EngineSession // of [AgentEngine]
	Waiting int            // tool calls that wait for a person
}

// RowOf is a transcript as a row.
func RowOf(t *Transcript) AgentSession {
	return AgentSession{Kind: AgentTranscript, Key: t.Path, ID: t.ID, Dir: t.Dir(), Name: t.Name(), Model: t.Summary.Model, State: t.State,
		Last: t.Last(), Known: t.Read, Turns: t.Summary.Turns, Agents: len(t.Agents), Totals: t.Totals(), Bad: t.Failed(),
		Unfinished: t.Summary.Unfinished, ForkedFrom: t.ForkedFrom, Transcript: t}
}

// Transcripts is the transcripts of this machine, and the one that is looked at.
type Transcripts struct {
	Roots    []string
	Rows     []AgentSession // the newest first
	Dropped  int            // older ones that are not in Rows
	Progress transcripts.Progress
	// Talk is the conversation that was asked for; nil before it is read. Wanted is the path
	// of its transcript.
	Talk    *Conversation
	Wanted  string
	Updated time.Time
}

// Local is what a store reads on this machine, with and without a server.
type Local struct {
	Roots  []string // configuration directories of Claude Code
	Prices *price.Prices
	Cache  string // what was read of transcripts, kept for the next process; "" for nowhere
}

// How the conversation that is looked at is read.
const (
	TalkRest = 80 * time.Millisecond  // that a cursor rests before it is read
	TalkPoll = 250 * time.Millisecond // between two looks whether it has grown
)
