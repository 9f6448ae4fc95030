package main

import (
	"context"
	"encoding/json"
	"errors"

	"acescope/engine"
	"acescope/engine/fork"
	"acescope/views"
)

var errNotConnected = errors.New("not connected yet")

// ready is the engine once it is there.
func (l *link) ready() (*engine.Engine, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.engine == nil {
		return nil, errNotConnected
	}
	return l.engine, nil
}

// Freeze implements [views.Mutations].
func (l *link) Freeze(ctx context.Context, workflowID string) (views.Target, error) {
	e, err := l.ready()
	if err != nil {
		return views.Target{}, err
	}
	r, err := e.Client.DescribeWorkflowExecution(ctx, workflowID, "")
	if err != nil {
		return views.Target{}, err
	}
	exec := r.GetWorkflowExecutionInfo().GetExecution()
	return views.Target{WorkflowID: exec.GetWorkflowId(), RunID: exec.GetRunId()}, nil
}

// PrepareFork implements [views.Mutations].
func (l *link) PrepareFork(ctx context.Context, of views.Target, at views.Point, changes []views.Field) (views.Prepared, error) {
	e, err := l.ready()
	if err != nil {
		return views.Prepared{}, err
	}
	events, err := historyOf(ctx, e.Client, of.WorkflowID, of.RunID)
	if err != nil {
		return views.Prepared{}, err
	}
	o, err := fork.Read(of.WorkflowID, of.RunID, events)
	if err != nil {
		return views.Prepared{}, err
	}
	p, err := l.app.planFork(ctx, e, o, fork.Point(at), changes)
	if err != nil {
		return views.Prepared{}, err
	}
	about, err := aboutCluster(ctx, e, p)
	return preparedFork(e, p, about), err
}

// PrepareReset implements [views.Mutations].
func (l *link) PrepareReset(ctx context.Context, of views.Target, at views.Point, reason string) (views.Prepared, error) {
	e, err := l.ready()
	if err != nil {
		return views.Prepared{}, err
	}
	events, err := historyOf(ctx, e.Client, of.WorkflowID, of.RunID)
	if err != nil {
		return views.Prepared{}, err
	}
	to, err := fork.ResetAt(events, fork.Point(at))
	if err != nil {
		return views.Prepared{}, err
	}
	return preparedReset(ctx, e, of, to, reason)
}

// PrepareTerminate implements [views.Mutations].
func (l *link) PrepareTerminate(of views.Target, reason string) (views.Prepared, error) {
	e, err := l.ready()
	return preparedTerminate(e, of, reason), err
}

// PrepareSignal implements [views.Mutations].
func (l *link) PrepareSignal(of views.Target, name, argument string) (views.Prepared, error) {
	e, err := l.ready()
	if err == nil {
		err = checkJSON([]byte(argument))
	}
	return preparedSignal(e, of, name, []byte(argument)), err
}

// checkJSON refuses an argument that is none. Nothing is no argument.
func checkJSON(argument []byte) error {
	var v any
	if len(argument) == 0 {
		return nil
	}
	if err := json.Unmarshal(argument, &v); err != nil {
		return usage("the argument is not JSON: %v", err)
	}
	return nil
}
