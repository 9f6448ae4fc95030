package command

import (
	"context"
	"errors"

	"acescope/engine/ace"
	"acescope/engine/model"
	"acescope/engine/run"
)

// again tells whether a run came to nothing for reasons that have nothing to do with its
// program, so that another one is worth its while.
func again(r run.Result) bool {
	if r.Status != run.Failed {
		return false
	}
	switch r.Reason {
	case run.NoRunner, run.QueueFull, run.RunnerLost, run.Internal:
		return true
	}
	return false
}

// failed is the error of a run that did not complete.
func (p *provider) failed(r run.Result) error {
	why := r.Error
	if why == "" {
		why = string(r.Reason)
	}
	switch {
	case again(r):
		return model.Errorf(model.NoRunner, "%s: %s (run %s)", p.name, why, r.RunID)
	case r.Status == run.Stopped && why != "":
		why = "it was stopped: " + why
	case r.Status == run.Stopped:
		why = "it was stopped"
	}
	return model.Errorf(model.ProgramFailed, "%s: %s (run %s)", p.name, ace.Cut(why, maxWhy), r.RunID)
}

// maxWhy bounds what an error says of a run, in bytes.
const maxWhy = 1000

// refused is the error of a run that could not be started.
func (p *provider) refused(ctx context.Context, err error) error {
	switch {
	case errors.Is(err, run.ErrBadRequest):
		return model.Errorf(model.BadRequest, "%s: %v", p.name, err)
	case errors.Is(err, run.ErrNoBlueprint):
		return NoBlueprint(p.blueprint, err)
	}
	return p.away(ctx, "start a run", err)
}

// NoBlueprint is the error of a step whose blueprint this process does not find. Another one
// that serves the same data directory may look elsewhere.
func NoBlueprint(blueprint string, err error) error {
	return model.Errorf(model.NoBlueprint, "%s: %v", ace.BlueprintProvider(blueprint), err)
}

// away is the error of a server that did not answer, or of a step that is given up meanwhile.
func (p *provider) away(ctx context.Context, what string, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return model.Errorf(model.Network, "%s: it could not %s: %v", p.name, what, err)
}

// ofRun says of an error which run it comes from.
func ofRun(err error, s *ace.Served) error {
	var e *model.Error
	if errors.As(err, &e) {
		e.Message += " (run " + s.RunID + ")"
	}
	return err
}
