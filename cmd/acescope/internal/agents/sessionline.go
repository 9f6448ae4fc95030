package agents

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine/ace"
	"acescope/engine/agents/session"
	"acescope/engine/agents/transcript"
	"acescope/sources/runs"
	"acescope/sources/sessions"
	"acescope/sources/transcripts"
	"acescope/tui/text"
)

// SessionLine is the transcript of a session.
type SessionLine struct {
	Type string `json:"type"` // session
	Kind string `json:"kind"` // transcript
	ID   string `json:"id"`
	TranscriptAbout
	TranscriptCounts
	Usage
	TranscriptParts
	ForkedFrom  string `json:"forked_from,omitempty"`
	SharedLines int    `json:"shared_lines,omitempty"` // copied from that session
}

// TranscriptAbout is what a transcript says about its session.
type TranscriptAbout struct {
	State      transcripts.State `json:"state"` // live, idle, ended
	Unfinished bool              `json:"unfinished"`
	WorkDir    string            `json:"work_dir,omitempty"`
	Path       string            `json:"path,omitempty"`
	Title      string            `json:"title,omitempty"`
	Prompt     string            `json:"prompt,omitempty"`
	Model      string            `json:"model,omitempty"`
	Branch     string            `json:"branch,omitempty"`
	Version    string            `json:"version,omitempty"`
	Start      *time.Time        `json:"start,omitempty"`
	Last       *time.Time        `json:"last,omitempty"`
	LastError  string            `json:"last_error,omitempty"`
	Error      string            `json:"error,omitempty"` // why the file cannot be read
}

// TranscriptCounts counts the content of a transcript.
type TranscriptCounts struct {
	Turns       int   `json:"turns"`
	Messages    int   `json:"messages"`
	AgentCount  int   `json:"agent_count"` // subagents
	Compactions int   `json:"compactions"`
	Errors      int   `json:"errors"`
	Bytes       int64 `json:"bytes"`
	Lines       int   `json:"lines"`
	OddLines    int   `json:"odd_lines"`
}

// Usage counts tool calls and tokens. CostUSD is omitted if no price is known, and excludes UnpricedTokens.
type Usage struct {
	Calls          int      `json:"calls"`
	Failed         int      `json:"failed_calls"`
	Denied         int      `json:"denied_calls"`
	InputTokens    int64    `json:"input_tokens"`
	OutputTokens   int64    `json:"output_tokens"`
	CacheRead      int64    `json:"cache_read_tokens"`
	CacheWrite     int64    `json:"cache_write_tokens"`
	CostUSD        *float64 `json:"cost_usd,omitempty"`
	UnpricedTokens int64    `json:"unpriced_tokens,omitempty"`
}

// TranscriptParts is the usage of a session by tool, model and subagent, only in session show.
type TranscriptParts struct {
	Tools  []toolUsage  `json:"tools,omitempty"`
	Models []modelUsage `json:"models,omitempty"`
	Agents []agentUsage `json:"agents,omitempty"`
}

type toolUsage struct {
	Name   string   `json:"name"`
	Calls  int      `json:"calls"`
	Failed int      `json:"failed"`
	Denied int      `json:"denied"`
	Open   int      `json:"open,omitempty"` // without a result
	MeanMS *float64 `json:"mean_ms,omitempty"`
	MaxMS  *float64 `json:"max_ms,omitempty"`
}

type modelUsage struct {
	Name     string   `json:"name"`
	Messages int      `json:"messages"`
	Tokens   int64    `json:"tokens"`
	CostUSD  *float64 `json:"cost_usd,omitempty"`
}

type agentUsage struct {
	ID          string `json:"id"`
	Parent      string `json:"parent,omitempty"`
	Kind        string `json:"agent_type,omitempty"`
	Description string `json:"description,omitempty"`
	Path        string `json:"path"`
	Model       string `json:"model,omitempty"`
	Usage
}

// EngineLine is a session on the engine.
type EngineLine struct {
	Type       string         `json:"type"` // engine_session
	Kind       string         `json:"kind"` // engine
	ID         string         `json:"id"`
	WorkflowID string         `json:"workflow_id"`
	RunID      string         `json:"run_id"`
	State      session.Status `json:"state"`
	ExitStatus ace.ExitStatus `json:"exit_status"`
	From       runs.Origin    `json:"from,omitempty"`
	EngineAgent
	EngineProgress
	ace.Usage              // as the agent reports it
	Failure   *ace.Failure `json:"failure,omitempty"`
	Error     string       `json:"error,omitempty"` // why the state is unknown
	*EngineSettings
	*EngineHistory
}

