package sessions

import (
	"cmp"
	"slices"
	"time"

	"acescope/engine/agents/agentcli"
	"acescope/engine/agents/price"
	"acescope/engine/agents/transcript"
	"acescope/sources/transcripts"
)

// MaxSessions bounds the transcripts in a snapshot; the oldest are dropped and counted.
const MaxSessions = 5000

// AgentKind is the origin of a session: a transcript or the engine.
type AgentKind string

// Agent kinds.
const (
	AgentTranscript AgentKind = "transcript" // a file on this machine
)

// Types of transcripts, so that screens need no other package.
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

// Kinds of conversation entries.
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

// AgentSession is a session in the list of sessions. Texts are untrusted.
type AgentSession struct {
	Kind  AgentKind
	Key   string // unique in the list
	ID    string
	Dir   string // working directory
	Name  string // title, first prompt, or ""
	Model string
	State func(now time.Time) SessionState
	Last  time.Time // of the newest entry
	Known bool      // it was read

	Turns      int
	Agents     int // subagents
	Totals     AgentTotals
	Bad        bool   // it has a failure
	Unfinished bool   // a turn has not ended
	ForkedFrom string // session id, or ""

	Transcript *Transcript // nil if it is not on this machine

	Engine  *EngineSession // of [AgentEngine]
	Waiting int            // tool calls that wait for the user
}

// RowOf returns a transcript as a row.
func RowOf(t *Transcript) AgentSession {
	return AgentSession{
		Kind: AgentTranscript, Key: t.Path, ID: t.ID, Dir: t.Dir(), Name: t.Name(), Model: t.Summary.Model, State: t.State,
		Last: t.Last(), Known: t.Read, Turns: t.Summary.Turns, Agents: len(t.Agents), Totals: t.Totals(), Bad: t.Failed(),
		Unfinished: t.Summary.Unfinished, ForkedFrom: t.ForkedFrom, Transcript: t,
	}
}

// Transcripts holds the transcripts on this machine and the conversation of one.
type Transcripts struct {
	Roots    []string
	Rows     []AgentSession // the newest first
	Dropped  int            // older transcripts that are not in Rows
	Progress transcripts.Progress
	// Talk is the wanted conversation, nil before it is read. Wanted is the path of its transcript.
	Talk    *Conversation
	Wanted  string
	Updated time.Time
}

// Local configures the reading of transcripts on this machine, which needs no server.
type Local struct {
	Roots  []string // configuration directories of Claude Code
	Prices *price.Prices
	Cache  string // file that keeps what was read for the next process, or ""
}

// Timing of reading the wanted conversation.
const (
	SelectionDelay       = 80 * time.Millisecond  // delay after a selection before it is read
	ConversationInterval = 250 * time.Millisecond // interval of checking whether it has grown
)

// AgentEngine is the kind of a session on the engine, with or without a transcript on this machine.
const AgentEngine AgentKind = "engine"

// EngineRow returns a session on the engine as a row. t is its transcript on this machine, or nil.
func EngineRow(e *EngineSession, t *Transcript) AgentSession {
	r := AgentSession{Kind: AgentEngine, Key: e.WorkflowID, ID: e.ID, Last: e.Last, Known: e.State != nil, Engine: e,
		Transcript: t}
	if t != nil {
		r.Agents, r.Totals, r.ForkedFrom = len(t.Agents), t.Totals(), t.ForkedFrom
		if t.Last().After(r.Last) {
			r.Last = t.Last()
		}
	}
	r.State = func(time.Time) SessionState {
		switch {
		case !e.Open():
			return SessionEnded
		case slices.Contains([]TalkStatus{TalkStarting, TalkWorking, TalkWaiting, TalkStopping}, e.Status):
			return SessionLive
		}
		return SessionIdle
	}
	s := e.State
	if s == nil {
		return r
	}
	r.Dir, r.Name, r.Model, r.Turns = s.Input.WorkingDir, s.Input.Name, cmp.Or(s.Model, s.Input.Model), s.Turns
	if r.Name == "" && len(s.Recent) > 0 {
		r.Name = s.Recent[0].Prompt
	}
	if r.Name == "" && t != nil {
		r.Name = t.Name()
	}
	r.Waiting, r.Unfinished = len(s.Pending), e.Open() && s.Current != nil
	r.Bad = s.Failure != nil || e.Err != ""
	if t == nil {
		r.Totals = totalsOf(s)
	}
	return r
}

// totalsOf returns the usage of a session as its agent reports it.
func totalsOf(s *TalkState) AgentTotals {
	var t AgentTotals
	t.Tokens = transcript.Tokens{Input: s.Usage.InputTokens, Output: s.Usage.OutputTokens,
		CacheRead: s.Usage.CacheReadTokens}
	if t.CostUSD = s.Usage.CostUSD; t.CostUSD > 0 {
		t.Priced = t.Tokens.Total()
	} else {
		t.Unpriced = t.Tokens.Total()
	}
	for _, c := range s.Tools {
		t.Calls, t.Failed, t.Denied = t.Calls+c.Asked, t.Failed+c.Failed, t.Denied+c.Denied
	}
	return t
}

// AgentRows merges the sessions on the engine with the transcripts on this machine, the newest first. A transcript that
// belongs to a session on the engine has no row of its own.
func AgentRows(files []AgentSession, engine []*EngineSession) []AgentSession {
	if len(engine) == 0 {
		return files
	}
	byID := map[string]*Transcript{}
	for _, r := range files {
		byID[r.ID] = r.Transcript
	}
	merged := map[*Transcript]bool{}
	rows := make([]AgentSession, 0, len(files)+len(engine))
	for _, e := range engine {
		var t *Transcript
		if e.State != nil && e.State.AgentSessionID != "" {
			if t = byID[e.State.AgentSessionID]; t != nil {
				merged[t] = true
			}
		}
		rows = append(rows, EngineRow(e, t))
	}
	for _, r := range files {
		if !merged[r.Transcript] {
			rows = append(rows, r)
		}
	}
	slices.SortStableFunc(rows, func(a, b AgentSession) int { return b.Last.Compare(a.Last) })
	return rows
}
