package main

import (
	"cmp"
	"context"
	"strings"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"acescope/engine"
	"acescope/engine/ace"
	"acescope/engine/session"
	"acescope/sources"
)

// lookAt opens the engine as [app.look] does and finds the run there that a person means, or
// of the same workflow the one with the run id.
func (a *app) lookAt(ctx context.Context, name, runID string) (e *engine.Engine, exec *commonpb.WorkflowExecution, done func(), err error) {
	e, done, err = a.look(ctx)
	if err != nil {
		return nil, nil, nil, err
	}
	run, err := resolveRun(ctx, e.Client, name)
	if err != nil {
		done()
		return nil, nil, nil, err
	}
	exec = run.GetWorkflowExecutionInfo().GetExecution()
	exec.RunId = cmp.Or(runID, exec.GetRunId())
	return e, exec, done, nil
}

// resolveRun finds the run that a person means: the newest of a task, an experiment or a
// workflow, or with ID@RUN that one of it.
func resolveRun(ctx context.Context, c client.Client, name string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	at := strings.LastIndexByte(name, '@')
	if at <= 0 || !runID.MatchString(name[at+1:]) {
		return sources.Resolve(ctx, c, name)
	}
	id, run := name[:at], name[at+1:]
	for _, workflowID := range []string{ace.WorkflowID(ace.TaskIDOf(id)), ace.ExperimentWorkflowID(id), session.WorkflowID(id), id} {
		r, err := c.DescribeWorkflowExecution(ctx, workflowID, run)
		if err == nil || !sources.NotFound(err) {
			return r, err
		}
	}
	return nil, notFound("%s has no run %s", id, run)
}
