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
	"acescope/engine/workflows"
)

// shelf is a library of synthetic blueprints.
type shelf map[string]run.Blueprint

func (l shelf) List(context.Context) ([]run.BlueprintInfo, error) {
	return []run.BlueprintInfo{{Name: "noop"}}, nil
}

func (l shelf) Load(name string) (run.Blueprint, func(json.RawMessage) (json.RawMessage, error), error) {
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

// stage is a server with a dispatcher and runners controlled by a test.
type stage struct {
	*engine.Engine
	*engine.Runs
	t *testing.T

	mu      sync.Mutex
	told    runner.Notices
	claims  int64
	asked   map[string]*runner.Claim                  // what was answered, by run and try
	signals bool                                      // answers by a signal, and not at once
	deaf    bool                                      // does not say that it has heard, the first time
	match   func(runner.Request, int64) *runner.Claim // nil answers nothing
	execute func(context.Context, run.Execution) (run.Result, error)
	parents map[string][]session.Message
}

func newStage(t *testing.T) *stage {
	t.Helper()
	e, err := engine.Open(t.Context(), engine.Options{DataDir: t.TempDir(), Version: "test", Takeover: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = e.Close(ctx)
	})
	s := &stage{Engine: e, t: t, asked: map[string]*runner.Claim{}, parents: map[string][]session.Message{}}
	s.Runs = e.Runs(shelf{
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
		w := worker.New(e.Client, "runner."+name, worker.Options{DisableWorkflowWorker: true, WorkerStopTimeout: time.Second, MaxHeartbeatThrottleInterval: 100 * time.Millisecond, DefaultHeartbeatThrottleInterval: 100 * time.Millisecond})
		w.RegisterActivityWithOptions(func(ctx context.Context, x run.Execution) (run.Result, error) { return s.execute(ctx, x) },
			activity.RegisterOptions{Name: run.ActivityExecute})
		s.serve(w)
	}
	return s
}

func (s *stage) serve(w worker.Worker) {
	s.t.Helper()
	if err := w.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(w.Stop)
}

func (s *stage) claim(name string, n int64) *runner.Claim {
	return &runner.Claim{Number: n, RunnerID: "lnch_" + name, Queue: "runner." + name, SessionQueue: "session." + name, At: time.Now().UTC(),
		Capabilities: runner.Capabilities{Hostname: "vm", ProjectDir: "/work"}}
}

// tell implements the dispatcher.
func (s *stage) tell(ctx context.Context, notices runner.Notices) (*runner.Answer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.told = append(s.told, notices...)
	for _, n := range notices {
		if n.Kind != runner.Enqueue {
			continue
		}
		c := s.answer(n)
		if c == nil {
			break
		}
		answer := &runner.Answer{RunID: n.Run, Execution: n.Request.Execution, Claimed: c}
		if s.signals || s.deaf {
			if err := s.Client.SignalWorkflow(ctx, run.WorkflowID(n.Run), n.Request.Execution, run.SignalClaimed, *c); err != nil {
				return nil, err
			}
		}
		if s.deaf {
			s.deaf = false
			return nil, errors.New("the connection is gone")
		}
		if !s.signals {
			return answer, nil
		}
	}
	return nil, nil
}

// answer returns the answer of the dispatcher, which is the same for a repeated request.
func (s *stage) answer(n runner.Notice) *runner.Claim {
	key := fmt.Sprint(n.Request.Execution, n.Request.Try)
	if was := s.asked[key]; was != nil {
		return was
	}
	s.claims++
	c := s.match(*n.Request, s.claims)
	if c != nil {
		c.Try = n.Request.Try
		s.asked[key] = c
	}
	return c
}

// session is an agent session whose behavior the message selects.
func (s *stage) session(ctx workflow.Context, in session.Input) error {
	heard, taken := workflow.GetSignalChannel(ctx, session.SignalDeliver), workflow.GetSignalChannel(ctx, session.SignalWithdraw)
	var m session.Message
	if in.First != nil {
		m = *in.First
	} else {
		heard.Receive(ctx, &m)
	}
	for turn := 1; ; turn++ {
		s.mu.Lock()
		id := workflow.GetInfo(ctx).WorkflowExecution.ID
		s.parents[id] = append(s.parents[id], m)
		s.mu.Unlock()
		r := session.Report{MessageID: m.ID, SessionID: session.IDOf(id), Turn: turn, Status: session.ReportCompleted, Text: "done: " + m.Text, DurationMS: 1500}
		switch m.Text {
		case "die":
			return temporal.NewNonRetryableApplicationError("no claude here", "NotFound", nil)
		case "fail":
			r.Status, r.Failure = session.ReportFailed, &ace.Failure{Kind: ace.Failed, Message: "out of credit"}
		case "hang":
			var w session.Withdraw
			taken.Receive(ctx, &w)
			r.Status, r.Text = session.ReportInterrupted, "half"
		}
		if m.ReplyTo != "" {
			if err := workflow.SignalExternalWorkflow(ctx, m.ReplyTo, "", session.SignalReport, r).Get(ctx, nil); err != nil {
				return err
			}
		}
		heard.Receive(ctx, &m)
	}
}

func (s *stage) notices() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []string
	for _, n := range s.told {
		all = append(all, string(n.Kind))
	}
	return strings.Join(all, " ")
}

func ended(x run.Execution, code int) run.Result {
	r := run.Result{Status: run.Completed, Output: json.RawMessage(`{"pages":3}`), OutputIs: "json", Stdout: `{"pages":3}`, ExitCode: &code, DurationSeconds: 0.5}
	if code != 0 {
		r.Status, r.Reason, r.Error = run.Failed, run.ExitCode, fmt.Sprintf("exit code %d", code)
	}
	return r
}

// beats executes until it is told to end, like a runner.
func beats(ctx context.Context) {
	for {
		activity.RecordHeartbeat(ctx)
		select {
		case <-ctx.Done():
			return
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (s *stage) start(q run.Request) run.Input {
	s.t.Helper()
	in, err := s.Start(s.t.Context(), q)
	if err != nil {
		s.t.Fatal(err)
	}
	return in
}

func (s *stage) await(in run.Input) run.Result {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	r, err := s.Await(ctx, in.RunID)
	if err != nil {
		s.t.Fatal(err)
	}
	return r
}

// until waits for a state of the run.
func (s *stage) until(in run.Input, ok func(run.State) bool) run.State {
	s.t.Helper()
	var st run.State
	comes(s.t, "run "+in.RunID, func() bool {
		var err error
		if st, err = s.State(s.t.Context(), in.RunID); err != nil {
			s.t.Fatal(err)
		}
		return ok(st)
	})
	return st
}

// comes waits for a condition.
func comes(t *testing.T, what string, ok func() bool) {
	t.Helper()
	eventually(t, func() error {
		if !ok() {
			return fmt.Errorf("%s: it did not come to that", what)
		}
		return nil
	})
}

// keep compares the workflow's answer with the fold of its history and records the history.
func (s *stage) keep(in run.Input, name string) run.State {
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
	same(s.t, name, asked, folded)
	recordAs(s.t, s.Client, run.WorkflowID(in.RunID), "run-"+name)
	return folded
}

func (s *stage) signal(in run.Input, name string, arg any) {
	s.t.Helper()
	if err := s.Client.SignalWorkflow(s.t.Context(), run.WorkflowID(in.RunID), "", name, arg); err != nil {
		s.t.Fatal(err)
	}
}

var none = json.RawMessage(`{}`)

func TestRuns(t *testing.T) {
	s := newStage(t)
	set := func(match func(runner.Request, int64) *runner.Claim, execute func(context.Context, run.Execution) (run.Result, error)) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.told, s.signals, s.deaf = nil, false, false
		s.match, s.execute = match, execute
	}
	onA := func(_ runner.Request, n int64) *runner.Claim { return s.claim("a", n) }
	nobody := func(runner.Request, int64) *runner.Claim { return nil }
	atOnce := func(_ context.Context, x run.Execution) (run.Result, error) { return ended(x, 0), nil }
	onceStopped := func(ctx context.Context, x run.Execution) (run.Result, error) {
		beats(ctx)
		return run.Result{Status: run.Stopped, Stdout: "partly"}, nil
	}
	longer := func(ctx context.Context, x run.Execution) (run.Result, error) {
		began := run.ProgramStart{Claim: x.Claim.Number, Try: x.Claim.Try, PID: 7, At: time.Now().UTC()}
		if err := s.Client.SignalWorkflow(ctx, run.WorkflowID(x.Input.RunID), "", run.SignalStarted, began); err != nil {
			return run.Result{}, err
		}
		return onceStopped(ctx, x)
	}

	t.Run("completed", func(t *testing.T) {
		set(onA, atOnce)
		in := s.start(run.Request{AgentName: "noop", Parameters: none})
		if string(in.Parameters) != `{"depth":2}` || !strings.HasPrefix(in.SessionID, "ses_") || in.Requirements.ExecutorType != runner.Deterministic {
			t.Errorf("input: %+v", in)
		}
		r := s.await(in)
		if r.Status != run.Completed || string(r.Output) != `{"pages":3}` || r.Runner != "lnch_a" || r.SessionID != in.SessionID || *r.ExitCode != 0 {
			t.Errorf("result: %+v", r)
		}
		st := s.keep(in, "completed")
		if st.Exit != ace.Success || st.Notified != run.NotifiedNone || st.Ignored != 0 {
			t.Errorf("state: %+v", st)
		}
		if got := s.notices(); got != "enqueue release" {
			t.Errorf("told %q", got)
		}
		comes(t, "the list", func() bool {
			list, err := s.List(t.Context(), run.Filter{AgentName: "noop", Status: run.Completed, SessionID: in.SessionID})
			return err == nil && len(list) == 1 && list[0].RunnerID == "lnch_a" && list[0].RunID == in.RunID && !list[0].EndedAt.IsZero()
		})
	})
	t.Run("told by a signal", func(t *testing.T) {
		set(onA, atOnce)
		s.signals = true
		in := s.start(run.Request{AgentName: "noop", Parameters: none})
		if r := s.await(in); r.Status != run.Completed || r.Runner != "lnch_a" {
			t.Errorf("result: %+v", r)
		}
		s.keep(in, "signalled")
	})
	t.Run("told by a signal and again at once", func(t *testing.T) {
		set(onA, atOnce)
		s.deaf = true
		in := s.start(run.Request{AgentName: "noop", Parameters: none})
		if r := s.await(in); r.Status != run.Completed || r.Runner != "lnch_a" {
			t.Errorf("result: %+v", r)
		}
		if got := s.notices(); got != "enqueue enqueue release" {
			t.Errorf("told %q", got)
		}
		s.keep(in, "asked-again")
	})
	t.Run("failed", func(t *testing.T) {
		set(onA, func(_ context.Context, x run.Execution) (run.Result, error) { return ended(x, 3), nil })
		in := s.start(run.Request{AgentName: "noop", Parameters: none})
		if r := s.await(in); r.Status != run.Failed || r.Reason != run.ExitCode || *r.ExitCode != 3 {
			t.Errorf("result: %+v", r)
		}
		if st := s.keep(in, "failed"); st.Exit != ace.Failed {
			t.Errorf("state: %+v", st)
		}
	})
	t.Run("not started", func(t *testing.T) {
		set(onA, func(context.Context, run.Execution) (run.Result, error) {
			return run.Result{}, temporal.NewNonRetryableApplicationError("no such program", string(run.NotStarted), nil)
		})
		in := s.start(run.Request{AgentName: "noop", Parameters: none})
		r := s.await(in)
		if r.Status != run.Failed || r.Reason != run.NotStarted || r.Error != "no such program" || string(r.Output) != "null" || r.OutputIs != "none" {
			t.Errorf("result: %+v", r)
		}
		s.keep(in, "not-started")
	})
	t.Run("timeout", func(t *testing.T) {
		set(onA, func(context.Context, run.Execution) (run.Result, error) {
			return run.Result{Status: run.Failed, Reason: run.Timeout, Error: "it did not end within 1s"}, nil
		})
		in := s.start(run.Request{AgentName: "noop", Parameters: none})
		if r := s.await(in); r.Reason != run.Timeout {
			t.Errorf("result: %+v", r)
		}
		if st := s.keep(in, "timeout"); st.Exit != ace.Timeout {
			t.Errorf("state: %+v", st)
		}
	})
	t.Run("queue", func(t *testing.T) {
		set(nobody, atOnce)
		in := s.start(run.Request{AgentName: "noop", Parameters: none})
		direct := in
		direct.RunID, direct.Queue = in.RunID+"-direct", "runner.b"
		if _, err := s.Client.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: run.WorkflowID(direct.RunID), TaskQueue: ace.TaskQueue}, run.Workflow, direct); err != nil {
			t.Fatal(err)
		}
		if r := s.await(direct); r.Status != run.Completed {
			t.Errorf("result: %+v", r)
		}
		s.keep(direct, "queue")
		if got := s.notices(); got != "enqueue" {
			t.Errorf("told %q", got)
		}
		if _, err := s.Runs.Stop(t.Context(), in.SessionID, run.StopRequest{}); err != nil {
			t.Error(err)
		}
	})
	t.Run("stopped while it waits", func(t *testing.T) {
		set(nobody, atOnce)
		in := s.start(run.Request{AgentName: "noop", Parameters: none})
		comes(t, "asked", func() bool { return s.notices() == "enqueue" })
		st, err := s.Runs.Stop(t.Context(), in.RunID, run.StopRequest{Reason: "enough", By: "ada"})
		if err != nil || st.Status != run.Stopped {
			t.Fatalf("%+v, %v", st, err)
		}
		if r := s.await(in); r.Status != run.Stopped || r.Error != "enough" {
			t.Errorf("result: %+v", r)
		}
		if got := s.notices(); got != "enqueue withdraw" {
			t.Errorf("told %q", got)
		}
		s.keep(in, "stopped-pending")
		if _, err := s.Runs.Stop(t.Context(), in.RunID, run.StopRequest{}); !errors.Is(err, run.ErrOver) {
			t.Errorf("stopped twice: %v", err)
		}
	})
	for name, execute := range map[string]func(context.Context, run.Execution) (run.Result, error){"claimed": onceStopped, "running": longer} {
		t.Run("stopped when "+name, func(t *testing.T) {
			set(onA, execute)
			in := s.start(run.Request{AgentName: "noop", Parameters: none})
			s.until(in, func(st run.State) bool { return string(st.Status) == name && given(s, in) })
			st, err := s.Runs.Stop(t.Context(), in.RunID, run.StopRequest{By: "ada"})
			if err != nil || st.Status != run.Stopping {
				t.Fatalf("%+v, %v", st, err)
			}
			if r := s.await(in); r.Status != run.Stopped || r.Stdout != "partly" {
				t.Errorf("result: %+v", r)
			}
			st = s.keep(in, "stopped-"+name)
			if name == "running" && (st.ProgramStart == nil || st.ProgramStart.PID != 7 || st.TimeoutAt.IsZero()) {
				t.Errorf("state: %+v", st)
			}
		})
	}
	t.Run("cancelled", func(t *testing.T) {
		set(onA, longer)
		in := s.start(run.Request{AgentName: "noop", Parameters: none})
		s.until(in, func(st run.State) bool { return st.Status == run.Running })
		if err := s.Cancel(t.Context(), run.WorkflowID(in.RunID), ""); err != nil {
			t.Fatal(err)
		}
		if r := s.await(in); r.Status != run.Stopped {
			t.Errorf("result: %+v", r)
		}
		if st := s.keep(in, "cancelled"); st.Exit != ace.Canceled {
			t.Errorf("state: %+v", st)
		}
	})
	t.Run("terminated", func(t *testing.T) {
		set(onA, longer)
		in := s.start(run.Request{AgentName: "noop", Parameters: none})
		s.until(in, func(st run.State) bool { return st.Status == run.Running })
		if err := s.Terminate(t.Context(), run.WorkflowID(in.RunID), "", "by hand"); err != nil {
			t.Fatal(err)
		}
		if r := s.await(in); r.Status != run.Failed || r.Reason != run.Terminated {
			t.Errorf("result: %+v", r)
		}
		comes(t, "the list", func() bool {
			list, err := s.List(t.Context(), run.Filter{Status: run.Failed, SessionID: in.SessionID})
			return err == nil && len(list) == 1
		})
	})
	t.Run("unmatched", func(t *testing.T) {
		set(nobody, atOnce)
		in := s.start(run.Request{AgentName: "noop", Parameters: none})
		s.signal(in, run.SignalUnmatched, runner.Unmatched{Try: 2, Message: "forged", Reason: "no_runner"})
		s.signal(in, run.SignalUnmatched, runner.Unmatched{Try: 1, Message: "no runner has tag gpu", Reason: "no_runner"})
		if r := s.await(in); r.Reason != run.NoRunner || r.Error != "no runner has tag gpu" {
			t.Errorf("result: %+v", r)
		}
		if st := s.keep(in, "unmatched"); st.Ignored != 1 {
			t.Errorf("state: %+v", st)
		}
	})
	t.Run("lost, a late answer, moved", func(t *testing.T) {
		held, late := make(chan struct{}), make(chan error, 2)
		dead := func(ctx context.Context, x run.Execution) (run.Result, error) {
			if x.Claim.RunnerID == "lnch_b" {
				return ended(x, 0), nil
			}
			<-held // without a heartbeat
			late <- ctx.Err()
			return ended(x, 9), nil
		}
		set(func(q runner.Request, n int64) *runner.Claim {
			if len(q.Avoid) > 0 {
				return s.claim("b", n)
			}
			return s.claim("a", n)
		}, dead)
		fails, moves := s.start(run.Request{AgentName: "noop", Parameters: none}), s.start(run.Request{AgentName: "mover", Parameters: none})
		if r := s.await(fails); r.Status != run.Failed || r.Reason != run.RunnerLost || !strings.Contains(r.Error, "lnch_a") {
			t.Errorf("result: %+v", r)
		}
		if r := s.await(moves); r.Status != run.Completed || r.Runner != "lnch_b" {
			t.Errorf("result: %+v", r)
		}
		close(held)
		<-late
		<-late
		s.keep(fails, "lost")
		st := s.keep(moves, "moved")
		if len(st.Moves) != 1 || st.Moves[0].Runner != "lnch_a" || st.Try != 2 || st.Result.ExitCode == nil || *st.Result.ExitCode != 0 {
			t.Errorf("state: %+v", st)
		}
		if got := s.notices(); strings.Count(got, "enqueue") != 3 || strings.Count(got, "release") != 3 {
			t.Errorf("told %q", got)
		}
	})
	t.Run("forged", func(t *testing.T) {
		set(onA, longer)
		in := s.start(run.Request{AgentName: "noop", Parameters: none})
		st := s.until(in, func(st run.State) bool { return st.Status == run.Running })
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
			{run.SignalReport, session.Report{MessageID: in.RunID, SessionID: in.SessionID, Status: session.ReportCompleted}},
			{run.SignalLost, "no JSON object"},
		} {
			s.signal(in, f.signal, f.arg)
		}
		after := s.until(in, func(st run.State) bool { return st.Ignored == 8 })
		after.Ignored = st.Ignored
		same(t, "forged signals", st, after)
		if _, err := s.Runs.Stop(t.Context(), in.RunID, run.StopRequest{}); err != nil {
			t.Fatal(err)
		}
		s.await(in)
		s.keep(in, "forged")
	})
	t.Run("callback", func(t *testing.T) {
		set(onA, atOnce)
		if _, err := s.Client.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: session.WorkflowID("ses_parent"), TaskQueue: ace.TaskQueue}, session.Workflow, session.Input{}); err != nil {
			t.Fatal(err)
		}
		in := s.start(run.Request{AgentName: "noop", Parameters: none, Mode: run.AsyncCallback, ParentSessionID: "ses_parent"})
		s.await(in)
		if st := s.keep(in, "callback"); st.Notified != run.NotifiedSession {
			t.Errorf("state: %+v", st)
		}
		s.mu.Lock()
		heard := s.parents[session.WorkflowID("ses_parent")]
		s.mu.Unlock()
		if len(heard) != 1 || heard[0].ID != run.CallbackID(in.RunID) || !heard[0].Callback || !strings.Contains(heard[0].Text, `status="completed"`) {
			t.Errorf("heard %+v", heard)
		}
	})
	t.Run("the parent is gone", func(t *testing.T) {
		set(onA, longer)
		if _, err := s.Client.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: session.WorkflowID("ses_gone"), TaskQueue: ace.TaskQueue}, session.Workflow, session.Input{}); err != nil {
			t.Fatal(err)
		}
		in := s.start(run.Request{AgentName: "noop", Parameters: none, Mode: run.AsyncCallback, ParentSessionID: "ses_gone"})
		if err := s.Terminate(t.Context(), session.WorkflowID("ses_gone"), "", "gone"); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Runs.Stop(t.Context(), in.RunID, run.StopRequest{}); err != nil {
			t.Fatal(err)
		}
		s.await(in)
		if st := s.keep(in, "callback-gone"); st.Notified != run.NotifiedEnded {
			t.Errorf("state: %+v", st)
		}
	})
	t.Run("agents", func(t *testing.T) { s.agents(t, set, onA) })
	t.Run("all at once", func(t *testing.T) { s.atOnce(t, set) })
	set(onA, atOnce)
	t.Run("requests", func(t *testing.T) { s.requests(t) })
}