// EngineAgent is the agent of a session.
type EngineAgent struct {
	Name           string `json:"name,omitempty"` // of the session
	Agent          string `json:"agent,omitempty"`
	AgentVersion   string `json:"agent_version,omitempty"`
	Model          string `json:"model,omitempty"`
	WorkDir        string `json:"work_dir,omitempty"`
	Host           string `json:"host,omitempty"`
	AgentSessionID string `json:"agent_session_id,omitempty"`
	Transcript     string `json:"transcript,omitempty"` // its file on this machine
}

// EngineProgress is how far a session is.
type EngineProgress struct {
	Start   time.Time  `json:"start"` // of the newest run of its workflow
	Close   *time.Time `json:"close,omitempty"`
	Last    *time.Time `json:"last,omitempty"`
	Turns   int        `json:"turns"`
	Turn    int        `json:"turn,omitempty"` // the current one
	Waiting int        `json:"waiting"`        // tool calls that wait for the user
	Queued  int        `json:"queued"`         // messages that wait for the agent
}

// EngineSettings are the settings of a session, only in session show.
type EngineSettings struct {
	PermissionMode string         `json:"permission_mode,omitempty"`
	AllowedTools   []string       `json:"allowed_tools,omitempty"`
	Rules          []session.Rule `json:"rules,omitempty"`
	DefaultAction  session.Action `json:"otherwise,omitempty"`
	Served         []string       `json:"served_tools,omitempty"`
	MCPServers     []string       `json:"mcp_servers,omitempty"` // their names
}

// EngineHistory is what has happened in a session, only in session show.
type EngineHistory struct {
	Approvals []ApprovalLine       `json:"approvals,omitempty"`
	Queue     []session.Message    `json:"queue,omitempty"`
	Recent    []session.TurnRecord `json:"recent,omitempty"`
	Tools     []session.ToolCount  `json:"tools,omitempty"`
	Interrupt *session.Note        `json:"interrupt,omitempty"`
	Stop      *session.Note        `json:"stop,omitempty"`
	Cursor    int64                `json:"cursor,omitempty"`
	Acked     int64                `json:"acked,omitempty"`
	Lost      int64                `json:"lost,omitempty"`
	Runs      int                  `json:"runs,omitempty"`
	// Dropped counts messages that never reached the agent.
	Dropped int `json:"dropped_messages,omitempty"`
	// ReportsSent counts reports to the senders of messages, and ReportsUndelivered those whose receiver was gone.
	ReportsSent        int `json:"reports_sent,omitempty"`
	ReportsUndelivered int `json:"reports_unheard,omitempty"`
}

// newSessionLine returns the JSON line of a session in a list.
func newSessionLine(s sessions.AgentSession, now time.Time) any {
	if s.Engine != nil {
		return newEngineLine(s)
	}
	return newTranscriptLine(s.Transcript, now)
}

func newTranscriptLine(s *transcripts.Session, now time.Time) SessionLine {
	sum := s.Summary
	return SessionLine{
		Type: "session", Kind: "transcript", ID: s.ID, Usage: newUsage(s.Totals()),
		ForkedFrom: s.ForkedFrom, SharedLines: s.Shared,
		TranscriptAbout: TranscriptAbout{State: s.State(now), Unfinished: sum.Unfinished, WorkDir: s.Dir(), Path: s.Path,
			Title: sum.Title, Prompt: sum.Prompt, Model: sum.Model, Branch: sum.Branch, Version: sum.Version,
			Start: timeOrNil(sum.Started), Last: timeOrNil(s.Last()), LastError: sum.LastError, Error: s.Err},
		TranscriptCounts: TranscriptCounts{Turns: sum.Turns, Messages: sum.Messages, AgentCount: len(s.Agents),
			Compactions: sum.Compactions, Errors: sum.Errors, Bytes: s.Size, Lines: sum.Lines,
			OddLines: sum.Unreadable + sum.Odd + sum.Oversized},
	}
}

func newUsage(t transcript.Totals) Usage {
	u := Usage{Calls: t.Calls, Failed: t.Failed, Denied: t.Denied, InputTokens: t.Tokens.Input,
		OutputTokens: t.Tokens.Output, CacheRead: t.Tokens.CacheRead, CacheWrite: t.Tokens.CacheWrite(),
		UnpricedTokens: t.Unpriced}
	if t.Priced > 0 {
		usd := math.Round(t.CostUSD*1e9) / 1e9 // hides the rounding errors of differences
		u.CostUSD = &usd
	}
	return u
}

