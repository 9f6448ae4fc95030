package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"acescope/engine"
	"acescope/engine/ace"
	"acescope/engine/agents/session"
	"acescope/engine/tasks/run"
	"acescope/engine/tasks/runner"
	"acescope/engine/temporal/history"
	"acescope/engine/workflows"
)

// blueprintMap is a library of synthetic blueprints.
type blueprintMap map[string]run.Blueprint

func (l blueprintMap) List(context.Context) ([]run.BlueprintInfo, error) {
	return []run.BlueprintInfo{{Name: "noop"}}, nil
}

func (l blueprintMap) Load(name string) (run.Blueprint, func(json.RawMessage) (json.RawMessage, error),
	error) {
	b, ok := l[name]
	if !ok {
		return b, nil, fmt.Errorf("%w: %s", run.ErrNoBlueprint, name)
	}
	return b, func(p json.RawMessage) (json.RawMessage, error) {
		if strings.Contains(string(p), "wrong") {
			return nil, errors.New("$.wrong is not known")
		}
		if string(p) == `{}` {
			return json.RawMessage(`{"depth": 2}`), nil
		}
		return p, nil
	}, nil
}

// scriptedEnv is a server with a dispatcher and runners controlled by a test.
type scriptedEnv struct {
	*engine.Engine
	*engine.Runs
	t *testing.T

	mu       sync.Mutex
	received runner.Notices
	claims   int64
	given    map[string]*runner.Claim // answers by run and attempt
	bySignal bool                     // answers by a signal instead of a result
	// the first request is answered by a signal and then fails
	failFirst bool
	match     func(runner.Request, int64) *runner.Claim // nil answers nothing
	execute   func(context.Context, run.Execution) (run.Result, error)
	parents   map[string][]session.Message
}

func newScriptedEnv(t *testing.T) *scriptedEnv {
	t.Helper()
	e := openEngine(t, engine.Options{DataDir: t.TempDir(), Takeover: true})
	s := &scriptedEnv{Engine: e, t: t, given: map[string]*runner.Claim{},
		parents: map[string][]session.Message{}}
	s.Runs = e.Runs(blueprintMap{
		"noop":   {Name: "noop", Type: run.Deterministic, Argv: []string{"true"}, TimeoutSeconds: 1},
		"mover":  {Name: "mover", Type: run.Deterministic, Idempotent: true, OnRunnerLoss: run.Move},
		"writer": {Name: "writer", Type: run.Agent, SystemPrompt: "Write.", Model: "m1", TimeoutSeconds: 60},
	})
	s.match = func(_ runner.Request, n int64) *runner.Claim { return s.claim("a", n) }
	s.execute = func(_ context.Context, x run.Execution) (run.Result, error) { return ended(x, 0), nil }
	w := worker.New(e.Client, ace.TaskQueue, worker.Options{WorkerStopTimeout: time.Second})
	w.RegisterWorkflowWithOptions(workflows.Run, workflow.RegisterOptions{Name: run.Workflow})
	w.RegisterActivityWithOptions(s.tell, activity.RegisterOptions{Name: runner.ActivityTell})
	w.RegisterWorkflowWithOptions(s.session, workflow.RegisterOptions{Name: session.Workflow})
	s.serve(w)
	for _, name := range []string{"a", "b"} {
		w := worker.New(e.Client, "runner."+name, worker.Options{DisableWorkflowWorker: true,
			WorkerStopTimeout: time.Second, MaxHeartbeatThrottleInterval: 100 * time.Millisecond,
			DefaultHeartbeatThrottleInterval: 100 * time.Millisecond})
		w.RegisterActivityWithOptions(func(ctx context.Context, x run.Execution) (run.Result,
			error) {
			return s.execute(ctx, x)
		},
			activity.RegisterOptions{Name: run.ActivityExecute})
		s.serve(w)
	}
	return s
}

func (s *scriptedEnv) serve(w worker.Worker) {
	s.t.Helper()
	if err := w.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(w.Stop)
}

func (s *scriptedEnv) claim(name string, n int64) *runner.Claim {
	return &runner.Claim{Number: n, RunnerID: "lnch_" + name, Queue: "runner." + name,
		SessionQueue: "session." + name, At: time.Now().UTC(),
		Capabilities: runner.Capabilities{Hostname: "vm", ProjectDir: "/work"}}
}

// tell implements the dispatcher.
func (s *scriptedEnv) tell(ctx context.Context, notices runner.Notices) (*runner.Answer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.received = append(s.received, notices...)
	for _, n := range notices {
		if n.Kind != runner.Enqueue {
			continue
		}
		c := s.answer(n)
		if c == nil {
			break
		}
		answer := &runner.Answer{RunID: n.Run, Execution: n.Request.Execution, Claimed: c}
		if s.bySignal || s.failFirst {
			if err := s.Client.SignalWorkflow(ctx, run.WorkflowID(n.Run), n.Request.Execution,
				run.SignalClaimed, *c); err != nil {
				return nil, err
			}
		}
		if s.failFirst {
			s.failFirst = false
			return nil, errors.New("connection lost")
		}
		if !s.bySignal {
			return answer, nil
		}
	}
	return nil, nil
}