// given reports whether the run was given to its runner.
func given(s *stage, in run.Input) bool {
	d, err := s.Client.DescribeWorkflowExecution(s.t.Context(), run.WorkflowID(in.RunID), "")
	return err == nil && len(d.GetPendingActivities()) == 1 && d.GetPendingActivities()[0].GetLastStartedTime() != nil
}

func (s *stage) requests(t *testing.T) {
	for _, c := range []struct {
		q    run.Request
		kind error
		say  string
	}{
		{run.Request{}, run.ErrBadRequest, "agent_name is missing"},
		{run.Request{AgentName: "none"}, run.ErrNoBlueprint, "none"},
		{run.Request{AgentName: "noop"}, run.ErrBadRequest, "needs parameters, {}"},
		{run.Request{AgentName: "noop", Parameters: none, Prompt: "go"}, run.ErrBadRequest, "no prompt"},
		{run.Request{AgentName: "noop", Parameters: json.RawMessage(`{"wrong":1}`)}, run.ErrBadRequest, "$.wrong"},
		{run.Request{AgentName: "noop", Parameters: json.RawMessage(`[1]`)}, run.ErrBadRequest, "a JSON object"},
		{run.Request{AgentName: "writer"}, run.ErrBadRequest, "needs a prompt"},
		{run.Request{AgentName: "writer", Prompt: "x", Parameters: none}, run.ErrBadRequest, "no parameters"},
		{run.Request{AgentName: "writer", Prompt: strings.Repeat("é", run.MaxPrompt+1)}, run.ErrBadRequest, "100001 characters"},
		{run.Request{AgentName: "noop", Parameters: none, RunID: "../x"}, run.ErrBadRequest, "run_id"},
		{run.Request{AgentName: "noop", Parameters: none, Mode: "later"}, run.ErrBadRequest, "execution_mode"},
		{run.Request{AgentName: "noop", Parameters: none, ProjectDir: "here"}, run.ErrBadRequest, "absolute"},
		{run.Request{AgentName: "noop", Parameters: none, Mode: run.AsyncCallback}, run.ErrBadRequest, "parent_session_id"},
		{run.Request{AgentName: "noop", Parameters: none, Mode: run.AsyncCallback, ParentSessionID: "ses_no"}, run.ErrBadRequest, "not open"},
		{run.Request{AgentName: "noop", Parameters: none, Requirements: runner.Requirements{Tags: []string{"a b"}}}, run.ErrBadRequest, "tag"},
		{run.Request{AgentName: "noop", Parameters: json.RawMessage(`{"key":"sk-ant-api03-` + strings.Repeat("Ab1", 31) + `AA"}`)}, run.ErrBadRequest, "secret"},
	} {
		_, err := s.Start(t.Context(), c.q)
		if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.say) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%+v: %v", c.q, err)
		}
	}

	q := run.Request{AgentName: "noop", Parameters: none, RunID: "mine"}
	first := s.start(q)
	again := s.start(q)
	same(t, "asked twice", first, again)
	q.Parameters = json.RawMessage(`{"depth":3}`)
	if _, err := s.Start(t.Context(), q); !errors.Is(err, run.ErrBadRequest) || !strings.Contains(err.Error(), "a different request") {
		t.Errorf("another request with the id: %v", err)
	}
	s.await(first)
	if _, err := s.Resume(t.Context(), run.Request{SessionID: first.SessionID, Prompt: "go on"}); !errors.Is(err, run.ErrBadRequest) || !strings.Contains(err.Error(), "cannot be resumed") {
		t.Errorf("resume of a program: %v", err)
	}
	if _, err := s.Resume(t.Context(), run.Request{SessionID: "ses_no", Prompt: "go on"}); !errors.Is(err, run.ErrNotFound) {
		t.Errorf("resume of nothing: %v", err)
	}
	if _, err := s.State(t.Context(), "no"); !errors.Is(err, run.ErrNotFound) {
		t.Errorf("state of nothing: %v", err)
	}
	if _, err := s.Await(t.Context(), "no"); !errors.Is(err, run.ErrNotFound) {
		t.Errorf("await of nothing: %v", err)
	}
	if _, err := s.Runs.Stop(t.Context(), "no", run.StopRequest{}); !errors.Is(err, run.ErrNotFound) {
		t.Errorf("stop of nothing: %v", err)
	}
	big := s.start(run.Request{AgentName: "noop", Parameters: json.RawMessage(`{"text":"` + strings.Repeat("x", 40_000) + `"}`)})
	if big.Parameters != nil || big.ParametersRef == nil {
		t.Errorf("large parameters: %d bytes", len(big.Parameters))
	}
	s.await(big)
	if st, err := s.State(t.Context(), first.SessionID); err != nil || st.Input.RunID != "mine" {
		t.Errorf("by session: %v, %+v", err, st.Input)
	}
}

