package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"acescope/engine/internal/sleep"
	"acescope/engine/tasks/runner"
)

// Delays between registration attempts, and timeouts of requests.
const (
	registerDelay    = 200 * time.Millisecond
	registerMaxDelay = 5 * time.Second
	registerTimeout  = 20 * time.Second
	requestTimeout   = 5 * time.Second
)

// typeContinued is the error type that Temporal returns if a workflow continues as new before it
// completes an update.
const typeContinued = "AcceptedUpdateCompletedWorkflow"

// register registers the runner, with retries, and returns the lease. It takes over the lease
// of the previous process of this directory, which has ended.
func (h *Host) register(ctx context.Context) (runner.Lease, error) {
	reg := runner.Registration{ID: h.o.ID, Capabilities: h.o.Capabilities, Token: h.token,
		LastToken: h.dir.lastToken, PID: os.Getpid(), Version: h.o.Version, SessionQueue: h.o.SessionQueue,
		HeartbeatMS: h.o.Stale.Milliseconds(), RemoveMS: h.o.Remove.Milliseconds()}
	reported := ""
	for delay := registerDelay; ; delay = min(2*delay, registerMaxDelay) {
		lease, err := h.tryRegister(ctx, reg)
		if err == nil {
			return lease, h.dir.saveToken(h.token)
		}
		if ctx.Err() != nil {
			return lease, ctx.Err()
		}
		refused, ok := errors.AsType[*temporal.ApplicationError](err)
		if ok && refused.Type() != typeContinued {
			err = fmt.Errorf("%w: %s", ErrTaken, refused.Message())
			if !h.o.WaitForLock {
				return lease, err
			}
		} else if isPermanent(err) {
			return lease, fmt.Errorf("register runner %s: %w", h.o.ID, err)
		}
		if reported != err.Error() {
			reported = err.Error()
			h.emit(Event{Kind: Waiting, Text: reported})
		}
		if err := sleep.For(ctx, delay); err != nil {
			return lease, err
		}
	}
}

// tryRegister makes one attempt. Each attempt is a new update, since the result of an earlier
// one may be a refusal.
func (h *Host) tryRegister(ctx context.Context, reg runner.Registration) (lease runner.Lease, err error) {
	ctx, cancel := context.WithTimeout(ctx, registerTimeout)
	defer cancel()
	id := runner.WorkflowID(h.o.ID)
	start := h.o.Client.NewWithStartWorkflowOperation(client.StartWorkflowOptions{ID: id,
		TaskQueue:                h.o.TaskQueue,
		WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING}, runner.Workflow)
	handle, err := h.o.Client.UpdateWithStartWorkflow(ctx, client.UpdateWithStartWorkflowOptions{
		StartWorkflowOperation: start,
		UpdateOptions: client.UpdateWorkflowOptions{WorkflowID: id, UpdateName: runner.UpdateRegister,
			Args: []any{reg}, WaitForStage: client.WorkflowUpdateStageCompleted}})
	if err == nil {
		err = handle.Get(ctx, &lease)
	}
	return lease, err
}

// isPermanent reports whether a retry cannot succeed.
func isPermanent(err error) bool {
	_, invalid := errors.AsType[*serviceerror.InvalidArgument](err)
	_, denied := errors.AsType[*serviceerror.PermissionDenied](err)
	return invalid || denied
}

// query queries a workflow.
func (h *Host) query(ctx context.Context, into any, workflowID, name string, args ...any) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	v, err := h.o.Client.QueryWorkflow(ctx, workflowID, "", name, args...)
	if err != nil {
		return err
	}
	return v.Get(into)
}

// update updates the runner's workflow. If that fails, the lease expires.
func (h *Host) update(ctx context.Context, name, reason string) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	note := runner.Note{Reason: reason, By: "runner", Token: h.token}
	handle, err := h.o.Client.UpdateWorkflow(ctx,
		client.UpdateWorkflowOptions{WorkflowID: runner.WorkflowID(h.o.ID),
			UpdateName: name, Args: []any{note}, WaitForStage: client.WorkflowUpdateStageCompleted})
	if err != nil {
		return err
	}
	return handle.Get(ctx, nil)
}
