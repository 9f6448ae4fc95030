package detail

import (
	"context"
	"fmt"

	historypb "go.temporal.io/api/history/v1"

	"acescope/engine/ace"
	"acescope/engine/agents/session"
	"acescope/sources/histories"
	"acescope/sources/runs"
	"acescope/sources/sessions"
)

// sessionRun folds the history of an agent session.
type sessionRun struct{ *sessions.Folder }

func (s sessionRun) fold(_ *draft, e *historypb.HistoryEvent) (changes []histories.Change) {
	before := s.State
	if !s.Apply(e) {
		return nil
	}
	now := &s.State
	say := func(kind, format string, args ...any) {
		changes = append(changes, noted(runs.LogLine{Event: e.GetEventId(), At: e.GetEventTime().AsTime(),
			Kind: kind,
			Text: fmt.Sprintf(format, args...)}))
	}
	if now.Status != before.Status {
		say("phase", "%s", now.Status)
	}
	if now.Turns != before.Turns && now.Current != nil && len(now.Current.Messages) > 0 {
		say("status", "turn %d: %s", now.Turns, now.Current.Messages[0].Text)
	}
	if n := len(now.Recent); n > 0 && before.Current != nil && now.Current == nil {
		r := now.Recent[n-1]
		kind := "status"
		if r.Status == session.TurnFailed {
			kind = "error"
		}
		say(kind, "turn %d %s, %s", r.Turn, r.Status, sessions.TurnText(r))
	}
	if len(now.Pending) > len(before.Pending) {
		p := now.Pending[len(now.Pending)-1]
		say("skill", "%s waits for approval: %s", p.Name, p.Args)
	}
	return changes
}

func (s sessionRun) query(ctx context.Context, ask query) func(*draft) {
	var live session.State
	if ask(ctx, session.QuerySession, &live) != nil {
		return nil
	}
	return func(d *draft) {
		d.From, d.Err = runs.FromQuery, ""
		takeSession(d, &live)
	}
}

func (s sessionRun) take(d *draft) {
	if s.Foreign != nil {
		d.Err = fmt.Sprintf("the input of this session does not match the contract: %v", s.Foreign)
	}
	state := s.State
	takeSession(d, &state)
}

// takeSession sets the detail from a session: its status is the phase, its tool calls are the skills.
func takeSession(d *draft, s *session.State) {
	d.Session = s
	d.Phase = ace.PhaseAnswer{Phase: ace.Phase(s.Status), Failure: s.Failure, Usage: s.Usage}
	if d.closed.Status == ace.Completed {
		d.Phase.Failure = nil // of a turn
	}
	d.Input = ace.TaskInput{TaskID: d.WorkflowID, Model: s.Model, Provider: s.Input.Agent}
	d.Skills = ace.SkillAnswer{}
	for _, c := range s.Tools {
		d.Skills.Total += c.Asked
		d.Skills.Skills = append(d.Skills.Skills, ace.SkillUsage{Name: c.Name, Calls: c.Asked,
			OK:     c.Allowed - c.Failed,
			Failed: c.Failed, Denied: c.Denied})
	}
}
