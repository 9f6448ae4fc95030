// Package agents lists agent sessions, shows their conversations and sends messages and decisions to them.
package agents

import (
	"slices"
	"strconv"
	"time"

	"acescope/engine/ace"
	"acescope/sources/sessions"
	"acescope/theme"
	"acescope/tui"
	"acescope/tui/text"
	"acescope/tui/widget"
	"acescope/views/console"
)

// Agents is what the screens of agents' sessions share: all of them, the one under the
// cursor, and which of its transcripts is read.
type Agents struct {
	nav      *console.Navigation
	actor    *console.Actor
	controls console.Controls
	location *time.Location
	workDir  string
	feeds    Feeds
	data     *sessions.Transcripts // nil before the first
	sessions *sessions.Sessions    // the same
	waits    *sessions.Approvals   // nil where none waits
	rows     []sessions.AgentSession
	Cursor   string // key of the row under the cursor
	reads    string // whose conversation is wanted: the path of a transcript, or a session's workflow id
	fresh    int    // counts the times that rows have become others
}

// Feeds are what the screens of agents show.
type Feeds struct {
	Transcripts ConversationFeed[*sessions.Transcripts]
	Sessions    ConversationFeed[*sessions.Sessions]
	Approvals   console.Value[*sessions.Approvals]
}

// ConversationFeed lists sessions and reads the conversation of one; "" is none.
type ConversationFeed[V any] interface {
	console.Feed[V]
	Read(key string)
}

// look reads sessions while one of the screens is shown.
func (a *Agents) look(shown bool) {
	a.feeds.Transcripts.Look(shown)
	a.feeds.Sessions.Look(shown)
}

// AgentScreens are the list with the session beside it, and the conversation whole.
func AgentScreens(c *console.Console, feeds Feeds) []tui.Screen {
	a := &Agents{nav: c.Navigation, actor: c.Actor, controls: c.Controls, location: c.Location, workDir: c.WorkDir, feeds: feeds}
	return []tui.Screen{
		{Name: "agents", Aliases: []string{"sessions", "transcripts"}, Keys: []string{"0"}, Help: "sessions of agents, on the engine and on this machine: read and talk",
			Views: []tui.View{NewAgentList(a), newAgentDetail(a)}, Share: 50},
		{Name: "conversation", Short: "talk", Help: "the conversation of the selected agent, whole", Aside: true, Views: []tui.View{newAgentTalk(a)}},
	}
}

// refresh takes the sessions of all sources. The list's view does it for all of them.
func (a *Agents) refresh() {
	files, engineSessions := a.feeds.Transcripts.Value(), a.feeds.Sessions.Value()
	a.waits = a.feeds.Approvals.Value()
	if a.data == files && a.sessions == engineSessions {
		return
	}
	same := a.data == files && sameRows(a.sessions, engineSessions)
	a.data, a.sessions = files, engineSessions
	if same {
		return // only the conversation has grown
	}
	var local []sessions.AgentSession
	var engine []*sessions.EngineSession
	if a.data != nil {
		local = a.data.Rows
	}
	if a.sessions != nil {
		engine = a.sessions.Rows
	}
	a.rows = sessions.AgentRows(local, engine)
	a.fresh++
}

func sameRows(a, b *sessions.Sessions) bool {
	if a == nil || b == nil || len(a.Rows) != len(b.Rows) {
		return a == b
	}
	return len(a.Rows) == 0 || &a.Rows[0] == &b.Rows[0]
}

// Row is the one under the cursor; ok is false where there is none.
func (a *Agents) Row() (sessions.AgentSession, bool) {
	if i := slices.IndexFunc(a.rows, func(r sessions.AgentSession) bool { return r.Key == a.Cursor }); i >= 0 {
		return a.rows[i], true
	}
	return sessions.AgentSession{}, false
}

// choose puts the cursor on a row; its conversation is wanted then.
func (a *Agents) choose(r sessions.AgentSession) {
	if a.Cursor == r.Key {
		return
	}
	a.Cursor = r.Key
	a.read(r.Key)
}

// read wants a conversation: that of the row, or of a subagent of it.
func (a *Agents) read(what string) {
	a.reads = what
	r, _ := a.Row()
	if r.Engine == nil {
		a.feeds.Sessions.Read("")
		a.feeds.Transcripts.Read(what)
		return
	}
	a.feeds.Sessions.Read(r.Key)
	if what == r.Key {
		what = ""
	}
	a.feeds.Transcripts.Read(what)
}

// live is the session of the engine that is read, nil until it is here.
func (a *Agents) live() *sessions.Talk {
	if a.sessions == nil || a.sessions.Talk == nil || a.sessions.Wanted != a.Cursor {
		return nil
	}
	return a.sessions.Talk
}

// state is what is known of a session of the engine, nil before anything is.
func (a *Agents) state(r sessions.AgentSession) *sessions.TalkState {
	if t := a.live(); t != nil && t.State != nil && r.Key == a.Cursor {
		return t.State
	}
	if r.Engine == nil {
		return nil
	}
	return r.Engine.State
}

