package engine

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"acescope/engine/ace"
	"acescope/engine/history"
	"acescope/engine/run"
)

// State implements [run.Verbs]. It is read from the history: nobody needs to serve the run.
func (r *Runs) State(ctx context.Context, id string) (run.State, error) {
	id, err := r.resolve(ctx, id)
	if err != nil {
		return run.State{}, err
	}
	return r.stateOf(ctx, id)
}

// resolve is the run that an id means: that of the id, or the newest of the session.
func (r *Runs) resolve(ctx context.Context, id string) (string, error) {
	if !run.ValidName(id) {
		return "", fmt.Errorf("%w: %q", run.ErrNotFound, shorten(id))
	}
	_, err := r.e.Client.DescribeWorkflowExecution(ctx, run.WorkflowID(id), "")
	var none *serviceerror.NotFound
	switch {
	case err == nil:
		return id, nil
	case !errors.As(err, &none):
		return "", fmt.Errorf("run %s: %w", id, err)
	}
	return r.newestOf(ctx, id)
}

func (r *Runs) stateOf(ctx context.Context, runID string) (s run.State, err error) {
	d := history.RunDecoder{}
	err = fold(ctx, r.e.Client, run.WorkflowID(runID), d.Fact, s.Apply)
	return s, read("run", runID, run.ErrNotFound, err)
}

// Pauses between the attempts to reach a server that is away.
const (
	awaitFirst   = 50 * time.Millisecond
	awaitLongest = 2 * time.Second
)

// Await implements [run.Verbs]. It waits over restarts of the server, until the context ends.
func (r *Runs) Await(ctx context.Context, runID string) (run.Result, error) {
	if !run.ValidName(runID) {
		return run.Result{}, fmt.Errorf("%w: %q", run.ErrNotFound, shorten(runID))
	}
	for pause := awaitFirst; ; pause = min(2*pause, awaitLongest) {
		var res run.Result
		err := r.e.Client.GetWorkflow(ctx, run.WorkflowID(runID), "").Get(ctx, &res)
		if err == nil && res.Status.Over() {
			return res, nil
		}
		var none *serviceerror.NotFound
		var closed *temporal.WorkflowExecutionError
		switch {
		case ctx.Err() != nil:
			return res, fmt.Errorf("run %s: %w", runID, ctx.Err())
		case errors.As(err, &none):
			return res, fmt.Errorf("%w: %s", run.ErrNotFound, runID)
		case err == nil, errors.As(err, &closed):
			return r.resultOf(ctx, runID)
		case !away(err):
			return res, fmt.Errorf("run %s: %w", runID, err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// resultOf is what came of a run whose workflow was ended without giving it.
func (r *Runs) resultOf(ctx context.Context, runID string) (run.Result, error) {
	s, err := r.stateOf(ctx, runID)
	if err != nil {
		return run.Result{}, err
	}
	if s.Result == nil {
		return run.Result{}, fmt.Errorf("run %s ended without a result (%s)", runID, s.Exit)
	}
	return *s.Result, nil
}

// away tells whether a server may be there again in a moment.
func away(err error) bool {
	var unavailable *serviceerror.Unavailable
	var late *serviceerror.DeadlineExceeded
	var full *serviceerror.ResourceExhausted
	var cancelled *serviceerror.Canceled // by a server that stops
	if notReady(err) {
		return true
	}
	return errors.As(err, &unavailable) || errors.As(err, &late) || errors.As(err, &full) || errors.As(err, &cancelled) ||
		errors.Is(err, context.DeadlineExceeded)
}

// notReady tells whether an update met a workflow just when something else came to it.
func notReady(err error) bool {
	var e *serviceerror.WorkflowNotReady
	return errors.As(err, &e)
}

// stopWithin is how long a run has to say that it was asked to stop.
const stopWithin = time.Minute

// maxNote bounds the reason of a stop, and who asked for it, in bytes.
const maxNote = 500

// Stop implements [run.Verbs]. It does not wait for the end.
func (r *Runs) Stop(ctx context.Context, id string, q run.StopRequest) (run.State, error) {
	id, err := r.resolve(ctx, id)
	if err != nil {
		return run.State{}, err
	}
	q.Reason, q.By = ace.Cut(r.secrets.String(q.Reason), maxNote), ace.Cut(r.secrets.String(q.By), maxNote)
	updateID := "stop." + rand.Text() // of all attempts, so that they count as one
	ctx, cancel := context.WithTimeout(ctx, stopWithin)
	defer cancel()
	for {
		s, again, err := r.stopOnce(ctx, id, updateID, q)
		if !again {
			return s, err
		}
		select {
		case <-ctx.Done():
			return s, err
		case <-time.After(updateAgain):
		}
	}
}

func (r *Runs) stopOnce(ctx context.Context, id, updateID string, q run.StopRequest) (s run.State, again bool, err error) {
	handle, err := r.e.Client.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{UpdateID: updateID, WorkflowID: run.WorkflowID(id),
		UpdateName: run.UpdateStop, Args: []any{q}, WaitForStage: client.WorkflowUpdateStageCompleted})
	if err == nil {
		err = handle.Get(ctx, &s)
	}
	var none *serviceerror.NotFound
	var app *temporal.ApplicationError
	var late *client.WorkflowUpdateServiceTimeoutOrCanceledError
	switch {
	case err == nil:
		return s, false, nil
	case errors.As(err, &app) && app.Type() == run.ErrTypeOver, errors.As(err, &app) && app.Type() == continued, errors.As(err, &none):
		s, serr := r.stateOf(ctx, id)
		if serr != nil {
			return s, false, serr
		}
		return s, false, fmt.Errorf("run %s: %w: %s", id, run.ErrOver, s.Status)
	case errors.As(err, &late), ctx.Err() != nil:
		return s, false, fmt.Errorf("run %s %w; is any worker running?", id, ErrSilent)
	case away(err):
		return s, true, fmt.Errorf("run %s: %w", id, err)
	}
	return s, false, fmt.Errorf("run %s: %w", id, err)
}
