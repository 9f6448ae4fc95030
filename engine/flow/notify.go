package flow

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"acescope/engine/runner"
)

// notify tells the dispatcher something, however long that takes.
func notify(ctx workflow.Context, notices runner.Notices) error {
	ctx = workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{
		StartToCloseTimeout: 10 * time.Second,
		RetryPolicy:         &temporal.RetryPolicy{InitialInterval: 200 * time.Millisecond, BackoffCoefficient: 2, MaximumInterval: 5 * time.Second},
	})
	return workflow.ExecuteLocalActivity(ctx, runner.ActivityTell, notices).Get(ctx, nil)
}
