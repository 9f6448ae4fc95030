package flow

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"acescope/engine/ace"
	"acescope/engine/runner"
)

// leasing is a runner's workflow in progress. What it knows is in state.
type leasing struct {
	id    string
	state runner.LeaseState
	lease *held
	shown runner.Status // as the search attribute has it

	removal workflow.Future // when a stale runner is given up
	stay    func()          // cancels it

	updates int
}

// held is the activity that holds the lease of an epoch.
type held struct {
	epoch  int64
	future workflow.Future
	cancel func()
}

// nobodyComes is how long a workflow lives whose runner was refused and never came.
const nobodyComes = 10 * time.Second

// Runner is the workflow of a runner: it holds a lease on the runner's process, and tells the
// dispatcher when the process comes, is lost, comes back or leaves. It ends when the runner
// is gone; a runner that comes again begins another.
func Runner(ctx workflow.Context, in runner.Input) (*runner.Info, error) {
	ctx, _ = workflow.NewDisconnectedContext(ctx) // a runner is drained, not cancelled
	l := &leasing{id: in.RunnerID}
	if l.id == "" {
		l.id = runner.IDOf(workflow.GetInfo(ctx).WorkflowExecution.ID)
	}
	if in.Carried != nil {
		l.state, l.shown = *in.Carried, in.Carried.Info.Status
	}
	if err := l.handle(ctx); err != nil {
		return nil, err
	}
	if came, err := workflow.AwaitWithTimeout(ctx, nobodyComes, l.state.Known); err != nil || !came {
		return nil, err
	}
	for {
		if err := l.tell(ctx); err != nil {
			return nil, err
		}
		l.hold(ctx)
		switch {
		case l.over(ctx):
			return &l.state.Info, nil
		case l.full(ctx):
			return nil, workflow.NewContinueAsNewError(ctx, runner.Workflow, runner.Input{RunnerID: l.id, Carried: &l.state})
		}
		if err := workflow.Await(ctx, func() bool { return l.stirs(ctx) }); err != nil {
			return nil, err
		}
		l.hear(ctx)
	}
}

func (l *leasing) handle(ctx workflow.Context) error {
	if err := workflow.SetQueryHandler(ctx, runner.QueryRunner, func() (runner.Info, error) { return l.state.Info, nil }); err != nil {
		return err
	}
	for _, h := range []struct {
		name           string
		handler, check any
	}{
		{runner.UpdateRegister, l.register, l.checkRegistration},
		{runner.UpdateDrain, l.drain, l.state.CheckNote},
		{runner.UpdateLeave, l.leave, l.state.CheckNote},
	} {
		if err := workflow.SetUpdateHandlerWithOptions(ctx, h.name, h.handler, workflow.UpdateHandlerOptions{Validator: h.check}); err != nil {
			return err
		}
	}
	return nil
}

func (l *leasing) checkRegistration(r runner.Registration) error {
	err, held := l.state.Check(l.id, r)
	switch {
	case err == nil:
		return nil
	case held:
		return temporal.NewNonRetryableApplicationError(err.Error(), runner.ErrTypeHeld, nil, l.state.Info)
	}
	return temporal.NewNonRetryableApplicationError(err.Error(), ErrTypePermanent, nil)
}

// register answers as soon as the lease is decided. What happened to the lease before is taken
// in first: it stands before the update in the history.
func (l *leasing) register(ctx workflow.Context, r runner.Registration) (runner.Lease, error) {
	l.updates++
	l.hear(ctx)
	return l.state.Register(r, workflow.Now(ctx)), nil
}

func (l *leasing) drain(ctx workflow.Context, n runner.Note) (runner.Info, error) {
	l.updates++
	l.state.Drain(n, workflow.Now(ctx))
	return l.state.Info, nil
}

func (l *leasing) leave(ctx workflow.Context, n runner.Note) (runner.Info, error) {
	l.updates++
	reason := n.Reason
	if reason == "" {
		reason = "it left"
	}
	l.state.Remove(reason, workflow.Now(ctx))
	return l.state.Info, nil
}

