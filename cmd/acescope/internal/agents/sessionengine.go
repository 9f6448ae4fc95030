package agents

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine"
	"acescope/engine/ace"
	"acescope/engine/agents/session"
	"acescope/sources/runs"
	"acescope/sources/sessions"
	"acescope/sources/transcripts"
	"acescope/tui/text"
)

// engineSessions is the sessions on the engine, where they can be listed and are wanted.
func engineSessions(a *cli.App, ctx context.Context, f listedSessions) ([]*sessions.EngineSession, error) {
	if f.transcripts || !f.engine && a.Cluster() == nil && !hosted(a) {
		return nil, nil
	}
	e, done, err := a.OpenReadOnly(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	rows, more, err := sessions.ListSessions(ctx, e.Client, e.Namespace(), sessions.MaxEngineSessions)
	if more {
		fmt.Fprintf(a.Err, "acescope: only the newest %d sessions on the engine are listed\n", sessions.MaxEngineSessions)
	}
	return rows, err
}

func engineWord(r sessions.AgentSession) string {
	e := r.Engine
	if e.Status == session.Ended && e.Exit != "" && e.Exit != ace.Success {
		return string(e.Exit)
	}
	word := cmp.Or(string(e.Status), "?")
	if r.Waiting > 0 {
		word += fmt.Sprintf(" (%d)", r.Waiting)
	}
	return cli.SafeText(word)
}

// EngineLine is a session on the engine.
type EngineLine struct {
	Type           string         `json:"type"` // engine_session
	Kind           string         `json:"kind"` // engine
	ID             string         `json:"id"`
	WorkflowID     string         `json:"workflow_id"`
	RunID          string         `json:"run_id"`
	State          session.Status `json:"state"`
	ExitStatus     ace.ExitStatus `json:"exit_status"`
	From           runs.Origin    `json:"from,omitempty"`
	Name           string         `json:"name,omitempty"`
	Agent          string         `json:"agent,omitempty"`
	AgentVersion   string         `json:"agent_version,omitempty"`
	Model          string         `json:"model,omitempty"`
	WorkDir        string         `json:"work_dir,omitempty"`
	Host           string         `json:"host,omitempty"`
	AgentSessionID string         `json:"agent_session_id,omitempty"`
	Transcript     string         `json:"transcript,omitempty"` // its file on this machine
	Start          time.Time      `json:"start"`                // of the newest run of its workflow
	Close          *time.Time     `json:"close,omitempty"`
	Last           *time.Time     `json:"last,omitempty"`
	Turns          int            `json:"turns"`
	Turn           int            `json:"turn,omitempty"` // that is under way
	Waiting        int            `json:"waiting"`        // tool calls that wait for a person
	Queued         int            `json:"queued"`         // messages that wait for the agent
	InputTokens    int64          `json:"input_tokens"`
	OutputTokens   int64          `json:"output_tokens"`
	CacheRead      int64          `json:"cache_read_tokens"`
	CostUSD        float64        `json:"cost_usd"` // as the agent says
	Failure        *ace.Failure   `json:"failure,omitempty"`
	Error          string         `json:"error,omitempty"` // why no more is known
	// Of one that is shown whole:
	PermissionMode string               `json:"permission_mode,omitempty"`
	AllowedTools   []string             `json:"allowed_tools,omitempty"`
	Rules          []session.Rule       `json:"rules,omitempty"`
	Otherwise      session.Action       `json:"otherwise,omitempty"`
	Served         []string             `json:"served_tools,omitempty"`
	Approvals      []ApprovalLine       `json:"approvals,omitempty"`
	Queue          []session.Message    `json:"queue,omitempty"`
	Recent         []session.TurnRecord `json:"recent,omitempty"`
	Tools          []session.ToolCount  `json:"tools,omitempty"`
	Interrupt      *session.Note        `json:"interrupt,omitempty"`
	Stop           *session.Note        `json:"stop,omitempty"`
	Cursor         int64                `json:"cursor,omitempty"`
	Acked          int64                `json:"acked,omitempty"`
	Lost           int64                `json:"lost,omitempty"`
	Runs           int                  `json:"runs,omitempty"`
	Dropped        int                  `json:"dropped_messages,omitempty"` // that never reached the agent
	Told           int                  `json:"reports_sent,omitempty"`     // to those who wait for a message
	Unheard        int                  `json:"reports_unheard,omitempty"`  // of which nobody was there
	MCPServers     []string             `json:"mcp_servers,omitempty"`      // their names
}

// engineLineOf is a session on the engine as JSON; whole tells all that its state has.
func engineLineOf(r sessions.AgentSession, s *session.State, from runs.Origin, whole bool) EngineLine {
	e := r.Engine
	l := EngineLine{Type: "engine_session", Kind: "engine", ID: e.ID, WorkflowID: e.WorkflowID, RunID: e.RunID, State: e.Status, ExitStatus: e.Exit,
		From: from, Name: r.Name, Model: r.Model, WorkDir: r.Dir, Start: e.Start.UTC(), Close: timeOf(e.Close), Last: timeOf(r.Last), Turns: r.Turns, Waiting: r.Waiting, Error: e.Err}
	if r.Transcript != nil {
		l.Transcript = r.Transcript.Path
	}
	if s == nil {
		return l
	}
	l.Agent, l.AgentSessionID, l.Queued, l.Failure = s.Input.Agent, s.AgentSessionID, len(s.Queue), s.Failure
	l.InputTokens, l.OutputTokens, l.CacheRead, l.CostUSD = s.Usage.InputTokens, s.Usage.OutputTokens, s.Usage.CacheReadTokens, s.Usage.CostUSD
	if s.Host != nil {
		l.Host, l.AgentVersion = s.Host.Name, s.Host.Version
	}
	if s.Current != nil {
		l.Turn = s.Current.Turn
	}
	if !whole {
		return l
	}
	in := s.Input
	l.PermissionMode, l.AllowedTools, l.Rules, l.Otherwise, l.Served = in.PermissionMode, in.AllowedTools, in.Rules, cmp.Or(in.DefaultAction, session.Ask), in.Served
	l.Queue, l.Recent, l.Tools, l.Interrupt, l.Stop = s.Queue, s.Recent, s.Tools, s.Interrupt, s.Stop
	l.Cursor, l.Acked, l.Lost, l.Runs = s.Cursor, s.Acked, s.Lost, s.Runs
	l.Dropped, l.Told, l.Unheard = s.Undelivered(), s.ReportsSent, s.ReportsUndelivered
	l.MCPServers = slices.Sorted(maps.Keys(in.MCPServers))
	for _, w := range sessions.ApprovalsOf(e.WorkflowID, s) {
		a := ApprovalLine{Type: "approval", SessionID: w.ID, CallID: w.Call.ID, Tool: w.Call.Name, Turn: w.Call.Turn, WorkDir: w.Dir, Risk: sessions.CallRisk(w.Call, w.Dir), ArgsCut: w.Call.ArgsRef != nil}
		if len(w.Call.Args) > 0 {
			a.Args = w.Call.Args
		}
		l.Approvals = append(l.Approvals, a)
	}
	return l
}

// showEngine shows the session on the engine that a name means; found is false where there
// is none.
func showEngine(a *cli.App, ctx context.Context, name string, follow, quiet bool) (found bool, err error) {
	e, done, err := a.OpenReadOnly(ctx)
	if err != nil {
		return false, err
	}
	defer done()
	id, err := engineSession(ctx, e, name)
	if err != nil || id == "" {
		return false, err
	}
	if follow {
		return true, followEngine(a, ctx, e, id, "")
	}
	talk, err := sessions.ShowSession(ctx, sessionDeps(a, e), session.WorkflowID(id))
	if err != nil {
		return true, err
	}
	out := &engineWriter{talkWriter: talkWriter{out: a.Out, json: a.JSON, session: id}}
	if err := out.head(ctx, e, talk); err != nil || quiet {
		return true, err
	}
	return true, out.entries(*talk.Conversation, false)
}

// engineWriter writes a session on the engine, and what is said in it as it comes.
type engineWriter struct {
	talkWriter
	state  SessionChange // that was written last
	open   int           // the entry whose parts are written, and how much of it was
	spoken int
	skip   int // turns before this one are not written
	headed bool
}

// SessionChange tells that a session stands otherwise than before.
type SessionChange struct {
	Type      string         `json:"type"` // session_state
	SessionID string         `json:"session_id"`
	State     session.Status `json:"state"`
	Turn      int            `json:"turn,omitempty"`
	Waiting   int            `json:"waiting"`
	Queued    int            `json:"queued"`
	From      runs.Origin    `json:"from"`
}

// DeltaLine is a part of a text that is being written. The text comes whole after its parts.
type DeltaLine struct {
	Type      string `json:"type"` // delta
	SessionID string `json:"session_id"`
	Entry     int    `json:"entry"`
	Text      string `json:"text"`
}

// rowOfTalk is a session as a row of the list, for what is told in short.
func rowOfTalk(ctx context.Context, e *engine.Engine, t *sessions.Talk) sessions.AgentSession {
	row := &sessions.EngineSession{WorkflowID: t.WorkflowID, RunID: t.RunID, ID: session.IDOf(t.WorkflowID), State: t.State, From: t.From}
	d, err := e.Client.DescribeWorkflowExecution(ctx, t.WorkflowID, "")
	if err == nil {
		info := d.GetWorkflowExecutionInfo()
		row.Start = info.GetStartTime().AsTime()
		if row.Last = row.Start; info.GetCloseTime() != nil {
			row.Close, row.Last = info.GetCloseTime().AsTime(), info.GetCloseTime().AsTime()
		}
	}
	if t.State != nil {
		row.Status, row.Exit = t.State.Status, t.State.Exit
	}
	if n := len(t.Turns); n > 0 && t.Turns[n-1].Ended.After(row.Last) {
		row.Last = t.Turns[n-1].Ended
	}
	return sessions.EngineRow(row, nil)
}

func (w *engineWriter) head(ctx context.Context, e *engine.Engine, t *sessions.Talk) error {
	w.headed = true
	r := rowOfTalk(ctx, e, t)
	if w.json {
		return cli.NewLines(w.out).Write(engineLineOf(r, t.State, t.From, true))
	}
	return printEngine(w.out, r, t)
}

func printEngine(to io.Writer, r sessions.AgentSession, t *sessions.Talk) error {
	out := bufio.NewWriter(to)
	fact := func(name, format string, args ...any) {
		if said := cli.SafeText(fmt.Sprintf(format, args...)); strings.TrimSpace(said) != "" {
			fmt.Fprintf(out, "%-10s %s\n", name, said)
		}
	}
	s := t.State
	fact("session", "%s", r.ID)
	fact("about", "%s", r.Name)
	fact("state", "%s (%s)", engineWord(r), t.From)
	if s == nil {
		return out.Flush()
	}
	if s.Failure != nil {
		fact("failure", "%s: %s", s.Failure.Type, s.Failure.Message)
	}
	agent := s.Input.Agent
	if s.Host != nil {
		agent = strings.Join(strings.Fields(agent+" "+s.Host.Version), " ") + " on " + s.Host.Name
	}
	fact("agent", "%s", agent)
	fact("model", "%s", r.Model)
	fact("directory", "%s", r.Dir)
	fact("began", "%s", r.Engine.Start.Local().Format("2006-01-02 15:04:05 MST"))
	fact("turns", "%d, %s tokens, $%.4f as the agent says", s.Turns, text.Count(s.Usage.InputTokens+s.Usage.OutputTokens), s.Usage.CostUSD)
	for _, q := range s.Queue {
		fact("waits", "%s, %s: %s", sessions.SenderText(q), q.ID, text.Cut(q.Text, 80, "…"))
	}
	fact("reports", "%s", sessions.ReportsText(s))
	for _, p := range s.Pending {
		fact("approval", "%s %s: %s", p.ID, p.Name, text.Cut(string(p.Args), 100, "…"))
	}
	for _, c := range s.Tools {
		fact("tool", "%-24s asked %d, allowed %d, denied %d, failed %d", c.Name, c.Asked, c.Allowed, c.Denied, c.Failed)
	}
	return out.Flush()
}

// followEngine shows what is said in a session until it has ended, or until the turn that
// has a message has.
func followEngine(a *cli.App, ctx context.Context, e *engine.Engine, id, messageID string) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	w := &engineWriter{talkWriter: talkWriter{out: a.Out, json: a.JSON, session: id}, open: -1, headed: messageID != ""}
	var wrong error
	var over bool
	var turn *sessions.SessionTurn
	sessions.FollowSession(ctx, sessionDeps(a, e), session.WorkflowID(id), func(t *sessions.Talk) {
		if over {
			return
		}
		turn = t.TurnOf(messageID)
		if messageID == "" || turn != nil {
			wrong = w.follow(ctx, e, t, turn)
		}
		over = wrong != nil || t.Err != "" || t.Closed || turn != nil && !turn.Ended.IsZero()
		if t.Err != "" && wrong == nil {
			wrong = fmt.Errorf("session %s: %s", id, t.Err)
		}
		if over {
			stop()
		}
	})
	switch {
	case wrong != nil:
		return wrong
	case !over:
		return cli.ErrInterrupted
	case turn != nil:
		return turnError(turn.Outcome())
	}
	return nil
}

