package activity

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"

	"acescope/engine/run"
	"acescope/engine/runner"
)

// How runs and runners are asked: so many for one call, so many side by side.
const (
	recallPage = 500
	recallMost = 16
	recallFor  = 8 * time.Second
)

// recall has the runs and runners of a page tell the dispatcher again what they want and have,
// and returns the next page.
func (d *Dispatch) recall(ctx context.Context, page []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, recallFor)
	defer cancel()
	list, err := d.Workflows.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{PageSize: recallPage, NextPageToken: page,
		Query: fmt.Sprintf("ExecutionStatus = 'Running' AND WorkflowType IN ('%s', '%s')", run.Workflow, runner.Workflow)})
	if err != nil {
		return nil, fmt.Errorf("list runs and runners: %w", err)
	}
	var all sync.WaitGroup
	var mu sync.Mutex
	slots := make(chan struct{}, recallMost)
	for _, info := range list.GetExecutions() {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			var none *serviceerror.NotFound
			e := d.Workflows.SignalWorkflow(ctx, info.GetExecution().GetWorkflowId(), info.GetExecution().GetRunId(), runner.SignalAskAgain, nil)
			if e != nil && !errors.As(e, &none) { // one that has ended has nothing to tell
				mu.Lock()
				defer mu.Unlock()
				err = e
			}
		})
	}
	all.Wait()
	return list.GetNextPageToken(), err
}

// watchEvery is how often is looked whether there is a dispatcher.
const watchEvery = 10 * time.Second

// Watch begins the dispatcher anew where somebody has ended it, until the context is done: what
// waits would wait until somebody tells something.
func (d *Dispatch) Watch(ctx context.Context) {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		if err := d.revive(ctx); err != nil && ctx.Err() == nil {
			d.Logger.Warn("the dispatcher was not looked after", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// revive begins the dispatcher where there was one and is none.
func (d *Dispatch) revive(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, gatherSend)
	defer cancel()
	got, err := d.Workflows.DescribeWorkflowExecution(ctx, runner.DispatcherID, "")
	var none *serviceerror.NotFound
	if errors.As(err, &none) {
		return nil
	}
	if err != nil {
		return err
	}
	switch got.GetWorkflowExecutionInfo().GetStatus() {
	case enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, enumspb.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW:
		return nil
	}
	return d.toDispatcher(ctx, runner.Notices{})
}
