package engine_test

import (
	"context"
	"testing"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"

	"acescope/engine"
	"acescope/engine/ace"
	"acescope/engine/tasks/runner"
)

// statusOf returns the status of the newest run of a workflow, or UNSPECIFIED for a workflow without runs.
func statusOf(t *testing.T, e *engine.Engine, id string) enumspb.WorkflowExecutionStatus {
	t.Helper()
	got, _ := e.Client.DescribeWorkflowExecution(t.Context(), id, "")
	return got.GetWorkflowExecutionInfo().GetStatus()
}

// TestTaskQueue checks that all runs and workers of a process use its task queue: another program that polls
// the default one gets none of their tasks.
func TestTaskQueue(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	e := openEngine(t, engine.Options{DataDir: dir, Takeover: true, Worker: true, TaskQueue: "team"})
	other := worker.New(e.Client, ace.TaskQueue, worker.Options{})
	other.RegisterActivityWithOptions(func(context.Context) error { return nil },
		activity.RegisterOptions{Name: ace.ActivityGenerator})
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	defer other.Stop()
	runID, err := e.StartTask(t.Context(), ace.TaskInput{TaskID: "q", Prompt: "What is 1 and 1?",
		Provider: "builtin",
		Adapter:  ace.Offline})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Client.GetWorkflow(t.Context(), ace.WorkflowID("q"), runID).Get(t.Context(),
		nil); err != nil {
		t.Error(err)
	}
	if poll(func() error {
		view, err := e.Runners(t.Context(), runner.ViewOptions{})
		if err == nil && len(view.Runners) == 0 {
			err = errNotYet
		}
		return err
	}) != nil {
		t.Error("the local runner did not register")
	}
	open, err := e.Client.ListWorkflow(t.Context(), &workflowservice.ListWorkflowExecutionsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range open.GetExecutions() {
		if w.GetTaskQueue() != "team" {
			t.Errorf("%s is on task queue %s", w.GetExecution().GetWorkflowId(), w.GetTaskQueue())
		}
	}
}

// TestOldDispatcher checks that a dispatcher of an earlier version, which has another id, is replaced.
func TestOldDispatcher(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	e := openEngine(t, engine.Options{DataDir: dir, Takeover: true})
	o := client.StartWorkflowOptions{ID: runner.OldDispatcherID, TaskQueue: ace.TaskQueue}
	_, err := e.Client.SignalWithStartWorkflow(t.Context(), o.ID, runner.SignalNotices, runner.Notices{}, o,
		runner.DispatcherWorkflow)
	if err != nil {
		t.Fatal(err)
	}
	openEngine(t, engine.Options{DataDir: dir, Worker: true, NoRunner: true})
	if poll(func() error {
		if statusOf(t, e, runner.OldDispatcherID) != enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED ||
			statusOf(t, e, runner.DispatcherID(ace.TaskQueue)) != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING {
			return errNotYet
		}
		return nil
	}) != nil {
		t.Error("the old dispatcher was not replaced")
	}
}
