package activity

import (
	"context"
	"errors"
	"sync"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/converter"

	"acescope/engine/ace"
	"acescope/engine/run"
	"acescope/engine/runner"
	"acescope/engine/session"
)

// How runs are looked after: so many at a time, and no longer than so.
const (
	checkMost   = 16
	checkWithin = 5 * time.Second
)

// checkRuns finds the runs that have ended without saying so, and tells the parents of those
// that could not. What it does not come to is left for the next time.
func (d *Dispatch) checkRuns(ctx context.Context, in runner.Check) (runner.Checked, error) {
	ctx, cancel := context.WithTimeout(ctx, checkWithin)
	defer cancel()
	ended := make([]ace.ExitStatus, len(in.Runs))
	var all sync.WaitGroup
	slots := make(chan struct{}, checkMost)
	for i, r := range in.Runs {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			exit, err := d.checkRun(ctx, r)
			if err != nil && ctx.Err() == nil {
				d.Logger.Warn("a run was not looked after", "run", r.RunID, "error", err)
			}
			ended[i] = exit
		})
	}
	all.Wait()
	checked := runner.Checked{}
	for i, exit := range ended {
		if exit != "" {
			if checked.Ended == nil {
				checked.Ended = map[string]ace.ExitStatus{}
			}
			checked.Ended[in.Runs[i].RunID] = exit
		}
	}
	return checked, nil
}

// checkRun is how a run has ended, "" where it has not, or where that is not known or its
// parent could not be told.
func (d *Dispatch) checkRun(ctx context.Context, r runner.Request) (ace.ExitStatus, error) {
	got, err := d.Workflows.DescribeWorkflowExecution(ctx, run.WorkflowID(r.RunID), r.Execution)
	var none *serviceerror.NotFound
	if errors.As(err, &none) {
		return ace.Failed, d.tellParent(ctx, r, nil, "its record was deleted")
	}
	if err != nil {
		return "", err
	}
	info := got.GetWorkflowExecutionInfo()
	exit, why := ace.Failed, ""
	switch info.GetStatus() {
	case enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, enumspb.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW:
		return "", nil
	case enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED:
		return ace.Success, nil // it has told everybody itself
	case enumspb.WORKFLOW_EXECUTION_STATUS_CANCELED:
		return ace.Cancelled, nil // likewise
	case enumspb.WORKFLOW_EXECUTION_STATUS_TIMED_OUT:
		exit, why = ace.Timeout, "its workflow ran out of time"
	case enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED:
		why = "its workflow was terminated"
	default:
		why = "its workflow failed"
	}
	if err := d.tellParent(ctx, r, info, why); err != nil {
		return "", err
	}
	return exit, nil
}

// tellParent tells the parent session of a run that could not do so. A session that was told
// by the run already does not hear it twice: the message bears the same id.
func (d *Dispatch) tellParent(ctx context.Context, r runner.Request, info *workflowpb.WorkflowExecutionInfo, why string) error {
	listed := listedOf(info.GetMemo())
	parent := r.Parent
	if listed.Mode != "" && listed.Mode != run.AsyncCallback || parent == "" {
		return nil
	}
	in := run.Input{RunID: r.RunID, SessionID: listed.SessionID, Type: listed.Type, AgentName: r.Name, ParentSessionID: parent}
	message := run.Callback(in, run.Result{RunID: r.RunID, SessionID: listed.SessionID, Status: run.Failed, Reason: run.Terminated, Error: why})
	err := d.Workflows.SignalWorkflow(ctx, session.WorkflowID(parent), "", session.SignalDeliver, message)
	var none *serviceerror.NotFound
	if errors.As(err, &none) {
		return nil // the session has ended
	}
	return err
}

// listedOf is what a run was started with for lists, as far as it can be read.
func listedOf(memo *commonpb.Memo) (l run.Listed) {
	if p := memo.GetFields()[run.MemoRun]; p != nil {
		_ = converter.GetDefaultDataConverter().FromPayload(p, &l)
	}
	return l
}
