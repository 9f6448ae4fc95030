package workflows

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"acescope/engine/ace"
	"acescope/engine/agents/session"
	"acescope/engine/temporal/history"
	"acescope/engine/temporal/operation"
)

// Limits of one run of a session, below Temporal's 2,000 updates, 10,000 signals, 51,200 events
// and 50 MB per run. A session continues as new between two turns above maxUpdates, maxSignals or
// maxHistory, and in the middle of a turn above the other limits.
const (
	maxUpdates, maxTurnUpdates = 1200, 1800
	maxSignals, maxTurnSignals = 4000, 8000
	maxTurnHistory             = 40_000 // events
	maxTurnBytes               = 35 << 20
)

// agentSession is an open session. Its state holds the conversation.
type agentSession struct {
	in       session.Input
	state    session.State
	used     ace.Usage // in the memo
	updates  int
	leaving  bool             // continues as new when all update handlers finished
	turn     workflow.Context // of the current turn
	root     workflow.Context
	canceled bool           // the cancellation was applied
	calls    []*sessionCall // activities whose end was not applied

	deliver, withdraw, attempt workflow.ReceiveChannel

	signals int               // received in this run
	reports []workflow.Future // sent reports whose arrival is unknown
}

// sessionCall is an open activity.
type sessionCall struct {
	activity, id string // id of a tool call
	future       workflow.Future
	fact         session.Fact // the applied end
}

// Session is the workflow of an agent session: it runs one turn after the other, as messages
// arrive, until it is stopped. Between turns it continues as new with the waiting messages.
func Session(ctx workflow.Context, in session.Input) (*session.State, error) {
	a := &agentSession{
		in: in, root: ctx,
		deliver:  workflow.GetSignalChannel(ctx, session.SignalDeliver),
		withdraw: workflow.GetSignalChannel(ctx, session.SignalWithdraw),
		attempt:  workflow.GetSignalChannel(ctx, session.SignalAttempt),
	}
	a.apply(session.Started(in))
	if err := a.setHandlers(ctx); err != nil {
		return nil, err
	}
	workflow.Go(ctx, a.listen)
	workflow.Go(ctx, a.report)
	workflow.Go(ctx, func(ctx workflow.Context) {
		announce(ctx, "", func() session.Status { return a.state.Status }, session.Ended)
	})
	workflow.Go(ctx, a.watchCancel)
	err := a.run(ctx)
	if workflow.IsContinueAsNewError(err) {
		return nil, err
	}
	finishErr := writeOutcome(ctx, a.summary(), string(a.state.Status), ace.ExitOf(a.state.Exit, ""))
	return &a.state, cmp.Or(err, finishErr)
}

func (a *agentSession) apply(f session.Fact) { a.state.Apply(f) }

func (a *agentSession) watchCancel(ctx workflow.Context) {
	ctx.Done().Receive(ctx, nil)
	a.catchUp(ctx)
}

// catchUp applies the events that precede the workflow task in the history: signals, ends of
// activities, deliveries of reports, and a cancellation. Update handlers run before the waiting
// goroutines wake up, although updates follow these events in the history; therefore they, and
// the start of a turn, call catchUp first.
func (a *agentSession) catchUp(ctx workflow.Context) {
	// The history may interleave the kinds of signals, which does not affect the fold.
	a.receiveAll(session.SignalDeliver, a.deliver)
	a.receiveAll(session.SignalWithdraw, a.withdraw)
	a.receiveAll(session.SignalAttempt, a.attempt)
	a.applyDeliveries(ctx)
	left := a.calls[:0:0]
	for _, c := range a.calls {
		if !c.future.IsReady() {
			left = append(left, c)
			continue
		}
		var raw converter.RawValue
		if err := c.future.Get(ctx, &raw); err != nil {
			c.fact = session.ActivityFailed(c.activity, c.id, history.FailureFrom(err))
		} else {
			c.fact = session.ActivityCompleted(c.activity, c.id, history.PayloadJSON(raw.Payload()))
		}
		a.apply(c.fact)
	}
	a.calls = left
	if a.root.Err() != nil && !a.canceled {
		a.canceled = true
		a.apply(session.Fact{Kind: session.FactCancelRequested})
	}
}

// call executes an activity with the options and the cancellation of the context own, waits for
// its end even if the workflow is canceled, and applies it.
func (a *agentSession) call(ctx, own workflow.Context, activity, id string, in any) session.Fact {
	c := &sessionCall{activity: activity, id: id, future: workflow.ExecuteActivity(own, activity, in)}
	a.calls = append(a.calls, c)
	disconnected, cancel := workflow.NewDisconnectedContext(ctx)
	defer cancel()
	_ = workflow.Await(disconnected, c.future.IsReady)
	a.catchUp(disconnected)
	return c.fact
}