// answer returns the answer of the dispatcher, which is the same for a repeated request.
func (s *scriptedEnv) answer(n runner.Notice) *runner.Claim {
	key := fmt.Sprint(n.Request.Execution, n.Request.Try)
	if was := s.given[key]; was != nil {
		return was
	}
	s.claims++
	c := s.match(*n.Request, s.claims)
	if c != nil {
		c.Try = n.Request.Try
		s.given[key] = c
	}
	return c
}

// session is an agent session whose behavior the message selects.
func (s *scriptedEnv) session(ctx workflow.Context, in session.Input) error {
	delivered, withdrawn := workflow.GetSignalChannel(ctx, session.SignalDeliver),
		workflow.GetSignalChannel(ctx, session.SignalWithdraw)
	var m session.Message
	if in.First != nil {
		m = *in.First
	} else {
		delivered.Receive(ctx, &m)
	}
	for turn := 1; ; turn++ {
		s.mu.Lock()
		id := workflow.GetInfo(ctx).WorkflowExecution.ID
		s.parents[id] = append(s.parents[id], m)
		s.mu.Unlock()
		r := session.Report{MessageID: m.ID, SessionID: session.IDOf(id), Turn: turn,
			Status: session.ReportCompleted, Text: "done: " + m.Text, DurationMS: 1500}
		switch m.Text {
		case "die":
			return temporal.NewNonRetryableApplicationError("no claude here", "NotFound", nil)
		case "fail":
			r.Status, r.Failure = session.ReportFailed,
				&ace.Failure{Kind: ace.Failed, Message: "out of credit"}
		case "hang":
			var w session.Withdraw
			withdrawn.Receive(ctx, &w)
			r.Status, r.Text = session.ReportInterrupted, "half"
		}
		if m.ReplyTo != "" {
			if err := workflow.SignalExternalWorkflow(ctx, m.ReplyTo, "", session.SignalReport, r).Get(ctx,
				nil); err != nil {
				return err
			}
		}
		delivered.Receive(ctx, &m)
	}
}

func (s *scriptedEnv) notices() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []string
	for _, n := range s.received {
		all = append(all, string(n.Kind))
	}
	return strings.Join(all, " ")
}

func ended(x run.Execution, code int) run.Result {
	r := run.Result{Status: run.Completed, Output: json.RawMessage(`{"pages":3}`), OutputIs: "json",
		Stdout: `{"pages":3}`, ExitCode: &code, DurationSeconds: 0.5}
	if code != 0 {
		r.Status, r.Reason, r.Error = run.Failed, run.ExitCode, fmt.Sprintf("exit code %d", code)
	}
	return r
}

