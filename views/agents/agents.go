// Package agents lists agent sessions, shows their conversations and sends messages and decisions to them.
package agents

import (
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"acescope/engine/ace"
	"acescope/engine/agents/session"
	"acescope/sources/runners"
	"acescope/sources/runs"
	"acescope/sources/sessions"
	"acescope/sources/transcripts"
	"acescope/theme"
	"acescope/tui"
	"acescope/tui/text"
	"acescope/tui/widget"
	"acescope/views/console"
)

// Agents is the state that the screens share: all sessions, the selected one, and the transcript that is
// read.
type Agents struct {
	nav       *console.Navigation
	pipeline  *console.Pipeline
	actions   console.SessionActions // nil for a console that only reads
	controls  console.Controls
	location  *time.Location
	workDir   string
	feeds     Feeds
	data      *sessions.Transcripts     // nil before the first
	sessions  *sessions.Sessions        // nil before the first
	detail    *sessions.Detail          // the session on the engine that is read, nil before the first
	file      *transcripts.Conversation // the transcript that is read, nil before the first
	approvals *sessions.Approvals       // nil if no call is waiting
	rows      []sessions.Row
	Cursor    string // key of the row under the cursor
	wanted    string // conversation to read: the path of a transcript, or a session's workflow ID
	version   int    // changes with rows
}

type Feeds struct {
	Transcripts   console.Feed[*sessions.Transcripts]
	Conversations KeyFeed[*transcripts.Conversation] // by path of a transcript
	Sessions      console.Feed[*sessions.Sessions]
	Details       KeyFeed[*sessions.Detail] // by workflow ID
	Approvals     console.Value[*sessions.Approvals]
}

// KeyFeed reads one session, or nothing for "".
type KeyFeed[V any] interface {
	console.Feed[V]
	Want(key string) (changed bool)
}

// look reads sessions while one of the screens is shown.
func (a *Agents) look(shown bool) {
	a.feeds.Transcripts.Look(shown)
	a.feeds.Conversations.Look(shown)
	a.feeds.Sessions.Look(shown)
	a.feeds.Details.Look(shown)
}

// Screens returns the list of sessions with the selected one beside it, the whole conversation, and the part
// of the overview.
func Screens(c *console.Console, actions console.SessionActions, feeds Feeds) ([]tui.Screen, *Home) {
	a := &Agents{nav: c.Navigation, pipeline: c.Pipeline, actions: actions, controls: c.Controls,
		location: c.Location, workDir: c.WorkDir, feeds: feeds}
	return []tui.Screen{
		{Name: "agents", Aliases: []string{"sessions", "transcripts"}, Keys: []string{"0"}, Share: 50,
			Argument: &tui.Argument{Name: "ID", Help: "ID selects one", Candidates: a.candidates,
				Check: func(id string) error { _, err := a.named(id); return err }, Do: a.show},
			Help:  "agent sessions on the engine and transcripts on this machine",
			Views: []tui.View{NewList(a), newDetail(a)}},
		{Name: "conversation", Short: "conv", Help: "the whole conversation of the selected session",
			Aside: true, Views: []tui.View{newConversation(a)}},
	}, &Home{Agents: a}
}

// refresh takes the newest sessions of both sources.
func (a *Agents) refresh() {
	files, engineSessions := a.feeds.Transcripts.Value(), a.feeds.Sessions.Value()
	a.approvals, a.detail, a.file = a.feeds.Approvals.Value(), a.feeds.Details.Value(),
		a.feeds.Conversations.Value()
	if a.data == files && a.sessions == engineSessions {
		return
	}
	a.data, a.sessions = files, engineSessions
	var local []sessions.Row
	var engine []*sessions.EngineSession
	if files != nil {
		local = files.Rows
	}
	if engineSessions != nil {
		engine = engineSessions.Rows
	}
	a.rows = sessions.Rows(local, engine)
	a.version++
}

// Row returns the session under the cursor.
func (a *Agents) Row() (sessions.Row, bool) {
	if i := slices.IndexFunc(a.rows, func(r sessions.Row) bool { return r.Key == a.Cursor }); i >= 0 {
		return a.rows[i], true
	}
	return sessions.Row{}, false
}

// choose moves the cursor to a session and reads its conversation.
func (a *Agents) choose(r sessions.Row) {
	if a.Cursor == r.Key {
		return
	}
	a.Cursor = r.Key
	a.read(r.Key)
}

// read reads the conversation of the selected session or of one of its subagents.
func (a *Agents) read(key string) {
	a.wanted = key
	r, _ := a.Row()
	engine := widget.If(r.Engine != nil, r.Key, "")
	if key == engine {
		key = ""
	}
	a.feeds.Details.Want(engine)
	a.feeds.Conversations.Want(key)
}

// live returns the selected session of the engine as read last, or nil.
func (a *Agents) live() *sessions.Detail {
	if a.detail == nil || a.detail.WorkflowID != a.Cursor {
		return nil
	}
	return a.detail
}

// state returns the newest known state of a session on the engine, or nil.
func (a *Agents) state(r sessions.Row) *session.State {
	if t := a.live(); t != nil && t.State != nil && r.Key == a.Cursor {
		return t.State
	}
	if r.Engine == nil {
		return nil
	}
	return r.Engine.State
}

