package flow

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	"acescope/engine/ace"
	"acescope/engine/history"
	"acescope/engine/session"
)

// Bounds of one run of a session, under Temporal's 2,000 updates, 10,000 signals, 51,200 events
// and 50 MB a run: above the first of each it continues as new between two turns, above the
// second in the middle of one.
const (
	updatesBetween, updatesWithin = 1200, 1800
	signalsBetween, signalsWithin = 4000, 8000
	historyWithin                 = 40_000 // between turns see maxHistory
	bytesWithin                   = 35 << 20
)

// talk is a session in progress. As with a task, what it knows is in state.
type talk struct {
	in      session.Input
	state   session.State
	shown   session.Status // as the search attribute has it
	updates int
	leaving bool             // continues as new as soon as no update is under way
	turn    workflow.Context // of the turn under way
	root    workflow.Context
	stopped bool    // its cancellation was applied
	calls   []*call // activities whose end was not applied
	signals signals
}

// call is an activity under way.
type call struct {
	activity, id string // id of a tool call
	future       workflow.Future
	fact         session.Fact // its end, once that was applied
}

// Session is the workflow of an agent session: one turn after the other, as messages come,
// until it is stopped. It continues as new between turns, with what waits.
func Session(ctx workflow.Context, in session.Input) (*session.State, error) {
	t := &talk{in: in, root: ctx}
	t.apply(session.Started(in))
	t.signals.channels(ctx)
	if err := t.handle(ctx); err != nil {
		return nil, err
	}
	workflow.Go(ctx, t.listen)
	workflow.Go(ctx, t.report)
	workflow.Go(ctx, t.announce)
	workflow.Go(ctx, t.watchCancel)
	err := t.run(ctx)
	if workflow.IsContinueAsNewError(err) {
		return nil, err
	}
	if finishErr := t.finish(ctx); err == nil {
		err = finishErr
	}
	return &t.state, err
}

func (t *talk) apply(f session.Fact) { t.state.Apply(f) }

func (t *talk) watchCancel(ctx workflow.Context) {
	ctx.Done().Receive(ctx, nil)
	t.catchUp(ctx)
}

// catchUp applies what the history tells before the workflow task: signals, the ends of
// activities, what became of reports, and a cancellation. Updates are handled before those who
// wait for these wake up, but stand behind them in the history, so they call it first, and so
// does who begins a turn.
func (t *talk) catchUp(ctx workflow.Context) {
	t.hear()
	t.arrivals(ctx)
	left := t.calls[:0:0]
	for _, c := range t.calls {
		if !c.future.IsReady() {
			left = append(left, c)
			continue
		}
		var raw converter.RawValue
		if err := c.future.Get(ctx, &raw); err != nil {
			c.fact = session.Failed(c.activity, c.id, history.FailureFrom(err))
		} else {
			c.fact = session.Ended(c.activity, c.id, history.JSONOf(raw.Payload()))
		}
		t.apply(c.fact)
	}
	t.calls = left
	if t.root.Err() != nil && !t.stopped {
		t.stopped = true
		t.apply(session.CancelRequested())
	}
}

// call makes an activity, with the options and until the cancellation of its own context,
// and waits in ctx until its end is applied.
func (t *talk) call(ctx, own workflow.Context, activity, id string, in any) session.Fact {
	c := &call{activity: activity, id: id, future: workflow.ExecuteActivity(own, activity, in)}
	t.calls = append(t.calls, c)
	// The end of an activity is waited for even where the workflow was cancelled.
	calm, cancel := workflow.NewDisconnectedContext(ctx)
	defer cancel()
	_ = workflow.Await(calm, func() bool { return c.future.IsReady() })
	t.catchUp(calm)
	return c.fact
}

func (t *talk) run(ctx workflow.Context) error {
	if t.state.Host == nil {
		t.claim(ctx)
	}
	for t.state.Status != session.Over {
		err := workflow.Await(ctx, func() bool {
			return len(t.state.Queue) > 0 || t.state.Status == session.Over || t.full(ctx)
		})
		switch {
		case err != nil:
			t.catchUp(ctx)
		case t.state.Status == session.Over:
		case t.full(ctx):
			return t.leave(ctx)
		default:
			t.take(ctx)
		}
	}
	return t.end(ctx)
}

// claim asks for a machine that the session can live on.
func (t *talk) claim(ctx workflow.Context) {
	t.call(ctx, withOptions(ctx, session.ActivityClaim, ""), session.ActivityClaim, "", t.state.Input)
}

// take gives the agent the next turn and waits for its end.
func (t *talk) take(ctx workflow.Context) {
	if t.catchUp(ctx); len(t.state.Queue) == 0 || t.state.Status == session.Over {
		return
	}
	in := t.turnInput(ctx)
	t.apply(session.Fact{Kind: session.FactTurnBegan, Turn: &in})
	turn, cancel := workflow.WithCancel(ctx)
	t.turn = turn
	over := false
	workflow.Go(ctx, func(ctx workflow.Context) {
		_ = workflow.Await(ctx, func() bool {
			return over || t.state.Interrupt != nil || t.state.Stop != nil || t.crowded(ctx)
		})
		if t.catchUp(ctx); !over && t.state.Current != nil {
			t.apply(session.TurnCut())
		}
		cancel()
	})
	t.call(ctx, t.onHost(turn, session.ActivityTurn), session.ActivityTurn, "", in)
	over = true
}