// Talk is the conversation that is wanted, nil until it is here.
func (a *Agents) Talk() *sessions.Conversation {
	if t := a.live(); t != nil && a.reads == a.Cursor {
		return t.Conversation
	}
	if a.data == nil || a.data.Talk == nil || a.data.Wanted != a.reads {
		return nil
	}
	return a.data.Talk
}

// part is the subagent whose conversation is read; ok is false for the session's own.
func (a *Agents) part() (agent sessions.TranscriptAgent, ok bool) {
	r, _ := a.Row()
	if r.Transcript == nil {
		return agent, false
	}
	for _, agent := range r.Transcript.Agents {
		if agent.Path == a.reads && a.reads != r.Key {
			return agent, true
		}
	}
	return agent, false
}

// nextPart goes to the conversation of the next subagent, and from the last back to that
// of the session.
func (a *Agents) nextPart(s tui.Shell, by int) {
	r, ok := a.Row()
	if !ok || r.Transcript == nil || len(r.Transcript.Agents) == 0 {
		s.Note("the session has no subagents")
		return
	}
	paths := []string{r.Key}
	for _, agent := range r.Transcript.Agents {
		if agent.Path != r.Key {
			paths = append(paths, agent.Path)
		}
	}
	at := slices.Index(paths, a.reads)
	a.read(paths[(at+by+len(paths))%len(paths)])
}

// stateMark is how fresh a session is. A turn without an end is told of, unless somebody
// may still be working on it.
func stateMark(r sessions.AgentSession, now time.Time, s theme.Styles) theme.Mark {
	if r.Engine != nil {
		return talkMark(r.Engine.Status, r.Engine.Exit, s)
	}
	state := r.State(now)
	switch {
	case state == sessions.SessionLive:
		return theme.Mark{Glyph: s.Glyphs.Running, Word: string(state), Ink: s.Running}
	case r.Unfinished:
		return theme.Mark{Glyph: s.Glyphs.Unknown, Word: "open", Ink: s.Warning}
	case state == sessions.SessionIdle:
		return theme.Mark{Glyph: s.Glyphs.Pending, Word: string(state), Ink: s.Text}
	}
	return theme.Mark{Glyph: s.Glyphs.Dash, Word: string(state), Ink: s.Muted}
}

// spent is what a session has cost: of tokens without a known price nothing is told, and
// where some have none, there is a plus behind.
func spent(t sessions.AgentTotals, g theme.Glyphs) string {
	switch {
	case t.Tokens.Total() == 0:
		return g.Dash
	case t.Priced == 0:
		return g.Unknown
	}
	more := ""
	if t.Unpriced > 0 {
		more = "+"
	}
	return widget.Dollars(t.CostUSD) + more
}

// roughly is a large number in few cells: "980", "12.3k", "4.56M".
func roughly(n int64) string {
	for _, u := range []struct {
		of   float64
		name string
	}{{1e9, "G"}, {1e6, "M"}, {1e3, "k"}} {
		if f := float64(n) / u.of; f >= 0.9995 {
			digits := 2
			if f >= 99.95 {
				digits = 0
			} else if f >= 9.995 {
				digits = 1
			}
			return strconv.FormatFloat(f, 'f', digits, 64) + u.name
		}
	}
	return strconv.FormatInt(n, 10)
}

// megabytes is a number of bytes as the progress tells it.
func megabytes(n float64) string {
	if n < 1e9 {
		return strconv.FormatFloat(n/1e6, 'f', 0, 64) + " MB"
	}
	return strconv.FormatFloat(n/1e9, 'f', 2, 64) + " GB"
}

// talkMark is how a session on the engine stands.
func talkMark(status sessions.TalkStatus, exit ace.ExitStatus, s theme.Styles) theme.Mark {
	word := text.Cut(text.Safe(string(status), " "), 12, "")
	switch status {
	case sessions.TalkWorking:
		return theme.Mark{Glyph: s.Glyphs.Running, Word: word, Ink: s.Running}
	case sessions.TalkWaiting:
		return theme.Mark{Glyph: s.Glyphs.Failed, Word: word, Ink: s.Alert}
	case sessions.TalkStarting, sessions.TalkStopping:
		return theme.Mark{Glyph: s.Glyphs.Refresh, Word: word, Ink: s.Running}
	case sessions.TalkIdle:
		return theme.Mark{Glyph: s.Glyphs.Pending, Word: word, Ink: s.Text}
	case sessions.TalkOver:
		if exit == ace.Failed || exit == ace.Timeout {
			return theme.Mark{Glyph: s.Glyphs.Wrong, Word: string(exit), Ink: s.Failed}
		}
		return theme.Mark{Glyph: s.Glyphs.Dash, Word: word, Ink: s.Muted}
	}
	return theme.Mark{Glyph: s.Glyphs.Unknown, Word: console.OrDash(word, s.Glyphs), Ink: s.Muted}
}