func (a *agentSession) run(ctx workflow.Context) error {
	if a.state.Host == nil {
		claim := withOptions(ctx, session.ActivityClaim, "")
		a.call(ctx, claim, session.ActivityClaim, "", a.state.Input)
	}
	for a.state.Status != session.Ended {
		err := workflow.Await(ctx, func() bool {
			return a.state.Deliverable() || a.state.Status == session.Ended || a.full(ctx)
		})
		switch {
		case err != nil:
			a.catchUp(ctx)
		case a.state.Status == session.Ended:
		case a.full(ctx):
			return a.leave(ctx)
		default:
			a.runTurn(ctx)
			if err := a.showUsage(ctx); err != nil {
				return err
			}
		}
	}
	return a.end(ctx)
}

// runTurn gives the waiting messages to the agent and waits for the end of its turn. An
// interruption, a stop, a move or an oversized history cancels the turn.
func (a *agentSession) runTurn(ctx workflow.Context) {
	if a.catchUp(ctx); !a.state.Deliverable() || a.state.Status == session.Ended {
		return
	}
	in := a.turnInput(ctx)
	a.apply(session.Fact{Kind: session.FactTurnBegan, Turn: &in})
	turn, cancel := workflow.WithCancel(ctx)
	a.turn = turn
	over := false
	workflow.Go(ctx, func(ctx workflow.Context) {
		_ = workflow.Await(ctx, func() bool {
			s := &a.state
			return over || s.Interrupt != nil || s.Stop != nil || s.Move != nil || a.overfull(ctx)
		})
		if a.catchUp(ctx); !over && a.state.Current != nil {
			a.apply(session.Fact{Kind: session.FactTurnCancelRequested})
		}
		cancel()
	})
	a.call(ctx, a.onHost(turn, session.ActivityTurn), session.ActivityTurn, "", in)
	over = true
}

func (a *agentSession) turnInput(ctx workflow.Context) session.TurnInput {
	s, in, run := &a.state, a.state.Input, workflow.GetInfo(ctx).WorkflowExecution
	turn := s.Turns + 1
	return session.TurnInput{
		SessionID: in.SessionID, WorkflowID: run.ID, RunID: run.RunID, Turn: turn,
		AgentSessionID: s.AgentSessionID, Resume: s.Turns > 0 || in.Resume, Messages: s.NextMessages(),
		UUID: session.UUID("turn", run.RunID, fmt.Sprint(turn)), CostSeen: s.CostSeen, UsageSeen: s.UsageSeen,
		Agent: in.Agent, Model: in.Model, WorkingDir: in.WorkingDir, SystemPrompt: in.SystemPrompt,
		PermissionMode: in.PermissionMode, AllowedTools: in.AllowedTools, Served: in.Served,
		Policy:   &session.Policy{Rules: in.Rules, Otherwise: in.DefaultAction},
		MaxTurns: in.MaxTurns, BudgetUSD: in.BudgetUSD, MCPServers: in.MCPServers,
		Unclaimed: s.Host.Version == "",
	}
}

// full reports whether the session should continue as new before the next turn.
func (a *agentSession) full(ctx workflow.Context) bool {
	return operation.IsLong(ctx) || a.updates >= maxUpdates || a.signals >= maxSignals
}

// overfull reports whether the session must continue as new even during a turn.
func (a *agentSession) overfull(ctx workflow.Context) bool {
	info := workflow.GetInfo(ctx)
	return info.GetCurrentHistoryLength() >= maxTurnHistory || info.GetCurrentHistorySize() >= maxTurnBytes ||
		a.updates >= maxTurnUpdates || a.signals >= maxTurnSignals
}

// cutOff is the message to an agent whose turn was interrupted by continue-as-new.
const cutOff = "Your turn was interrupted for a moment by the program that runs you. " +
	"Go on where you stopped; what you have done is done."

// leave continues the session as new after all pending updates and reports are answered.
func (a *agentSession) leave(ctx workflow.Context) error {
	a.leaving = true
	if err := workflow.Await(ctx, func() bool { return a.idle(ctx) }); err != nil {
		a.catchUp(ctx)
		return a.end(ctx)
	}
	a.catchUp(ctx)
	next := a.state.Input
	next.Carried, next.Revision = a.state.Carry(), session.Revision
	if a.state.ResumesTurn() {
		next.First = &session.Message{ID: a.state.ResumeMessageID(), Text: cutOff, From: "session"}
	}
	return workflow.NewContinueAsNewError(ctx, session.Workflow, next)
}

