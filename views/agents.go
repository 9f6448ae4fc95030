package views

import (
	"slices"
	"strconv"
	"time"

	"acescope/sources"
	"acescope/theme"
	"acescope/tui"
)

// agentControls steers which conversation is read.
type agentControls interface {
	// ReadTalk wants the conversation of a transcript, "" none. It is called for each row
	// that the cursor passes.
	ReadTalk(path string)
}

// agents is what the screens of agents' sessions share: all of them, the one under the
// cursor, and which of its transcripts is read.
type agents struct {
	*console
	data   *sources.Transcripts // nil before the first
	rows   []sources.AgentSession
	cursor string // key of the row under the cursor
	reads  string // path of the transcript whose conversation is wanted
	fresh  int    // counts the times that rows have become others
}

// agentScreens are the list with the session beside it, and the conversation whole.
func agentScreens(c *console) []tui.Screen {
	a := &agents{console: c}
	return []tui.Screen{
		{Name: "agents", Aliases: []string{"sessions", "transcripts"}, Keys: []string{"0"}, Help: "sessions of agents on this machine, with and without an engine",
			Views: []tui.View{newAgentList(a), newAgentDetail(a)}, Share: 50},
		{Name: "conversation", Short: "talk", Help: "the conversation of the selected agent, whole", Aside: true, Views: []tui.View{newAgentTalk(a)}},
	}
}

// set takes the sessions of all sources. The list's view does it for all of them.
func (a *agents) set(s *sources.Snapshot) {
	if a.data == s.Transcripts {
		return
	}
	if a.data = s.Transcripts; a.data == nil {
		a.rows = nil
	} else {
		a.rows = a.data.Rows
	}
	a.fresh++
}

// row is the one under the cursor; ok is false where there is none.
func (a *agents) row() (sources.AgentSession, bool) {
	if i := slices.IndexFunc(a.rows, func(r sources.AgentSession) bool { return r.Key == a.cursor }); i >= 0 {
		return a.rows[i], true
	}
	return sources.AgentSession{}, false
}

// choose puts the cursor on a row; its conversation is wanted then.
func (a *agents) choose(r sources.AgentSession) {
	if a.cursor == r.Key {
		return
	}
	a.cursor = r.Key
	a.read(r.Key)
}

func (a *agents) read(path string) {
	a.reads = path
	a.Controls.ReadTalk(path)
}

// talk is the conversation that is wanted, nil until it is here.
func (a *agents) talk() *sources.Conversation {
	if a.data == nil || a.data.Talk == nil || a.data.Wanted != a.reads {
		return nil
	}
	return a.data.Talk
}

// part is the subagent whose conversation is read; ok is false for the session's own.
func (a *agents) part() (agent sources.TranscriptAgent, ok bool) {
	r, _ := a.row()
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
func (a *agents) nextPart(s tui.Shell, by int) {
	r, ok := a.row()
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
func stateMark(r sources.AgentSession, now time.Time, s theme.Styles) theme.Mark {
	state := r.State(now)
	switch {
	case state == sources.SessionLive:
		return theme.Mark{Glyph: s.Glyphs.Running, Word: string(state), Ink: s.Running}
	case r.Unfinished:
		return theme.Mark{Glyph: s.Glyphs.Unknown, Word: "open", Ink: s.Warning}
	case state == sources.SessionIdle:
		return theme.Mark{Glyph: s.Glyphs.Pending, Word: string(state), Ink: s.Text}
	}
	return theme.Mark{Glyph: s.Glyphs.Dash, Word: string(state), Ink: s.Muted}
}

// spent is what a session has cost: of tokens without a known price nothing is told, and
// where some have none, there is a plus behind.
func spent(t sources.AgentTotals, g theme.Glyphs) string {
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
	return dollars(t.CostUSD) + more
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
