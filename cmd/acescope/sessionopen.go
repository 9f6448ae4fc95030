package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"acescope/engine"
	"acescope/engine/ace"
	"acescope/engine/artifact"
	"acescope/engine/server"
	"acescope/engine/session"
	"acescope/sources"
)

// askWithin bounds how long a session may take to take something: it needs a worker.
const askWithin = 20 * time.Second

// speak connects to speak with a session. Where nobody hosts the data directory, this
// process does, and serves; elsewhere it leaves the serving to who does it already.
func (a *app) speak(ctx context.Context) (*engine.Engine, func(), error) {
	alone := a.cluster() == nil && !a.hosted()
	return a.connect(ctx, engine.Options{Worker: alone, Takeover: alone})
}

// hosted tells whether a process hosts the data directory.
func (a *app) hosted() bool {
	dir, err := a.dir()
	if err != nil {
		return false
	}
	_, ok := server.Lookup(dir)
	return ok
}

// reachable tells whether the engine's sessions can be read without starting a server for
// a data directory that has none yet.
func (a *app) reachable() bool {
	if a.cluster() != nil || a.hosted() {
		return true
	}
	dir, err := a.dir()
	if err != nil {
		return false
	}
	entries, err := os.ReadDir(dir)
	return err == nil && len(entries) > 0
}

// sessionDeps are what sessions on the engine are read with.
func (a *app) sessionDeps(e *engine.Engine) sources.Deps {
	dir, _ := a.dir() // the engine is open: it is known
	return sources.Deps{Client: e.Client, Namespace: e.Namespace(), DataDir: dir, Artifact: e.Artifacts.Get, TurnLog: turnLog(dir, e)}
}

// turnLog is where the log of a turn lies on this machine.
func turnLog(dir string, e *engine.Engine) func(string, string, int, int32) string {
	logs := artifact.NewLogs(dir, e.Artifacts)
	return func(workflowID, runID string, turn int, attempt int32) string {
		return logs.Path(artifact.LogName{WorkflowID: workflowID, RunID: runID, Activity: session.ActivityTurn, Seq: turn, Attempt: attempt}.Path())
	}
}

// engineSession is the id of the session on the engine that a name means: its id, the
// begin of one, or its workflow id; "" where there is none.
func engineSession(ctx context.Context, e *engine.Engine, name string) (string, error) {
	id := cmp.Or(session.IDOf(name), name)
	if id == "" {
		return "", nil
	}
	_, err := e.Client.DescribeWorkflowExecution(ctx, session.WorkflowID(id), "")
	if err == nil {
		return id, nil
	}
	if !sources.NotFound(err) {
		return "", err
	}
	var found []string
	err = sources.List(ctx, e.Client, sources.SessionsQuery, sources.MaxEngineSessions, func(r sources.Run) error {
		if known := session.IDOf(r.WorkflowID); strings.HasPrefix(known, id) {
			found = append(found, known)
		}
		return nil
	})
	switch {
	case err != nil || len(found) == 0:
		return "", err
	case len(found) > 1:
		return "", usage("%q begins %d sessions: %s", id, len(found), strings.Join(found[:min(len(found), 5)], ", "))
	}
	return found[0], nil
}

// mustSession is [engineSession] that must be there.
func mustSession(ctx context.Context, e *engine.Engine, name string) (string, error) {
	id, err := engineSession(ctx, e, name)
	if err == nil && id == "" {
		err = noSession(name)
	}
	return id, err
}

func noSession(name string) error {
	return &coded{exitNotFound, fmt.Errorf("no session %q; acescope session list lists them", name)}
}

// unheard says in plain words why a session did not take something.
func unheard(id string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, engine.ErrNoSession):
		return noSession(id)
	case errors.Is(err, context.DeadlineExceeded), sources.Away(err):
		return &coded{exitUnreachable, fmt.Errorf("session %s did not answer within %s: is it served? acescope serve does so", id, askWithin)}
	case errors.Is(err, context.Canceled):
		return errInterrupted
	}
	return err
}

