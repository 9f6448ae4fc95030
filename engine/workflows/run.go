package workflows

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"acescope/engine/ace"
	"acescope/engine/agents/session"
	"acescope/engine/tasks/run"
	"acescope/engine/tasks/runner"
	"acescope/engine/temporal/history"
	"acescope/engine/temporal/searchattr"
)

// blueprintRun is an open run. Its state changes only through apply; the other fields record what the
// workflow has done.
type blueprintRun struct {
	state        run.State
	root         workflow.Context // canceled with the workflow
	disconnected workflow.Context // never canceled

	signals  map[string]workflow.ReceiveChannel
	askAgain workflow.ReceiveChannel // requests to notify the dispatcher again
	pending  []pending               // operations whose end was not applied
	canceled bool                    // the cancellation was applied

	requested   int               // last attempt for which a runner was requested
	requestedAt time.Time         // time of its first request
	requests    []workflow.Future // requests whose answer was not applied
	begun       int               // last attempt whose execution began
	cancel      func()            // cancels the current execution
	stopping    bool              // the execution was asked to stop
	sending     int               // signals whose delivery is unknown
	shown       run.Status        // the search attribute
}

// pending is a future and the fact of its result.
type pending struct {
	future workflow.Future
	fact   func(workflow.Future) (run.Fact, bool)
}

// Run is the workflow of one blueprint run: it requests a runner, has the run executed there and reports the
// result to the session that requested it. [run.Revision] says with which status it closes.
func Run(ctx workflow.Context, in run.Input) (*run.Result, error) {
	disconnected, _ := workflow.NewDisconnectedContext(ctx)
	r := &blueprintRun{root: ctx, disconnected: disconnected, shown: run.Pending,
		signals:  map[string]workflow.ReceiveChannel{},
		askAgain: workflow.GetSignalChannel(ctx, runner.SignalAskAgain)}
	for _, name := range run.Signals() {
		r.signals[name] = workflow.GetSignalChannel(ctx, name)
	}
	r.apply(run.Started(in))
	if err := r.setHandlers(ctx); err != nil {
		return nil, err
	}
	for r.catchUp(); !r.state.Status.Over(); r.catchUp() {
		if !r.act() {
			_ = workflow.Await(disconnected, func() bool {
				return r.state.Status.Over() || r.canAct() || r.hasInput()
			})
		}
	}
	r.leave()
	if err := r.finish(); err != nil {
		return nil, err
	}
	result, canceled := r.state.Result, r.state.Exit == ace.Canceled
	switch {
	case canceled && (ctx.Err() != nil || in.Revision > 0):
		return nil, temporal.NewCanceledError(result)
	case in.Revision > 0 && result.Status == run.Failed:
		message := cmp.Or(result.Error, string(result.Reason))
		return nil, temporal.NewNonRetryableApplicationError(message, string(result.Reason), nil, result)
	}
	return result, nil
}

func (r *blueprintRun) apply(f run.Fact) { r.state.Apply(f) }

// setHandlers registers the query and the update.
func (r *blueprintRun) setHandlers(ctx workflow.Context) error {
	query := func() (run.State, error) { return r.state, nil }
	if err := workflow.SetQueryHandler(ctx, run.QueryRun, query); err != nil {
		return err
	}
	stop := func(_ workflow.Context, s run.StopRequest) (run.State, error) {
		r.catchUp()
		r.apply(run.Fact{Kind: run.FactStopRequested, Stop: &s})
		return r.state, nil
	}
	check := func(run.StopRequest) error {
		if s := r.state.Status; s.Over() {
			message := fmt.Sprintf("run %s has ended already: %s", r.state.Input.RunID, s)
			return temporal.NewApplicationError(message, run.ErrTypeOver)
		}
		return nil
	}
	return setUpdateHandlers(ctx, updateHandler{run.UpdateStop, stop, check})
}

// hasInput reports whether a signal, a result or a cancellation was not applied yet.
func (r *blueprintRun) hasInput() bool {
	for _, name := range run.Signals() {
		if r.signals[name].Len() > 0 {
			return true
		}
	}
	return slices.ContainsFunc(r.pending, func(p pending) bool { return p.future.IsReady() }) ||
		slices.ContainsFunc(r.requests, workflow.Future.IsReady) ||
		r.root.Err() != nil && !r.canceled
}

