package sources

import (
	"context"
	"time"

	"acescope/engine/agentcli"
	"acescope/engine/price"
	"acescope/engine/transcript"
	"acescope/sources/transcripts"
)

// PartTranscripts is the sessions of agents that lie on this machine as transcripts.
const PartTranscripts Part = "transcripts"

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

// talkWish is the conversation that somebody wants to read. Only the store's lock guards it.
type talkWish struct {
	path    string
	wake    chan struct{}
	trouble string // that health shows
}

// RunLocal reads what needs no server, while somebody looks at it, until ctx ends.
func (s *Store) RunLocal(ctx context.Context, l Local) {
	changed := make(chan struct{}, 1)
	index := transcripts.New(transcripts.Options{Roots: l.Roots, Prices: l.Prices, Cache: l.Cache, Changed: func() { signal(changed) }})
	s.watchPart(ctx, PartTranscripts, func(ctx context.Context) {
		done := make(chan struct{})
		go func() { defer close(done); s.showTranscripts(ctx, l, index, changed) }()
		index.Run(ctx)
		<-done
	})
}

// ReadTalk wants the conversation of a transcript; "" wants none. It is called for each row
// that the cursor passes.
func (s *Store) ReadTalk(path string) {
	s.mu.Lock()
	changed := s.talk.path != path
	s.talk.path = path
	s.mu.Unlock()
	if changed {
		signal(s.talk.wake)
	}
}

// How the conversation that is looked at is read.
const (
	talkRest = 80 * time.Millisecond  // that a cursor rests before it is read
	talkPoll = 250 * time.Millisecond // between two looks whether it has grown
)

// showTranscripts hands out what the index finds, and follows one conversation.
func (s *Store) showTranscripts(ctx context.Context, l Local, index *transcripts.Index, changed <-chan struct{}) {
	var follower *transcripts.Follower
	var talk *Conversation
	wanted := ""
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-changed:
		case <-s.talk.wake:
			timer.Reset(talkRest)
			continue
		case <-timer.C:
			timer.Reset(talkPoll)
			s.mu.Lock()
			path := s.talk.path
			s.mu.Unlock()
			if path != wanted {
				wanted, follower, talk = path, nil, nil
			}
			if wanted == "" {
				break
			}
			if follower == nil {
				follower = transcripts.Follow(wanted)
			}
			if !follower.Read(ctx) || ctx.Err() != nil {
				continue
			}
			c := follower.Conversation()
			c.Updated = s.now()
			talk = &c
		}
		s.publishTranscripts(l, index, wanted, talk)
	}
}

func (s *Store) publishTranscripts(l Local, index *transcripts.Index, wanted string, talk *Conversation) {
	list, progress := index.Sessions()
	t := &Transcripts{Roots: l.Roots, Progress: progress, Talk: talk, Wanted: wanted, Updated: s.now()}
	t.Dropped = max(len(list)-MaxSessions, 0)
	for _, one := range list[:len(list)-t.Dropped] {
		t.Rows = append(t.Rows, RowOf(one))
	}
	s.update(func(snap *Snapshot) { snap.Transcripts = t })
	s.transcriptHealth(progress)
}

// transcriptHealth shows for as long as it lasts that transcripts cannot be read.
func (s *Store) transcriptHealth(p transcripts.Progress) {
	s.mu.Lock()
	known := s.talk.trouble
	s.talk.trouble = p.Trouble
	s.mu.Unlock()
	if known == p.Trouble {
		return
	}
	if p.Trouble == "" {
		s.SetHealth("transcripts", true, "transcripts are read")
		return
	}
	s.SetHealth("transcripts", false, p.Trouble)
}