// closeWithin limits the wait for the agent's process at the end of a session.
const closeWithin = 30 * time.Second

// end stops the agent's process and answers the pending updates.
func (a *agentSession) end(ctx workflow.Context) error {
	disconnected, cancel := workflow.NewDisconnectedContext(ctx)
	defer cancel()
	if a.state.Host != nil {
		err := workflow.ExecuteActivity(a.onHost(disconnected, session.ActivityClose), session.ActivityClose,
			session.CloseInput{SessionID: a.in.SessionID}).Get(disconnected, nil)
		if err != nil {
			workflow.GetLogger(ctx).Warn("agent process was not stopped", "error", err)
		}
	}
	if err := workflow.Await(disconnected, func() bool { return a.idle(disconnected) }); err != nil {
		return err
	}
	if ctx.Err() == nil && a.state.Exit == ace.Failed && a.state.Failure != nil {
		return failed(*a.state.Failure)
	}
	return ctx.Err()
}

// idle reports whether all updates are answered and all reports delivered: a workflow that closes
// drops the signals that it is sending.
func (a *agentSession) idle(ctx workflow.Context) bool {
	return workflow.AllHandlersFinished(ctx) && len(a.reports) == 0 && !a.hasReport()
}

// showUsage updates the usage in the memo after a turn, unless the session is about to write its outcome.
func (a *agentSession) showUsage(ctx workflow.Context) error {
	if a.state.Usage == a.used || a.state.Status == session.Ended {
		return nil
	}
	a.used = a.state.Usage
	return writeUsage(ctx, a.summary())
}

func (a *agentSession) summary() ace.Summary {
	sum := ace.Summary{Usage: a.state.Usage}
	for _, c := range a.state.Tools {
		sum.Skills += c.Asked
		sum.SkillsOK += c.Allowed - c.Failed
	}
	return sum
}

// setHandlers registers the query and the updates.
func (a *agentSession) setHandlers(ctx workflow.Context) error {
	query := func() (session.State, error) { return a.state, nil }
	if err := workflow.SetQueryHandler(ctx, session.QuerySession, query); err != nil {
		return err
	}
	checkMessage := func(ctx workflow.Context, m session.Message) error {
		return a.state.CheckMessage(m.Named(updateID(ctx)))
	}
	checkTool := func(ctx workflow.Context, r session.ToolRequest) error {
		return a.state.CheckTool(r.Named(updateID(ctx)))
	}
	return setUpdateHandlers(ctx,
		updateHandler{session.UpdateSend, a.send, checkMessage},
		updateHandler{session.UpdateReceive, a.receive, nil},
		updateHandler{session.UpdateTool, a.requestTool, checkTool},
		updateHandler{session.UpdateDecide, a.decide, a.state.CheckDecision},
		updateHandler{session.UpdateInterrupt, a.interrupt, nil},
		updateHandler{session.UpdateStop, a.stop, nil},
		updateHandler{session.UpdateMove, a.move, a.state.CheckMove},
	)
}

// accept applies an accepted update.
func (a *agentSession) accept(ctx workflow.Context, u any) {
	a.catchUp(ctx)
	a.updates++
	a.apply(session.Fact{Kind: session.FactUpdate, Update: u})
}

func (a *agentSession) send(ctx workflow.Context, m session.Message) (session.Receipt, error) {
	m = m.Named(updateID(ctx))
	a.catchUp(ctx)
	r := session.Receipt{MessageID: m.ID, Waiting: len(a.state.Queue), Duplicate: a.state.HasSeen(m.ID)}
	a.accept(ctx, &m)
	return r, nil
}

func (a *agentSession) receive(ctx workflow.Context, r session.Receive) (session.Received, error) {
	a.accept(ctx, &r)
	if r.Wait {
		err := workflow.Await(ctx, func() bool {
			return a.state.Cursor > r.After || a.state.Status == session.Ended || a.leaving
		})
		if err != nil {
			return session.Received{}, err
		}
	}
	got := a.state.After(r.After, r.Limit)
	got.Continued = a.leaving
	return got, nil
}

// requestTool waits for the decision on a tool call by a rule or the user. If the session itself
// makes the call, it returns the full result to the agent.
func (a *agentSession) requestTool(ctx workflow.Context, r session.ToolRequest) (session.ToolAnswer, error) {
	r = r.Named(updateID(ctx))
	a.accept(ctx, &r)
	err := workflow.Await(ctx, func() bool { return a.state.Answer(r.ID) != nil || a.state.IsRunning(r.ID) })
	if err != nil {
		return session.ToolAnswer{}, err
	}
	if !a.state.IsRunning(r.ID) {
		return *a.state.Answer(r.ID), nil
	}
	in := session.ToolCall{SessionID: a.in.SessionID, WorkingDir: a.state.Input.WorkingDir, ID: r.ID,
		Name: r.Name, Args: r.Args, ArgsRef: r.ArgsRef}
	fact := a.call(ctx, a.onHost(a.turn, session.ActivityTool), session.ActivityTool, r.ID, in)
	return session.ToolAnswer{ID: r.ID, Action: session.Allow, By: "session",
		Result: fact.Tool, Failed: fact.Failure}, nil
}