// catchUp applies the inputs that precede this workflow task. Their order is unknown here; the
// state orders them.
func (r *blueprintRun) catchUp() {
	for _, name := range run.Signals() {
		var raw converter.RawValue
		for r.signals[name].ReceiveAsync(&raw) {
			if f, ok := run.SignalFact(name, history.PayloadJSON(raw.Payload())); ok {
				r.apply(f)
			}
		}
	}
	r.applyResults()
	if r.root.Err() != nil && !r.canceled {
		r.canceled = true
		r.apply(run.CancelRequested())
	}
	r.apply(run.Fact{Kind: run.FactTask})
	r.applyAnswers()
}

// applyResults applies the results of pending operations.
func (r *blueprintRun) applyResults() {
	left := r.pending[:0:0]
	for _, p := range r.pending {
		if !p.future.IsReady() {
			left = append(left, p)
			continue
		}
		if f, ok := p.fact(p.future); ok {
			r.apply(f)
		}
	}
	r.pending = left
}

func (r *blueprintRun) await(f workflow.Future, fact func(workflow.Future) (run.Fact, bool)) {
	r.pending = append(r.pending, pending{f, fact})
}

// canAct reports whether act has something to do.
func (r *blueprintRun) canAct() bool {
	if r.askAgain.Len() > 0 {
		return true
	}
	switch r.state.Status {
	case run.Pending:
		return r.requested < r.state.Try
	case run.Claimed:
		return r.begun < r.state.Try
	case run.Running:
		return r.shown != run.Running
	case run.Stopping:
		return !r.stopping
	}
	return false
}

// act takes the next action and reports whether there was one.
func (r *blueprintRun) act() bool {
	if !r.canAct() {
		return false
	}
	if r.askAgain.Len() > 0 {
		r.notifyAgain()
		return true
	}
	switch r.state.Status {
	case run.Pending:
		r.requestRunner()
	case run.Claimed:
		r.begun = r.state.Try
		r.apply(run.Submitted())
		if r.state.ByActivity() {
			r.execute()
		} else {
			r.startSession()
		}
	case run.Running:
		r.show()
	case run.Stopping:
		r.stop()
	}
	return true
}

// show writes the status and the runner to the search attributes.
func (r *blueprintRun) show() {
	r.shown = r.state.Status
	attributes := []temporal.SearchAttributeUpdate{searchattr.Keyword(ace.AttrPhase, string(r.shown))}
	if c := r.state.Claim; c != nil {
		attributes = append(attributes, searchattr.Keyword(ace.AttrRunner, c.RunnerID))
	}
	if err := workflow.UpsertTypedSearchAttributes(r.disconnected, attributes...); err != nil {
		workflow.GetLogger(r.disconnected).Error("search attribute Phase was not updated", "error", err)
	}
}

// requestRunner requests a runner from the dispatcher.
func (r *blueprintRun) requestRunner() {
	if r.requested < r.state.Try {
		r.requested = r.state.Try
		r.requestedAt = workflow.Now(r.disconnected)
	}
	if r.shown != run.Pending {
		r.show()
	}
	notices := r.state.EnqueueNotices()
	request := notices[len(notices)-1].Request
	request.Execution = workflow.GetInfo(r.disconnected).WorkflowExecution.RunID
	request.Asked = r.requestedAt
	request.Deadline = request.Asked.Add(r.state.MatchTimeout())
	r.requests = append(r.requests, notify(r.disconnected, notices, notifyWithin))
}

// notifyAgain repeats the run's request or claim to a dispatcher that lost its state.
func (r *blueprintRun) notifyAgain() {
	drainChannel(r.askAgain)
	switch {
	case r.state.Status == run.Pending:
		r.requestRunner()
	case r.state.Claim != nil && r.state.Input.Queue == "":
		notice := r.state.HoldsNotice()
		notice.Request.Execution = workflow.GetInfo(r.disconnected).WorkflowExecution.RunID
		if err := notify(r.disconnected, runner.Notices{notice}, notifyWithin).Get(r.disconnected,
			nil); err != nil {
			workflow.GetLogger(r.disconnected).Warn("cannot notify the dispatcher again", "error", err)
		}
	}
}

