package activities

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/worker"
	"golang.org/x/sync/errgroup"

	"acescope/engine/ace"
	"acescope/engine/agents/session"
	"acescope/engine/internal/sleep"
	"acescope/engine/tasks/run"
	"acescope/engine/tasks/runner"
)

// Workflows is the part of a Temporal client that runs, runners and the dispatcher use to reach
// each other.
type Workflows interface {
	Signaler
	SignalWithStartWorkflow(ctx context.Context, workflowID, signalName string, signalArg any,
		o client.StartWorkflowOptions,
		workflow any, args ...any) (client.WorkflowRun, error)
	ListWorkflow(ctx context.Context, r *workflowservice.ListWorkflowExecutionsRequest) (
		*workflowservice.ListWorkflowExecutionsResponse, error)
	DescribeWorkflowExecution(ctx context.Context, workflowID, runID string) (
		*workflowservice.DescribeWorkflowExecutionResponse, error)
	TerminateWorkflow(ctx context.Context, workflowID, runID, reason string, details ...any) error
}

// Dispatch implements the local activities of runs, runners and the dispatcher. All fields are
// required.
type Dispatch struct {
	Workflows Workflows
	TaskQueue string // of the workers that execute the dispatcher
	Logger    *slog.Logger

	notices    *noticeBatcher
	background *background
	answers    *answerSender
	waiters    *waiters
}

// Register registers the activities under the names of the contract with a worker that executes
// workflows.
func (d *Dispatch) Register(r worker.ActivityRegistry) {
	d.notices = newNoticeBatcher(d.signalDispatcher, collectFor)
	d.background = newBackground(d.notices.deliver, d.Logger)
	d.waiters = newWaiters(waitFor)
	d.answers = newAnswerSender(d.Workflows, d.waiters)
	for name, fn := range map[string]any{
		runner.ActivityTell:       d.tell,
		runner.ActivityNotifyRuns: d.notifyRuns,
		runner.ActivityCheckRuns:  d.checkRuns,
		runner.ActivityRecall:     d.recall,
	} {
		r.RegisterActivityWithOptions(fn, activity.RegisterOptions{Name: name})
	}
}

// Close waits up to [backgroundClose] for notices in the background, and ends the deliveries under way, which
// the dispatcher repeats. Call it after the worker stopped.
func (d *Dispatch) Close() {
	d.background.close(backgroundClose)
	d.notices.running.Wait()
	d.answers.end()
	d.answers.running.Wait()
}

// tell sends notices to the dispatcher. If one of them requests a runner, tell returns the answer if it
// arrives soon; otherwise it returns nil, and the answer arrives as a signal.
func (d *Dispatch) tell(ctx context.Context, notices runner.Notices) (*runner.Answer, error) {
	var request *runner.Request
	endOnly := len(notices) > 0
	for _, n := range notices {
		switch n.Kind {
		case runner.Release, runner.Withdraw:
			continue
		case runner.Enqueue:
			request = n.Request
		}
		endOnly = false
	}
	if endOnly && d.background.add(notices) {
		return nil, nil
	}
	if request == nil {
		return nil, d.notices.deliver(ctx, notices)
	}
	w := d.waiters.add(*request)
	err := d.notices.deliver(ctx, notices)
	if answer := d.waiters.wait(ctx, w, err == nil); answer != nil {
		return answer, nil
	}
	return nil, err
}

// signalDispatcher signals the dispatcher, and starts it if necessary.
func (d *Dispatch) signalDispatcher(ctx context.Context, notices runner.Notices) error {
	id := runner.DispatcherID(d.TaskQueue)
	o := client.StartWorkflowOptions{ID: id, TaskQueue: d.TaskQueue,
		WorkflowIDReusePolicy: enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE}
	_, err := d.Workflows.SignalWithStartWorkflow(ctx, id, runner.SignalNotices, notices, o,
		runner.DispatcherWorkflow)
	if err != nil {
		return fmt.Errorf("signal the dispatcher: %w", err)
	}
	return nil
}

// Bounds of a check of runs.
const (
	checkParallel = 16
	checkTimeout  = 5 * time.Second
)

// checkRuns finds the runs that ended without a notice and informs their parents. Runs that it does
// not reach in time are left for the next check.
func (d *Dispatch) checkRuns(ctx context.Context, in runner.CheckInput) (runner.CheckResult, error) {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	var mu sync.Mutex
	ended := map[string]ace.Status{}
	var all errgroup.Group
	all.SetLimit(checkParallel)
	for _, r := range in.Runs {
		all.Go(func() error {
			exit, err := d.checkRun(ctx, r)
			if err != nil && ctx.Err() == nil {
				d.Logger.Warn("check of a run failed", "run", r.RunID, "error", err)
			}
			if exit != "" {
				mu.Lock()
				defer mu.Unlock()
				ended[r.RunID] = exit
			}
			return nil
		})
	}
	return runner.CheckResult{Ended: ended}, all.Wait()
}

