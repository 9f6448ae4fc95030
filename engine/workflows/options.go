package workflows

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"acescope/engine/ace"
	"acescope/engine/agents/session"
	"acescope/engine/tasks/runner"
)

// ErrTypePermanent is the type of application errors that a retry cannot fix. Activities return
// it for invalid input and for answers that will not change.
const ErrTypePermanent = "Permanent"

// HeartbeatTimeout is the time after which a step moves to another worker if its own is lost.
// Activities send a heartbeat every second. It is also short because every open timeout is an
// entry in the server's timer queue.
const HeartbeatTimeout = 10 * time.Second

// policy limits the duration of an attempt and the number and intervals of retries.
type policy struct {
	attempt     time.Duration
	maxAttempts int32
	interval    time.Duration
	maxInterval time.Duration
}

var (
	// modelStep applies to steps that may call a model.
	modelStep = policy{attempt: 10 * time.Minute, maxAttempts: 5, interval: time.Second,
		maxInterval: 30 * time.Second}
	// evaluationStep applies to evaluations, which answer many problems in sequence and resume
	// where the last attempt stopped.
	evaluationStep = policy{attempt: 3 * time.Hour, maxAttempts: 10, interval: time.Second,
		maxInterval: 30 * time.Second}
	// storeStep applies to steps that only access the stores. With a slow shared store, merges wait for each
	// other; a lost worker is noticed by its heartbeats.
	storeStep = policy{attempt: 10 * time.Minute, maxAttempts: 10, interval: 200 * time.Millisecond,
		maxInterval: 5 * time.Second}
	// diskStep applies to steps that only access the disk.
	diskStep = policy{attempt: time.Minute, maxAttempts: 10, interval: 200 * time.Millisecond,
		maxInterval: 5 * time.Second}
	// agentStep applies to agents with their own tools, which may work for hours. A retry resumes
	// the work of the last attempt.
	agentStep = policy{attempt: 12 * time.Hour, maxAttempts: 5, interval: 2 * time.Second,
		maxInterval: 2 * time.Minute}
)

// policyOf returns the policy of an activity and of its provider, which may be "".
func policyOf(activity, provider string) policy {
	switch activity {
	case session.ActivityClaim:
		return diskStep
	case ace.ActivityPersist, ace.ActivityLoadTasks, ace.ActivityHead, ace.ActivityLoadStep,
		ace.ActivityReadLog, ace.ActivityPlanTrials:
		return storeStep
	case ace.ActivityEvaluate:
		return evaluationStep
	case ace.ActivityAgentCLI, ace.ActivityBreakdown:
		return agentStep
	}
	if _, ok := ace.BlueprintOf(provider); ok || ace.IsAgent(provider) {
		return agentStep // the blueprint's own timeout ends a program
	}
	return modelStep
}

// WithAgentOptions sets the options of the activities that call agents and read their logs, for
// any workflow: the contract's task queue, long attempts with heartbeats, slow retries, and a
// cancellation that waits for the end of the agent. attempt, if above 0, limits one attempt.
func WithAgentOptions(ctx workflow.Context, attempt time.Duration) workflow.Context {
	p := agentStep
	if attempt > 0 {
		p.attempt = attempt
	}
	return workflow.WithTaskQueue(withPolicy(ctx, p), ace.TaskQueue)
}

// withOptions sets the options of an activity type and its provider. A cancellation waits for
// the activity, so that its effects are known before the run closes.
func withOptions(ctx workflow.Context, activity, provider string) workflow.Context {
	return withPolicy(ctx, policyOf(activity, provider))
}

func withPolicy(ctx workflow.Context, p policy) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: p.attempt,
		HeartbeatTimeout:    HeartbeatTimeout,
		WaitForCancellation: true,
		RetryPolicy: &temporal.RetryPolicy{
			InitialInterval:        p.interval,
			BackoffCoefficient:     2,
			MaximumInterval:        p.maxInterval,
			MaximumAttempts:        p.maxAttempts,
			NonRetryableErrorTypes: []string{ErrTypePermanent},
		},
	})
}

// withLocalOptions sets the options of a local activity that is not retried.
func withLocalOptions(ctx workflow.Context) workflow.Context {
	return workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{
		StartToCloseTimeout: 10 * time.Second,
		RetryPolicy:         &temporal.RetryPolicy{MaximumAttempts: 1},
	})
}

// notifyWithin is the time for which a run tries to notify the dispatcher.
const notifyWithin = 10 * time.Minute

// notify sends notices to the dispatcher. It retries for the given time, or forever if that is 0.
func notify(ctx workflow.Context, notices runner.Notices, within time.Duration) workflow.Future {
	ctx = workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{
		StartToCloseTimeout:    10 * time.Second,
		ScheduleToCloseTimeout: within,
		RetryPolicy: &temporal.RetryPolicy{InitialInterval: 200 * time.Millisecond, BackoffCoefficient: 2,
			MaximumInterval: 5 * time.Second},
	})
	return workflow.ExecuteLocalActivity(ctx, runner.ActivityTell, notices)
}
