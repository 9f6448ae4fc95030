package flow

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"acescope/engine/runner"
)

// toldWithin is how long a run tries to tell the dispatcher something: then it fails, and
// says so.
const toldWithin = 10 * time.Minute

// notify tells the dispatcher something, for as long as that may take; 0 for ever.
func notify(ctx workflow.Context, notices runner.Notices, within time.Duration) error {
	return tell(ctx, notices, within).Get(ctx, nil)
}

// tell is notify for those who do something else meanwhile, or want the answer.
func tell(ctx workflow.Context, notices runner.Notices, within time.Duration) workflow.Future {
	ctx = workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{
		StartToCloseTimeout:    10 * time.Second,
		ScheduleToCloseTimeout: within,
		RetryPolicy:            &temporal.RetryPolicy{InitialInterval: 200 * time.Millisecond, BackoffCoefficient: 2, MaximumInterval: 5 * time.Second},
	})
	return workflow.ExecuteLocalActivity(ctx, runner.ActivityTell, notices)
}
