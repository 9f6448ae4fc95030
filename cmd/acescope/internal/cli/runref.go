package cli

import (
	"cmp"
	"context"
	"regexp"
	"strings"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"acescope/engine"
	"acescope/engine/ace"
	"acescope/engine/agents/session"
	"acescope/sources/cluster"
	"acescope/sources/runs"
)

// lookAt opens the engine as [App.look] does and finds the run there that a person means, or
// of the same workflow the one with the run id.
func (a *App) OpenRun(ctx context.Context, name, runID string) (e *engine.Engine, exec *commonpb.WorkflowExecution, done func(), err error) {
	e, done, err = a.OpenReadOnly(ctx)
	if err != nil {
		return nil, nil, nil, err
	}
	run, err := ResolveRun(ctx, e.Client, name)
	if err != nil {
		done()
		return nil, nil, nil, err
	}
	exec = run.GetWorkflowExecutionInfo().GetExecution()
	exec.RunId = cmp.Or(runID, exec.GetRunId())
	return e, exec, done, nil
}

// ResolveRun finds the run that a person means: the newest of a task, an experiment or a
// workflow, or with ID@RUN that one of it.
func ResolveRun(ctx context.Context, c client.Client, name string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	at := strings.LastIndexByte(name, '@')
	if at <= 0 || !RunIDPattern.MatchString(name[at+1:]) {
		return runs.Resolve(ctx, c, name)
	}
	id, run := name[:at], name[at+1:]
	for _, workflowID := range []string{ace.WorkflowID(ace.TaskIDOf(id)), ace.ExperimentWorkflowID(id), session.WorkflowID(id), id} {
		r, err := c.DescribeWorkflowExecution(ctx, workflowID, run)
		if err == nil || !cluster.NotFound(err) {
			return r, err
		}
	}
	return nil, NotFound("%s has no run %s", id, run)
}

// RunIDPattern is how Temporal's run ids look.
var RunIDPattern = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)
