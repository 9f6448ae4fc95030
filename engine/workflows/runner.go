package workflows

import (
	"cmp"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"acescope/engine/ace"
	"acescope/engine/tasks/runner"
	"acescope/engine/temporal/operation"
	"acescope/engine/temporal/searchattr"
)

// runnerLease is the open workflow of a runner.
type runnerLease struct {
	id    string
	state runner.LeaseState
	lease *heldLease
	shown runner.Status // the search attribute

	removal       workflow.Future // removes a stale runner
	cancelRemoval func()

	askAgain workflow.ReceiveChannel // requests to notify the dispatcher again
	updates  int
}

// heldLease is the activity that holds the lease of an epoch.
type heldLease struct {
	epoch  int64
	future workflow.Future
	cancel func()
}

// registerWithin is the time that a process has to register after it started the workflow.
const registerWithin = 10 * time.Second

// Runner is the workflow of a runner: it holds a lease on the runner's process and notifies the
// dispatcher when the process registers, is lost, returns or leaves. It ends when the runner is
// gone; a runner that returns later starts another workflow.
func Runner(ctx workflow.Context, in runner.Input) (*runner.Info, error) {
	ctx, _ = workflow.NewDisconnectedContext(ctx) // a runner is drained, not canceled
	l := &runnerLease{id: in.RunnerID, askAgain: workflow.GetSignalChannel(ctx, runner.SignalAskAgain)}
	l.id = cmp.Or(l.id, runner.IDOf(workflow.GetInfo(ctx).WorkflowExecution.ID))
	if in.Carried != nil {
		l.state = *in.Carried
		l.shown = in.Carried.Info.Status
	}
	if err := l.setHandlers(ctx); err != nil {
		return nil, err
	}
	if known, err := workflow.AwaitWithTimeout(ctx, registerWithin, l.state.Registered); err != nil ||
		!known {
		return nil, err
	}
	for {
		if err := l.publish(ctx); err != nil {
			return nil, err
		}
		l.hold(ctx)
		switch {
		case l.over(ctx):
			return &l.state.Info, nil
		case l.full(ctx):
			return nil, workflow.NewContinueAsNewError(ctx, runner.Workflow,
				runner.Input{RunnerID: l.id, Carried: &l.state})
		}
		if err := workflow.Await(ctx, func() bool { return l.hasInput(ctx) }); err != nil {
			return nil, err
		}
		l.applyInput(ctx)
	}
}

func (l *runnerLease) setHandlers(ctx workflow.Context) error {
	query := func() (runner.Info, error) { return l.state.Info, nil }
	if err := workflow.SetQueryHandler(ctx, runner.QueryRunner, query); err != nil {
		return err
	}
	return setUpdateHandlers(ctx,
		updateHandler{runner.UpdateRegister, l.register, l.checkRegistration},
		updateHandler{runner.UpdateDrain, l.drain, l.state.CheckNote},
		updateHandler{runner.UpdateLeave, l.leave, l.state.CheckNote},
	)
}

func (l *runnerLease) checkRegistration(r runner.Registration) error {
	err, held := l.state.Check(l.id, r)
	switch {
	case err == nil:
		return nil
	case held:
		return temporal.NewNonRetryableApplicationError(err.Error(), runner.ErrTypeHeld, nil, l.state.Info)
	}
	return temporal.NewNonRetryableApplicationError(err.Error(), ErrTypePermanent, nil)
}

// register applies the registration and returns the lease. It first applies the pending input,
// which precedes the update in the history.
func (l *runnerLease) register(ctx workflow.Context, r runner.Registration) (runner.Lease, error) {
	l.updates++
	l.applyInput(ctx)
	return l.state.Register(r, workflow.Now(ctx)), nil
}

func (l *runnerLease) drain(ctx workflow.Context, n runner.Note) (runner.Info, error) {
	l.updates++
	l.state.Drain(n, workflow.Now(ctx))
	return l.state.Info, nil
}

func (l *runnerLease) leave(ctx workflow.Context, n runner.Note) (runner.Info, error) {
	l.updates++
	l.state.Leave(cmp.Or(n.Reason, "it left"), workflow.Now(ctx))
	return l.state.Info, nil
}

