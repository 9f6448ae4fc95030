package agents

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine"
	"acescope/engine/agents/session"
	"acescope/engine/store/artifact"
	"acescope/engine/temporal/server"
	"acescope/sources/cluster"
	"acescope/sources/runs"
	"acescope/sources/sessions"
)

// askWithin bounds how long a session may take to take something: it needs a worker.
const askWithin = 20 * time.Second

// speak connects to speak with a session. Where nobody hosts the data directory, this
// process does, and serves; elsewhere it leaves the serving to who does it already.
func speak(a *cli.App, ctx context.Context) (*engine.Engine, func(), error) {
	alone := a.Cluster() == nil && !hosted(a)
	return a.Connect(ctx, engine.Options{Worker: alone, Takeover: alone})
}

// hosted tells whether a process hosts the data directory.
func hosted(a *cli.App) bool {
	dir, err := a.DataDir()
	if err != nil {
		return false
	}
	_, ok := server.Lookup(dir)
	return ok
}

// reachable tells whether the engine's sessions can be read without starting a server for
// a data directory that has none yet.
func reachable(a *cli.App) bool {
	if a.Cluster() != nil || hosted(a) {
		return true
	}
	dir, err := a.DataDir()
	if err != nil {
		return false
	}
	entries, err := os.ReadDir(dir)
	return err == nil && len(entries) > 0
}

// sessionDeps are what sessions on the engine are read with.
func sessionDeps(a *cli.App, e *engine.Engine) cluster.Deps {
	dir, _ := a.DataDir() // the engine is open: it is known
	return cluster.Deps{Client: e.Client, Namespace: e.Namespace(), DataDir: dir, Artifact: e.Artifacts.Get, TurnLog: TurnLog(dir, e)}
}

// TurnLog is where the log of a turn lies on this machine.
func TurnLog(dir string, e *engine.Engine) func(string, string, int, int32) string {
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
	if !cluster.NotFound(err) {
		return "", err
	}
	var found []string
	err = runs.List(ctx, e.Client, sessions.SessionsQuery, sessions.MaxEngineSessions, func(r runs.Run) error {
		if known := session.IDOf(r.WorkflowID); strings.HasPrefix(known, id) {
			found = append(found, known)
		}
		return nil
	})
	switch {
	case err != nil || len(found) == 0:
		return "", err
	case len(found) > 1:
		return "", cli.UsageError("%q begins %d sessions: %s", id, len(found), strings.Join(found[:min(len(found), 5)], ", "))
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
	return &cli.ExitError{Code: cli.ExitNotFound, Err: fmt.Errorf("no session %q; acescope session list lists them", name)}
}

// Unheard says in plain words why a session did not take something.
func Unheard(id string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, engine.ErrNoSession):
		return noSession(id)
	case errors.Is(err, context.DeadlineExceeded), cluster.Away(err):
		return &cli.ExitError{Code: cli.ExitUnreachable, Err: fmt.Errorf("session %s did not answer within %s: is it served? acescope serve does so", id, askWithin)}
	case errors.Is(err, context.Canceled):
		return cli.ErrInterrupted
	}
	return err
}

// NewSessionID is an id that tells when the session was started.
func NewSessionID(now time.Time) string {
	return "s-" + now.Format("20060102-150405") + "-" + strings.ToLower(rand.Text()[:4])
}

// maxSessionMessage is the largest message that turns take, in bytes.
const maxSessionMessage = 8 << 20

// SessionMessage is a message; a long one becomes an artifact.
func SessionMessage(ctx context.Context, e *engine.Engine, id, said, from string) (session.Message, error) {
	m := session.Message{ID: cmp.Or(id, "m-"+rand.Text()), Text: said, From: from}
	if len(said) > maxSessionMessage {
		return m, cli.UsageError("the message has %d bytes; %d are allowed", len(said), maxSessionMessage)
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

// Me is who decides and asks, for the session's history.
func Me() string { return cmp.Or(os.Getenv("USER"), os.Getenv("LOGNAME")) }

// StartSession gives the session the identity that its agent's conversation will have.
func StartSession(ctx context.Context, e *engine.Engine, in session.Input) (runID string, err error) {
	if in.Agent == "claude" && in.AgentSessionID == "" {
		in.AgentSessionID = session.UUID("agent", in.SessionID)
	}
	return e.StartSession(ctx, in)
}

func Decision(call string, allow bool, reason string) session.Decision {
	d := session.Decision{ID: call, Action: session.Deny, Reason: reason, By: Me()}
	if allow {
		d.Action = session.Allow
	}
	return d
}

// MaxArguments is the largest argument of a call that is shown, in bytes.
const MaxArguments = 4 << 20