func (a *agentSession) decide(ctx workflow.Context, d session.Decision) (session.State, error) {
	a.accept(ctx, &d)
	return a.state, nil
}

func (a *agentSession) interrupt(ctx workflow.Context, n session.Note) (session.State, error) {
	a.accept(ctx, new(session.Interrupt(n)))
	return a.state, nil
}

func (a *agentSession) stop(ctx workflow.Context, n session.Note) (session.State, error) {
	a.accept(ctx, new(session.Stop(n)))
	return a.state, nil
}

func (a *agentSession) move(ctx workflow.Context, m session.Move) (session.State, error) {
	a.accept(ctx, &m)
	return a.state, nil
}

func updateID(ctx workflow.Context) string { return workflow.GetCurrentUpdateInfo(ctx).ID }

// listen applies signals and deliveries of reports that no other goroutine applies.
func (a *agentSession) listen(ctx workflow.Context) {
	disconnected, cancel := workflow.NewDisconnectedContext(ctx)
	defer cancel()
	for {
		err := workflow.Await(disconnected, func() bool {
			return a.deliver.Len()+a.withdraw.Len()+a.attempt.Len() > 0 ||
				slices.ContainsFunc(a.reports, workflow.Future.IsReady)
		})
		if err != nil {
			return
		}
		a.catchUp(disconnected)
	}
}

func (a *agentSession) receiveAll(name string, channel workflow.ReceiveChannel) {
	for {
		var raw converter.RawValue // stays empty for a signal without an argument
		if !channel.ReceiveAsync(&raw) {
			return
		}
		a.signals++
		if f, ok := session.Signaled(name, history.PayloadJSON(raw.Payload())); ok {
			a.apply(f)
		}
	}
}

// report sends the reports on messages, each once: the fact that a report is sent is part of the
// history, so neither another worker nor the next run repeats it.
func (a *agentSession) report(ctx workflow.Context) {
	disconnected, cancel := workflow.NewDisconnectedContext(ctx)
	defer cancel()
	for {
		if err := workflow.Await(disconnected, a.hasReport); err != nil {
			return
		}
		a.catchUp(disconnected)
		for r, ok := a.state.NextReport(); ok; r, ok = a.state.NextReport() {
			a.apply(session.Reported(r.Report.MessageID))
			sent := workflow.SignalExternalWorkflow(disconnected, r.To, "", session.SignalReport, r.Report)
			a.reports = append(a.reports, sent)
		}
	}
}

func (a *agentSession) hasReport() bool {
	_, ok := a.state.NextReport()
	return ok
}

// applyDeliveries applies the deliveries of reports, successful or not.
func (a *agentSession) applyDeliveries(ctx workflow.Context) {
	left := a.reports[:0:0]
	for _, f := range a.reports {
		if !f.IsReady() {
			left = append(left, f)
			continue
		}
		if err := f.Get(ctx, nil); err != nil {
			workflow.GetLogger(ctx).Warn("report on a message was not delivered", "error", err)
			a.apply(session.Fact{Kind: session.FactReportUndelivered})
		}
	}
	a.reports = left
}

// turnLimit limits the duration of a turn.
const turnLimit = 24 * time.Hour

// turnHeartbeat is the time after which a turn moves to another process if its own is lost. It is
// shorter than [HeartbeatTimeout], because a turn that is still running is found and awaited.
const turnHeartbeat = 5 * time.Second

// onHost sets the options of an activity on the machine of the session. The activity waits for
// that machine without limit, because only it has the agent's files. A tool call is made once
// unless it is idempotent; a retried turn resumes the work of the last attempt.
func (a *agentSession) onHost(ctx workflow.Context, activity string) workflow.Context {
	o := workflow.ActivityOptions{
		TaskQueue:           a.state.Host.Queue,
		StartToCloseTimeout: turnLimit,
		HeartbeatTimeout:    HeartbeatTimeout,
		WaitForCancellation: true,
		RetryPolicy: &temporal.RetryPolicy{InitialInterval: time.Second, BackoffCoefficient: 2,
			MaximumInterval: 30 * time.Second, MaximumAttempts: 10,
			NonRetryableErrorTypes: []string{ErrTypePermanent}},
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
