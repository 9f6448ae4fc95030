package engine_test

import (
	"context"
	"path"
	"strings"
	"sync/atomic"
	"testing"

	"go.temporal.io/api/serviceerror"
	"google.golang.org/grpc"

	"acescope/engine"
	"acescope/engine/ace"
	"acescope/engine/agents/session"
	"acescope/engine/tasks/run"
	"acescope/engine/tasks/runner"
)

// TestDispatcherTerminated terminates the dispatcher's workflow: the next one recovers all
// requests, claims and runners.
func TestDispatcherTerminated(t *testing.T) {
	t.Parallel()
	s := newRunEnv(t, false)
	s.startWorker(nil)
	s.open(clientOptions)
	s.startRunner(member{Runner: "r", Slots: 1})
	s.startParent("parent")
	runs := s.startRun(run.Request{AgentName: "gated", ParentSessionID: "parent"})
	s.waitRun(runs, hasStatus(run.Running))
	waits := s.startRun(run.Request{AgentName: "quick", ParentSessionID: "parent"})
	other := s.startRun(run.Request{AgentName: "quick", Requirements: requireTags("other"),
		ParentSessionID: "parent"})
	s.waitFor(func() error {
		if s.view().Waiting != 2 {
			return errNotYet
		}
		return nil
	})
	before := s.view()
	if err := s.e.Terminate(t.Context(), runner.DispatcherID(ace.TaskQueue), "", "a test"); err != nil {
		t.Fatal(err)
	}
	s.waitFor(func() error { // without a signal from the test
		v := s.view()
		if v.Waiting != 2 || len(v.Runners) != 1 || v.Runners[0].Busy != 1 ||
			v.Runners[0].Status != runner.Online || v.Runners[0].Epoch != before.Runners[0].Epoch {
			return errNotYet
		}
		return nil
	})
	s.startRunner(member{Runner: "other", Tags: []string{"other"}})
	s.expectResult(other, run.Completed, "")
	s.release(runs)
	if r := s.expectResult(runs, run.Completed, ""); r.Runner != "r" {
		t.Errorf("%+v", r)
	}
	s.expectResult(waits, run.Completed, "")
	s.checkSettled()
}

// TestRunTerminated terminates the workflow of a run: its program ends, its slot is freed, and
// its parent is notified.
func TestRunTerminated(t *testing.T) {
	t.Parallel()
	s := newRunEnv(t, false)
	s.startWorker(nil)
	s.open(clientOptions)
	s.startRunner(member{Runner: "r", Slots: 1})
	s.startParent("parent")
	in := s.startRun(run.Request{AgentName: "gated", ParentSessionID: "parent"})
	pid := s.pids(in, 1)[0]
	s.waitRun(in, hasStatus(run.Running))
	waits := s.startRun(run.Request{AgentName: "quick", ParentSessionID: "parent"})
	if err := s.e.Terminate(t.Context(), run.WorkflowID(in.RunID), "", "a test"); err != nil {
		t.Fatal(err)
	}
	waitDead(s.t, pid)
	s.expectResult(in, run.Failed, run.Terminated)
	s.expectResult(waits, run.Completed, "")
	s.checkSettled()
	for _, turn := range s.agent.Did("turn") {
		if i := strings.Index(turn.Text, `run="`+in.RunID); i >= 0 &&
			!strings.Contains(turn.Text[i:], "terminated: its workflow was terminated") {
			t.Errorf("%q", turn.Text)
		}
	}
}

// TestDispatcherUnreachable cuts the connection to the dispatcher while a run starts and while it
// ends.
func TestDispatcherUnreachable(t *testing.T) {
	t.Parallel()
	s := newRunEnv(t, false)
	var cut atomic.Bool
	var refused atomic.Int64
	s.open(engine.Options{Worker: true, Takeover: true, Intercept: func(ctx context.Context, method string,
		req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		if cut.Load() && path.Base(method) == "SignalWithStartWorkflowExecution" {
			refused.Add(1)
			return serviceerror.NewInternal("cut")
		}
		return invoke(ctx, method, req, reply, cc, opts...)
	}})
	s.startRunner(member{Runner: "r", Slots: 1})
	again := func(n int64) {
		s.waitFor(func() error {
			if refused.Load() < n {
				return errNotYet
			}
			return nil
		})
	}
	cut.Store(true)
	in := s.startRun(run.Request{AgentName: "gated"})
	again(2)
	if st := s.waitRun(in, hasStatus(run.Pending)); st.Claim != nil {
		t.Errorf("%+v", st)
	}
	cut.Store(false)
	s.pids(in, 1)
	before := refused.Load()
	cut.Store(true)
	s.release(in)
	again(before + 2)
	if r := s.waitRun(in, hasStatus(run.Completed)).Result; r.Runner != "r" {
		t.Errorf("%+v", r)
	}
	cut.Store(false)
	s.checkSettled()
}