func newTranscriptParts(s *transcripts.Session) (p TranscriptParts) {
	for _, u := range s.Summary.Tools {
		t := toolUsage{Name: u.Name, Calls: u.Calls, Failed: u.Failed, Denied: u.Denied, Open: u.Calls - u.Ended}
		if u.Timed > 0 {
			mean, longest := cli.Millis(u.Mean()), cli.Millis(u.Max)
			t.MeanMS, t.MaxMS = &mean, &longest
		}
		p.Tools = append(p.Tools, t)
	}
	for _, m := range s.Summary.Models {
		u := modelUsage{Name: m.Name, Messages: m.Messages, Tokens: m.Tokens.Total()}
		if m.Priced {
			u.CostUSD = &m.CostUSD
		}
		p.Models = append(p.Models, u)
	}
	for _, g := range s.Agents {
		p.Agents = append(p.Agents, agentUsage{ID: g.ID, Parent: g.Parent, Kind: g.Type,
			Description: cmp.Or(g.Description, g.Summary.Prompt), Path: g.Path, Model: g.Summary.Model,
			Usage: newUsage(g.Summary.Totals)})
	}
	return p
}

func newEngineLine(r sessions.AgentSession) EngineLine {
	e := r.Engine
	l := EngineLine{Type: "engine_session", Kind: "engine", ID: e.ID, WorkflowID: e.WorkflowID, RunID: e.RunID,
		State: e.Status, ExitStatus: e.Exit, From: e.From, Error: e.Err,
		EngineAgent: EngineAgent{Name: r.Name, Model: r.Model, WorkDir: r.Dir},
		EngineProgress: EngineProgress{Start: e.Start.UTC(), Close: timeOrNil(e.Close), Last: timeOrNil(r.Last),
			Turns: r.Turns, Waiting: r.Waiting}}
	if r.Transcript != nil {
		l.Transcript = r.Transcript.Path
	}
	s := e.State
	if s == nil {
		return l
	}
	l.Agent, l.AgentSessionID, l.Queued = s.Input.Agent, s.AgentSessionID, len(s.Queue)
	l.Usage, l.Failure = s.Usage, s.Failure
	if s.Host != nil {
		l.Host, l.AgentVersion = s.Host.Name, s.Host.Version
	}
	if s.Current != nil {
		l.Turn = s.Current.Turn
	}
	return l
}

// addState adds the details of the session's state.
func (l *EngineLine) addState(s *session.State) {
	if s == nil {
		return
	}
	in := s.Input
	l.EngineSettings = &EngineSettings{PermissionMode: in.PermissionMode, AllowedTools: in.AllowedTools, Rules: in.Rules,
		DefaultAction: cmp.Or(in.DefaultAction, session.Ask), Served: in.Served,
		MCPServers: slices.Sorted(maps.Keys(in.MCPServers))}
	l.EngineHistory = &EngineHistory{Queue: s.Queue, Recent: s.Recent, Tools: s.Tools, Interrupt: s.Interrupt,
		Stop: s.Stop, Cursor: s.Cursor, Acked: s.Acked, Lost: s.Lost, Runs: s.Runs, Dropped: s.Undelivered(),
		ReportsSent: s.ReportsSent, ReportsUndelivered: s.ReportsUndelivered}
	for _, w := range sessions.ApprovalsOf(l.WorkflowID, s) {
		l.Approvals = append(l.Approvals, newApprovalLine(w))
	}
}

// writeSession writes a session without its conversation. d is nil for a transcript.
func writeSession(a *cli.App, r sessions.AgentSession, d *sessions.Talk) error {
	switch {
	case a.JSON && d != nil:
		l := newEngineLine(r)
		l.addState(d.State)
		return cli.NewLines(a.Out).Write(l)
	case a.JSON:
		l := newTranscriptLine(r.Transcript, time.Now())
		l.TranscriptParts = newTranscriptParts(r.Transcript)
		return cli.NewLines(a.Out).Write(l)
	case d != nil:
		return engineDetails(r, d).print(a.Out)
	}
	return transcriptDetails(r, time.Now()).print(a.Out)
}

