package engine

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"acescope/engine/ace"
	"acescope/engine/flow"
)

// ErrExists means that an experiment or task with the id was started before.
var ErrExists = errors.New("exists")

// StartTask starts one task run and gives its run id. A task whose id was used before
// is ErrExists.
func (e *Engine) StartTask(ctx context.Context, in ace.TaskInput) (runID string, err error) {
	return e.start(ctx, in.TaskID, client.StartWorkflowOptions{ID: ace.WorkflowID(in.TaskID),
		TypedSearchAttributes: flow.TaskAttributes(in)}, ace.TaskWorkflow, in)
}

// StartExperiment starts an experiment and gives its run id. An experiment whose id was
// used before is ErrExists.
func (e *Engine) StartExperiment(ctx context.Context, in ace.ExperimentInput) (runID string, err error) {
	return e.start(ctx, in.ExperimentID, client.StartWorkflowOptions{ID: ace.ExperimentWorkflowID(in.ExperimentID),
		TypedSearchAttributes: flow.ExperimentAttributes(in)}, ace.ExperimentWorkflow, in)
}

func (e *Engine) start(ctx context.Context, id string, o client.StartWorkflowOptions, kind string, in any) (string, error) {
	o.TaskQueue = ace.TaskQueue
	o.WorkflowIDReusePolicy = enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE
	o.WorkflowExecutionErrorWhenAlreadyStarted = true
	run, err := e.Client.ExecuteWorkflow(ctx, o, kind, in)
	var started *serviceerror.WorkflowExecutionAlreadyStarted
	if errors.As(err, &started) {
		return "", fmt.Errorf("%s %w already; choose another id", id, ErrExists)
	}
	if err != nil {
		return "", fmt.Errorf("start %s: %w", id, err)
	}
	return run.GetRunID(), nil
}

// Cancel asks a run to end. The run decides how; a step under way is told at its next
// heartbeat. A run that has ended is an error: the server would take the request and do
// nothing.
func (e *Engine) Cancel(ctx context.Context, workflowID, runID string) error {
	r, err := e.Client.DescribeWorkflowExecution(ctx, workflowID, runID)
	if err != nil {
		return err
	}
	if status := r.GetWorkflowExecutionInfo().GetStatus(); status != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING {
		return fmt.Errorf("the run %s has ended meanwhile (%s)", r.GetWorkflowExecutionInfo().GetExecution().GetRunId(), status)
	}
	return e.Client.CancelWorkflow(ctx, workflowID, runID)
}

// Terminate ends a run at once; it is not asked, and steps under way are not told.
func (e *Engine) Terminate(ctx context.Context, workflowID, runID, reason string) error {
	return e.Client.TerminateWorkflow(ctx, workflowID, runID, reason)
}

// ErrReplaced means that another run of the id has begun since.
var ErrReplaced = errors.New("a newer run of this id has begun meanwhile")

// Newest is the newest run of a workflow, and whether it is open.
func (e *Engine) Newest(ctx context.Context, workflowID string) (runID string, open bool, err error) {
	r, err := e.Client.DescribeWorkflowExecution(ctx, workflowID, "")
	info := r.GetWorkflowExecutionInfo()
	return info.GetExecution().GetRunId(), info.GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, err
}

// Reset makes a new run under the same id that keeps the events before a workflow task's
// end, and gives its run id. The input stays as it is. The server ends whichever run of the
// id is open, which need not be the one that is reset; newest is the one that may be ended,
// or is closed already. Where it is another by now nothing is done: [ErrReplaced].
func (e *Engine) Reset(ctx context.Context, workflowID, runID string, event int64, newest, reason string) (newRunID string, err error) {
	now, _, err := e.Newest(ctx, workflowID)
	if err != nil {
		return "", err
	}
	if now != newest {
		return "", fmt.Errorf("%w: %s; nothing was done", ErrReplaced, now)
	}
	r, err := e.Client.ResetWorkflowExecution(ctx, &workflowservice.ResetWorkflowExecutionRequest{
		Namespace:                 e.namespace,
		WorkflowExecution:         &commonpb.WorkflowExecution{WorkflowId: workflowID, RunId: runID},
		Reason:                    reason,
		WorkflowTaskFinishEventId: event,
		RequestId:                 rand.Text(),
	})
	return r.GetRunId(), err
}

// Signal sends a signal with an argument as JSON, none where that is empty.
func (e *Engine) Signal(ctx context.Context, workflowID, runID, name string, arg json.RawMessage) error {
	if len(arg) == 0 {
		return e.Client.SignalWorkflow(ctx, workflowID, runID, name, nil)
	}
	return e.Client.SignalWorkflow(ctx, workflowID, runID, name, arg)
}
