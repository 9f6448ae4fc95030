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

	"acescope/engine/ace"
	"acescope/engine/process"
	"acescope/engine/runner"
)

// How often a registration is tried again, and how long one try may take.
const (
	registerFirst = 200 * time.Millisecond
	registerMost  = 5 * time.Second
	registerTry   = 20 * time.Second
)

// continued is the type of the failure of an update that was under way when the workflow
// continued as a new run.
const continued = "AcceptedUpdateCompletedWorkflow"

// register asks for a lease until there is one. Of a process of this machine that has died,
// the lease is waited for; of one that lives it is not, unless the runner insists.
func (h *Host) register(ctx context.Context) (runner.Lease, error) {
	reg := runner.Registration{ID: h.o.ID, Capabilities: h.o.Capabilities, Token: h.token, PID: os.Getpid(), Version: h.o.Version,
		SessionQueue: h.o.SessionQueue, HeartbeatMS: h.o.Stale.Milliseconds(), RemoveMS: h.o.Remove.Milliseconds()}
	said := ""
	for wait := registerFirst; ; wait = min(2*wait, registerMost) {
		lease, err := h.ask(ctx, reg)
		if err == nil {
			return lease, nil
		}
		var refused *temporal.ApplicationError
		switch {
		case ctx.Err() != nil:
			return lease, ctx.Err()
		case errors.As(err, &refused) && refused.Type() != continued:
			if !h.o.Insist && !h.ended(ctx) {
				return lease, fmt.Errorf("%w: %s", ErrTaken, refused.Message())
			}
			err = errors.New(refused.Message())
		case permanent(err):
			return lease, fmt.Errorf("register runner %s: %w", h.o.ID, err)
		}
		if said != err.Error() {
			said = err.Error()
			h.tell(Event{Kind: Waits, Text: said})
		}
		select {
		case <-ctx.Done():
			return lease, ctx.Err()
		case <-time.After(wait):
		}
	}
}

// ask makes one try. The update has an identity of its own each time: the answer to an
// earlier one may be a refusal.
func (h *Host) ask(ctx context.Context, reg runner.Registration) (lease runner.Lease, err error) {
	ctx, cancel := context.WithTimeout(ctx, registerTry)
	defer cancel()
	id := runner.WorkflowID(h.o.ID)
	start := h.o.Client.NewWithStartWorkflowOperation(client.StartWorkflowOptions{ID: id, TaskQueue: ace.TaskQueue,
		WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING}, runner.Workflow)
	handle, err := h.o.Client.UpdateWithStartWorkflow(ctx, client.UpdateWithStartWorkflowOptions{StartWorkflowOperation: start,
		UpdateOptions: client.UpdateWorkflowOptions{WorkflowID: id, UpdateName: runner.UpdateRegister, Args: []any{reg},
			WaitForStage: client.WorkflowUpdateStageCompleted}})
	if err == nil {
		err = handle.Get(ctx, &lease)
	}
	return lease, err
}

// permanent tells whether a try would fail for ever.
func permanent(err error) bool {
	var bad *serviceerror.InvalidArgument
	var denied *serviceerror.PermissionDenied
	return errors.As(err, &bad) || errors.As(err, &denied)
}

// ended tells whether the process that holds the lease was of this machine, and has died.
func (h *Host) ended(ctx context.Context) bool {
	info, err := h.info(ctx)
	if err != nil {
		return false
	}
	r := info.Registration
	return r.Capabilities.Hostname == h.o.Capabilities.Hostname && r.PID > 0 && r.PID != os.Getpid() && !process.Alive(r.PID)
}

// infoWithin bounds how long is waited for what the runner's workflow knows.
const infoWithin = 5 * time.Second

// info is what the runner's workflow knows.
func (h *Host) info(ctx context.Context) (info runner.Info, err error) {
	ctx, cancel := context.WithTimeout(ctx, infoWithin)
	defer cancel()
	v, err := h.o.Client.QueryWorkflow(ctx, runner.WorkflowID(h.o.ID), "", runner.QueryRunner)
	if err == nil {
		err = v.Get(&info)
	}
	return info, err
}

// update tells the runner's workflow something.
func (h *Host) update(ctx context.Context, name, why string) error {
	ctx, cancel := context.WithTimeout(ctx, registerTry)
	defer cancel()
	handle, err := h.o.Client.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{WorkflowID: runner.WorkflowID(h.o.ID), UpdateName: name,
		Args: []any{runner.Note{Reason: why, By: "runner", Token: h.token}}, WaitForStage: client.WorkflowUpdateStageCompleted})
	if err == nil {
		err = handle.Get(ctx, nil)
	}
	return err
}