// newSessionID is an id that tells when the session was started.
func newSessionID(now time.Time) string {
	return "s-" + now.Format("20060102-150405") + "-" + strings.ToLower(rand.Text()[:4])
}

// maxSessionMessage is the largest message that turns take, in bytes.
const maxSessionMessage = 8 << 20

// sessionMessage is a message; a long one becomes an artifact.
func sessionMessage(ctx context.Context, e *engine.Engine, id, said, from string) (session.Message, error) {
	m := session.Message{ID: cmp.Or(id, "m-"+rand.Text()), Text: said, From: from}
	if len(said) > maxSessionMessage {
		return m, usage("the message has %d bytes; %d are allowed", len(said), maxSessionMessage)
	}
	if len(said) > session.MaxText {
		ref, err := e.Artifacts.PutBytes(ctx, []byte(said), "text/plain; charset=utf-8")
		if err != nil {
			return m, err
		}
		m.Text, m.Ref = "", &ref
	}
	return m, nil
}

// me is who decides and asks, for the session's history.
func me() string { return cmp.Or(os.Getenv("USER"), os.Getenv("LOGNAME")) }

// StartSession implements [views.SessionActions].
func (l *link) StartSession(ctx context.Context, in sources.TalkInput, first string) (string, error) {
	e, err := l.ready()
	if err != nil {
		return "", err
	}
	in.SessionID = cmp.Or(in.SessionID, newSessionID(time.Now()))
	if first != "" {
		m, err := sessionMessage(ctx, e, "", first, me())
		if err != nil {
			return "", err
		}
		in.First = &m
	}
	_, err = startSession(ctx, e, in)
	return in.SessionID, err
}

// startSession gives the session the identity that its agent's conversation will have.
func startSession(ctx context.Context, e *engine.Engine, in session.Input) (runID string, err error) {
	if in.Agent == "claude" && in.AgentSessionID == "" {
		in.AgentSessionID = session.UUID("agent", in.SessionID)
	}
	return e.StartSession(ctx, in)
}

// SendMessage implements [views.SessionActions].
func (l *link) SendMessage(ctx context.Context, id, said string) (int, error) {
	e, err := l.ready()
	if err != nil {
		return 0, err
	}
	m, err := sessionMessage(ctx, e, "", said, me())
	if err != nil {
		return 0, err
	}
	r, err := e.Send(ctx, id, m)
	return r.Waiting, unheard(id, err)
}

// DecideCall implements [views.SessionActions].
func (l *link) DecideCall(ctx context.Context, id, call string, allow bool, reason string) error {
	e, err := l.ready()
	if err != nil {
		return err
	}
	_, err = e.Decide(ctx, id, decision(call, allow, reason))
	return unheard(id, err)
}

func decision(call string, allow bool, reason string) session.Decision {
	d := session.Decision{ID: call, Action: session.Deny, Reason: reason, By: me()}
	if allow {
		d.Action = session.Allow
	}
	return d
}

// InterruptSession implements [views.SessionActions].
func (l *link) InterruptSession(ctx context.Context, id string) error {
	e, err := l.ready()
	if err != nil {
		return err
	}
	_, err = e.Interrupt(ctx, id, session.Note{By: me()})
	return unheard(id, err)
}

// StopSession implements [views.SessionActions].
func (l *link) StopSession(ctx context.Context, id string) error {
	e, err := l.ready()
	if err != nil {
		return err
	}
	_, err = e.Stop(ctx, id, session.Note{By: me()})
	return unheard(id, err)
}

// maxArguments is the largest argument of a call that is shown, in bytes.
const maxArguments = 4 << 20

// Arguments implements [views.SessionActions].
func (l *link) Arguments(_ context.Context, ref ace.Ref) ([]byte, error) {
	e, err := l.ready()
	if err != nil {
		return nil, err
	}
	return e.Artifacts.Get(ref, maxArguments)
}
