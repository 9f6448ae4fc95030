package admin

import (
	"cmp"
	"context"
	"errors"
	"time"

	"acescope/cmd/acescope/internal/agents"
	"acescope/cmd/acescope/internal/cli"
	"acescope/cmd/acescope/internal/history"
	"acescope/cmd/acescope/internal/runs"
	"acescope/engine"
	"acescope/engine/ace"
	"acescope/engine/agents/session"
	"acescope/engine/tasks/run"
	"acescope/engine/tasks/runner"
	"acescope/engine/temporal/fork"
	"acescope/sources/cluster"
	"acescope/sources/sessions"
	"acescope/views/console"
)

var errNotConnected = errors.New("not connected yet")

// ready returns the engine, or errNotConnected if it is not connected yet.
func (l *Link) ready() (*engine.Engine, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.Engine == nil {
		return nil, errNotConnected
	}
	return l.Engine, nil
}

// Cancel implements [console.Actions].
func (l *Link) Cancel(ctx context.Context, workflowID, runID string) error {
	e, err := l.ready()
	if err != nil {
		return err
	}
	return e.Cancel(ctx, workflowID, runID)
}

// Freeze implements [console.Mutations].
func (l *Link) Freeze(ctx context.Context, workflowID string) (console.Target, error) {
	e, err := l.ready()
	if err != nil {
		return console.Target{}, err
	}
	r, err := e.Client.DescribeWorkflowExecution(ctx, workflowID, "")
	if err != nil {
		return console.Target{}, err
	}
	exec := r.GetWorkflowExecutionInfo().GetExecution()
	return console.Target{WorkflowID: exec.GetWorkflowId(), RunID: exec.GetRunId()}, nil
}

// PrepareFork implements [console.Mutations].
func (l *Link) PrepareFork(
	ctx context.Context, of console.Target, at console.Point, changes []console.Field,
) (console.Prepared, error) {
	e, err := l.ready()
	if err != nil {
		return console.Prepared{}, err
	}
	events, err := cluster.ReadHistory(ctx, e.Client, e.Namespace(), of.WorkflowID, of.RunID)
	if err != nil {
		return console.Prepared{}, err
	}
	o, err := fork.Read(of.WorkflowID, of.RunID, events)
	if err != nil {
		return console.Prepared{}, err
	}
	p, err := history.PlanFork(l.app, ctx, e, o, fork.Point(at), changes)
	if err != nil {
		return console.Prepared{}, err
	}
	about, err := history.AboutCluster(ctx, e, p)
	return history.PreparedFork(e, p, about), err
}

// PrepareReset implements [console.Mutations].
func (l *Link) PrepareReset(
	ctx context.Context, of console.Target, at console.Point, reason string,
) (console.Prepared, error) {
	e, err := l.ready()
	if err != nil {
		return console.Prepared{}, err
	}
	events, err := cluster.ReadHistory(ctx, e.Client, e.Namespace(), of.WorkflowID, of.RunID)
	if err != nil {
		return console.Prepared{}, err
	}
	to, err := fork.ResetAt(events, fork.Point(at))
	if err != nil {
		return console.Prepared{}, err
	}
	return runs.PreparedReset(ctx, e, of, to, reason)
}

// PrepareTerminate implements [console.Mutations].
func (l *Link) PrepareTerminate(of console.Target, reason string) (console.Prepared, error) {
	e, err := l.ready()
	return runs.PreparedTerminate(e, of, reason), err
}

// PrepareSignal implements [console.Mutations].
func (l *Link) PrepareSignal(of console.Target, name, argument string) (console.Prepared, error) {
	e, err := l.ready()
	if err == nil {
		err = cli.CheckJSON([]byte(argument))
	}
	return runs.PreparedSignal(e, of, name, []byte(argument)), err
}

// StartSession implements [console.SessionActions].
func (l *Link) StartSession(ctx context.Context, in sessions.TalkInput, first string) (string, error) {
	e, err := l.ready()
	if err != nil {
		return "", err
	}
	in.SessionID = cmp.Or(in.SessionID, agents.NewSessionID(time.Now()))
	if first != "" {
		m, err := agents.SessionMessage(ctx, e, "", first, agents.User())
		if err != nil {
			return "", err
		}
		in.First = &m
	}
	_, err = agents.StartSession(ctx, e, in)
	return in.SessionID, err
}

// SendMessage implements [console.SessionActions].
func (l *Link) SendMessage(ctx context.Context, id, text string) (waiting int, err error) {
	e, err := l.ready()
	if err != nil {
		return 0, err
	}
	m, err := agents.SessionMessage(ctx, e, "", text, agents.User())
	if err != nil {
		return 0, err
	}
	r, err := e.Send(ctx, id, m)
	return r.Waiting, agents.SessionError(id, err)
}

// DecideCall implements [console.SessionActions].
func (l *Link) DecideCall(ctx context.Context, id, call string, allow bool, reason string) error {
	e, err := l.ready()
	if err != nil {
		return err
	}
	_, err = e.Decide(ctx, id, agents.Decision(call, allow, reason))
	return agents.SessionError(id, err)
}

// InterruptSession implements [console.SessionActions].
func (l *Link) InterruptSession(ctx context.Context, id string) error {
	e, err := l.ready()
	if err != nil {
		return err
	}
	_, err = e.Interrupt(ctx, id, session.Note{By: agents.User()})
	return agents.SessionError(id, err)
}

// StopSession implements [console.SessionActions].
func (l *Link) StopSession(ctx context.Context, id string) error {
	e, err := l.ready()
	if err != nil {
		return err
	}
	_, err = e.Stop(ctx, id, session.Note{By: agents.User()})
	return agents.SessionError(id, err)
}

// Arguments implements [console.SessionActions].
func (l *Link) Arguments(_ context.Context, ref ace.Ref) ([]byte, error) {
	e, err := l.ready()
	if err != nil {
		return nil, err
	}
	return e.Artifacts.Get(ref, agents.MaxArguments)
}

// StopRun implements [console.RunnerActions].
func (l *Link) StopRun(ctx context.Context, id string) error {
	e, err := l.ready()
	if err != nil {
		return err
	}
	verbs, err := agents.RunService(l.app, e)
	if err != nil {
		return err
	}
	_, err = verbs.Stop(ctx, id, run.StopRequest{By: agents.User()})
	if errors.Is(err, context.DeadlineExceeded) {
		return errors.New(`no worker answered in time; run "acescope serve"`)
	}
	return err
}

// DrainRunner implements [console.RunnerActions].
func (l *Link) DrainRunner(ctx context.Context, id string) error {
	e, err := l.ready()
	if err != nil {
		return err
	}
	_, err = e.DrainRunner(ctx, id, runner.Note{By: agents.User()})
	return err
}