// Loaded returns the wanted conversation, or nil until it is read.
func (a *Agents) Loaded() *transcripts.Conversation {
	if t := a.live(); t != nil && a.wanted == a.Cursor {
		return t.Conversation
	}
	if a.file == nil || a.file.Path != a.wanted {
		return nil
	}
	return a.file
}

// part returns the subagent whose conversation is read. It reports false for the session itself.
func (a *Agents) part() (agent transcripts.Agent, ok bool) {
	r, _ := a.Row()
	if r.Transcript == nil {
		return agent, false
	}
	for _, agent := range r.Transcript.Agents {
		if agent.Path == a.wanted && a.wanted != r.Key {
			return agent, true
		}
	}
	return agent, false
}

// nextPart reads the conversation of the next subagent, and after the last that of the session.
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
	at := slices.Index(paths, a.wanted)
	a.read(paths[(at+by+len(paths))%len(paths)])
}

// stateMark returns the mark of a session: its status on the engine, or the age of a transcript. A transcript
// that ends within a turn is marked open unless it is live.
func stateMark(r sessions.Row, now time.Time, s theme.Styles) theme.Mark {
	if r.LastTurnFailed() && r.Engine.Status == session.Idle {
		return theme.Mark{Glyph: s.Glyphs.Wrong, Word: "turn failed", Ink: s.Failed}
	}
	if r.Engine != nil {
		return engineMark(r.Engine.Status, r.Engine.Exit, s)
	}
	state := r.Activity(now)
	switch {
	case state == transcripts.Live:
		return theme.Mark{Glyph: s.Glyphs.Running, Word: string(state), Ink: s.Running}
	case r.Unfinished:
		return theme.Mark{Glyph: s.Glyphs.Unknown, Word: "open", Ink: s.Warning}
	case state == transcripts.Idle:
		return theme.Mark{Glyph: s.Glyphs.Pending, Word: string(state), Ink: s.Text}
	}
	return theme.Mark{Glyph: s.Glyphs.Dash, Word: string(state), Ink: s.Muted}
}

// engineMark returns the mark of a session on the engine.
func engineMark(status session.Status, exit ace.Status, s theme.Styles) theme.Mark {
	word := text.Cut(text.Safe(string(status), " "), 12, "")
	switch status {
	case session.Working:
		return theme.Mark{Glyph: s.Glyphs.Running, Word: word, Ink: s.Running}
	case session.Waiting, session.Blocked:
		return theme.Mark{Glyph: s.Glyphs.Failed, Word: word, Ink: s.Alert}
	case session.Starting, session.Stopping:
		return theme.Mark{Glyph: s.Glyphs.Refresh, Word: word, Ink: s.Running}
	case session.Idle:
		return theme.Mark{Glyph: s.Glyphs.Pending, Word: word, Ink: s.Text}
	case session.Ended:
		if exit == ace.Failed || exit == ace.TimedOut {
			return theme.Mark{Glyph: s.Glyphs.Wrong, Word: string(exit), Ink: s.Failed}
		}
		return theme.Mark{Glyph: s.Glyphs.Dash, Word: word, Ink: s.Muted}
	}
	return theme.Mark{Glyph: s.Glyphs.Unknown, Word: console.OrDash(word, s.Glyphs), Ink: s.Muted}
}

// runsOf returns the blueprint runs that a session started or was given, newest first.
func (a *Agents) runsOf(r sessions.Row) []runs.Run {
	if a.sessions == nil || r.Engine == nil {
		return nil
	}
	return a.sessions.Runs[r.Engine.ID]
}

// maxListed is the largest number of runs in a query.
const maxListed = 50

// openRuns opens the run of the selected session. If the session has several runs, it lists them.
func (a *Agents) openRuns(s tui.Shell) tea.Cmd {
	r, ok := a.Row()
	if !ok {
		s.Note("no session is selected")
		return nil
	}
	switch list := a.runsOf(r); len(list) {
	case 0:
		s.Note("this session has no known runs")
	case 1:
		return a.nav.OpenRun(s, list[0])
	default:
		var ids []string
		for _, r := range list[:min(len(list), maxListed)] {
			if id := runs.Quote(r.WorkflowID); !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
		a.controls.SetQuery("WorkflowId IN (" + strings.Join(ids, ", ") + ")")
		s.Open("runs")
		s.Note("listing the runs of session " + text.Safe(r.ID, " ") + "; / changes the filter")
	}
	return nil
}

// openCallback opens the run of the callback under the cursor, or the runs of the session.
func (v *Conversation) openCallback(s tui.Shell) tea.Cmd {
	v.sync()
	if e := v.Entry(v.At.Entry); e != nil && e.Callback {
		if id, ok := strings.CutPrefix(e.Name, "run "); ok && id != "" {
			return v.nav.OpenRun(s, runners.BlueprintRun(id))
		}
	}
	return v.openRuns(s)
}

func (w sessionWriter) runs(r sessions.Row, list []runs.Run) {
	if len(list) == 0 {
		return
	}
	w.Section("Runs", ace.Count(len(list), "run")+"; O opens them")
	for _, run := range list[:min(len(list), shownTurns)] {
		m := console.BlueprintMarkOf(run, w.S)
		how := widget.If(run.Parent != r.Engine.ID, "given to this session", "started here")
		w.End(w.Line().Add(m.Ink, "   "+m.Glyph+" "+text.Fit(m.Word, 10, "")).
			Add(w.S.Text, console.NameOf(run)).Add(w.S.Muted, "  "+how+", "+w.Ago(run.Start)))
	}
}