// heartbeatUntilDone sends heartbeats until the execution is canceled.
func heartbeatUntilDone(ctx context.Context) {
	for {
		activity.RecordHeartbeat(ctx)
		select {
		case <-ctx.Done():
			return
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (s *scriptedEnv) startRun(q run.Request) run.Input {
	s.t.Helper()
	in, err := s.Start(s.t.Context(), q)
	if err != nil {
		s.t.Fatal(err)
	}
	return in
}

func (s *scriptedEnv) awaitResult(in run.Input) run.Result {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	r, err := s.Await(ctx, in.RunID)
	if err != nil {
		s.t.Fatal(err)
	}
	return r
}

// waitRun waits for a state of the run.
func (s *scriptedEnv) waitRun(in run.Input, ok func(run.State) bool) run.State {
	s.t.Helper()
	var st run.State
	waitUntil(s.t, "run "+in.RunID, func() bool {
		var err error
		if st, err = s.State(s.t.Context(), in.RunID); err != nil {
			s.t.Fatal(err)
		}
		return ok(st)
	})
	return st
}

// waitUntil waits for a condition.
func waitUntil(t *testing.T, what string, ok func() bool) {
	t.Helper()
	eventually(t, func() error {
		if !ok() {
			return fmt.Errorf("%s: the expected state was not reached", what)
		}
		return nil
	})
}

// checkAndRecord compares the workflow's answer with the fold of its history and records the history.
func (s *scriptedEnv) checkAndRecord(in run.Input, name string) run.State {
	s.t.Helper()
	folded, err := s.State(s.t.Context(), in.RunID)
	if err != nil {
		s.t.Fatal(err)
	}
	v, err := s.Client.QueryWorkflow(s.t.Context(), run.WorkflowID(in.RunID), "", run.QueryRun)
	if err != nil {
		s.t.Fatal(err)
	}
	var asked run.State
	if err := v.Get(&asked); err != nil {
		s.t.Fatal(err)
	}
	equalJSON(s.t, name, asked, folded)
	d, err := s.Client.DescribeWorkflowExecution(s.t.Context(), run.WorkflowID(in.RunID), "")
	if err != nil {
		s.t.Fatal(err)
	}
	if status := history.StatusOf(d.GetWorkflowExecutionInfo().GetStatus()); status != folded.Exit {
		s.t.Errorf("%s: the server says %s, the run %s", name, status, folded.Exit)
	}
	recordAs(s.t, s.Client, run.WorkflowID(in.RunID), "run-"+name)
	return folded
}

func (s *scriptedEnv) signal(in run.Input, name string, arg any) {
	s.t.Helper()
	if err := s.Client.SignalWorkflow(s.t.Context(), run.WorkflowID(in.RunID), "", name, arg); err != nil {
		s.t.Fatal(err)
	}
}

var noParameters = json.RawMessage(`{}`)

func TestRuns(t *testing.T) {
	t.Parallel()
	s := newScriptedEnv(t)
	set := func(match func(runner.Request, int64) *runner.Claim,
		execute func(context.Context, run.Execution) (run.Result, error)) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.received, s.bySignal, s.failFirst = nil, false, false
		s.match, s.execute = match, execute
	}
	onA := func(_ runner.Request, n int64) *runner.Claim { return s.claim("a", n) }
	noRunner := func(runner.Request, int64) *runner.Claim { return nil }
	completes := func(_ context.Context, x run.Execution) (run.Result, error) { return ended(x, 0), nil }
	untilStopped := func(ctx context.Context, x run.Execution) (run.Result, error) {
		heartbeatUntilDone(ctx)
		return run.Result{Status: run.Stopped, Stdout: "partly"}, nil
	}
	reportsStart := func(ctx context.Context, x run.Execution) (run.Result, error) {
		began := run.ProgramStart{Claim: x.Claim.Number, Try: x.Claim.Try, PID: 7, At: time.Now().UTC()}
		if err := s.Client.SignalWorkflow(ctx, run.WorkflowID(x.Input.RunID), "", run.SignalStarted,
			began); err != nil {
			return run.Result{}, err
		}
		return untilStopped(ctx, x)
	}

	t.Run("completed", func(t *testing.T) {
		set(onA, completes)
		in := s.startRun(run.Request{AgentName: "noop", Parameters: noParameters})
		if string(in.Parameters) != `{"depth":2}` || !strings.HasPrefix(in.SessionID, "ses_") ||
			in.Requirements.ExecutorType != runner.Deterministic {
			t.Errorf("input: %+v", in)
		}
		r := s.awaitResult(in)
		if r.Status != run.Completed || string(r.Output) != `{"pages":3}` || r.Runner != "lnch_a" ||
			r.SessionID != in.SessionID || *r.ExitCode != 0 {
			t.Errorf("result: %+v", r)
		}
		st := s.checkAndRecord(in, "completed")
		if st.Exit != ace.Completed || st.Notified != run.NotifiedNone || st.Ignored != 0 {
			t.Errorf("state: %+v", st)
		}
		if got := s.notices(); got != "enqueue release" {
			t.Errorf("notices %q", got)
		}
		waitUntil(t, "the list", func() bool {
			list, err := s.List(t.Context(), run.Filter{AgentName: "noop", Status: run.Completed,
				SessionID: in.SessionID})
			return err == nil && len(list) == 1 && list[0].RunnerID == "lnch_a" &&
				list[0].RunID == in.RunID && !list[0].EndedAt.IsZero()
		})
	})
	t.Run("answered by a signal", func(t *testing.T) {
		set(onA, completes)
		s.bySignal = true
		in := s.startRun(run.Request{AgentName: "noop", Parameters: noParameters})
		if r := s.awaitResult(in); r.Status != run.Completed || r.Runner != "lnch_a" {
			t.Errorf("result: %+v", r)
		}
		s.checkAndRecord(in, "signalled")
	})
	t.Run("answered by a signal and again by the result", func(t *testing.T) {
		set(onA, completes)
		s.failFirst = true
		in := s.startRun(run.Request{AgentName: "noop", Parameters: noParameters})
		if r := s.awaitResult(in); r.Status != run.Completed || r.Runner != "lnch_a" {
			t.Errorf("result: %+v", r)
		}
		if got := s.notices(); got != "enqueue enqueue release" {
			t.Errorf("notices %q", got)
		}
		s.checkAndRecord(in, "asked-again")
	})
	t.Run("failed", func(t *testing.T) {
		set(onA, func(_ context.Context, x run.Execution) (run.Result, error) { return ended(x, 3), nil })
		in := s.startRun(run.Request{AgentName: "noop", Parameters: noParameters})
		if r := s.awaitResult(in); r.Status != run.Failed || r.Reason != run.ExitCode || *r.ExitCode != 3 {
			t.Errorf("result: %+v", r)
		}
		if st := s.checkAndRecord(in, "failed"); st.Exit != ace.Failed {
			t.Errorf("state: %+v", st)
		}
	})
	t.Run("not started", func(t *testing.T) {
		set(onA, func(context.Context, run.Execution) (run.Result, error) {
			return run.Result{}, temporal.NewNonRetryableApplicationError("no such program",
				string(run.NotStarted), nil)
		})
		in := s.startRun(run.Request{AgentName: "noop", Parameters: noParameters})
		r := s.awaitResult(in)
		if r.Status != run.Failed || r.Reason != run.NotStarted || r.Error != "no such program" ||
			string(r.Output) != "null" || r.OutputIs != "none" {
			t.Errorf("result: %+v", r)
		}
		s.checkAndRecord(in, "not-started")
	})
	t.Run("timeout", func(t *testing.T) {
		set(onA, func(context.Context, run.Execution) (run.Result, error) {
			return run.Result{Status: run.Failed, Reason: run.Timeout, Error: "it did not end within 1s"}, nil
		})
		in := s.startRun(run.Request{AgentName: "noop", Parameters: noParameters})
		if r := s.awaitResult(in); r.Reason != run.Timeout {
			t.Errorf("result: %+v", r)
		}
		if st := s.checkAndRecord(in, "timeout"); st.Exit != ace.Failed {
			t.Errorf("state: %+v", st)
		}
	})
	t.Run("queue", func(t *testing.T) {
		set(noRunner, completes)
		in := s.startRun(run.Request{AgentName: "noop", Parameters: noParameters})
		direct := in
		direct.RunID, direct.Queue = in.RunID+"-direct", "runner.b"
		if _, err := s.Client.ExecuteWorkflow(t.Context(),
			client.StartWorkflowOptions{ID: run.WorkflowID(direct.RunID), TaskQueue: ace.TaskQueue},
			run.Workflow, direct); err != nil {
			t.Fatal(err)
		}
		if r := s.awaitResult(direct); r.Status != run.Completed {
			t.Errorf("result: %+v", r)
		}
		s.checkAndRecord(direct, "queue")
		if got := s.notices(); got != "enqueue" {
			t.Errorf("notices %q", got)
		}
		if _, err := s.Runs.Stop(t.Context(), in.SessionID, run.StopRequest{}); err != nil {
			t.Error(err)
		}
	})
	t.Run("stopped while pending", func(t *testing.T) {
		set(noRunner, completes)
		in := s.startRun(run.Request{AgentName: "noop", Parameters: noParameters})
		waitUntil(t, "asked", func() bool { return s.notices() == "enqueue" })
		st, err := s.Runs.Stop(t.Context(), in.RunID, run.StopRequest{Reason: "enough", By: "ada"})
		if err != nil || st.Status != run.Stopped {
			t.Fatalf("%+v, %v", st, err)
		}
		if r := s.awaitResult(in); r.Status != run.Stopped || r.Error != "enough" {
			t.Errorf("result: %+v", r)
		}
		if got := s.notices(); got != "enqueue withdraw" {
			t.Errorf("notices %q", got)
		}
		s.checkAndRecord(in, "stopped-pending")
		if _, err := s.Runs.Stop(t.Context(), in.RunID, run.StopRequest{}); !errors.Is(err, run.ErrOver) {
			t.Errorf("second stop: %v", err)
		}
	})
	for name, execute := range map[string]func(context.Context, run.Execution) (run.Result,
		error){"claimed": untilStopped, "running": reportsStart} {
		t.Run("stopped when "+name, func(t *testing.T) {
			set(onA, execute)
			in := s.startRun(run.Request{AgentName: "noop", Parameters: noParameters})
			s.waitRun(in, func(st run.State) bool { return string(st.Status) == name && isAssigned(s, in) })
			st, err := s.Runs.Stop(t.Context(), in.RunID, run.StopRequest{By: "ada"})
			if err != nil || st.Status != run.Stopping {
				t.Fatalf("%+v, %v", st, err)
			}
			if r := s.awaitResult(in); r.Status != run.Stopped || r.Stdout != "partly" {
				t.Errorf("result: %+v", r)
			}
			st = s.checkAndRecord(in, "stopped-"+name)
			if name == "running" && (st.ProgramStart == nil || st.ProgramStart.PID != 7 ||
				st.TimeoutAt.IsZero()) {
				t.Errorf("state: %+v", st)
			}
		})
	}
	t.Run("cancelled", func(t *testing.T) {
		set(onA, reportsStart)
		in := s.startRun(run.Request{AgentName: "noop", Parameters: noParameters})
		s.waitRun(in, func(st run.State) bool { return st.Status == run.Running })
		if err := s.Cancel(t.Context(), run.WorkflowID(in.RunID), ""); err != nil {
			t.Fatal(err)
		}
		if r := s.awaitResult(in); r.Status != run.Stopped {
			t.Errorf("result: %+v", r)
		}
		if st := s.checkAndRecord(in, "cancelled"); st.Exit != ace.Canceled {
			t.Errorf("state: %+v", st)
		}
	})
	t.Run("terminated", func(t *testing.T) {
		set(onA, reportsStart)
		in := s.startRun(run.Request{AgentName: "noop", Parameters: noParameters})
		s.waitRun(in, func(st run.State) bool { return st.Status == run.Running })
		if err := s.Terminate(t.Context(), run.WorkflowID(in.RunID), "", "by a user"); err != nil {
			t.Fatal(err)
		}
		if r := s.awaitResult(in); r.Status != run.Failed || r.Reason != run.Terminated {
			t.Errorf("result: %+v", r)
		}
		waitUntil(t, "the list", func() bool {
			list, err := s.List(t.Context(), run.Filter{Status: run.Failed, SessionID: in.SessionID})
			return err == nil && len(list) == 1
		})
	})
	t.Run("unmatched", func(t *testing.T) {
		set(noRunner, completes)
		in := s.startRun(run.Request{AgentName: "noop", Parameters: noParameters})
		s.signal(in, run.SignalUnmatched, runner.Unmatched{Try: 2, Message: "forged", Reason: "no_runner"})
		s.signal(in, run.SignalUnmatched, runner.Unmatched{Try: 1, Message: "no runner has tag gpu",
			Reason: "no_runner"})
		if r := s.awaitResult(in); r.Reason != run.NoRunner || r.Error != "no runner has tag gpu" {
			t.Errorf("result: %+v", r)
		}
		if st := s.checkAndRecord(in, "unmatched"); st.Ignored != 1 {
			t.Errorf("state: %+v", st)
		}
	})
	t.Run("lost, late result, moved", func(t *testing.T) {
		held, late := make(chan struct{}), make(chan error, 2)
		dead := func(ctx context.Context, x run.Execution) (run.Result, error) {
			if x.Claim.RunnerID == "lnch_b" {
				return ended(x, 0), nil
			}
			<-held // without heartbeats
			late <- ctx.Err()
			return ended(x, 9), nil
		}
		set(func(q runner.Request, n int64) *runner.Claim {
			if len(q.Avoid) > 0 {
				return s.claim("b", n)
			}
			return s.claim("a", n)
		}, dead)
		fails, moves := s.startRun(run.Request{AgentName: "noop", Parameters: noParameters}),
			s.startRun(run.Request{AgentName: "mover", Parameters: noParameters})
		if r := s.awaitResult(fails); r.Status != run.Failed || r.Reason != run.RunnerLost ||
			!strings.Contains(r.Error, "lnch_a") {
			t.Errorf("result: %+v", r)
		}
		if r := s.awaitResult(moves); r.Status != run.Completed || r.Runner != "lnch_b" {
			t.Errorf("result: %+v", r)
		}
		close(held)
		<-late
		<-late
		s.checkAndRecord(fails, "lost")
		st := s.checkAndRecord(moves, "moved")
		if len(st.Moves) != 1 || st.Moves[0].Runner != "lnch_a" || st.Try != 2 || st.Result.ExitCode == nil ||
			*st.Result.ExitCode != 0 {
			t.Errorf("state: %+v", st)
		}
		if got := s.notices(); strings.Count(got, "enqueue") != 3 || strings.Count(got, "release") != 3 {
			t.Errorf("notices %q", got)
		}
	})
	t.Run("forged", func(t *testing.T) {
		set(onA, reportsStart)
		in := s.startRun(run.Request{AgentName: "noop", Parameters: noParameters})
		st := s.waitRun(in, func(st run.State) bool { return st.Status == run.Running })
		n := st.Claim.Number
		for _, f := range []struct {
			signal string
			arg    any
		}{
			{run.SignalClaimed, runner.Claim{Number: n + 1, Try: 1, RunnerID: "lnch_evil", Queue: "evil"}},
			{run.SignalClaimed, runner.Claim{Number: n, Try: 2, RunnerID: "lnch_evil", Queue: "evil"}},
			{run.SignalUnmatched, runner.Unmatched{Try: 1, Message: "forged"}},
			{run.SignalLost, runner.Lost{Claim: n + 1, RunnerID: "lnch_a"}},
			{run.SignalLost, runner.Lost{Claim: n, RunnerID: "lnch_b"}},
			{run.SignalStarted, run.ProgramStart{Claim: n, Try: 1, PID: 9}},
			{run.SignalReport, session.Report{MessageID: in.RunID, SessionID: in.SessionID,
				Status: session.ReportCompleted}},
			{run.SignalLost, "no JSON object"},
		} {
			s.signal(in, f.signal, f.arg)
		}
		after := s.waitRun(in, func(st run.State) bool { return st.Ignored == 8 })
		after.Ignored = st.Ignored
		equalJSON(t, "forged signals", st, after)
		if _, err := s.Runs.Stop(t.Context(), in.RunID, run.StopRequest{}); err != nil {
			t.Fatal(err)
		}
		s.awaitResult(in)
		s.checkAndRecord(in, "forged")
	})
	t.Run("callback", func(t *testing.T) {
		set(onA, completes)
		if _, err := s.Client.ExecuteWorkflow(t.Context(),
			client.StartWorkflowOptions{ID: session.WorkflowID("ses_parent"), TaskQueue: ace.TaskQueue},
			session.Workflow, session.Input{}); err != nil {
			t.Fatal(err)
		}
		in := s.startRun(run.Request{AgentName: "noop", Parameters: noParameters, Mode: run.AsyncCallback,
			ParentSessionID: "ses_parent"})
		s.awaitResult(in)
		if st := s.checkAndRecord(in, "callback"); st.Notified != run.NotifiedSession {
			t.Errorf("state: %+v", st)
		}
		s.mu.Lock()
		heard := s.parents[session.WorkflowID("ses_parent")]
		s.mu.Unlock()
		if len(heard) != 1 || heard[0].ID != run.CallbackID(in.RunID) || !heard[0].Callback ||
			!strings.Contains(heard[0].Text, `status="completed"`) {
			t.Errorf("parent received %+v", heard)
		}
	})
	t.Run("terminated parent", func(t *testing.T) {
		set(onA, reportsStart)
		if _, err := s.Client.ExecuteWorkflow(t.Context(),
			client.StartWorkflowOptions{ID: session.WorkflowID("ses_gone"), TaskQueue: ace.TaskQueue},
			session.Workflow, session.Input{}); err != nil {
			t.Fatal(err)
		}
		in := s.startRun(run.Request{AgentName: "noop", Parameters: noParameters, Mode: run.AsyncCallback,
			ParentSessionID: "ses_gone"})
		if err := s.Terminate(t.Context(), session.WorkflowID("ses_gone"), "", "gone"); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Runs.Stop(t.Context(), in.RunID, run.StopRequest{}); err != nil {
			t.Fatal(err)
		}
		s.awaitResult(in)
		if st := s.checkAndRecord(in, "callback-gone"); st.Notified != run.NotifiedEnded {
			t.Errorf("state: %+v", st)
		}
	})
	t.Run("agents", func(t *testing.T) { s.testAgents(t, set, onA) })
	t.Run("simultaneous signals", func(t *testing.T) { s.testSimultaneousSignals(t, set) })
	set(onA, completes)
	t.Run("requests", func(t *testing.T) { s.testRequests(t) })
}

// isAssigned reports whether the runner has started the run.
func isAssigned(s *scriptedEnv, in run.Input) bool {
	d, err := s.Client.DescribeWorkflowExecution(s.t.Context(), run.WorkflowID(in.RunID), "")
	return err == nil && len(d.GetPendingActivities()) == 1 &&
		d.GetPendingActivities()[0].GetLastStartedTime() != nil
}

func (s *scriptedEnv) testRequests(t *testing.T) {
	for _, c := range []struct {
		q    run.Request
		kind error
		text string
	}{
		{run.Request{}, run.ErrBadRequest, "agent_name is missing"},
		{run.Request{AgentName: "none"}, run.ErrNoBlueprint, "none"},
		{run.Request{AgentName: "noop"}, run.ErrBadRequest, "needs parameters; use {}"},
		{run.Request{AgentName: "noop", Parameters: noParameters, Prompt: "go"}, run.ErrBadRequest,
			"no prompt"},
		{run.Request{AgentName: "noop", Parameters: json.RawMessage(`{"wrong":1}`)}, run.ErrBadRequest,
			"$.wrong"},
		{run.Request{AgentName: "noop", Parameters: json.RawMessage(`[1]`)}, run.ErrBadRequest,
			"a JSON object"},
		{run.Request{AgentName: "writer"}, run.ErrBadRequest, "needs a prompt"},
		{run.Request{AgentName: "writer", Prompt: "x", Parameters: noParameters}, run.ErrBadRequest,
			"no parameters"},
		{run.Request{AgentName: "writer", Prompt: strings.Repeat("é", run.MaxPrompt+1)}, run.ErrBadRequest,
			"100001 characters"},
		{run.Request{AgentName: "noop", Parameters: noParameters, RunID: "../x"}, run.ErrBadRequest,
			"run_id"},
		{run.Request{AgentName: "noop", Parameters: noParameters, Mode: "later"}, run.ErrBadRequest,
			"execution_mode"},
		{run.Request{AgentName: "noop", Parameters: noParameters, ProjectDir: "here"}, run.ErrBadRequest,
			"absolute"},
		{run.Request{AgentName: "noop", Parameters: noParameters, Mode: run.AsyncCallback}, run.ErrBadRequest,
			"parent_session_id"},
		{run.Request{AgentName: "noop", Parameters: noParameters, Mode: run.AsyncCallback,
			ParentSessionID: "ses_no"}, run.ErrBadRequest, "not open"},
		{run.Request{AgentName: "noop", Parameters: noParameters,
			Requirements: runner.Requirements{Tags: []string{"a b"}}}, run.ErrBadRequest, "tag"},
		{run.Request{AgentName: "noop", Parameters: json.RawMessage(`{"key":"sk-ant-api03-` +
			strings.Repeat("Ab1", 31) + `AA"}`)}, run.ErrBadRequest, "secret"},
	} {
		_, err := s.Start(t.Context(), c.q)
		if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.text) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%+v: %v", c.q, err)
		}
	}

	q := run.Request{AgentName: "noop", Parameters: noParameters, RunID: "mine"}
	first := s.startRun(q)
	again := s.startRun(q)
	equalJSON(t, "repeated request", first, again)
	q.Parameters = json.RawMessage(`{"depth":3}`)
	if _, err := s.Start(t.Context(), q); !errors.Is(err, run.ErrBadRequest) ||
		!strings.Contains(err.Error(), "a different request") {
		t.Errorf("different request with the same ID: %v", err)
	}
	s.awaitResult(first)
	if _, err := s.Resume(t.Context(), run.Request{SessionID: first.SessionID,
		Prompt: "go on"}); !errors.Is(err, run.ErrBadRequest) ||
		!strings.Contains(err.Error(), "cannot be resumed") {
		t.Errorf("resume of a program: %v", err)
	}
	if _, err := s.Resume(t.Context(), run.Request{SessionID: "ses_no", Prompt: "go on"}); !errors.Is(err,
		run.ErrNotFound) {
		t.Errorf("resume of a missing session: %v", err)
	}
	if _, err := s.State(t.Context(), "no"); !errors.Is(err, run.ErrNotFound) {
		t.Errorf("state of a missing run: %v", err)
	}
	if _, err := s.Await(t.Context(), "no"); !errors.Is(err, run.ErrNotFound) {
		t.Errorf("await of a missing run: %v", err)
	}
	if _, err := s.Runs.Stop(t.Context(), "no", run.StopRequest{}); !errors.Is(err, run.ErrNotFound) {
		t.Errorf("stop of a missing run: %v", err)
	}
	big := s.startRun(run.Request{AgentName: "noop",
		Parameters: json.RawMessage(`{"text":"` + strings.Repeat("x", 40_000) + `"}`)})
	if big.Parameters != nil || big.ParametersRef == nil {
		t.Errorf("large parameters: %d bytes", len(big.Parameters))
	}
	s.awaitResult(big)
	if st, err := s.State(t.Context(), first.SessionID); err != nil || st.Input.RunID != "mine" {
		t.Errorf("by session: %v, %+v", err, st.Input)
	}
}

