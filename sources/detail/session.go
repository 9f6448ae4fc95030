package detail

import (
	"context"
	"fmt"

	historypb "go.temporal.io/api/history/v1"

	"acescope/engine/ace"
	"acescope/engine/agents/session"
	"acescope/sources/runs"
	"acescope/sources/sessions"
)

// foldSession folds an event of an agent session and logs its changes.
func (w *watcher) foldSession(e *historypb.HistoryEvent) {
	before := w.session.State
	if !w.session.Apply(e) {
		return
	}
	now := &w.session.State
	say := func(kind, format string, args ...any) {
		w.line(runs.LogLine{Event: e.GetEventId(), At: e.GetEventTime().AsTime(), Kind: kind, Text: fmt.Sprintf(format, args...)})
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
}

// askSession queries a live session. It returns nil if the worker does not answer.
func (w *watcher) askSession(ctx context.Context) func() {
	var s session.State
	if w.query(ctx, session.QuerySession, &s) != nil {
		return nil
	}
	return func() {
		w.detail.From, w.detail.Err = runs.FromQuery, ""
		w.takeSession(&s)
	}
}

// takeSession sets the detail from a session: its status is the phase, its tool calls are the skills.
func (w *watcher) takeSession(s *session.State) {
	d := &w.detail
	d.Session = s
	d.Phase = ace.PhaseAnswer{Phase: ace.Phase(s.Status), Failure: s.Failure, Usage: s.Usage}
	if w.closed == ace.Completed {
		d.Phase.Failure = nil // of a turn
	}
	d.Input = ace.TaskInput{TaskID: d.WorkflowID, Model: s.Model, Provider: s.Input.Agent}
	d.Skills = ace.SkillAnswer{}
	for _, c := range s.Tools {
		d.Skills.Total += c.Asked
		d.Skills.Skills = append(d.Skills.Skills, ace.SkillUsage{Name: c.Name, Calls: c.Asked, OK: c.Allowed - c.Failed, Failed: c.Failed, Denied: c.Denied})
	}
}
