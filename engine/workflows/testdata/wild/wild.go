// Package wild has a workflow that depends on the clock, which a replay does not reproduce. It never runs;
// make lint checks that workflowcheck reports it.
package wild

import (
	"time"

	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

// Register registers the workflow, so that workflowcheck finds it.
func Register(r worker.WorkflowRegistry) { r.RegisterWorkflow(Decide) }

// Decide sleeps on the hour only.
func Decide(ctx workflow.Context) error {
	if time.Now().Minute() == 0 {
		return workflow.Sleep(ctx, time.Minute)
	}
	return nil
}
