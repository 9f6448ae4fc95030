package sessions

import (
	"cmp"
	"slices"
	"time"

	"acescope/engine/agents/transcript"
)

// AgentEngine is the kind of a session on the engine, whether it has a transcript on this
// machine or not.
const AgentEngine AgentKind = "engine"

// EngineRow is a session on the engine as a row. t is its transcript on this machine, nil
// where there is none.
func EngineRow(e *EngineSession, t *Transcript) AgentSession {
	r := AgentSession{Kind: AgentEngine, Key: e.WorkflowID, ID: e.ID, Last: e.Last, Known: e.State != nil, Engine: e, Transcript: t}
	if t != nil {
		r.Agents, r.Totals, r.ForkedFrom = len(t.Agents), t.Totals(), t.ForkedFrom
		r.Last = later(r.Last, t.Last())
	}
	r.State = func(time.Time) SessionState {
		switch {
		case !e.Open():
			return SessionEnded
		case e.Status == TalkWorking || e.Status == TalkWaiting || e.Status == TalkStarting || e.Status == TalkStopping:
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

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// totalsOf is what a session has spent, as its agent says itself.
func totalsOf(s *TalkState) AgentTotals {
	var t AgentTotals
	t.Tokens = transcript.Tokens{Input: s.Usage.InputTokens, Output: s.Usage.OutputTokens, CacheRead: s.Usage.CacheReadTokens}
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

// AgentRows is the sessions on the engine and the transcripts of this machine, the newest
// first. A transcript that belongs to a session on the engine is not a row of its own.
func AgentRows(files []AgentSession, engine []*EngineSession) []AgentSession {
	if len(engine) == 0 {
		return files
	}
	byID := map[string]*Transcript{}
	for _, r := range files {
		byID[r.ID] = r.Transcript
	}
	taken := map[*Transcript]bool{}
	rows := make([]AgentSession, 0, len(files)+len(engine))
	for _, e := range engine {
		var t *Transcript
		if e.State != nil && e.State.AgentSessionID != "" {
			if t = byID[e.State.AgentSessionID]; t != nil {
				taken[t] = true
			}
		}
		rows = append(rows, EngineRow(e, t))
	}
	for _, r := range files {
		if !taken[r.Transcript] {
			rows = append(rows, r)
		}
	}
	slices.SortStableFunc(rows, func(a, b AgentSession) int { return b.Last.Compare(a.Last) })
	return rows
}
