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

// register asks for a lease until there is one. One that the last process of this directory
// has left behind is given back first: it has died, or this one would not have the directory.
func (h *Host) register(ctx context.Context) (runner.Lease, error) {
	reg := runner.Registration{ID: h.o.ID, Capabilities: h.o.Capabilities, Token: h.token, PID: os.Getpid(), Version: h.o.Version,
		SessionQueue: h.o.SessionQueue, HeartbeatMS: h.o.Stale.Milliseconds(), RemoveMS: h.o.Remove.Milliseconds()}
	said := ""
	for wait := registerFirst; ; wait = min(2*wait, registerMost) {
		lease, err := h.ask(ctx, reg)
		var refused *temporal.ApplicationError
		switch {
		case err == nil:
			return lease, h.place.sign(h.token)
		case ctx.Err() != nil:
			return lease, ctx.Err()
		case errors.As(err, &refused) && refused.Type() != continued:
			if h.giveBack(ctx) {
				continue
			}
			if err = fmt.Errorf("%w: %s", ErrTaken, refused.Message()); !h.o.Insist {
				return lease, err
			}
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

// giveBack leaves in the name of the last process of this directory, where the lease is its.
func (h *Host) giveBack(ctx context.Context) bool {
	info, err := h.info(ctx)
	if err != nil || h.place.last == "" || info.Registration.Token != h.place.last {
		return false
	}
	err = h.update(ctx, runner.UpdateLeave, runner.Note{Reason: "its process has died", By: "runner", Token: h.place.last})
	h.place.last = ""
	return err == nil
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
func (h *Host) update(ctx context.Context, name string, n runner.Note) error {
	ctx, cancel := context.WithTimeout(ctx, registerTry)
	defer cancel()
	handle, err := h.o.Client.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{WorkflowID: runner.WorkflowID(h.o.ID), UpdateName: name,
		Args: []any{n}, WaitForStage: client.WorkflowUpdateStageCompleted})
	if err == nil {
		err = handle.Get(ctx, nil)
	}
	return err
}

// note is why this process asks for something.
func (h *Host) note(why string) runner.Note {
	return runner.Note{Reason: why, By: "runner", Token: h.token}
}
