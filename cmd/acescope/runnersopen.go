package main

import (
	"context"
	"errors"

	"acescope/engine/run"
	"acescope/engine/runner"
)

// StopRun implements [views.RunnerActions].
func (l *link) StopRun(ctx context.Context, id string) error {
	e, err := l.ready()
	if err != nil {
		return err
	}
	verbs, err := l.app.runVerbs(e)
	if err != nil {
		return err
	}
	_, err = verbs.Stop(ctx, id, run.StopRequest{By: me()})
	if errors.Is(err, context.DeadlineExceeded) {
		return errors.New("nobody answered in time: is it served? acescope serve does so")
	}
	return err
}

// DrainRunner implements [views.RunnerActions].
func (l *link) DrainRunner(ctx context.Context, id string) error {
	e, err := l.ready()
	if err != nil {
		return err
	}
	_, err = e.DrainRunner(ctx, id, runner.Note{By: me()})
	return err
}
