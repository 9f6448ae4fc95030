package sessions

import (
	"cmp"
	"slices"
	"time"

	"acescope/engine/agents/agentcli"
	"acescope/engine/agents/session"
	"acescope/engine/agents/transcript"
	"acescope/sources/transcripts"
)

// Row is a session in the list of sessions: a transcript on this machine, or a session on the engine with or
// without its transcript. Texts are untrusted.
type Row struct {
	Key   string    `json:"-"` // unique in the list: the path of a transcript, or a workflow ID
	ID    string    `json:"id"`
	Agent string    `json:"agent,omitempty"` // its name: claude, codex, gemini, opencode
	Dir   string    `json:"work_dir,omitempty"`
	Name  string    `json:"name,omitempty"` // title, otherwise the first prompt
	Model string    `json:"model,omitempty"`
	Last  time.Time `json:"last,omitzero"` // of the newest entry
	Known bool      `json:"-"`             // it was read

	Turns  int `json:"turns"`
	Agents int `json:"agent_count"` // subagents
	transcript.Totals
	Bad        bool `json:"-"` // it has a failure
	Unfinished bool `json:"unfinished"`
	Waiting    int  `json:"waiting"` // tool calls that wait for the user

	Transcript *transcripts.Session `json:"transcript,omitempty"` // nil if it is not on this machine
	Engine     *EngineSession       `json:"engine,omitempty"`     // nil for a transcript
}

// RowOf returns a transcript as a row.
func RowOf(t *transcripts.Session) Row {
	return Row{
		Key: t.Path, ID: t.ID, Agent: string(t.Agent), Dir: t.Dir(), Name: t.Name(), Model: t.Summary.Model,
		Last: t.Last(), Known: t.Read,
		Turns: t.Summary.Turns, Agents: len(t.Agents), Totals: t.Totals(), Bad: t.Failed(),
		Unfinished: t.Summary.Unfinished, Transcript: t,
	}
}

// EngineRow returns a session on the engine as a row. t is its transcript on this machine, or nil.
func EngineRow(e *EngineSession, t *transcripts.Session) Row {
	r := Row{Key: e.WorkflowID, ID: e.ID, Last: e.Last, Known: e.State != nil, Engine: e, Transcript: t}
	if t != nil {
		r.Agents, r.Totals = len(t.Agents), t.Totals()
		if t.Last().After(r.Last) {
			r.Last = t.Last()
		}
	}
	s := e.State
	if s == nil {
		return r
	}
	r.Agent = s.Input.Agent
	r.Dir, r.Name, r.Model, r.Turns = s.Input.WorkingDir, s.Input.Name, cmp.Or(s.Model, s.Input.Model),
		s.Turns
	switch {
	case r.Name != "":
	case len(s.Recent) > 0:
		r.Name = s.Recent[0].Prompt
	case s.Current != nil && len(s.Current.Messages) > 0:
		r.Name = s.Current.Messages[0].Text
	case len(s.Queue) > 0:
		r.Name = s.Queue[0].Text
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

// CostSource says how the cost of the session is known.
func (r Row) CostSource() string {
	if r.Transcript == nil || r.Agent == string(agentcli.OpenCode) {
		return "as the agent reports"
	}
	return "at list prices"
}

// LastTurnFailed reports whether the last turn of a session on the engine failed.
func (r Row) LastTurnFailed() bool {
	return r.Engine != nil && r.Engine.State != nil && r.Engine.State.Current == nil &&
		r.Engine.State.Failure != nil
}

// Activity returns how recently the session was active.
func (r Row) Activity(now time.Time) transcripts.State {
	switch {
	case r.Engine == nil:
		return r.Transcript.State(now)
	case !r.Engine.Open():
		return transcripts.Ended
	case r.Engine.Status == session.Idle || r.Engine.Status == "":
		return transcripts.Idle
	}
	return transcripts.Live
}

// Brief returns the row without what only the page of a session shows.
func (r Row) Brief() Row {
	if r.Transcript != nil {
		t := *r.Transcript
		t.Tools, t.Summary.Models, t.Summary.Days, t.Summary.Agents, t.Agents = nil, nil, nil, nil, nil
		r.Transcript = &t
	}
	if r.Engine != nil && r.Engine.State != nil {
		e, s := *r.Engine, r.Engine.State
		e.State = &session.State{Input: s.Input, Status: s.Status, Host: s.Host,
			AgentSessionID: s.AgentSessionID,
			Model:          s.Model, Current: s.Current, Turns: s.Turns, Usage: s.Usage, Failure: s.Failure,
			Exit: s.Exit, Runs: s.Runs}
		r.Engine = &e
	}
	return r
}

// totalsOf returns the usage of a session as its agent reports it.
func totalsOf(s *session.State) (t transcript.Totals) {
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

// Rows merges the sessions on the engine with the transcripts on this machine, the newest first. A transcript
// that belongs to a session on the engine has no row of its own.
func Rows(files []Row, engine []*EngineSession) []Row {
	if len(engine) == 0 {
		return files
	}
	byID := map[string]*transcripts.Session{}
	for _, r := range files {
		byID[r.ID] = r.Transcript
	}
	merged := map[*transcripts.Session]bool{}
	rows := make([]Row, 0, len(files)+len(engine))
	for _, e := range engine {
		var t *transcripts.Session
		if e.State != nil && e.State.AgentSessionID != "" {
			t = byID[e.State.AgentSessionID]
			merged[t] = true
		}
		rows = append(rows, EngineRow(e, t))
	}
	for _, r := range files {
		if !merged[r.Transcript] {
			rows = append(rows, r)
		}
	}
	slices.SortStableFunc(rows, func(a, b Row) int { return b.Last.Compare(a.Last) })
	return rows
}
