package command

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"acescope/engine/ace"
	"acescope/engine/learning/model"
	"acescope/engine/tasks/run"

	"go.temporal.io/sdk/temporal"
)

// matchWithin is the number of seconds that a run waits for a runner. Then the attempt fails
// with a reason that the user sees, and the next attempt tries again.
const matchWithin = 60

// stopWithin is the time to wait for the end of a stopped run.
const stopWithin = 15 * time.Second

// execute runs the blueprint for a phase, or finds the run that an earlier attempt started, and
// waits for its end. If that run failed without being executed, execute starts another.
func (p *provider) execute(ctx context.Context, phase ace.Phase, at ace.TaskContext,
	params json.RawMessage) (run.Result, error) {
	caller := model.CallerOf(ctx, at)
	q := run.Request{AgentName: p.blueprint, Parameters: params, Mode: run.Sync, MatchWithin: matchWithin,
		By: fmt.Sprintf("the %s of %s", phase, at.WorkflowID)}
	for try := 1; try < int(caller.Attempt); try++ {
		q.RunID = runID(caller, phase, at, try)
		s, err := p.runs.State(ctx, q.RunID)
		if errors.Is(err, run.ErrNotFound) {
			break // the attempt ended before it started the run
		}
		if err != nil {
			return run.Result{}, p.unreachable(ctx, "find run "+q.RunID, err)
		}
		if s.Result == nil || !retryable(*s.Result) {
			return p.await(ctx, q.RunID)
		}
		q.RunID = runID(caller, phase, at, try+1)
	}
	q.RunID = cmp.Or(q.RunID, runID(caller, phase, at, 1))
	if _, err := p.runs.Start(ctx, q); err != nil {
		return run.Result{}, p.startError(ctx, err)
	}
	return p.await(ctx, q.RunID)
}

// runID returns the ID of the run of a phase, which is the same in each attempt of its
// activity. It contains the task, since one activity may serve many tasks.
func runID(caller *model.Caller, phase ace.Phase, at ace.TaskContext, try int) string {
	h := sha256.New()
	parts := []string{caller.WorkflowID, caller.RunID, caller.ActivityID, string(phase), at.TaskID,
		strconv.Itoa(try)}
	for _, part := range parts {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	return fmt.Sprintf("%s%x", run.StepPrefix, h.Sum(nil)[:8])
}

// await waits for the end of a run. If the activity is canceled, it stops the run. If only the
// process ends, it leaves the run to the next attempt.
func (p *provider) await(ctx context.Context, id string) (run.Result, error) {
	r, err := p.runs.Await(ctx, id)
	switch {
	case ctx.Err() != nil && temporal.IsCanceledError(context.Cause(ctx)):
		p.stop(ctx, id)
		return r, ctx.Err()
	case err != nil:
		return r, p.unreachable(ctx, "wait for run "+id, err)
	case r.Status == run.Completed:
		return r, nil
	}
	return r, p.failed(r)
}

// stop stops the run of a canceled activity and waits for its end, so that the run is over when
// the task is.
func (p *provider) stop(ctx context.Context, id string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopWithin)
	defer cancel()
	if _, err := p.runs.Stop(ctx, id, run.StopRequest{Reason: "its phase was canceled",
		By: p.name}); err == nil {
		_, _ = p.runs.Await(ctx, id) // the activity is canceled in any case
	}
}

// retryable reports whether a run failed for reasons outside of its program.
func retryable(r run.Result) bool {
	if r.Status != run.Failed {
		return false
	}
	switch r.Reason {
	case run.NoRunner, run.QueueFull, run.RunnerLost, run.Internal:
		return true
	}
	return false
}

// failed returns the error of a run that did not complete.
func (p *provider) failed(r run.Result) error {
	why := cmp.Or(r.Error, string(r.Reason))
	switch {
	case retryable(r):
		return model.Errorf(model.NoRunner, "%s: %s (run %s)", p.name, why, r.RunID)
	case r.Status == run.Stopped && why != "":
		why = "the run was stopped: " + why
	case r.Status == run.Stopped:
		why = "the run was stopped"
	}
	return model.Errorf(model.ProgramFailed, "%s: %s (run %s)", p.name, ace.Cut(why, maxWhy), r.RunID)
}

// maxWhy is the number of bytes that an error quotes of a run's error.
const maxWhy = 1000

// startError returns the error of a run that could not be started.
func (p *provider) startError(ctx context.Context, err error) error {
	switch {
	case errors.Is(err, run.ErrBadRequest):
		return model.Errorf(model.BadRequest, "%s: %v", p.name, err)
	case errors.Is(err, run.ErrNoBlueprint):
		return NoBlueprint(p.blueprint, err)
	}
	return p.unreachable(ctx, "start a run", err)
}

// NoBlueprint returns the error of a phase whose blueprint this process does not find. Another
// process with the same data directory may find it.
func NoBlueprint(blueprint string, err error) error {
	return model.Errorf(model.NoBlueprint, "%s: %v", ace.BlueprintProvider(blueprint), err)
}

// unreachable returns the error of a failed request to the server, or the context's error.
func (p *provider) unreachable(ctx context.Context, action string, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return model.Errorf(model.Network, "%s: cannot %s: %v", p.name, action, err)
}
