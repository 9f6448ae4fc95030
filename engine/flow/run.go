package flow

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"acescope/engine/ace"
	"acescope/engine/history"
	"acescope/engine/run"
	"acescope/engine/runner"
	"acescope/engine/session"
)

// running is a run in progress. All that it knows is in state, which changes only through
// apply; the rest is what it has done about it.
type running struct {
	state run.State
	root  workflow.Context // that a cancellation of the workflow reaches
	calm  workflow.Context // that none does

	signals map[string]workflow.ReceiveChannel
	again   workflow.ReceiveChannel // asks to tell the dispatcher again
	awaited []awaited               // what was begun and whose end was not applied
	heardOf bool                    // the cancellation was applied

	asked   int               // the newest try that the dispatcher was told of
	since   time.Time         // when that was first
	telling []workflow.Future // of it, and whose end was not applied
	begun   int               // the newest try whose execution was begun
	cancel  func()            // of the execution under way
	cut     bool              // it was asked to stop
	sending int               // signals whose arrival is not known
	shown   run.Status        // as the search attribute has it
}

// awaited is a future, and the fact that its end is.
type awaited struct {
	future workflow.Future
	fact   func(workflow.Future) (run.Fact, bool)
}

// Run is the workflow of one run: it gets a runner, has the run executed there, and tells
// the session that asked for it how that ended. It completes with the result however the run
// ended, and is cancelled where it was cancelled.
func Run(ctx workflow.Context, in run.Input) (*run.Result, error) {
	calm, _ := workflow.NewDisconnectedContext(ctx)
	r := &running{root: ctx, calm: calm, signals: map[string]workflow.ReceiveChannel{}, shown: run.Pending,
		again: workflow.GetSignalChannel(ctx, runner.SignalAskAgain)}
	for _, name := range run.Signals() {
		r.signals[name] = workflow.GetSignalChannel(ctx, name)
	}
	r.apply(run.Started(in))
	if err := r.handle(ctx); err != nil {
		return nil, err
	}
	for r.catchUp(); !r.state.Status.Over(); r.catchUp() {
		if !r.act() {
			_ = workflow.Await(calm, r.stirs)
		}
	}
	r.leave()
	if err := r.finish(); err != nil {
		return nil, err
	}
	if ctx.Err() != nil && r.state.Exit == ace.Cancelled {
		return nil, ctx.Err()
	}
	return r.state.Result, nil
}

func (r *running) apply(f run.Fact) { r.state.Apply(f) }

// handle answers the query and the update of a run.
func (r *running) handle(ctx workflow.Context) error {
	if err := workflow.SetQueryHandler(ctx, run.QueryRun, func() (run.State, error) { return r.state, nil }); err != nil {
		return err
	}
	return workflow.SetUpdateHandlerWithOptions(ctx, run.UpdateStop, func(_ workflow.Context, s run.StopRequest) (run.State, error) {
		r.catchUp()
		r.apply(run.Fact{Kind: run.FactStopRequested, Stop: &s})
		return r.state, nil
	}, workflow.UpdateHandlerOptions{Validator: func(run.StopRequest) error {
		if s := r.state.Status; s.Over() {
			return temporal.NewApplicationError(fmt.Sprintf("run %s has ended already: %s", r.state.Input.RunID, s), run.ErrTypeOver)
		}
		return nil
	}})
}

// comes tells whether something came that was not applied.
func (r *running) comes() bool {
	for _, name := range run.Signals() {
		if r.signals[name].Len() > 0 {
			return true
		}
	}
	for _, a := range r.awaited {
		if a.future.IsReady() {
			return true
		}
	}
	for _, told := range r.telling {
		if told.IsReady() {
			return true
		}
	}
	return r.root.Err() != nil && !r.heardOf
}

// stirs tells whether there is something to go on with.
func (r *running) stirs() bool { return r.state.Status.Over() || r.acts() || r.comes() }

// catchUp applies what came before this workflow task. In which order it came cannot be
// seen here; the state orders it.
func (r *running) catchUp() {
	for _, name := range run.Signals() {
		var raw converter.RawValue
		for r.signals[name].ReceiveAsync(&raw) {
			if f, ok := run.Heard(name, history.JSONOf(raw.Payload())); ok {
				r.apply(f)
			}
		}
	}
	r.settle()
	if r.root.Err() != nil && !r.heardOf {
		r.heardOf = true
		r.apply(run.CancelRequested())
	}
	r.apply(run.Fact{Kind: run.FactTask})
	r.answered()
}

// settle applies the ends of what was begun.
func (r *running) settle() {
	left := r.awaited[:0:0]
	for _, a := range r.awaited {
		if !a.future.IsReady() {
			left = append(left, a)
			continue
		}
		if f, ok := a.fact(a.future); ok {
			r.apply(f)
		}
	}
	r.awaited = left
}

func (r *running) await(f workflow.Future, fact func(workflow.Future) (run.Fact, bool)) {
	r.awaited = append(r.awaited, awaited{f, fact})
}

// acts tells whether there is something to be done.
func (r *running) acts() bool {
	if r.again.Len() > 0 {
		return true
	}
	switch r.state.Status {
	case run.Pending:
		return r.asked < r.state.Try
	case run.Claimed:
		return r.begun < r.state.Try
	case run.Running:
		return r.shown != run.Running
	case run.Stopping:
		return !r.cut
	}
	return false
}