func (s *scriptedEnv) testAgents(t *testing.T, set func(func(runner.Request, int64) *runner.Claim,
	func(context.Context, run.Execution) (run.Result, error)),
	onA func(runner.Request, int64) *runner.Claim) {
	set(onA, nil)
	in := s.startRun(run.Request{AgentName: "writer", Prompt: "a poem"})
	r := s.awaitResult(in)
	if r.Status != run.Completed || string(r.Output) != `"done: a poem"` || r.OutputIs != "text" ||
		r.Turn != 1 || r.DurationSeconds != 1.5 || r.Runner != "lnch_a" {
		t.Errorf("result: %+v", r)
	}
	s.checkAndRecord(in, "agent")
	s.mu.Lock()
	first := s.parents[session.WorkflowID(in.SessionID)][0]
	s.mu.Unlock()
	if first.ID != in.RunID || first.ReplyTo != run.WorkflowID(in.RunID) {
		t.Errorf("first message %+v", first)
	}

	failed := s.startRun(run.Request{AgentName: "writer", Prompt: "fail"})
	if r := s.awaitResult(failed); r.Reason != run.AgentFailed || r.Error != "out of credit" {
		t.Errorf("result: %+v", r)
	}
	s.checkAndRecord(failed, "agent-failed")

	dead := s.startRun(run.Request{AgentName: "writer", Prompt: "die"})
	if r := s.awaitResult(dead); r.Reason != run.SessionEnded || r.Error != "no claude here" {
		t.Errorf("result: %+v", r)
	}
	s.checkAndRecord(dead, "agent-session-died")

	hangs := s.startRun(run.Request{AgentName: "writer", Prompt: "hang"})
	s.waitRun(hangs, func(st run.State) bool { return st.Status == run.Running })
	if _, err := s.Runs.Stop(t.Context(), hangs.SessionID, run.StopRequest{Reason: "enough"}); err != nil {
		t.Fatal(err)
	}
	if r := s.awaitResult(hangs); r.Status != run.Stopped || string(r.Output) != `"half"` ||
		r.Error != "enough" {
		t.Errorf("result: %+v", r)
	}
	s.checkAndRecord(hangs, "agent-stopped")

	lost := s.startRun(run.Request{AgentName: "writer", Prompt: "hang"})
	st := s.waitRun(lost, func(st run.State) bool { return st.Status == run.Running })
	s.signal(lost, run.SignalLost, runner.Lost{Claim: st.Claim.Number, RunnerID: "lnch_a",
		Message: "runner lnch_a is gone"})
	if r := s.awaitResult(lost); r.Reason != run.RunnerLost || r.Error != "runner lnch_a is gone" {
		t.Errorf("result: %+v", r)
	}
	s.checkAndRecord(lost, "agent-lost")

	again, err := s.Resume(t.Context(), run.Request{SessionID: in.SessionID, Prompt: "more"})
	if err != nil {
		t.Fatal(err)
	}
	if d := again.Requirements; d.Hostname != "vm" || d.ProjectDir != "/work" ||
		d.ExecutorType != runner.ClaudeCode || again.AgentName != "writer" {
		t.Errorf("demands %+v of %s", d, again.AgentName)
	}
	if r := s.awaitResult(again); string(r.Output) != `"done: more"` || r.Turn != 2 {
		t.Errorf("result: %+v", r)
	}
	s.checkAndRecord(again, "agent-resumed")
	if st, err := s.State(t.Context(), in.SessionID); err != nil || st.Input.RunID != again.RunID {
		t.Errorf("the session's newest run is %s: %v", st.Input.RunID, err)
	}
	if _, err := s.Resume(t.Context(), run.Request{SessionID: in.SessionID, Prompt: "more",
		Requirements: runner.Requirements{Hostname: "else"}}); !errors.Is(err, run.ErrBadRequest) {
		t.Errorf("resumed on another host: %v", err)
	}
	if _, err := s.Start(t.Context(), run.Request{AgentName: "writer", Prompt: "x",
		SessionID: in.SessionID}); !errors.Is(err, run.ErrBadRequest) ||
		!strings.Contains(err.Error(), "already exists") {
		t.Errorf("session ID in use: %v", err)
	}
	if _, err := s.Resume(t.Context(),
		run.Request{SessionID: dead.SessionID, Prompt: "more"}); !errors.Is(err, run.ErrOver) {
		t.Errorf("resumed after the end: %v", err)
	}

	again.RunID, again.SessionID = again.RunID+"-3", "ses_none"
	if _, err := s.Client.ExecuteWorkflow(t.Context(),
		client.StartWorkflowOptions{ID: run.WorkflowID(again.RunID), TaskQueue: ace.TaskQueue}, run.Workflow,
		again); err != nil {
		t.Fatal(err)
	}
	if r := s.awaitResult(again); r.Reason != run.SessionEnded {
		t.Errorf("result: %+v", r)
	}
	s.checkAndRecord(again, "agent-no-session")
}

