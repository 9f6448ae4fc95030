package operation

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
)

// Options say how an operation is run. Zero fields leave what the runner or the type has.
type Options struct {
	// Timeout bounds one attempt, Total all of them together; a Total of 0 is no bound.
	Timeout, Total time.Duration
	// Heartbeat is how soon an operation is given to another worker after its own died.
	// Workers beat for their handlers, four times as often. Below zero: not at all.
	Heartbeat time.Duration
	// Retry says how often and how fast infrastructure failures are tried again.
	Retry Retry
	// TaskQueue sends the operation to workers of another queue.
	TaskQueue string
	// Cache lets the worker answer from its cache, and keep the answer there.
	Cache Choice
}

// Retry is how often and how fast something is tried again.
type Retry struct {
	Attempts int32         // 1: it is not tried again
	First    time.Duration // before the second attempt
	Backoff  float64       // what each wait is multiplied by
	Longest  time.Duration
	Never    []string // further types of errors that are not tried again
}

// Choice is yes, no, or what was chosen further out.
type Choice int8

// Choices.
const (
	Inherit Choice = iota
	Yes
	No
)

// Defaults are the options of a type of operations. Models are slow and dear and get long
// attempts and slow retries; what is done on the spot gets short ones.
func Defaults(t Type) Options {
	switch t {
	case AgentResponse:
		return Options{Timeout: 10 * time.Minute, Heartbeat: 10 * time.Second, Retry: Retry{Attempts: 5, First: time.Second, Backoff: 2, Longest: 30 * time.Second}}
	case ExternalCall:
		return Options{Timeout: 2 * time.Minute, Heartbeat: 10 * time.Second, Retry: Retry{Attempts: 8, First: 500 * time.Millisecond, Backoff: 2, Longest: 30 * time.Second}}
	}
	return Options{Timeout: time.Minute, Heartbeat: 10 * time.Second, Retry: Retry{Attempts: 10, First: 200 * time.Millisecond, Backoff: 2, Longest: 5 * time.Second}}
}

// with is o with what is set in more.
func (o Options) with(more Options) Options {
	o.Timeout = or(more.Timeout, o.Timeout)
	o.Total = or(more.Total, o.Total)
	o.Heartbeat = or(more.Heartbeat, o.Heartbeat)
	o.TaskQueue = or(more.TaskQueue, o.TaskQueue)
	o.Cache = or(more.Cache, o.Cache)
	o.Retry.Attempts = or(more.Retry.Attempts, o.Retry.Attempts)
	o.Retry.First = or(more.Retry.First, o.Retry.First)
	o.Retry.Backoff = or(more.Retry.Backoff, o.Retry.Backoff)
	o.Retry.Longest = or(more.Retry.Longest, o.Retry.Longest)
	if len(more.Retry.Never) > 0 {
		o.Retry.Never = more.Retry.Never
	}
	return o
}

func or[T comparable](a, b T) T {
	var zero T
	if a != zero {
		return a
	}
	return b
}

// activity is the options of the activity that an operation runs as. Cancellation waits
// for the operation, so that what it did is known before the run closes.
func (o Options) activity(id, summary string) workflow.ActivityOptions {
	return workflow.ActivityOptions{
		ActivityID:             id,
		Summary:                summary,
		TaskQueue:              o.TaskQueue,
		StartToCloseTimeout:    o.Timeout,
		ScheduleToCloseTimeout: o.Total,
		HeartbeatTimeout:       max(o.Heartbeat, 0),
		WaitForCancellation:    true,
		RetryPolicy: &temporal.RetryPolicy{
			InitialInterval:        o.Retry.First,
			BackoffCoefficient:     o.Retry.Backoff,
			MaximumInterval:        max(o.Retry.Longest, o.Retry.First),
			MaximumAttempts:        o.Retry.Attempts,
			NonRetryableErrorTypes: o.Retry.Never,
		},
	}
}
