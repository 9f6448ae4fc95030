// Package wild is a workflow that decides by what a replay does not have. It is never run:
// make lint demands that workflowcheck finds it.
package wild

import (
	"time"

	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

// Register makes the workflow known, by which the checker finds it.
func Register(r worker.WorkflowRegistry) { r.RegisterWorkflow(Decide) }

// Decide sleeps on the hour only.
func Decide(ctx workflow.Context) error {
	if time.Now().Minute() == 0 {
		return workflow.Sleep(ctx, time.Minute)
	}
	return nil
}