// checkRun returns the outcome of a run, or "" if it is open, unknown or its parent could not be
// informed.
func (d *Dispatch) checkRun(ctx context.Context, r runner.Request) (ace.Status, error) {
	got, err := d.Workflows.DescribeWorkflowExecution(ctx, run.WorkflowID(r.RunID), r.Execution)
	if err != nil && !isNotFound(err) {
		return "", err
	}
	info := got.GetWorkflowExecutionInfo()
	exit, why := ace.Failed, "its workflow failed"
	if err != nil {
		why = "its record was deleted"
	}
	switch info.GetStatus() {
	case enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, enumspb.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW:
		return "", nil
	case enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED:
		return ace.Completed, nil // the run informed its parent
	case enumspb.WORKFLOW_EXECUTION_STATUS_CANCELED:
		return ace.Canceled, nil // the run informed its parent
	case enumspb.WORKFLOW_EXECUTION_STATUS_TIMED_OUT:
		exit, why = ace.TimedOut, "its workflow ran out of time"
	case enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED:
		why = "its workflow was terminated"
	}
	if err := d.notifyParent(ctx, r, info, why); err != nil {
		return "", err
	}
	return exit, nil
}

// notifyParent reports the failure of a run to its parent session. The session ignores the message
// if the run reported before, because both messages have the same ID.
func (d *Dispatch) notifyParent(ctx context.Context, r runner.Request, info *workflowpb.WorkflowExecutionInfo,
	why string) error {
	var listed run.Memo // may be missing or unreadable
	if p := info.GetMemo().GetFields()[run.MemoKey]; p != nil {
		_ = converter.GetDefaultDataConverter().FromPayload(p, &listed)
	}
	if listed.Mode != "" && listed.Mode != run.AsyncCallback || r.Parent == "" {
		return nil
	}
	in := run.Input{RunID: r.RunID, SessionID: listed.SessionID, Type: listed.Type, AgentName: r.Name,
		ParentSessionID: r.Parent}
	result := run.Result{RunID: r.RunID, SessionID: listed.SessionID, Status: run.Failed,
		Reason: run.Terminated, Error: why}
	err := d.Workflows.SignalWorkflow(ctx, session.WorkflowID(r.Parent), "", session.SignalDeliver,
		run.Callback(in, result))
	if isNotFound(err) {
		return nil // the session has ended
	}
	return err
}

// Bounds of a recall of runs and runners.
const (
	recallPage     = 500
	recallParallel = 16
	recallTimeout  = 8 * time.Second
)

// recall asks a page of runs and runners to repeat their notices, and returns the next page.
func (d *Dispatch) recall(ctx context.Context, page []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, recallTimeout)
	defer cancel()
	query := fmt.Sprintf("ExecutionStatus = 'Running' AND WorkflowType IN ('%s', '%s')", run.Workflow,
		runner.Workflow)
	list, err := d.Workflows.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{
		PageSize: recallPage, NextPageToken: page, Query: query})
	if err != nil {
		return nil, fmt.Errorf("list runs and runners: %w", err)
	}
	var all errgroup.Group
	all.SetLimit(recallParallel)
	for _, info := range list.GetExecutions() {
		all.Go(func() error {
			e := info.GetExecution()
			err := d.Workflows.SignalWorkflow(ctx, e.GetWorkflowId(), e.GetRunId(), runner.SignalAskAgain,
				nil)
			if isNotFound(err) { // a closed workflow has nothing to repeat
				return nil
			}
			return err
		})
	}
	return list.GetNextPageToken(), all.Wait()
}

// watchEvery is the interval at which the dispatcher is checked.
const watchEvery = 10 * time.Second

// Watch restarts the dispatcher whenever it was terminated, until the context is done. Without
// Watch, waiting runs would wait for the next notice.
func (d *Dispatch) Watch(ctx context.Context) {
	check, failing := d.retire, false
	try := func() {
		err := check(ctx)
		if err == nil {
			check = d.revive
		}
		switch failed := err != nil; {
		case failed == failing || ctx.Err() != nil:
		case failed:
			failing = true
			d.Logger.Warn("the dispatcher cannot be checked; retrying", "error", err)
		default:
			failing = false
			d.Logger.Info("the dispatcher can be checked again")
		}
	}
	try()
	sleep.Every(ctx, watchEvery, try)
}

// retire replaces the open dispatcher of an earlier version, which has another id. Like every new
// dispatcher, the replacement asks all open runs and runners for their state.
func (d *Dispatch) retire(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, signalTimeout)
	defer cancel()
	got, err := d.Workflows.DescribeWorkflowExecution(ctx, runner.OldDispatcherID, "")
	if isNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	old := got.GetWorkflowExecutionInfo()
	if old.GetStatus() != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING || old.GetTaskQueue() != d.TaskQueue ||
		old.GetType().GetName() != runner.DispatcherWorkflow {
		return nil
	}
	if err := d.signalDispatcher(ctx, runner.Notices{}); err != nil {
		return err
	}
	return d.Workflows.TerminateWorkflow(ctx, runner.OldDispatcherID, old.GetExecution().GetRunId(),
		"replaced by "+runner.DispatcherID(d.TaskQueue))
}

// revive starts the dispatcher if it existed and is closed.
func (d *Dispatch) revive(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, signalTimeout)
	defer cancel()
	got, err := d.Workflows.DescribeWorkflowExecution(ctx, runner.DispatcherID(d.TaskQueue), "")
	if isNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	switch got.GetWorkflowExecutionInfo().GetStatus() {
	case enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, enumspb.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW:
		return nil
	}
	return d.signalDispatcher(ctx, runner.Notices{})
}
