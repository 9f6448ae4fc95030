package admin

import (
	"cmp"
	"context"
	"time"

	"acescope/cmd/acescope/internal/agents"
	"acescope/engine/ace"
	"acescope/engine/agents/session"
	"acescope/sources/sessions"
)

// StartSession implements [views.SessionActions].
func (l *Link) StartSession(ctx context.Context, in sessions.TalkInput, first string) (string, error) {
	e, err := l.ready()
	if err != nil {
		return "", err
	}
	in.SessionID = cmp.Or(in.SessionID, agents.NewSessionID(time.Now()))
	if first != "" {
		m, err := agents.SessionMessage(ctx, e, "", first, agents.Me())
		if err != nil {
			return "", err
		}
		in.First = &m
	}
	_, err = agents.StartSession(ctx, e, in)
	return in.SessionID, err
}

// SendMessage implements [views.SessionActions].
func (l *Link) SendMessage(ctx context.Context, id, said string) (int, error) {
	e, err := l.ready()
	if err != nil {
		return 0, err
	}
	m, err := agents.SessionMessage(ctx, e, "", said, agents.Me())
	if err != nil {
		return 0, err
	}
	r, err := e.Send(ctx, id, m)
	return r.Waiting, agents.Unheard(id, err)
}

// DecideCall implements [views.SessionActions].
func (l *Link) DecideCall(ctx context.Context, id, call string, allow bool, reason string) error {
	e, err := l.ready()
	if err != nil {
		return err
	}
	_, err = e.Decide(ctx, id, agents.Decision(call, allow, reason))
	return agents.Unheard(id, err)
}

// InterruptSession implements [views.SessionActions].
func (l *Link) InterruptSession(ctx context.Context, id string) error {
	e, err := l.ready()
	if err != nil {
		return err
	}
	_, err = e.Interrupt(ctx, id, session.Note{By: agents.Me()})
	return agents.Unheard(id, err)
}

// StopSession implements [views.SessionActions].
func (l *Link) StopSession(ctx context.Context, id string) error {
	e, err := l.ready()
	if err != nil {
		return err
	}
	_, err = e.Stop(ctx, id, session.Note{By: agents.Me()})
	return agents.Unheard(id, err)
}

// Arguments implements [views.SessionActions].
func (l *Link) Arguments(_ context.Context, ref ace.Ref) ([]byte, error) {
	e, err := l.ready()
	if err != nil {
		return nil, err
	}
	return e.Artifacts.Get(ref, agents.MaxArguments)
}