func (t *talk) turnInput(ctx workflow.Context) session.TurnInput {
	s, run := &t.state, workflow.GetInfo(ctx).WorkflowExecution
	turn := s.Turns + 1
	in := s.Input
	return session.TurnInput{SessionID: in.SessionID, WorkflowID: run.ID, RunID: run.RunID, Turn: turn,
		AgentSessionID: s.AgentSessionID, Resume: s.Turns > 0, Messages: s.Next(),
		UUID: session.UUID("turn", run.RunID, fmt.Sprint(turn)), CostSeen: s.CostSeen, UsageSeen: s.UsageSeen,
		Agent: in.Agent, Model: in.Model, WorkingDir: in.WorkingDir, SystemPrompt: in.SystemPrompt,
		PermissionMode: in.PermissionMode, AllowedTools: in.AllowedTools, Served: in.Served,
		MaxTurns: in.MaxTurns, BudgetUSD: in.BudgetUSD, MCPServers: in.MCPServers, Unclaimed: s.Host.Version == ""}
}

// full tells whether the run has had enough events, updates or signals.
func (t *talk) full(ctx workflow.Context) bool {
	info := workflow.GetInfo(ctx)
	return info.GetContinueAsNewSuggested() || info.GetCurrentHistoryLength() >= maxHistory || t.updates >= updatesBetween || t.signals.heard >= signalsBetween
}

// crowded tells whether that is so even in the middle of a turn.
func (t *talk) crowded(ctx workflow.Context) bool {
	info := workflow.GetInfo(ctx)
	return info.GetCurrentHistoryLength() >= historyWithin || info.GetCurrentHistorySize() >= bytesWithin ||
		t.updates >= updatesWithin || t.signals.heard >= signalsWithin
}

// cutOff is what an agent is told whose turn was cut off by a new run.
const cutOff = "Your turn was interrupted for a moment by the program that runs you. Go on where you stopped; what you have done is done."

// leave continues the session as a new run, once those who wait for answers have them.
func (t *talk) leave(ctx workflow.Context) error {
	t.leaving = true
	if err := workflow.Await(ctx, func() bool { return workflow.AllHandlersFinished(ctx) && t.toldAll() }); err != nil {
		t.catchUp(ctx)
		return t.end(ctx)
	}
	t.catchUp(ctx)
	next := t.state.Input
	next.Carried = t.state.Carry()
	if t.state.GoesOn() {
		next.First = &session.Message{ID: t.state.GoOnID(), Text: cutOff, From: "session"}
	}
	return workflow.NewContinueAsNewError(ctx, session.Workflow, next)
}

// closeWithin is how long the agent's process is waited for at the end of a session.
const closeWithin = 30 * time.Second

// end lets the agent's process end, and those who wait hear that it is over.
func (t *talk) end(ctx workflow.Context) error {
	calm, cancel := workflow.NewDisconnectedContext(ctx)
	defer cancel()
	if t.state.Host != nil {
		err := workflow.ExecuteActivity(t.onHost(calm, session.ActivityClose), session.ActivityClose,
			session.CloseInput{SessionID: t.in.SessionID}).Get(calm, nil)
		if err != nil {
			workflow.GetLogger(ctx).Warn("the agent's process was not ended", "error", err)
		}
	}
	if err := workflow.Await(calm, func() bool { return workflow.AllHandlersFinished(calm) && t.toldAll() }); err != nil {
		return err
	}
	return t.outcome(ctx)
}

// outcome is the error that the workflow ends with, nil where the session just ended.
func (t *talk) outcome(ctx workflow.Context) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case t.state.Exit == ace.Failed && t.state.Failure != nil:
		return failed(*t.state.Failure)
	}
	return nil
}

// announce puts the status where lists can see it, as a task does.
func (t *talk) announce(ctx workflow.Context) {
	for {
		if err := workflow.Await(ctx, func() bool { return t.state.Status != t.shown }); err != nil {
			return
		}
		if err := workflow.Sleep(ctx, announceAfter); err != nil {
			return
		}
		if t.shown == t.state.Status || t.state.Status == session.Over {
			continue
		}
		t.shown = t.state.Status
		if err := workflow.UpsertTypedSearchAttributes(ctx, keyword(ace.AttrPhase, string(t.shown))); err != nil {
			workflow.GetLogger(ctx).Error("the status could not be announced", "error", err)
		}
	}
}

// finish leaves the outcome for lists.
func (t *talk) finish(ctx workflow.Context) error {
	if err := workflow.UpsertMemo(ctx, map[string]any{ace.MemoSummary: t.summary()}); err != nil {
		return fmt.Errorf("leave the summary: %w", err)
	}
	return workflow.UpsertTypedSearchAttributes(ctx, keyword(ace.AttrPhase, string(t.state.Status)), keyword(ace.AttrExit, string(t.state.Exit)))
}

func (t *talk) summary() ace.Summary {
	sum := ace.Summary{Usage: t.state.Usage}
	for _, c := range t.state.Tools {
		sum.Skills += c.Asked
		sum.SkillsOK += c.Allowed - c.Failed
	}
	return sum
}
