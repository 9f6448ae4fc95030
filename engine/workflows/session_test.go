package workflows_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"acescope/engine/ace"
	"acescope/engine/agents/session"
	"acescope/engine/workflows"
)

// sessionEnv is a test environment in which a function answers the turns of an agent.
type sessionEnv struct {
	*testsuite.TestWorkflowEnvironment
	t          *testing.T
	turns      []session.TurnInput
	calls      []session.ToolCall
	closed     int
	claimError error // error of the claim
	answer     func(context.Context, session.TurnInput) (session.TurnResult, error)
}

func newSessionEnv(t *testing.T) *sessionEnv {
	var suite testsuite.WorkflowTestSuite
	r := &sessionEnv{TestWorkflowEnvironment: suite.NewTestWorkflowEnvironment(), t: t}
	r.SetTestTimeout(time.Minute)
	r.RegisterWorkflowWithOptions(workflows.Session, workflow.RegisterOptions{Name: session.Workflow})
	for name, fn := range map[string]any{
		session.ActivityClaim: func(context.Context, session.Input) (session.Host, error) {
			return session.Host{Name: "here", Queue: "session.here"}, r.claimError
		},
		session.ActivityTurn: func(ctx context.Context, in session.TurnInput) (session.TurnResult, error) {
			r.turns = append(r.turns, in)
			if r.answer != nil {
				return r.answer(ctx, in)
			}
			return turnResult(in, "answer to "+in.Messages[0].Text), nil
		},
		session.ActivityTool: func(_ context.Context, in session.ToolCall) (session.ToolResult, error) {
			r.calls = append(r.calls, in)
			return session.ToolResult{Text: "result of " + in.Name}, nil
		},
		session.ActivityClose: func(context.Context, session.CloseInput) error { r.closed++; return nil },
	} {
		r.RegisterActivityWithOptions(fn, activity.RegisterOptions{Name: name})
	}
	return r
}

func turnResult(in session.TurnInput, text string) session.TurnResult {
	return session.TurnResult{Turn: in.Turn, Status: session.TurnCompleted, AgentSessionID: "agent-1",
		Text: text, Summary: text,
		Messages: []session.Out{{Kind: session.OutAssistant, Turn: in.Turn, Text: text}},
		Usage:    ace.Usage{InputTokens: 10, CostUSD: 0.5}}
}

func input() session.Input {
	return session.Input{SessionID: "ses_1", Agent: "claude", WorkingDir: "/work"}
}

// reply is the answer to an update.
type reply struct {
	rejected, err error
	value         any
	done          bool
}

func (r *sessionEnv) update(name, id string, arg any) *reply {
	got := &reply{}
	r.UpdateWorkflow(name, id, &testsuite.TestUpdateCallback{
		OnAccept:   func() {},
		OnReject:   func(err error) { got.rejected, got.done = err, true },
		OnComplete: func(v any, err error) { got.value, got.err, got.done = v, err, true },
	}, arg)
	return got
}

func (r *sessionEnv) at(after time.Duration, fn func()) { r.RegisterDelayedCallback(fn, after) }

func (r *sessionEnv) state() session.State {
	r.t.Helper()
	v, err := r.QueryWorkflow(session.QuerySession)
	if err != nil {
		r.t.Fatal(err)
	}
	var s session.State
	if err := v.Get(&s); err != nil {
		r.t.Fatal(err)
	}
	return s
}

func (r *sessionEnv) runToEnd(in session.Input) session.State {
	r.t.Helper()
	r.ExecuteWorkflow(session.Workflow, in)
	if !r.IsWorkflowCompleted() {
		r.t.Fatal("the session did not end")
	}
	return r.state()
}

