package engine

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"acescope/engine/ace"
	"acescope/engine/learning/playbook"
	"acescope/engine/temporal/searchattr"
)

// ErrExists means that an experiment, task or session with the ID exists.
var ErrExists = errors.New("exists")

// StartTask starts a task run and returns its run ID. It returns ErrExists if the task ID is in use.
func (e *Engine) StartTask(ctx context.Context, in ace.TaskInput) (runID string, err error) {
	in.Revision = ace.Revision
	in.By = cmp.Or(in.By, ace.User())
	o := client.StartWorkflowOptions{ID: ace.WorkflowID(in.TaskID),
		TypedSearchAttributes: searchattr.Task(in),
		Memo:                  map[string]any{ace.MemoBy: in.By}}
	return e.start(ctx, in.TaskID, o, ace.TaskWorkflow, in)
}

// StartExperiment starts an experiment and returns its run ID. It returns ErrExists if the experiment ID is
// in use. The default of MaxFailed is [ace.DefaultMaxFailed].
func (e *Engine) StartExperiment(ctx context.Context, in ace.ExperimentInput) (runID string, err error) {
	in.MaxFailed = cmp.Or(in.MaxFailed, new(ace.DefaultMaxFailed))
	in.Revision = ace.Revision
	in.By = cmp.Or(in.By, ace.User())
	o := client.StartWorkflowOptions{ID: ace.ExperimentWorkflowID(in.ExperimentID),
		TypedSearchAttributes: searchattr.Experiment(in), Memo: map[string]any{ace.MemoBy: in.By}}
	if in.Answered != nil { // it continues the evaluation of a closed run
		o.WorkflowIDReusePolicy = enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE
	}
	return e.start(ctx, in.ExperimentID, o, ace.ExperimentWorkflow, in)
}

func (e *Engine) start(ctx context.Context, id string, o client.StartWorkflowOptions, kind string,
	in any) (string, error) {
	if err := e.renew(ctx, in); err != nil {
		return "", fmt.Errorf("start %s: %w", id, err)
	}
	o.TaskQueue = e.TaskQueue
	o.WorkflowIDReusePolicy = cmp.Or(o.WorkflowIDReusePolicy,
		enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE)
	o.WorkflowExecutionErrorWhenAlreadyStarted = true
	run, err := e.Client.ExecuteWorkflow(ctx, o, kind, in)
	if isError[*serviceerror.WorkflowExecutionAlreadyStarted](err) {
		return "", fmt.Errorf(`%s %w already; choose another ID, or follow this one with "acescope tail %s"`,
			id, ErrExists, id)
	}
	if err != nil {
		return "", startError(ctx, e, id, err)
	}
	return run.GetRunID(), nil
}

var playbookPattern = regexp.MustCompile(`"(?:playbook_hash|learn_from)":"([0-9a-f]{64})"`)

// renew keeps the artifacts and playbooks in the input of a run until its history has the references.
func (e *Engine) renew(ctx context.Context, in any) error {
	text, err := json.Marshal(in)
	for _, ref := range ace.RefsIn(text) {
		if err == nil {
			_, err = e.Artifacts.Renew(ctx, ref)
		}
	}
	for _, m := range playbookPattern.FindAllSubmatch(text, -1) {
		if err == nil {
			err = e.Books.Renew(ctx, string(m[1]))
		}
		// on the machine of a worker, or nowhere, which the run reports
		if errors.Is(err, playbook.ErrNotFound) {
			err = nil
		}
	}
	return err
}

// startError returns the error of a start. If the namespace lacks search attributes, it says how to create
// them.
func startError(ctx context.Context, e *Engine, id string, err error) error {
	if isError[*serviceerror.InvalidArgument](err) {
		gap, readErr := searchattr.ReadGap(ctx, e.Client.WorkflowService(), e.namespace)
		if lacks := gap.All(); readErr == nil && len(lacks) > 0 {
			return fmt.Errorf("start %s: namespace %s lacks the search attributes %s; run \"%s\"", id,
				e.namespace, strings.Join(lacks, ", "), ace.SetupCommand(e.Address(), e.namespace))
		}
	}
	return fmt.Errorf("start %s: %w", id, err)
}

