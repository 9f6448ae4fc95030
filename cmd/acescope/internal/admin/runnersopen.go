package admin

import (
	"context"
	"errors"

	"acescope/cmd/acescope/internal/agents"
	"acescope/engine/tasks/run"
	"acescope/engine/tasks/runner"
)

// StopRun implements [views.RunnerActions].
func (l *Link) StopRun(ctx context.Context, id string) error {
	e, err := l.ready()
	if err != nil {
		return err
	}
	verbs, err := agents.RunVerbs(l.app, e)
	if err != nil {
		return err
	}
	_, err = verbs.Stop(ctx, id, run.StopRequest{By: agents.Me()})
	if errors.Is(err, context.DeadlineExceeded) {
		return errors.New("nobody answered in time: is it served? acescope serve does so")
	}
	return err
}

// DrainRunner implements [views.RunnerActions].
func (l *Link) DrainRunner(ctx context.Context, id string) error {
	e, err := l.ready()
	if err != nil {
		return err
	}
	_, err = e.DrainRunner(ctx, id, runner.Note{By: agents.Me()})
	return err
}