// testSimultaneousSignals delivers signals of all kinds before one workflow task, in many orders: the
// workflow and the reader of the history must agree.
func (s *scriptedEnv) testSimultaneousSignals(t *testing.T,
	set func(func(runner.Request, int64) *runner.Claim, func(context.Context, run.Execution) (run.Result,
		error))) {
	answered := func(id string) bool { return strings.HasSuffix(id, "2") || strings.HasSuffix(id, "3") }
	set(func(r runner.Request, n int64) *runner.Claim {
		if answered(r.RunID) { // in addition to the signals
			return s.claim("a", n)
		}
		return nil
	}, func(_ context.Context, x run.Execution) (run.Result, error) { return ended(x, 0), nil })
	claim := *s.claim("a", 50)
	claim.Try = 1
	other := *s.claim("b", 51)
	other.Try = 1
	first := s.startRun(run.Request{AgentName: "noop", Parameters: noParameters})
	all := []struct {
		signal string
		arg    any
	}{
		{run.SignalClaimed, claim}, {run.SignalUnmatched, runner.Unmatched{Try: 1, Message: "none"}},
		{run.SignalLost, runner.Lost{Claim: 50, RunnerID: "lnch_a", Message: "gone"}},
		{run.SignalStarted, run.ProgramStart{Claim: 50, Try: 1, PID: 5}}, {run.SignalClaimed, other},
		{run.SignalReport, session.Report{}}, {"", nil}, {run.SignalStarted, 7},
	}
	var ins []run.Input
	dice := rand.New(rand.NewPCG(1, 2))
	for i := range 16 {
		in := first
		in.RunID = fmt.Sprintf("at-once-%d", i)
		if _, err := s.Client.ExecuteWorkflow(t.Context(),
			client.StartWorkflowOptions{ID: run.WorkflowID(in.RunID), TaskQueue: "later"}, run.Workflow,
			in); err != nil {
			t.Fatal(err)
		}
		for _, n := range dice.Perm(len(all)) {
			switch f := all[n]; {
			case f.signal != "":
				s.signal(in, f.signal, f.arg)
			case i%2 == 0:
				if err := s.Cancel(t.Context(), run.WorkflowID(in.RunID), ""); err != nil {
					t.Fatal(err)
				}
			}
		}
		ins = append(ins, in)
	}
	w := worker.New(s.Client, "later", worker.Options{WorkerStopTimeout: time.Second})
	w.RegisterWorkflowWithOptions(workflows.Run, workflow.RegisterOptions{Name: run.Workflow})
	w.RegisterActivityWithOptions(s.tell, activity.RegisterOptions{Name: runner.ActivityTell})
	s.serve(w)
	for i, in := range ins {
		s.awaitResult(in)
		s.checkAndRecord(in, fmt.Sprintf("at-once-%d", i))
	}
}