func TestSessionTurns(t *testing.T) {
	r := newSessionEnv(t)
	var first, again, got *reply
	r.at(time.Second, func() {
		first = r.update(session.UpdateSend, "m1", session.Message{ID: "m1", Text: "one"})
		r.update(session.UpdateSend, "m2", session.Message{Text: "two"})
		again = r.update(session.UpdateSend, "m1-again", session.Message{ID: "m1", Text: "one"})
	})
	r.at(2*time.Second, func() { got = r.update(session.UpdateReceive, "r1", session.Receive{Ack: 2}) })
	r.at(3*time.Second, func() { r.update(session.UpdateStop, "s", session.Note{Reason: "enough"}) })
	end := r.runToEnd(input())

	if len(r.turns) != 2 || r.turns[0].Messages[0].Text != "one" || r.turns[1].Messages[0].ID != "m2" {
		t.Fatalf("turns: %+v", r.turns)
	}
	if r.turns[0].Resume || !r.turns[1].Resume || r.turns[1].AgentSessionID != "agent-1" {
		t.Errorf("the second turn resumes the agent's session: %+v", r.turns[1])
	}
	if r.turns[0].UUID == r.turns[1].UUID || len(r.turns[0].UUID) != 36 {
		t.Errorf("uuids: %s, %s", r.turns[0].UUID, r.turns[1].UUID)
	}
	if rc := first.value.(session.Receipt); rc.MessageID != "m1" || rc.Duplicate {
		t.Errorf("receipt: %+v", rc)
	}
	if rc := again.value.(session.Receipt); !rc.Duplicate {
		t.Errorf("repeated message: %+v", rc)
	}
	out := got.value.(session.Received)
	if len(out.Messages) != 2 || out.Messages[0].Kind != session.OutAssistant || out.Messages[0].Cursor != 3 {
		t.Errorf("after the acknowledgement: %+v", out)
	}
	if end.Status != session.Ended || end.Exit != ace.Completed || end.Usage.CostUSD != 1 || end.Turns != 2 ||
		r.closed != 1 {
		t.Errorf("end: %+v, closed %d", end, r.closed)
	}
}

func TestSessionTools(t *testing.T) {
	r := newSessionEnv(t)
	in := input()
	in.Served = []string{"read_file"}
	in.Rules = []session.Rule{{Tool: "Bash(rm *)", Action: session.Deny, Reason: "never"},
		{Tool: "Bash(git *)", Action: session.Allow},
		{Tool: "read_file", Action: session.Allow}}
	in.First = &session.Message{ID: "m1", Text: "go"}
	held := make(chan struct{})
	r.answer = func(_ context.Context, in session.TurnInput) (session.TurnResult, error) {
		<-held
		return turnResult(in, "done"), nil
	}
	replies := map[string]*reply{}
	ask := func(id, name, args string, attempt int32, served bool) {
		replies[id] = r.update(session.UpdateTool, id, session.ToolRequest{ID: id, Name: name,
			Args: json.RawMessage(args), Turn: 1, Attempt: attempt, Served: served})
	}
	var waiting session.State
	var twice *reply
	r.at(time.Second, func() {
		ask("c1", "Bash", `{"command":"rm -rf /"}`, 1, false)
		ask("c2", "Bash", `{"command":"git status"}`, 1, false)
		ask("c3", "Write", `{"file_path":"/x"}`, 1, false)
		ask("c4", "read_file", `{"path":"a"}`, 1, true)
		ask("c5", "Write", `{"file_path":"/old"}`, 1, false)
	})
	r.at(2*time.Second, func() {
		waiting = r.state()
		r.update(session.UpdateDecide, "d1", session.Decision{ID: "c3", Action: session.Deny,
			Reason: "not there", By: "ada"})
		twice = r.update(session.UpdateDecide, "d2", session.Decision{ID: "c3", Action: session.Allow})
	})
	r.at(3*time.Second, func() { ask("c6", "Write", `{}`, 2, false) })
	r.at(4*time.Second, func() { close(held) })
	r.at(5*time.Second, func() { r.update(session.UpdateStop, "s", session.Note{}) })
	end := r.runToEnd(in)

	for id, want := range map[string]string{"c1": `deny never rule "Bash(rm *)=deny"`,
		"c2": `allow  rule "Bash(git *)=allow"`, "c3": "deny not there person ada", "c4": "allow  session",
		"c5": "deny the agent process that requested approval has exited session",
		"c6": "deny the turn has ended session"} {
		p := replies[id]
		if !p.done || p.err != nil || p.rejected != nil {
			t.Errorf("%s: %+v", id, p)
			continue
		}
		a := p.value.(session.ToolAnswer)
		if got := fmt.Sprintf("%s %s %s", a.Action, a.Reason, a.By); got != want {
			t.Errorf("%s: %q, not %q", id, got, want)
		}
	}
	if a := replies["c4"].value.(session.ToolAnswer); a.Result == nil ||
		a.Result.Text != "result of read_file" || len(r.calls) != 1 {
		t.Errorf("served call: %+v, executed %d times", a, len(r.calls))
	}
	if waiting.Status != session.Waiting || len(waiting.Pending) != 2 {
		t.Errorf("waiting: %s, %d pending", waiting.Status, len(waiting.Pending))
	}
	if twice.rejected == nil || !strings.Contains(twice.rejected.Error(),
		"answered already: deny by person ada") {
		t.Errorf("second decision: %v", twice.rejected)
	}
	i := slices.IndexFunc(end.Tools, func(c session.ToolCount) bool { return c.Name == "Bash" })
	if i < 0 || end.Tools[i] != (session.ToolCount{Name: "Bash", Asked: 2, Allowed: 1, Denied: 1}) {
		t.Errorf("counts: %+v", end.Tools)
	}
}