// publish sends the pending notices to the dispatcher and writes the status to the search
// attributes.
func (l *runnerLease) publish(ctx workflow.Context) error {
	for len(l.state.Pending) > 0 {
		n := len(l.state.Pending)
		if err := notify(ctx, l.state.Pending[:n:n], 0).Get(ctx, nil); err != nil {
			return err
		}
		l.state.Pending = append(runner.Notices(nil), l.state.Pending[n:]...)
	}
	if l.shown == l.state.Info.Status {
		return nil
	}
	l.shown = l.state.Info.Status
	return workflow.UpsertTypedSearchAttributes(ctx, searchattr.Keyword(ace.AttrPhase, string(l.shown)))
}

// leaseLimit exceeds the lifetime of any runner.
const leaseLimit = 10 * 365 * 24 * time.Hour

// hold starts or cancels the activity that holds the lease and the timer that removes a stale
// runner, according to the state.
func (l *runnerLease) hold(ctx workflow.Context) {
	info := l.state.Info
	if l.lease != nil && (l.lease.epoch != info.Lease.Epoch || !l.state.Alive()) {
		l.lease.cancel()
		l.lease = nil
	}
	if l.state.Alive() && l.lease == nil {
		own, cancel := workflow.WithCancel(ctx)
		beat := time.Duration(info.Registration.HeartbeatMS) * time.Millisecond
		options := workflow.WithActivityOptions(own, workflow.ActivityOptions{
			TaskQueue:              info.Lease.Queue,
			ScheduleToStartTimeout: beat,
			StartToCloseTimeout:    leaseLimit,
			HeartbeatTimeout:       beat,
			RetryPolicy:            &temporal.RetryPolicy{MaximumAttempts: 1},
		})
		in := runner.LeaseInput{Lease: info.Lease, Token: info.Registration.Token}
		future := workflow.ExecuteActivity(options, runner.ActivityLease, in)
		l.lease = &heldLease{epoch: info.Lease.Epoch, cancel: cancel, future: future}
	}
	stale := l.state.Stale && !l.state.Gone
	if !stale && l.removal != nil {
		l.cancelRemoval()
		l.removal = nil
	}
	if stale && l.removal == nil {
		own, cancel := workflow.WithCancel(ctx)
		wait := max(l.state.RemoveAt().Sub(workflow.Now(ctx)), time.Millisecond)
		l.removal = workflow.NewTimerWithOptions(own, wait,
			workflow.TimerOptions{Summary: "the runner is given up"})
		l.cancelRemoval = cancel
	}
}

// hasInput reports whether the main loop has something to do.
func (l *runnerLease) hasInput(ctx workflow.Context) bool {
	return !l.published() || l.askAgain.Len() > 0 || l.lost() || l.removalDue() ||
		l.state.Alive() && l.lease == nil || l.over(ctx) || l.full(ctx)
}

func (l *runnerLease) lost() bool { return l.lease != nil && l.lease.future.IsReady() }

func (l *runnerLease) removalDue() bool { return l.removal != nil && l.removal.IsReady() }

// applyInput applies requests to notify again, the loss of the lease, and the removal of a stale
// runner.
func (l *runnerLease) applyInput(ctx workflow.Context) {
	if drainChannel(l.askAgain) {
		l.state.Renotify()
	}
	if l.lost() {
		if l.lease.epoch == l.state.Info.Lease.Epoch {
			l.state.MarkStale("its heartbeats stopped", workflow.Now(ctx))
		}
		l.lease = nil
	}
	if l.removalDue() {
		l.removal = nil
		if l.state.Stale {
			l.state.Remove("it did not come back", workflow.Now(ctx))
		}
	}
}

// over reports whether the runner is gone and all notices were sent.
func (l *runnerLease) over(ctx workflow.Context) bool {
	return l.state.Gone && l.published() && l.shown == l.state.Info.Status &&
		workflow.AllHandlersFinished(ctx)
}

// full reports whether the workflow should continue as new. The next run holds the lease with an
// activity of its own.
func (l *runnerLease) full(ctx workflow.Context) bool {
	return (operation.IsLong(ctx) || l.updates >= maxUpdates) && l.published() &&
		workflow.AllHandlersFinished(ctx)
}

func (l *runnerLease) published() bool { return len(l.state.Pending) == 0 }