// act does it; false where there was nothing.
func (r *running) act() bool {
	if !r.acts() {
		return false
	}
	if r.again.Len() > 0 {
		r.tellAgain()
		return true
	}
	switch r.state.Status {
	case run.Pending:
		r.ask()
	case run.Claimed:
		r.begun = r.state.Try
		r.apply(run.Given())
		if r.state.ByActivity() {
			r.execute()
		} else {
			r.talk()
		}
	case run.Running:
		r.show()
	case run.Stopping:
		r.stop()
	}
	return true
}

// show puts where the run stands where lists can see it. A program that is over at once is
// never said to run, and costs its list nothing.
func (r *running) show() {
	r.shown = r.state.Status
	attributes := []temporal.SearchAttributeUpdate{keyword(ace.AttrPhase, string(r.shown))}
	if c := r.state.Claim; c != nil {
		attributes = append(attributes, keyword(ace.AttrRunner, c.RunnerID))
	}
	if err := workflow.UpsertTypedSearchAttributes(r.calm, attributes...); err != nil {
		workflow.GetLogger(r.calm).Error("the status could not be announced", "error", err)
	}
}

// ask tells the dispatcher that the run wants a runner.
func (r *running) ask() {
	if r.asked < r.state.Try {
		r.asked, r.since = r.state.Try, workflow.Now(r.calm)
	}
	if r.shown != run.Pending {
		r.show()
	}
	notices := r.state.Asks()
	request := notices[len(notices)-1].Request
	request.Execution = workflow.GetInfo(r.calm).WorkflowExecution.RunID
	request.Asked = r.since
	request.Deadline = request.Asked.Add(r.state.MatchWithin())
	r.telling = append(r.telling, tell(r.calm, notices, toldWithin))
}

// answered applies what the dispatcher answered at once, or that it could not be told. That
// is recorded at the end of the workflow task in which it became known: behind what came
// before that task.
func (r *running) answered() {
	left := r.telling[:0:0]
	for _, told := range r.telling {
		if !told.IsReady() {
			left = append(left, told)
			continue
		}
		var raw converter.RawValue
		if err := told.Get(r.calm, &raw); err != nil {
			r.apply(run.Untold(history.FailureFrom(err)))
		} else if f, ok := run.Answered(history.JSONOf(raw.Payload())); ok {
			r.apply(f)
		}
	}
	r.telling = left
}

// execute gives the run to the runner that it was claimed for.
func (r *running) execute() {
	claim := *r.state.Claim
	ctx, cancel := workflow.WithCancel(r.calm)
	r.cancel = cancel
	in := run.Execution{Input: r.state.Input, Claim: claim, WorkflowRunID: workflow.GetInfo(ctx).WorkflowExecution.RunID}
	r.await(workflow.ExecuteActivity(onRunner(ctx, &r.state), run.ActivityExecute, in), func(f workflow.Future) (run.Fact, bool) {
		var raw converter.RawValue
		if err := f.Get(r.calm, &raw); err != nil {
			return run.ExecutionFailed(claim.Number, history.FailureFrom(err)), true
		}
		return run.ExecutionEnded(claim.Number, history.JSONOf(raw.Payload())), true
	})
}

// stop asks the execution to end.
func (r *running) stop() {
	r.cut = true
	r.show()
	if r.cancel != nil {
		r.cancel()
	}
	if !r.state.ByActivity() {
		r.withdraw()
		r.alarm(run.TimerGrace, graceOfSession, run.FactGivenUp)
	}
}

// leave tells everybody that the run has ended: the dispatcher that its runner is free, the
// session of a run whose runner is gone that nobody waits for an answer, and the parent.
func (r *running) leave() {
	if r.cancel != nil {
		r.cancel()
	}
	if r.state.Result.Reason == run.RunnerLost && !r.state.ByActivity() {
		r.withdraw()
	}
	r.callBack()
	if notices := r.state.Leaves(); len(notices) > 0 {
		if err := notify(r.calm, notices, toldWithin); err != nil {
			workflow.GetLogger(r.calm).Warn("the dispatcher was not told that the run has ended", "error", err)
		}
	}
}

// callBack tells the parent session how the run ended, where one is to be told.
func (r *running) callBack() {
	if r.state.Told != "" {
		return
	}
	in := r.state.Input
	r.signal(in.ParentSessionID, session.SignalDeliver, run.Callback(in, *r.state.Result), func(err error) (run.Fact, bool) {
		return run.Told(err == nil), true
	})
}

// finish leaves the outcome for lists, and waits until everybody has his answer.
func (r *running) finish() error {
	attributes := []temporal.SearchAttributeUpdate{keyword(ace.AttrPhase, string(r.state.Status)), keyword(ace.AttrExit, string(r.state.Exit))}
	if id := r.state.Result.Runner; id != "" {
		attributes = append(attributes, keyword(ace.AttrRunner, id))
	}
	if err := workflow.UpsertTypedSearchAttributes(r.calm, attributes...); err != nil {
		return fmt.Errorf("leave the outcome: %w", err)
	}
	for r.catchUp(); !r.done(); r.catchUp() {
		if err := workflow.Await(r.calm, func() bool { return r.done() || r.comes() }); err != nil {
			return err
		}
	}
	return nil
}

func (r *running) done() bool { return r.sending == 0 && workflow.AllHandlersFinished(r.calm) }
