package agents

import (
	"cmp"
	"fmt"
	"io"
	"time"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine/ace"
	"acescope/engine/agents/session"
	"acescope/engine/agents/transcript"
	"acescope/sources/cluster"
	"acescope/sources/sessions"
	"acescope/sources/transcripts"
	"acescope/tui/text"
)

type SessionLine struct {
	Type  string `json:"type"`  // session, or transcript for one that is not on the engine
	State string `json:"state"` // of a transcript: live, idle, ended
	sessions.Row
}

func newSessionLine(r sessions.Row, now time.Time) SessionLine {
	if r.Engine != nil {
		return SessionLine{"session", string(r.Engine.Status), r}
	}
	return SessionLine{"transcript", string(r.Activity(now)), r}
}

// writeSession writes a session without its conversation.
func writeSession(a *cli.App, r sessions.Row) error {
	now := time.Now()
	switch {
	case a.JSON:
		return cli.NewLines(a).Write(newSessionLine(r, now))
	case r.Engine != nil:
		return PrintSession(a.Out, r, now)
	}
	return transcriptDetails(r, now).print(a.Out)
}

func PrintSession(to io.Writer, r sessions.Row, now time.Time) error {
	return engineDetails(r, now).print(to)
}

func transcriptDetails(r sessions.Row, now time.Time) (d details) {
	s := r.Transcript
	d.add("session", "%s", s.ID)
	d.add("agent", "%s %s", r.Agent, s.Version)
	d.add("name", "%s", r.Name)
	d.add("state", "%s", stateText(r, now))
	d.add("directory", "%s", r.Dir)
	d.add("machine", "%s", s.Machine)
	d.add("file", "%s", s.Path)
	d.add("branch", "%s", s.Branch)
	if !s.Started.IsZero() {
		d.add("started", "%s, active for %s", formatTime(s.Started), text.Span(s.Summary.Last.Sub(s.Started)))
	}
	d.add("content", "%s, %s, %s", ace.Count(s.Turns, "turn"), ace.Count(s.Messages, "message"),
		ace.Count(s.Compactions, "compaction"))
	d.usage(r)
	if s.ForkedFrom != "" {
		d.add("forked", "from %s, %s", s.ForkedFrom, ace.Count(s.Shared, "line"))
	}
	if s.Errors > 0 {
		d.add("errors", "%d, the last: %s", s.Errors, s.LastError)
	}
	for _, u := range s.Tools {
		d.add("tool", "%-24s %s, %d failed, %d denied, %s on average", u.Name, ace.Count(u.Calls, "call"),
			u.Failed, u.Denied, text.Duration(cluster.Milliseconds(u.MeanMS())))
	}
	for _, g := range s.Agents {
		d.add("subagent", "%s %s %s: %s, %s, %s", g.ID, g.Type, g.Description,
			ace.Count(g.Calls, "call"), ace.Count(g.Tokens.Total(), "token"), costText(g.Totals))
	}
	return d
}

// usage adds the tokens and the cost of a session, as the list of sessions shows them.
func (d *details) usage(r sessions.Row) {
	t := r.Totals.Tokens
	d.add("tokens", "%s: %s in, %s out, cache %s read, %s written", ace.Number(t.Total()),
		ace.Number(t.Input), ace.Number(t.Output), ace.Number(t.CacheRead), ace.Number(t.CacheWrite()))
	d.add("cost", "%s %s", costText(r.Totals), r.CostSource())
}

func engineDetails(r sessions.Row, now time.Time) (d details) {
	d.add("session", "%s", r.ID)
	d.add("name", "%s", r.Name)
	d.add("state", "%s (%s)", stateText(r, now), r.Engine.From)
	s := r.Engine.State
	if s == nil {
		return d
	}
	if s.Failure != nil {
		d.add("failure", "%s: %s", s.Failure.Type, s.Failure.Message)
	}
	d.add("blocked", "%s", sessions.BlockedText(s))
	d.add("agent", "%s", sessions.AgentText(s))
	d.add("moved", "%s", sessions.MovedText(s))
	d.add("model", "%s", r.Model)
	d.add("directory", "%s", r.Dir)
	d.add("started", "%s", formatTime(r.Engine.Start))
	d.add("started by", "%s", s.Input.By)
	d.add("turns", "%d", s.Turns)
	d.usage(r)
	for _, q := range s.Queue {
		d.add("queued", "%s, %s: %s", sessions.SenderText(q), q.ID, text.Cut(q.Text, 80, "…"))
	}
	d.add("reports", "%s", sessions.ReportsText(s))
	for _, p := range s.Pending {
		d.add("approval", "%s %s: %s", p.ID, p.Name, text.Cut(string(p.Args), 100, "…"))
	}
	for _, c := range s.Tools {
		d.add("tool", "%-24s asked %d, allowed %d, denied %d, failed %d", c.Name, c.Asked, c.Allowed,
			c.Denied, c.Failed)
	}
	return d
}

// stateText returns the state of a session: "waiting (2)", "failed", "idle, unfinished", "idle, last turn
// failed".
func stateText(r sessions.Row, now time.Time) string {
	e := r.Engine
	switch {
	case e == nil:
		state := r.Activity(now)
		if r.Unfinished && state != transcripts.Live {
			return string(state) + ", unfinished"
		}
		return string(state)
	case e.Status == session.Ended && e.Exit != "" && e.Exit != ace.Completed:
		return string(e.Exit)
	case r.Waiting > 0:
		return fmt.Sprintf("%s (%d)", e.Status, r.Waiting)
	case r.LastTurnFailed():
		return string(e.Status) + ", last turn failed"
	}
	return cmp.Or(string(e.Status), "?")
}

// costText returns a cost, or a dash without tokens.
func costText(t transcript.Totals) string {
	if t.Tokens.Total() == 0 {
		return "-"
	}
	return t.Usage().Cost()
}
