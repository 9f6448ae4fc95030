package agents

import (
	"context"
	"errors"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine"
	"acescope/engine/tasks/mcp"
	"acescope/engine/tasks/run"
)

// RunVerbs are what can be done with the runs on an engine, with the blueprints that this
// command knows.
func RunVerbs(a *cli.App, e *engine.Engine) (run.Service, error) {
	l, err := a.Library()
	if err != nil {
		return nil, err
	}
	return e.Runs(cli.Blueprints{Library: l}), nil
}

// AgentRuns is what the commands about runs work with.
type AgentRuns struct {
	run.Service
	Artifacts mcp.Artifacts
	// alone tells that no other process would carry on what this one has started.
	alone bool
	App   *cli.App
}

// withRuns connects to look, or to have something done: then this process serves where
// nobody else does.
func withRuns(a *cli.App, ctx context.Context, look bool, do func(*AgentRuns) error) error {
	connect := func(p0 context.Context) (*engine.Engine, func(), error) { return speak(a, p0) }
	if look {
		connect = a.OpenReadOnly
	}
	e, done, err := connect(ctx)
	if err != nil {
		return err
	}
	defer done()
	verbs, err := RunVerbs(a, e)
	if err != nil {
		return err
	}
	return CodedRun(do(&AgentRuns{Service: verbs, Artifacts: e.Artifacts, alone: e.Mode() == engine.Embedded && a.Background == 0, App: a}))
}

// badRequest says what is wrong with what was asked for.
func badRequest(err error) error { return cli.UsageError("%s", run.ErrorText(err)) }

// CodedRun gives what is wrong with a request its exit code.
func CodedRun(err error) error {
	var c *cli.ExitError
	switch {
	case errors.As(err, &c):
		return err
	case errors.Is(err, run.ErrBadRequest):
		return badRequest(err)
	case errors.Is(err, run.ErrNoBlueprint), errors.Is(err, run.ErrNotFound):
		return &cli.ExitError{Code: cli.ExitNotFound, Err: err}
	}
	return err
}
