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
// continued as new before its history is full.
func (t *task) observe(ctx workflow.Context, in ace.TaskInput) error {
	t.heard = workflow.Now(ctx)
	for !t.state.Finished() {
		wait := in.Idle() - workflow.Now(ctx).Sub(t.heard)
		if wait <= 0 {
			return t.giveUp(ctx)
		}
		if _, err := workflow.AwaitWithTimeout(ctx, wait, func() bool { return t.state.Finished() || isLong(ctx) }); err != nil {
			return err
		}
		if isLong(ctx) && !t.state.Finished() {
			return t.goOn(ctx, in)
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
	t.drain(ctx)
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
