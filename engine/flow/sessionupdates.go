package flow

import (
	"go.temporal.io/sdk/workflow"

	"acescope/engine/session"
)

// handle answers the query and the updates of a session.
func (t *talk) handle(ctx workflow.Context) error {
	if err := workflow.SetQueryHandler(ctx, session.QuerySession, func() (session.State, error) { return t.state, nil }); err != nil {
		return err
	}
	for _, h := range []struct {
		name           string
		handler, check any
	}{
		{session.UpdateSend, t.send, func(ctx workflow.Context, m session.Message) error {
			return t.state.CheckMessage(m.Named(updateID(ctx)))
		}},
		{session.UpdateReceive, t.receive, nil},
		{session.UpdateTool, t.requestTool, func(ctx workflow.Context, r session.ToolRequest) error {
			return t.state.CheckTool(r.Named(updateID(ctx)))
		}},
		{session.UpdateDecide, t.decide, func(d session.Decision) error { return t.state.CheckDecision(d) }},
		{session.UpdateInterrupt, t.interrupt, nil},
		{session.UpdateStop, t.stop, nil},
	} {
		if err := workflow.SetUpdateHandlerWithOptions(ctx, h.name, h.handler, workflow.UpdateHandlerOptions{Validator: h.check}); err != nil {
			return err
		}
	}
	return nil
}

// accept applies an update that was taken.
func (t *talk) accept(ctx workflow.Context, u any) {
	t.catchUp(ctx)
	t.updates++
	t.apply(session.Fact{Kind: session.FactUpdate, Update: u})
}

func (t *talk) send(ctx workflow.Context, m session.Message) (session.Receipt, error) {
	m = m.Named(updateID(ctx))
	t.catchUp(ctx)
	r := session.Receipt{MessageID: m.ID, Waiting: len(t.state.Queue), Duplicate: t.state.Known(m.ID)}
	t.accept(ctx, &m)
	return r, nil
}

func (t *talk) receive(ctx workflow.Context, r session.Receive) (session.Received, error) {
	t.accept(ctx, &r)
	if r.Wait {
		if err := workflow.Await(ctx, func() bool {
			return t.state.Cursor > r.After || t.state.Status == session.Over || t.leaving
		}); err != nil {
			return session.Received{}, err
		}
	}
	got := t.state.After(r.After, r.Limit)
	got.Continued = t.leaving
	return got, nil
}

// requestTool answers when the rules or a person have decided, and of a call that the
// session makes, when it is made.
func (t *talk) requestTool(ctx workflow.Context, r session.ToolRequest) (session.ToolAnswer, error) {
	r = r.Named(updateID(ctx))
	t.accept(ctx, &r)
	if err := workflow.Await(ctx, func() bool { return t.state.Answer(r.ID) != nil || t.state.Makes(r.ID) }); err != nil {
		return session.ToolAnswer{}, err
	}
	if !t.state.Makes(r.ID) {
		return *t.state.Answer(r.ID), nil
	}
	return t.make(ctx, r), nil
}

// make makes a tool call, and gives the agent the whole result.
func (t *talk) make(ctx workflow.Context, r session.ToolRequest) session.ToolAnswer {
	in := session.ToolCall{SessionID: t.in.SessionID, WorkingDir: t.state.Input.WorkingDir, ID: r.ID, Name: r.Name, Args: r.Args, ArgsRef: r.ArgsRef}
	answer := session.ToolAnswer{ID: r.ID, Action: session.Allow, By: "session"}
	fact := t.call(ctx, t.onHost(t.turn, session.ActivityTool), session.ActivityTool, r.ID, in)
	answer.Result, answer.Failed = fact.Tool, fact.Failure
	return answer
}

func (t *talk) decide(ctx workflow.Context, d session.Decision) (session.State, error) {
	t.accept(ctx, &d)
	return t.state, nil
}

func (t *talk) interrupt(ctx workflow.Context, n session.Note) (session.State, error) {
	i := session.Interrupt(n)
	t.accept(ctx, &i)
	return t.state, nil
}

func (t *talk) stop(ctx workflow.Context, n session.Note) (session.State, error) {
	s := session.Stop(n)
	t.accept(ctx, &s)
	return t.state, nil
}

func updateID(ctx workflow.Context) string { return workflow.GetCurrentUpdateInfo(ctx).ID }