// follow writes what is new.
func (w *engineWriter) follow(ctx context.Context, e *engine.Engine, t *sessions.Talk, of *sessions.SessionTurn) error {
	if t.State == nil || len(t.Turns) == 0 && t.Events == 0 {
		return nil // not read yet
	}
	if !w.headed {
		if err := w.head(ctx, e, t); err != nil {
			return err
		}
	}
	c := *t.Conversation
	c.Entries = c.Entries[:len(c.Entries)-c.Queued] // they come with their turn
	if of != nil && w.next == 0 {
		w.next = c.First + before(t, of)
	}
	if err := w.change(t); err != nil {
		return err
	}
	if err := w.entries(c, !t.Closed && (of == nil || of.Ended.IsZero())); err != nil {
		return err
	}
	return w.parts(c)
}

// before is how many entries stand before a turn.
func before(t *sessions.Talk, of *sessions.SessionTurn) int {
	for i, e := range t.Conversation.Entries {
		if e.Kind == sessions.EntryUser && e.At.Equal(of.Began) {
			return i
		}
	}
	return 0
}

func (w *engineWriter) change(t *sessions.Talk) error {
	s := t.State
	now := SessionChange{Type: "session_state", SessionID: w.session, State: s.Status, Waiting: len(s.Pending), Queued: len(s.Queue), From: t.From}
	if s.Current != nil {
		now.Turn = s.Current.Turn
	}
	before := w.state
	w.state = now
	if before.From = now.From; before == now {
		return nil
	}
	if w.json {
		return cli.NewLines(w.out).Write(now)
	}
	if len(s.Pending) > 0 && before.Waiting != now.Waiting {
		_, err := fmt.Fprintf(w.out, "\n         %s waits for leave: acescope session approve %s\n", cli.SafeText(s.Pending[0].Name), w.session)
		return err
	}
	return nil
}

// parts writes what has come of a text that is being written.
func (w *engineWriter) parts(c transcripts.Conversation) error {
	n := w.next - c.First
	if !w.json || n < 0 || n >= len(c.Entries) || !c.Entries[n].Open {
		return nil
	}
	if w.open != w.next {
		w.open, w.spoken = w.next, 0
	}
	said := c.Entries[n].Text
	if len(said) <= w.spoken {
		return nil
	}
	part := said[w.spoken:]
	w.spoken = len(said)
	return cli.NewLines(w.out).Write(DeltaLine{"delta", w.session, w.next, part})
}
