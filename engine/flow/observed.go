package flow

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"acescope/engine/ace"
)

// drainFor is how long an observed run that has ended waits for batches that were
// overtaken.
const drainFor = 250 * time.Millisecond

// observe listens to a run that happens elsewhere until its observer says that it has
// ended, nothing was heard of it for too long, or somebody cancels it. A long one is
// continued as new before its history is full. Events are taken from the channel here and
// by no listener: one that was handed to a listener which has not run yet would be lost
// with a run that is continued.
func (t *task) observe(ctx workflow.Context, in ace.TaskInput) error {
	t.heard = workflow.Now(ctx)
	alarm := workflow.NewTimer(ctx, in.Idle())
	for t.drain(ctx); !t.state.Finished(); t.drain(ctx) {
		if isLong(ctx) {
			return t.goOn(ctx, in)
		}
		if alarm.IsReady() { // events do not set it anew, which would cost history
			wait := in.Idle() - workflow.Now(ctx).Sub(t.heard)
			if wait <= 0 {
				return t.giveUp(ctx)
			}
			alarm = workflow.NewTimer(ctx, wait)
		}
		if err := workflow.Await(ctx, func() bool { return t.signal.Len() > 0 || alarm.IsReady() || isLong(ctx) }); err != nil {
			return err
		}
	}
	_ = workflow.Sleep(ctx, drainFor) // a cancellation only shortens it
	t.drain(ctx)
	return t.ended()
}

func isLong(ctx workflow.Context) bool {
	info := workflow.GetInfo(ctx)
	return info.GetContinueAsNewSuggested() || info.GetCurrentHistoryLength() >= maxHistory
}

// giveUp ends a run whose observer is silent. That is decided by a timer of its own, whose
// summary tells readers of the history what it is.
func (t *task) giveUp(ctx workflow.Context) error {
	silence := workflow.NewTimerWithOptions(ctx, time.Millisecond, workflow.TimerOptions{Summary: ace.TimerSilent})
	if err := silence.Get(ctx, nil); err != nil {
		return err
	}
	t.apply(ace.Silent())
	t.drain(ctx)
	return t.ended()
}

// goOn continues the run with what it knows. Events that have come are in it; those that
// come meanwhile make the server ask again.
func (t *task) goOn(ctx workflow.Context, in ace.TaskInput) error {
	in.Carried = t.state.Carry()
	return workflow.NewContinueAsNewError(ctx, ace.TaskWorkflow, in)
}

// ended is how the workflow closes when its run ended so.
func (t *task) ended() error {
	f := t.state.Failure
	switch t.state.Exit {
	case ace.Cancelled:
		return temporal.NewCanceledError()
	case ace.Failed, ace.Timeout:
		return temporal.NewNonRetryableApplicationError(f.Message, f.Type, nil)
	}
	return nil
}
