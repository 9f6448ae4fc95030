package flow

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"acescope/engine/ace"
	"acescope/engine/session"
)

// ErrTypePermanent is the type of application errors that no retry mends; activities
// return it for bad input and for answers that will not change.
const ErrTypePermanent = "Permanent"

// HeartbeatTimeout is how soon a step is given to another worker after its own died.
// Activities beat every second. It is short also because every open time-out is an
// entry in the server's timer queue.
const HeartbeatTimeout = 10 * time.Second

// policy is what an activity is allowed: how long one attempt may take, and how often
// and how fast it is tried again.
type policy struct {
	attempt  time.Duration
	attempts int32
	first    time.Duration
	longest  time.Duration
}

// Steps that may call a model get long attempts and slow retries; those that only
// touch the disk get short attempts and quick ones.
var (
	modelStep = policy{attempt: 10 * time.Minute, attempts: 5, first: time.Second, longest: 30 * time.Second}
	// A measurement asks for many problems, one after the other, and goes on where its last
	// attempt stopped.
	measure  = policy{attempt: 3 * time.Hour, attempts: 10, first: time.Second, longest: 30 * time.Second}
	diskStep = policy{attempt: time.Minute, attempts: 10, first: 200 * time.Millisecond, longest: 5 * time.Second}
	// agentStep is for agents with tools of their own, which may work for hours. What an
	// attempt did is found by the next, so that there may be several.
	agentStep = policy{attempt: 12 * time.Hour, attempts: 5, first: 2 * time.Second, longest: 2 * time.Minute}
)

// policyOf is the policy of an activity, and of the provider that it asks, "" for none.
func policyOf(activity, provider string) policy {
	switch activity {
	case session.ActivityClaim:
		return diskStep
	case ace.ActivityPersist, ace.ActivityLoadTasks, ace.ActivityHead, ace.ActivityLoadStep, ace.ActivityReadLog:
		return diskStep
	case ace.ActivityEvaluate:
		return measure
	case ace.ActivityAgentCLI, ace.ActivityBreakdown:
		return agentStep
	}
	if _, program := ace.BlueprintOf(provider); program || ace.IsAgent(provider) {
		return agentStep // a program ends by its blueprint's time-out
	}
	return modelStep
}

// WithAgentOptions sets the options of the activities that call agents, and read their logs,
// for any workflow: the contract's queue, long attempts with heartbeats, slow retries, and a
// cancellation that waits until the agent has ended. attempt, above 0, bounds one attempt.
func WithAgentOptions(ctx workflow.Context, attempt time.Duration) workflow.Context {
	p := agentStep
	if attempt > 0 {
		p.attempt = attempt
	}
	return workflow.WithTaskQueue(withPolicy(ctx, p), ace.TaskQueue)
}

// withOptions sets the options of one activity type, with the provider that it asks.
// Cancellation waits for the activity, so that what it did is known before the run closes.
func withOptions(ctx workflow.Context, activity, provider string) workflow.Context {
	return withPolicy(ctx, policyOf(activity, provider))
}

func withPolicy(ctx workflow.Context, p policy) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: p.attempt,
		HeartbeatTimeout:    HeartbeatTimeout,
		WaitForCancellation: true,
		RetryPolicy: &temporal.RetryPolicy{
			InitialInterval:        p.first,
			BackoffCoefficient:     2,
			MaximumInterval:        p.longest,
			MaximumAttempts:        p.attempts,
			NonRetryableErrorTypes: []string{ErrTypePermanent},
		},
	})
}

// turnLimit is how long one turn of a session may take.
const turnLimit = 24 * time.Hour

// turnHeartbeat is how soon a turn is given to another process after its own died. It is
// shorter than that of steps: a turn that is given out again by mistake is found under way,
// and waited for.
const turnHeartbeat = 5 * time.Second

// onHost sets the options of an activity on the machine that the session lives on. It
// waits there for as long as the machine is away: the agent's files are nowhere else. A
// tool call is made once, unless making it again changes nothing; a turn that is tried
// again finds what its last attempt did.
func (t *talk) onHost(ctx workflow.Context, activity string) workflow.Context {
	o := workflow.ActivityOptions{
		TaskQueue:           t.state.Host.Queue,
		StartToCloseTimeout: turnLimit,
		HeartbeatTimeout:    HeartbeatTimeout,
		WaitForCancellation: true,
		RetryPolicy: &temporal.RetryPolicy{InitialInterval: time.Second, BackoffCoefficient: 2, MaximumInterval: 30 * time.Second,
			MaximumAttempts: 10, NonRetryableErrorTypes: []string{ErrTypePermanent}},
	}
	switch activity {
	case session.ActivityTurn:
		o.HeartbeatTimeout = turnHeartbeat
	case session.ActivityTool:
		o.StartToCloseTimeout = time.Hour
		o.RetryPolicy.MaximumAttempts = 1
	case session.ActivityClose:
		o.ScheduleToCloseTimeout = closeWithin
	}
	return workflow.WithActivityOptions(ctx, o)
}

// failed is the error of a workflow that ends with the failure.
func failed(f ace.Failure) error {
	return temporal.NewNonRetryableApplicationError(f.Message, f.Type, nil)
}
