package command

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"go.temporal.io/sdk/temporal"

	"acescope/engine/ace"
	"acescope/engine/model"
	"acescope/engine/run"
)

// matchWithin is how long the run of a step waits for a runner, in seconds. After that the
// step's attempt has failed with the reason, which a person sees, and the next one asks again.
const matchWithin = 60

// stopWithin is how long is waited for the end of a run that was stopped.
const stopWithin = 15 * time.Second

// execute runs the blueprint for a step, or finds the run that an earlier attempt of the step
// started, and waits for its end. A run that came to nothing for want of a runner is followed by
// another one, at the next attempt.
func (p *provider) execute(ctx context.Context, step ace.Phase, at ace.TaskContext, params json.RawMessage) (run.Result, error) {
	place := placeOf(ctx, at)
	q := run.Request{AgentName: p.blueprint, Parameters: params, Mode: run.Sync, MatchWithin: matchWithin,
		By: fmt.Sprintf("the %s of %s", step, at.WorkflowID)}
	for try := 1; try < int(place.Attempt); try++ {
		q.RunID = runID(place, step, at, try)
		s, err := p.runs.State(ctx, q.RunID)
		if errors.Is(err, run.ErrNotFound) {
			break // the attempt ended before it started a run
		}
		if err != nil {
			return run.Result{}, p.away(ctx, "find its run "+q.RunID, err)
		}
		if s.Result == nil || !again(*s.Result) {
			return p.await(ctx, q.RunID)
		}
		q.RunID = runID(place, step, at, try+1)
	}
	if q.RunID == "" {
		q.RunID = runID(place, step, at, 1)
	}
	if _, err := p.runs.Start(ctx, q); err != nil {
		return run.Result{}, p.refused(ctx, err)
	}
	return p.await(ctx, q.RunID)
}

// placeOf is where a step is served; outside an activity, a place that nobody comes to again.
func placeOf(ctx context.Context, at ace.TaskContext) *model.Place {
	if place := model.PlaceOf(ctx); place != nil {
		return place
	}
	return &model.Place{WorkflowID: at.WorkflowID, RunID: at.RunID, ActivityID: strconv.FormatInt(time.Now().UnixNano(), 36), Attempt: 1}
}

// runID is the id of the run of a step: the same in each attempt of its activity. An activity
// that measures serves many tasks.
func runID(place *model.Place, step ace.Phase, at ace.TaskContext, try int) string {
	h := sha256.New()
	for _, part := range []string{place.WorkflowID, place.RunID, place.ActivityID, string(step), at.TaskID, strconv.Itoa(try)} {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	return fmt.Sprintf("%s%x", run.StepPrefix, h.Sum(nil)[:8])
}

// await waits for the end of a run. A step that is cancelled stops its run; one that is given
// up, since its process ends, leaves it to the next attempt.
func (p *provider) await(ctx context.Context, id string) (run.Result, error) {
	r, err := p.runs.Await(ctx, id)
	switch {
	case ctx.Err() != nil && temporal.IsCanceledError(context.Cause(ctx)):
		p.stop(ctx, id)
		return r, ctx.Err()
	case err != nil:
		return r, p.away(ctx, "wait for its run "+id, err)
	case r.Status == run.Completed:
		return r, nil
	}
	return r, p.failed(r)
}

// stop stops a run whose step is cancelled, and waits for its end for a while: what it does is
// over when the task is.
func (p *provider) stop(ctx context.Context, id string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopWithin)
	defer cancel()
	if _, err := p.runs.Stop(ctx, id, run.StopRequest{Reason: "its step was cancelled", By: p.name}); err == nil {
		_, _ = p.runs.Await(ctx, id) // whatever came of it, the step is cancelled
	}
}