func transcriptDetails(r sessions.AgentSession, now time.Time) (d details) {
	s := r.Transcript
	sum, t := s.Summary, s.Totals()
	d.add("session", "%s", s.ID)
	d.add("name", "%s", s.Name())
	d.add("state", "%s", stateText(r, now))
	d.add("directory", "%s", s.Dir())
	d.add("file", "%s", s.Path)
	d.add("branch", "%s", sum.Branch)
	if !sum.Started.IsZero() {
		d.add("started", "%s, active for %s", formatTime(sum.Started), text.Span(sum.Last.Sub(sum.Started)))
	}
	d.add("content", "%d turns, %d messages, %d compactions", sum.Turns, sum.Messages, sum.Compactions)
	d.add("tokens", "%s in, %s out, cache %s read, %s written", text.Count(t.Tokens.Input), text.Count(t.Tokens.Output),
		text.Count(t.Tokens.CacheRead), text.Count(t.Tokens.CacheWrite()))
	d.add("cost", "%s at list prices", costText(t))
	if s.ForkedFrom != "" {
		d.add("forked", "from %s, %d lines", s.ForkedFrom, s.Shared)
	}
	if sum.Errors > 0 {
		d.add("errors", "%d, the last: %s", sum.Errors, sum.LastError)
	}
	for _, u := range sum.Tools {
		d.add("tool", "%-24s %d calls, %d failed, %d denied, %s on average", u.Name, u.Calls, u.Failed, u.Denied,
			text.Took(u.Mean()))
	}
	for _, g := range s.Agents {
		d.add("subagent", "%s %s %s: %d calls, %s tokens, %s", g.ID, g.Type, g.Description, g.Summary.Calls,
			text.Count(g.Summary.Tokens.Total()), costText(g.Summary.Totals))
	}
	return d
}

func engineDetails(r sessions.AgentSession, t *sessions.Talk) (d details) {
	d.add("session", "%s", r.ID)
	d.add("name", "%s", r.Name)
	d.add("state", "%s (%s)", stateText(r, time.Now()), t.From)
	s := t.State
	if s == nil {
		return d
	}
	if s.Failure != nil {
		d.add("failure", "%s: %s", s.Failure.Type, s.Failure.Message)
	}
	agent := s.Input.Agent
	if s.Host != nil {
		agent = strings.TrimSpace(agent+" "+s.Host.Version) + " on " + s.Host.Name
	}
	d.add("agent", "%s", agent)
	d.add("model", "%s", r.Model)
	d.add("directory", "%s", r.Dir)
	d.add("started", "%s", formatTime(r.Engine.Start))
	d.add("turns", "%d, %s tokens, $%.4f as the agent reports", s.Turns,
		text.Count(s.Usage.InputTokens+s.Usage.OutputTokens), s.Usage.CostUSD)
	for _, q := range s.Queue {
		d.add("queued", "%s, %s: %s", sessions.SenderText(q), q.ID, text.Cut(q.Text, 80, "…"))
	}
	d.add("reports", "%s", sessions.ReportsText(s))
	for _, p := range s.Pending {
		d.add("approval", "%s %s: %s", p.ID, p.Name, text.Cut(string(p.Args), 100, "…"))
	}
	for _, c := range s.Tools {
		d.add("tool", "%-24s asked %d, allowed %d, denied %d, failed %d", c.Name, c.Asked, c.Allowed, c.Denied, c.Failed)
	}
	return d
}

// stateText returns the state of a session: "waiting (2)", "failed", "idle, unfinished".
func stateText(r sessions.AgentSession, now time.Time) string {
	e := r.Engine
	switch {
	case e == nil:
		state := r.State(now)
		if r.Unfinished && state != transcripts.Live {
			return string(state) + ", unfinished"
		}
		return string(state)
	case e.Status == session.Ended && e.Exit != "" && e.Exit != ace.Success:
		return string(e.Exit)
	case r.Waiting > 0:
		return fmt.Sprintf("%s (%d)", e.Status, r.Waiting)
	}
	return cmp.Or(string(e.Status), "?")
}

// costText returns a cost: "?" if no price is known, with a plus if some prices are not known.
func costText(t transcript.Totals) string {
	switch {
	case t.Tokens.Total() == 0:
		return "-"
	case t.Priced == 0:
		return "?"
	case t.Unpriced > 0:
		return fmt.Sprintf("$%.4f+", t.CostUSD)
	}
	return fmt.Sprintf("$%.4f", t.CostUSD)
}