func (s *stage) agents(t *testing.T, set func(func(runner.Request, int64) *runner.Claim, func(context.Context, run.Execution) (run.Result, error)), onA func(runner.Request, int64) *runner.Claim) {
	set(onA, nil)
	in := s.start(run.Request{AgentName: "writer", Prompt: "a poem"})
	r := s.await(in)
	if r.Status != run.Completed || string(r.Output) != `"done: a poem"` || r.OutputIs != "text" || r.Turn != 1 || r.DurationSeconds != 1.5 || r.Runner != "lnch_a" {
		t.Errorf("result: %+v", r)
	}
	s.keep(in, "agent")
	s.mu.Lock()
	first := s.parents[session.WorkflowID(in.SessionID)][0]
	s.mu.Unlock()
	if first.ID != in.RunID || first.ReplyTo != run.WorkflowID(in.RunID) {
		t.Errorf("first message %+v", first)
	}

	failed := s.start(run.Request{AgentName: "writer", Prompt: "fail"})
	if r := s.await(failed); r.Reason != run.AgentFailed || r.Error != "out of credit" {
		t.Errorf("result: %+v", r)
	}
	s.keep(failed, "agent-failed")

	dead := s.start(run.Request{AgentName: "writer", Prompt: "die"})
	if r := s.await(dead); r.Reason != run.SessionEnded || r.Error != "no claude here" {
		t.Errorf("result: %+v", r)
	}
	s.keep(dead, "agent-session-died")

	hangs := s.start(run.Request{AgentName: "writer", Prompt: "hang"})
	s.until(hangs, func(st run.State) bool { return st.Status == run.Running })
	if _, err := s.Runs.Stop(t.Context(), hangs.SessionID, run.StopRequest{Reason: "enough"}); err != nil {
		t.Fatal(err)
	}
	if r := s.await(hangs); r.Status != run.Stopped || string(r.Output) != `"half"` || r.Error != "enough" {
		t.Errorf("result: %+v", r)
	}
	s.keep(hangs, "agent-stopped")

	lost := s.start(run.Request{AgentName: "writer", Prompt: "hang"})
	st := s.until(lost, func(st run.State) bool { return st.Status == run.Running })
	s.signal(lost, run.SignalLost, runner.Lost{Claim: st.Claim.Number, RunnerID: "lnch_a", Message: "runner lnch_a is gone"})
	if r := s.await(lost); r.Reason != run.RunnerLost || r.Error != "runner lnch_a is gone" {
		t.Errorf("result: %+v", r)
	}
	s.keep(lost, "agent-lost")

	again, err := s.Resume(t.Context(), run.Request{SessionID: in.SessionID, Prompt: "more"})
	if err != nil {
		t.Fatal(err)
	}
	if d := again.Requirements; d.Hostname != "vm" || d.ProjectDir != "/work" || d.ExecutorType != runner.ClaudeCode || again.AgentName != "writer" {
		t.Errorf("demands %+v of %s", d, again.AgentName)
	}
	if r := s.await(again); string(r.Output) != `"done: more"` || r.Turn != 2 {
		t.Errorf("result: %+v", r)
	}
	s.keep(again, "agent-resumed")
	if st, err := s.State(t.Context(), in.SessionID); err != nil || st.Input.RunID != again.RunID {
		t.Errorf("the session's newest run is %s: %v", st.Input.RunID, err)
	}
	if _, err := s.Resume(t.Context(), run.Request{SessionID: in.SessionID, Prompt: "more", Requirements: runner.Requirements{Hostname: "else"}}); !errors.Is(err, run.ErrBadRequest) {
		t.Errorf("resumed elsewhere: %v", err)
	}
	if _, err := s.Start(t.Context(), run.Request{AgentName: "writer", Prompt: "x", SessionID: in.SessionID}); !errors.Is(err, run.ErrBadRequest) || !strings.Contains(err.Error(), "already exists") {
		t.Errorf("a session twice: %v", err)
	}
	if _, err := s.Resume(t.Context(), run.Request{SessionID: dead.SessionID, Prompt: "more"}); !errors.Is(err, run.ErrOver) {
		t.Errorf("resumed after its end: %v", err)
	}

	again.RunID, again.SessionID = again.RunID+"-3", "ses_none"
	if _, err := s.Client.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: run.WorkflowID(again.RunID), TaskQueue: ace.TaskQueue}, run.Workflow, again); err != nil {
		t.Fatal(err)
	}
	if r := s.await(again); r.Reason != run.SessionEnded {
		t.Errorf("result: %+v", r)
	}
	s.keep(again, "agent-no-session")
}