// applyAnswers applies the immediate answers of the dispatcher, or the failures to reach it. The
// history records them at the end of the workflow task in which they became known, after the
// events that precede the task.
func (r *blueprintRun) applyAnswers() {
	left := r.requests[:0:0]
	for _, request := range r.requests {
		if !request.IsReady() {
			left = append(left, request)
			continue
		}
		var raw converter.RawValue
		if err := request.Get(r.disconnected, &raw); err != nil {
			r.apply(run.DispatcherFailed(history.FailureFrom(err)))
		} else if f, ok := run.Answered(history.PayloadJSON(raw.Payload())); ok {
			r.apply(f)
		}
	}
	r.requests = left
}

// endMargin is the time that an execution may take beyond the time limit of its program, which
// the executor enforces.
const endMargin = 30 * time.Second

// execute starts the activity that executes the run on its runner, in one attempt.
func (r *blueprintRun) execute() {
	claim := *r.state.Claim
	ctx, cancel := workflow.WithCancel(r.disconnected)
	r.cancel = cancel
	in := run.Execution{Input: r.state.Input, Claim: claim,
		WorkflowRunID: workflow.GetInfo(ctx).WorkflowExecution.RunID}
	options := workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskQueue:              claim.Queue,
		ScheduleToStartTimeout: r.state.StartTimeout(),
		StartToCloseTimeout:    r.state.TimeLimit() + endMargin,
		HeartbeatTimeout:       run.HeartbeatTimeout,
		WaitForCancellation:    true,
		RetryPolicy:            &temporal.RetryPolicy{MaximumAttempts: 1},
	})
	execution := workflow.ExecuteActivity(options, run.ActivityExecute, in)
	r.await(execution, func(f workflow.Future) (run.Fact, bool) {
		var raw converter.RawValue
		if err := f.Get(r.disconnected, &raw); err != nil {
			return run.ExecutionFailed(claim.Number, history.FailureFrom(err)), true
		}
		return run.ExecutionEnded(claim.Number, history.PayloadJSON(raw.Payload())), true
	})
}

// stop requests the end of the execution.
func (r *blueprintRun) stop() {
	r.stopping = true
	r.show()
	if r.cancel != nil {
		r.cancel()
	}
	if !r.state.ByActivity() {
		r.withdraw()
		r.startTimer(run.TimerGrace, withdrawGrace, run.FactSessionTimeout)
	}
}

// leave reports the end of the run to its session if the runner is lost, to the parent session, and to the
// dispatcher, which frees the slot.
func (r *blueprintRun) leave() {
	if r.cancel != nil {
		r.cancel()
	}
	if r.state.Result.Reason == run.RunnerLost && !r.state.ByActivity() {
		r.withdraw()
	}
	if in := r.state.Input; r.state.Notified == "" {
		callback := run.Callback(in, *r.state.Result)
		r.signal(in.ParentSessionID, session.SignalDeliver, callback, func(err error) (run.Fact, bool) {
			return run.ParentNotified(err == nil), true
		})
	}
	if notices := r.state.ReleaseNotices(); len(notices) > 0 {
		if err := notify(r.disconnected, notices, notifyWithin).Get(r.disconnected, nil); err != nil {
			workflow.GetLogger(r.disconnected).Warn("dispatcher was not notified of the end of the run",
				"error", err)
		}
	}
}

// finish writes the outcome to the search attributes and waits until all updates are answered and
// all signals delivered.
func (r *blueprintRun) finish() error {
	attributes := []temporal.SearchAttributeUpdate{
		searchattr.Keyword(ace.AttrPhase, string(r.state.Status)),
		searchattr.Keyword(ace.AttrExit, string(ace.ExitOf(r.state.Exit, ""))),
	}
	if id := r.state.Result.Runner; id != "" {
		attributes = append(attributes, searchattr.Keyword(ace.AttrRunner, id))
	}
	if err := writeUsage(r.disconnected, ace.Summary{Usage: r.state.Result.Usage}); err != nil {
		return err
	}
	if err := workflow.UpsertTypedSearchAttributes(r.disconnected, attributes...); err != nil {
		return fmt.Errorf("write search attributes: %w", err)
	}
	done := func() bool { return r.sending == 0 && workflow.AllHandlersFinished(r.disconnected) }
	for r.catchUp(); !done(); r.catchUp() {
		if err := workflow.Await(r.disconnected, func() bool { return done() || r.hasInput() }); err != nil {
			return err
		}
	}
	return nil
}