func TestSessionInterruptAndFailure(t *testing.T) {
	r := newSessionEnv(t)
	in := input()
	in.First = &session.Message{ID: "m1", Text: "long"}
	r.answer = func(ctx context.Context, in session.TurnInput) (session.TurnResult, error) {
		if in.Turn == 2 {
			return session.TurnResult{}, temporal.NewNonRetryableApplicationError("the agent is gone",
				"AgentMissing", nil)
		}
		<-ctx.Done()
		out := turnResult(in, "stopped")
		out.Status = session.TurnInterrupted
		return out, nil
	}
	r.at(time.Second, func() { r.update(session.UpdateInterrupt, "i", session.Note{By: "ada"}) })
	r.at(2*time.Second, func() { r.update(session.UpdateSend, "m2", session.Message{ID: "m2", Text: "x"}) })
	var after session.State
	r.at(3*time.Second, func() { after = r.state(); r.CancelWorkflow() })
	end := r.runToEnd(in)
	if len(after.Recent) != 2 || after.Recent[0].Status != session.TurnInterrupted ||
		after.Recent[1].Failure == nil || after.Status != session.Idle {
		t.Errorf("after a failed turn: %s %+v", after.Status, after.Recent)
	}
	var canceled *temporal.CanceledError
	if err := r.GetWorkflowError(); !errors.As(err, &canceled) || end.Exit != ace.Canceled || r.closed != 1 {
		t.Errorf("canceled: %v, %s, closed %d", err, end.Exit, r.closed)
	}
}

func TestSessionContinuesAsNew(t *testing.T) {
	r := newSessionEnv(t)
	in := input()
	in.First = &session.Message{ID: "m1", Text: "one"}
	r.at(2*time.Second, func() { r.SetContinueAsNewSuggested(true) })
	var waits *reply
	r.at(time.Second, func() {
		waits = r.update(session.UpdateReceive, "r", session.Receive{After: 99, Wait: true})
	})
	r.ExecuteWorkflow(session.Workflow, in)
	var next *workflow.ContinueAsNewError
	if !errors.As(r.GetWorkflowError(), &next) {
		t.Fatalf("did not continue as new: %v", r.GetWorkflowError())
	}
	if got := waits.value.(session.Received); !got.Continued {
		t.Errorf("waiting receiver: %+v", got)
	}
	var carried session.Input
	if err := converter.GetDefaultDataConverter().FromPayloads(next.Input, &carried); err != nil {
		t.Fatal(err)
	}
	b := newSessionEnv(t)
	b.at(time.Second, func() {
		b.update(session.UpdateSend, "m1", session.Message{ID: "m1", Text: "one"})
		b.update(session.UpdateSend, "m2", session.Message{ID: "m2", Text: "two"})
	})
	b.at(2*time.Second, func() { b.update(session.UpdateStop, "s", session.Note{}) })
	end := b.runToEnd(carried)
	if len(b.turns) != 1 || b.turns[0].Turn != 2 || b.turns[0].Messages[0].Text != "two" ||
		!b.turns[0].Resume {
		t.Errorf("turns of the new run: %+v", b.turns)
	}
	if end.Runs != 2 || end.Usage.CostUSD != 1 || len(end.Recent) != 2 || end.Cursor != 5 {
		t.Errorf("end: runs %d cost %v turns %d cursor %d", end.Runs, end.Usage.CostUSD, len(end.Recent),
			end.Cursor)
	}
}

func TestSessionNotClaimed(t *testing.T) {
	r := newSessionEnv(t)
	r.claimError = temporal.NewNonRetryableApplicationError("claude is not installed", "AgentMissing", nil)
	end := r.runToEnd(input())
	if err := r.GetWorkflowError(); err == nil || !strings.Contains(err.Error(), "claude is not installed") ||
		end.Exit != ace.Failed {
		t.Errorf("%v, %+v", err, end)
	}
}

// TestSessionUsageInMemo checks that lists know the usage of an open session.
func TestSessionUsageInMemo(t *testing.T) {
	r := newSessionEnv(t)
	memo := map[string]any{ace.MemoSummary: ace.Summary{Usage: ace.Usage{InputTokens: 10, CostUSD: 0.5}}}
	r.OnUpsertMemo(memo).Return(nil).Times(2) // after the turn, and at the end
	in := input()
	in.First = &session.Message{ID: "m1", Text: "hello"}
	r.at(time.Minute, func() { r.update(session.UpdateStop, "stop", session.Note{}) })
	r.runToEnd(in)
	r.AssertExpectations(t)
}