// atOnce delivers signals of all kinds before one workflow task, in many orders: the workflow and
// the reader of the history must agree.
func (s *stage) atOnce(t *testing.T, set func(func(runner.Request, int64) *runner.Claim, func(context.Context, run.Execution) (run.Result, error))) {
	answered := func(id string) bool { return strings.HasSuffix(id, "2") || strings.HasSuffix(id, "3") }
	set(func(r runner.Request, n int64) *runner.Claim {
		if answered(r.RunID) { // beside the signals
			return s.claim("a", n)
		}
		return nil
	}, func(_ context.Context, x run.Execution) (run.Result, error) { return ended(x, 0), nil })
	claim := *s.claim("a", 50)
	claim.Try = 1
	other := *s.claim("b", 51)
	other.Try = 1
	first := s.start(run.Request{AgentName: "noop", Parameters: none})
	all := []struct {
		signal string
		arg    any
	}{
		{run.SignalClaimed, claim}, {run.SignalUnmatched, runner.Unmatched{Try: 1, Message: "none"}}, {run.SignalLost, runner.Lost{Claim: 50, RunnerID: "lnch_a", Message: "gone"}},
		{run.SignalStarted, run.ProgramStart{Claim: 50, Try: 1, PID: 5}}, {run.SignalClaimed, other}, {run.SignalReport, session.Report{}}, {"", nil}, {run.SignalStarted, 7},
	}
	var ins []run.Input
	dice := rand.New(rand.NewPCG(1, 2))
	for i := range 16 {
		in := first
		in.RunID = fmt.Sprintf("at-once-%d", i)
		if _, err := s.Client.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: run.WorkflowID(in.RunID), TaskQueue: "later"}, run.Workflow, in); err != nil {
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
		s.await(in)
		s.keep(in, fmt.Sprintf("at-once-%d", i))
	}
}