// Cancel requests the cancellation of a run. Steps learn about it at their next heartbeat. It returns an
// error for a closed run, because the server would accept the request without effect.
func (e *Engine) Cancel(ctx context.Context, workflowID, runID string) error {
	r, err := e.Client.DescribeWorkflowExecution(ctx, workflowID, runID)
	if err != nil {
		return err
	}
	if status := r.GetWorkflowExecutionInfo().GetStatus(); status != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING {
		return fmt.Errorf("run %s has ended (%s)", r.GetWorkflowExecutionInfo().GetExecution().GetRunId(),
			status)
	}
	return e.Client.CancelWorkflow(ctx, workflowID, runID)
}

// Terminate closes a run at once, without informing its steps.
func (e *Engine) Terminate(ctx context.Context, workflowID, runID, reason string) error {
	return e.Client.TerminateWorkflow(ctx, workflowID, runID, reason)
}

// ErrReplaced means that a newer run of the workflow ID exists.
var ErrReplaced = errors.New("a newer run of this ID exists")

// Newest returns the newest run of a workflow and whether it is open.
func (e *Engine) Newest(ctx context.Context, workflowID string) (runID string, open bool, err error) {
	r, err := e.Client.DescribeWorkflowExecution(ctx, workflowID, "")
	info := r.GetWorkflowExecutionInfo()
	return info.GetExecution().GetRunId(), info.GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, err
}

// Reset starts a new run with the same ID and input that keeps the history up to the end of a workflow task,
// and returns its run ID. The server closes the open run of the ID, which may differ from runID; newest is
// the run that may be closed. If a newer run exists, Reset does nothing and returns [ErrReplaced].
func (e *Engine) Reset(ctx context.Context, workflowID, runID string, event int64, newest, reason string) (
	newRunID string, err error) {
	now, _, err := e.Newest(ctx, workflowID)
	if err != nil {
		return "", err
	}
	if now != newest {
		return "", fmt.Errorf("%w: %s; nothing was reset", ErrReplaced, now)
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

// Signal sends a signal with a JSON argument, or without one if arg is empty.
func (e *Engine) Signal(ctx context.Context, workflowID, runID, name string, arg json.RawMessage) error {
	if len(arg) == 0 {
		return e.Client.SignalWorkflow(ctx, workflowID, runID, name, nil)
	}
	return e.Client.SignalWorkflow(ctx, workflowID, runID, name, arg)
}

// update sends an update and decodes its answer. Updates with the same ID count as one update; "" generates
// an ID.
func (e *Engine) update(ctx context.Context, workflowID, name, updateID string, arg, answer any) error {
	handle, err := e.Client.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{
		UpdateID: updateID, WorkflowID: workflowID, UpdateName: name,
		Args: []any{arg}, WaitForStage: client.WorkflowUpdateStageCompleted})
	if err != nil {
		return err
	}
	return handle.Get(ctx, answer)
}

// fold applies the facts in the history of a workflow's newest run.
func fold[F any](ctx context.Context, c client.Client, workflowID string,
	fact func(*historypb.HistoryEvent) (F, bool, error), apply func(F)) error {
	events := c.GetWorkflowHistory(ctx, workflowID, "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		event, err := events.Next()
		if err != nil {
			return err
		}
		f, ok, err := fact(event)
		if err != nil {
			return err
		}
		if ok {
			apply(f)
		}
	}
	return nil
}

// readError adds the kind and the ID of the workflow to an error of fold. A missing workflow becomes
// the error notFound.
func readError(notFound ace.NotFound, id string, err error) error {
	switch {
	case err == nil:
		return nil
	case isNotFound(err):
		return notFound.Of(id)
	}
	return fmt.Errorf("%s %s: %w", notFound.Kind, id, err)
}

func isError[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

func isNotFound(err error) bool { return isError[*serviceerror.NotFound](err) }
