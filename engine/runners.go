package engine

import (
	"context"
	"errors"
	"fmt"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"

	"acescope/engine/runner"
)

// ErrNoRunner means that nobody knows a runner of the id.
var ErrNoRunner = errors.New("no such runner")

// Runners is what the dispatcher knows: nothing where there is no dispatcher yet. It needs a
// worker that serves workflows.
func (e *Engine) Runners(ctx context.Context, o runner.ViewOptions) (v runner.View, err error) {
	answer, err := e.Client.QueryWorkflow(ctx, runner.DispatcherID, "", runner.QueryDispatcher, o)
	var none *serviceerror.NotFound
	switch {
	case errors.As(err, &none):
		return v, nil
	case err != nil:
		return v, fmt.Errorf("ask the dispatcher: %w", err)
	}
	if err := answer.Get(&v); errors.Is(err, converter.ErrEncodingIsNotSupported) {
		return v, fmt.Errorf("%w: --codec-endpoint reads it", ErrEncoded)
	} else if err != nil {
		return v, fmt.Errorf("the dispatcher's answer: %w", err)
	}
	return v, nil
}

// ErrEncoded means that an answer came encoded, and no codec server is named here.
var ErrEncoded = errors.New("the answer is encoded")

// Runner is what is known of one runner, also of one that is gone.
func (e *Engine) Runner(ctx context.Context, id string) (info runner.Info, err error) {
	answer, err := e.Client.QueryWorkflow(ctx, runner.WorkflowID(id), "", runner.QueryRunner)
	if err == nil {
		err = answer.Get(&info)
	}
	return info, runnerError(id, err)
}

// DrainRunner has a runner take no more runs. Its process ends when those under way have.
func (e *Engine) DrainRunner(ctx context.Context, id string, n runner.Note) (info runner.Info, err error) {
	handle, err := e.Client.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{WorkflowID: runner.WorkflowID(id), UpdateName: runner.UpdateDrain,
		Args: []any{n}, WaitForStage: client.WorkflowUpdateStageCompleted})
	if err == nil {
		err = handle.Get(ctx, &info)
	}
	return info, runnerError(id, err)
}

func runnerError(id string, err error) error {
	var none *serviceerror.NotFound
	var app *temporal.ApplicationError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &none):
		return fmt.Errorf("%w: %s; acescope runner list shows those that there are", ErrNoRunner, id)
	case errors.As(err, &app):
		return fmt.Errorf("runner %s: %s", id, app.Message())
	}
	return fmt.Errorf("runner %s: %w", id, err)
}
