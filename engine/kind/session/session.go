// Package session is the kind of the runs of agent sessions.
package session

import (
	"fmt"
	"strings"

	historypb "go.temporal.io/api/history/v1"

	"acescope/engine/agents/session"
	"acescope/engine/kind"
)

// Kind describes a session of an agent.
var Kind = kind.Kind{Type: session.Workflow,
	New: func() kind.Fold { return &fold{decoder: &session.Decoder{}} }}

// fold folds an agent session. The state replaces its slices and maps and never changes them in place.
type fold struct {
	state   session.State
	decoder *session.Decoder
}

func (f *fold) Apply(e *historypb.HistoryEvent) kind.Effect {
	fact, ok, err := f.decoder.Fact(e)
	if !ok {
		return kind.Effect{Foreign: err}
	}
	before := f.calls()
	f.state.Apply(fact)
	return kind.Effect{
		Changed: true, Tool: fact.Kind == session.FactToolRan || f.calls() != before,
		Failed: fact.Failure != nil || fact.Result != nil && fact.Result.Failed != nil ||
			fact.Tool != nil && fact.Tool.Error,
		Foreign: err,
	}
}

// calls returns the number of tool calls that are pending, decided or running.
func (f *fold) calls() int {
	return len(f.state.Pending) + len(f.state.Decided) + len(f.state.Running)
}

func (f *fold) Clone() kind.Fold { return &fold{f.state, f.decoder.Clone()} }
func (f *fold) ID() string       { return f.state.Input.SessionID }
func (f *fold) Phase() string    { return string(f.state.Status) }

func (f *fold) Answer(a *kind.Answers) {
	a.Session = new(f.state)
}

func (f *fold) Values() []kind.Value {
	var l kind.ValueList
	s := &f.state
	l.Put("status", string(s.Status))
	l.Put("workflow_status", string(s.Exit))
	l.Put("turns", s.Turns)
	if c := s.Current; c != nil {
		l.Put("turn.number", c.Turn)
		l.Put("turn.messages", len(c.Messages))
		if len(c.Messages) > 0 {
			l.Put("turn.prompt", c.Messages[0].Text)
		}
	}
	if n := len(s.Recent); n > 0 {
		last := s.Recent[n-1]
		l.Put("last_turn.status", string(last.Status))
		l.Put("last_turn.text", last.Text)
	}
	l.Put("queue", len(s.Queue))
	for _, p := range s.Pending {
		l.Put("pending."+p.ID, p.Name+" "+string(p.Args))
	}
	for _, p := range s.Running {
		l.Put("running."+p.ID, p.Name)
	}
	for _, a := range s.Decided {
		l.Put("decided."+a.ID, strings.TrimSpace(string(a.Action)+" by "+a.By+" "+a.Reason))
	}
	for _, c := range s.Tools {
		at := "tools." + c.Name + "."
		l.Put(at+"asked", c.Asked)
		l.Put(at+"allowed", c.Allowed)
		l.Put(at+"denied", c.Denied)
		l.Put(at+"failed", c.Failed)
	}
	l.Usage(s.Usage)
	l.Put("cursor", s.Cursor)
	l.Put("acked", s.Acked)
	l.Put("lost", s.Lost)
	l.Put("agent_session_id", s.AgentSessionID)
	l.Put("model", s.Model)
	if s.Host != nil {
		l.Put("host", s.Host.Name)
	}
	if s.Failure != nil {
		l.Put("failure", fmt.Sprintf("%s: %s", s.Failure.Type, s.Failure.Message))
	}
	if n := s.Stop; n != nil {
		l.Request("stop", n.By, n.Reason)
	}
	if n := s.Interrupt; n != nil {
		l.Request("interrupt", n.By, n.Reason)
	}
	l.Put("runs", s.Runs)
	return l
}

func (f *fold) Sections(kind.Books, *historypb.HistoryEvent) []kind.Section {
	return kind.ValueSections(f.Values())
}
