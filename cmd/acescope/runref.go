package main

import (
	"context"
	"strings"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"acescope/engine/ace"
	"acescope/sources"
)

// resolveRun finds the run that a person means: the newest of a task, an experiment or a
// workflow, or with ID@RUN that one of it.
func resolveRun(ctx context.Context, c client.Client, name string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	at := strings.LastIndexByte(name, '@')
	if at <= 0 || !runID.MatchString(name[at+1:]) {
		return sources.Resolve(ctx, c, name)
	}
	id, run := name[:at], name[at+1:]
	for _, workflowID := range []string{ace.WorkflowID(ace.TaskIDOf(id)), ace.ExperimentWorkflowID(id), id} {
		r, err := c.DescribeWorkflowExecution(ctx, workflowID, run)
		if err == nil || !sources.NotFound(err) {
			return r, err
		}
	}
	return nil, notFound("%s has no run %s", id, run)
}