// TestForged sends runs and the dispatcher signals that only their legitimate senders may send.
func TestForged(t *testing.T) {
	t.Parallel()
	s := newRunEnv(t, false)
	s.startWorker(nil)
	s.open(clientOptions)
	s.startRunner(member{Runner: "r", Slots: 2, Agents: true})
	s.startParent("parent")
	in := s.startRun(run.Request{AgentName: "gated", ParentSessionID: "parent"})
	st := s.waitRun(in, hasStatus(run.Running))
	code := 0
	for _, f := range []struct {
		name string
		arg  any
	}{
		{run.SignalClaimed, runner.Claim{Number: st.Claim.Number + 1, Try: 1, RunnerID: "evil",
			Queue: "evil"}},
		{run.SignalStarted, run.ProgramStart{Claim: st.Claim.Number, Try: 1, PID: 1}},
		{run.SignalStarted, run.Result{Status: run.Completed, ExitCode: &code}},
		{run.SignalReport, session.Report{MessageID: in.RunID, SessionID: in.SessionID,
			Status: session.ReportCompleted, Text: "forged"}},
		{run.SignalUnmatched, runner.Unmatched{Try: 1, Reason: "no_runner", Message: "forged"}},
		{run.SignalLost, runner.Lost{Claim: st.Claim.Number, RunnerID: "other", Message: "forged"}},
		{run.SignalLost, runner.Lost{Claim: st.Claim.Number - 1, RunnerID: "r", Message: "forged"}},
		{run.SignalClaimed, "no claim"},
		{runner.SignalAskAgain, nil},
	} {
		if err := s.e.Client.SignalWorkflow(t.Context(), run.WorkflowID(in.RunID), "", f.name,
			f.arg); err != nil {
			t.Fatal(err)
		}
	}
	own := s.view().Runners[0]
	notices := runner.Notices{
		{Kind: runner.Release, Run: in.RunID, Claim: st.Claim.Number - 1},
		{Kind: runner.Release, Run: in.RunID},
		{Kind: runner.Removed, Runner: "r", Epoch: own.Epoch - 1},
		{Kind: runner.Registered, Runner: "r", Epoch: own.Epoch, Queue: "evil",
			Registration: &runner.Registration{ID: "r", Token: "evil", Capabilities: own.Capabilities}},
		{Kind: runner.Registered, Runner: "x", Epoch: 1, Queue: "evil",
			Registration: &runner.Registration{ID: "r", Token: "evil", Capabilities: own.Capabilities}},
		{Kind: runner.Enqueue, Run: "a", Request: &runner.Request{RunID: in.RunID}},
		{Kind: runner.Holds, Run: in.RunID, Request: &runner.Request{RunID: in.RunID},
			Held: &runner.Claim{Number: 9, RunnerID: "x"}},
		{Kind: "nonsense", Run: in.RunID},
	}
	for _, arg := range []any{notices, "no notices", nil, map[string]int{"a": 1}} {
		if err := s.e.Client.SignalWorkflow(t.Context(), runner.DispatcherID(ace.TaskQueue), "",
			runner.SignalNotices, arg); err != nil {
			t.Fatal(err)
		}
	}
	after := s.waitRun(in, func(st run.State) bool { return st.Ignored >= 8 })
	if after.Status != run.Running || after.Claim.RunnerID != "r" || after.ProgramStart.PID == 1 {
		t.Errorf("%+v", after)
	}
	// by now all signals were processed
	s.expectResult(s.startRun(run.Request{AgentName: "quick", ParentSessionID: "parent"}), run.Completed, "")
	if v := s.view(); len(v.Runners) != 1 || v.Runners[0].Status != runner.Online ||
		v.Runners[0].Epoch != own.Epoch {
		t.Errorf("%+v", v)
	}
	s.release(in)
	s.expectResult(in, run.Completed, "")
	s.checkSettled()
}
