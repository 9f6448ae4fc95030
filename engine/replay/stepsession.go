package replay

import (
	"fmt"
	"strings"

	"acescope/engine/session"
)

// session lists what can be watched of an agent session.
func (l *valueList) session(s *session.State) {
	l.put("status", string(s.Status))
	l.put("exit_status", string(s.Exit))
	l.put("turns", s.Turns)
	if c := s.Current; c != nil {
		l.put("turn.number", c.Turn)
		l.put("turn.messages", len(c.Messages))
		if len(c.Messages) > 0 {
			l.put("turn.prompt", c.Messages[0].Text)
		}
	}
	if n := len(s.Recent); n > 0 {
		last := s.Recent[n-1]
		l.put("last_turn.status", string(last.Status))
		l.put("last_turn.text", last.Text)
	}
	l.put("queue", len(s.Queue))
	for _, p := range s.Pending {
		l.put("pending."+p.ID, p.Name+" "+string(p.Args))
	}
	for _, p := range s.Running {
		l.put("running."+p.ID, p.Name)
	}
	for _, a := range s.Decided {
		l.put("decided."+a.ID, strings.TrimSpace(string(a.Action)+" by "+a.By+" "+a.Reason))
	}
	for _, c := range s.Tools {
		at := "tools." + c.Name + "."
		l.put(at+"asked", c.Asked)
		l.put(at+"allowed", c.Allowed)
		l.put(at+"denied", c.Denied)
		l.put(at+"failed", c.Failed)
	}
	l.usage(s.Usage)
	l.put("cursor", s.Cursor)
	l.put("acked", s.Acked)
	l.put("lost", s.Lost)
	l.put("agent_session_id", s.AgentSessionID)
	l.put("model", s.Model)
	if s.Host != nil {
		l.put("host", s.Host.Name)
	}
	if s.Failure != nil {
		l.put("failure", fmt.Sprintf("%s: %s", s.Failure.Type, s.Failure.Message))
	}
	for _, x := range []struct {
		name string
		note *session.Note
	}{{"stop", s.Stop}, {"interrupt", s.Interrupt}} {
		if n := x.note; n != nil {
			l.put(x.name, strings.TrimSpace("asked for by "+n.By+" "+n.Reason))
		}
	}
	l.put("runs", s.Runs)
}