// tell tells the dispatcher, and lists, what they have not heard.
func (l *leasing) tell(ctx workflow.Context) error {
	for len(l.state.Untold) > 0 {
		n := len(l.state.Untold)
		if err := notify(ctx, l.state.Untold[:n:n], 0); err != nil {
			return err
		}
		l.state.Untold = append(runner.Notices(nil), l.state.Untold[n:]...)
	}
	if l.shown == l.state.Info.Status {
		return nil
	}
	l.shown = l.state.Info.Status
	return workflow.UpsertTypedSearchAttributes(ctx, keyword(ace.AttrPhase, string(l.shown)))
}

// hold sees to it that the lease of the process is held that is the runner now, and that one
// which is lost is given up in time.
func (l *leasing) hold(ctx workflow.Context) {
	if l.lease != nil && (l.lease.epoch != l.state.Info.Lease.Epoch || !l.state.Alive()) {
		l.lease.cancel()
		l.lease = nil
	}
	if l.state.Alive() && l.lease == nil {
		own, cancel := workflow.WithCancel(ctx)
		l.lease = &held{epoch: l.state.Info.Lease.Epoch, cancel: cancel, future: workflow.ExecuteActivity(l.onRunner(own), runner.ActivityLease,
			runner.LeaseInput{Lease: l.state.Info.Lease, Token: l.state.Info.Registration.Token})}
	}
	stale := l.state.Stale && !l.state.Gone
	if !stale && l.removal != nil {
		l.stay()
		l.removal = nil
	}
	if stale && l.removal == nil {
		timer, cancel := workflow.WithCancel(ctx)
		l.removal = workflow.NewTimerWithOptions(timer, max(l.state.RemoveAt().Sub(workflow.Now(ctx)), time.Millisecond),
			workflow.TimerOptions{Summary: "the runner is given up"})
		l.stay = cancel
	}
}

// leaseLimit is longer than a runner lives.
const leaseLimit = 10 * 365 * 24 * time.Hour

func (l *leasing) onRunner(ctx workflow.Context) workflow.Context {
	beat := time.Duration(l.state.Info.Registration.HeartbeatMS) * time.Millisecond
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskQueue:              l.state.Info.Lease.Queue,
		ScheduleToStartTimeout: beat,
		StartToCloseTimeout:    leaseLimit,
		HeartbeatTimeout:       beat,
		RetryPolicy:            &temporal.RetryPolicy{MaximumAttempts: 1},
	})
}

// stirs tells whether there is something to go on with.
func (l *leasing) stirs(ctx workflow.Context) bool {
	return len(l.state.Untold) > 0 || l.lost() || l.due() || l.state.Alive() && l.lease == nil || l.over(ctx) || l.full(ctx)
}

func (l *leasing) lost() bool { return l.lease != nil && l.lease.future.IsReady() }

func (l *leasing) due() bool { return l.removal != nil && l.removal.IsReady() }

// hear takes in that the lease was lost, or that it was lost for too long.
func (l *leasing) hear(ctx workflow.Context) {
	if l.lost() {
		if l.lease.epoch == l.state.Info.Lease.Epoch {
			l.state.Lose("its heartbeats stopped", workflow.Now(ctx))
		}
		l.lease = nil
	}
	if l.due() {
		l.removal = nil
		if l.state.Stale {
			l.state.Remove("it did not come back", workflow.Now(ctx))
		}
	}
}

// over tells whether the runner is gone and everybody knows.
func (l *leasing) over(ctx workflow.Context) bool {
	return l.state.Gone && len(l.state.Untold) == 0 && l.shown == l.state.Info.Status && workflow.AllHandlersFinished(ctx)
}

// full tells whether the run has had enough events or updates. A lease that is held then is
// held by an activity of the next run.
func (l *leasing) full(ctx workflow.Context) bool {
	info := workflow.GetInfo(ctx)
	much := info.GetContinueAsNewSuggested() || info.GetCurrentHistoryLength() >= maxHistory || l.updates >= updatesBetween
	return much && len(l.state.Untold) == 0 && workflow.AllHandlersFinished(ctx)
}