// withdrawGrace is the time that a session has to report on a withdrawn message.
const withdrawGrace = time.Minute

// startSession gives the run to an agent session: the one that it resumes, or a new one on the
// machine of the runner.
func (r *blueprintRun) startSession() {
	if r.state.Input.Type == run.ResumeSession {
		r.signal(r.state.Input.SessionID, session.SignalDeliver, r.state.Message(),
			func(err error) (run.Fact, bool) {
				if err != nil {
					return run.SessionGone(run.SessionNotFound()), true
				}
				return run.Fact{Kind: run.FactSessionStarted}, true
			})
	} else {
		r.createSession()
	}
	r.startTimer(run.TimerLimit, r.state.TimeLimit(), run.FactTimeLimit)
}

// createSession starts the session as an abandoned child, which outlives the run.
func (r *blueprintRun) createSession() {
	in := r.state.Session()
	ctx := workflow.WithChildOptions(r.disconnected, workflow.ChildWorkflowOptions{
		WorkflowID:            session.WorkflowID(in.SessionID),
		TaskQueue:             workflow.GetInfo(r.disconnected).TaskQueueName,
		ParentClosePolicy:     enumspb.PARENT_CLOSE_POLICY_ABANDON,
		WorkflowIDReusePolicy: enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE,
		TypedSearchAttributes: SessionAttributes(in),
	})
	child := workflow.ExecuteChildWorkflow(ctx, session.Workflow, in)
	began := false
	r.await(child.GetChildWorkflowExecution(), func(f workflow.Future) (run.Fact, bool) {
		if began = f.Get(r.disconnected, nil) == nil; !began {
			return run.SessionGone(run.SessionIDInUse()), true
		}
		return run.Fact{Kind: run.FactSessionStarted}, true
	})
	r.await(child, func(f workflow.Future) (run.Fact, bool) {
		return run.SessionGone(run.SessionEndedEarly(f.Get(r.disconnected, nil))), began
	})
}

// withdraw withdraws the run's message from its session.
func (r *blueprintRun) withdraw() {
	note := session.Note{Reason: "the run has ended", By: "run " + r.state.Input.RunID}
	if s := r.state.Stop; s != nil && s.Reason != "" {
		note.Reason = s.Reason
	}
	message := session.Withdraw{MessageID: r.state.Input.RunID, Note: note}
	noFact := func(error) (run.Fact, bool) { return run.Fact{}, false }
	r.signal(r.state.Input.SessionID, session.SignalWithdraw, message, noFact)
}

// signal sends a signal to a session. The run does not close before the delivery is known,
// because the server drops the undelivered signals of a closed workflow.
func (r *blueprintRun) signal(sessionID, name string, arg any, fact func(error) (run.Fact, bool)) {
	r.sending++
	sent := workflow.SignalExternalWorkflow(r.disconnected, session.WorkflowID(sessionID), "", name, arg)
	r.await(sent, func(f workflow.Future) (run.Fact, bool) {
		r.sending--
		return fact(f.Get(r.disconnected, nil))
	})
}

// startTimer applies a fact after some time.
func (r *blueprintRun) startTimer(summary string, after time.Duration, kind run.FactKind) {
	timer := workflow.NewTimerWithOptions(r.disconnected, after, workflow.TimerOptions{Summary: summary})
	r.await(timer, func(workflow.Future) (run.Fact, bool) { return run.Fact{Kind: kind}, true })
}

// drainChannel receives all available signals and reports whether there were any.
func drainChannel(c workflow.ReceiveChannel) (received bool) {
	for {
		var raw converter.RawValue // stays empty for a signal without an argument
		if !c.ReceiveAsync(&raw) {
			return received
		}
		received = true
	}
}
