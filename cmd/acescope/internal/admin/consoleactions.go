package admin

import (
	"context"
	"errors"

	"acescope/cmd/acescope/internal/cli"
	"acescope/cmd/acescope/internal/history"
	"acescope/cmd/acescope/internal/runs"
	"acescope/engine"
	"acescope/engine/temporal/fork"
	"acescope/views/console"
)

var errNotConnected = errors.New("not connected yet")

// ready is the engine once it is there.
func (l *Link) ready() (*engine.Engine, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.Engine == nil {
		return nil, errNotConnected
	}
	return l.Engine, nil
}

// Freeze implements [views.Mutations].
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

// PrepareFork implements [views.Mutations].
func (l *Link) PrepareFork(ctx context.Context, of console.Target, at console.Point, changes []console.Field) (console.Prepared, error) {
	e, err := l.ready()
	if err != nil {
		return console.Prepared{}, err
	}
	events, err := runs.HistoryOf(ctx, e.Client, of.WorkflowID, of.RunID)
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

// PrepareReset implements [views.Mutations].
func (l *Link) PrepareReset(ctx context.Context, of console.Target, at console.Point, reason string) (console.Prepared, error) {
	e, err := l.ready()
	if err != nil {
		return console.Prepared{}, err
	}
	events, err := runs.HistoryOf(ctx, e.Client, of.WorkflowID, of.RunID)
	if err != nil {
		return console.Prepared{}, err
	}
	to, err := fork.ResetAt(events, fork.Point(at))
	if err != nil {
		return console.Prepared{}, err
	}
	return runs.PreparedReset(ctx, e, of, to, reason)
}

// PrepareTerminate implements [views.Mutations].
func (l *Link) PrepareTerminate(of console.Target, reason string) (console.Prepared, error) {
	e, err := l.ready()
	return runs.PreparedTerminate(e, of, reason), err
}

// PrepareSignal implements [views.Mutations].
func (l *Link) PrepareSignal(of console.Target, name, argument string) (console.Prepared, error) {
	e, err := l.ready()
	if err == nil {
		err = cli.CheckJSON([]byte(argument))
	}
	return runs.PreparedSignal(e, of, name, []byte(argument)), err
}
