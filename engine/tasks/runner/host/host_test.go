//go:build unix

package host

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"acescope/engine/ace"
	"acescope/engine/store/artifact"
	"acescope/engine/tasks/executor"
	"acescope/engine/tasks/run"
	"acescope/engine/tasks/runner"
)

// server is a client that only records signals.
type server struct {
	client.Client
	mu      sync.Mutex
	signals []run.ProgramStart
	started chan struct{}
}

func (s *server) SignalWorkflow(_ context.Context, workflowID, runID, name string, arg any) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if name == run.SignalStarted && workflowID != "" && runID != "" {
		s.signals = append(s.signals, arg.(run.ProgramStart))
		close(s.started)
	}
	return nil
}

// fixture is a runner with a lease.
type fixture struct {
	*leaseWorker
	t      *testing.T
	work   string
	server *server
	events chan Event
	env    *testsuite.TestActivityEnvironment
}

func newFixture(t *testing.T, change func(*Options)) *fixture {
	t.Helper()
	dir := t.TempDir()
	store, err := artifact.Open(filepath.Join(dir, "artifacts"))
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{t: t, work: t.TempDir(), server: &server{started: make(chan struct{})},
		events: make(chan Event, 100)}
	o := Options{ID: "r", Capabilities: runner.Capabilities{Hostname: "here", ProjectDir: f.work,
		ExecutorTypes: []string{runner.Deterministic}, Slots: 2},
		Client: f.server, DataDir: dir, Artifacts: store, Grace: 200 * time.Millisecond,
		OnEvent: func(e Event) { f.events <- e }}
	if change != nil {
		change(&o)
	}
	h, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.dir.acquire(t.Context(), false, nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.dir.release)
	f.leaseWorker = &leaseWorker{h: h, lease: runner.Lease{RunnerID: "r", Epoch: 3, Queue: "q"},
		lost: make(chan string, 1), drained: make(chan struct{}), stop: func() {}}
	f.life, f.end = context.WithCancel(context.Background())
	var suite testsuite.WorkflowTestSuite
	f.env = suite.NewTestActivityEnvironment()
	f.env.RegisterActivityWithOptions(f.execute, activity.RegisterOptions{Name: run.ActivityExecute})
	return f
}

// execution returns a run of a shell script.
func (f *fixture) execution(script string) run.Execution {
	return run.Execution{Input: run.Input{RunID: "r1", SessionID: "ses_1", Type: run.ExecuteTask,
		TaskName: "test", Parameters: json.RawMessage(`{}`),
		Blueprint: &run.Blueprint{Name: "test", Type: run.Deterministic, Script: script, TimeoutSeconds: 60}},
		Claim: runner.Claim{Number: 7, Try: 1, RunnerID: "r", Epoch: 3, Queue: "q"}}
}

func (f *fixture) run(x run.Execution) (r run.Result, err error) {
	v, err := f.env.ExecuteActivity(run.ActivityExecute, x)
	if err == nil {
		err = v.Get(&r)
	}
	return r, err
}

// TestExecute checks the result and the events of a run.
func TestExecute(t *testing.T) {
	f := newFixture(t, nil)
	r, err := f.run(f.execution(`pwd; env | grep ACESCOPE_RUN_ID`))
	if err != nil || r.Status != run.Completed || r.Stdout != f.work+"\nACESCOPE_RUN_ID=r1\n" ||
		r.Runner != "r" || r.Claim != 7 || r.RunID != "r1" || r.Log == nil {
		t.Errorf("%+v, %v", r, err)
	}
	if began, ended := <-f.events, <-f.events; began.Kind != RunStarted || ended.Kind != RunEnded ||
		ended.Result.Status != run.Completed {
		t.Errorf("%+v, %+v", began, ended)
	}
	if len(f.server.signals) != 0 {
		t.Error("a short run sent the signal started")
	}
	left, _ := filepath.Glob(filepath.Join(f.h.dir.path, "*"+runLockExt))
	if len(left) > 0 {
		t.Errorf("remaining locks: %v", left)
	}
}

// TestSignalsStart checks that a longer run signals its start.
func TestSignalsStart(t *testing.T) {
	f := newFixture(t, nil)
	go func() {
		<-f.server.started
		_ = os.WriteFile(filepath.Join(f.work, "go"), nil, 0o600)
	}()
	r, err := f.run(f.execution(`while [ ! -e go ]; do sleep 0.02; done`))
	if err != nil || r.Status != run.Completed || len(f.server.signals) != 1 {
		t.Fatalf("%+v, %v", r, err)
	}
	if b := f.server.signals[0]; b.Claim != 7 || b.Try != 1 || b.PID == 0 || b.At.IsZero() {
		t.Errorf("%+v", b)
	}
}

func typeOf(err error) string {
	var app *temporal.ApplicationError
	if errors.As(err, &app) {
		return app.Type()
	}
	return ""
}

// TestReturnsRuns checks that a run of another lease is returned, and every run after the
// runner has left.
func TestReturnsRuns(t *testing.T) {
	f := newFixture(t, nil)
	for _, c := range []runner.Claim{{RunnerID: "r", Epoch: 2}, {RunnerID: "other", Epoch: 3}} {
		x := f.execution("touch ran")
		x.Claim = c
		if _, err := f.run(x); typeOf(err) != run.TypeNotStarted {
			t.Errorf("%v", err)
		}
	}
	f.close()
	if _, err := f.run(f.execution("touch ran")); typeOf(err) != run.TypeNotStarted {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(filepath.Join(f.work, "ran")); err == nil {
		t.Error("a program was run")
	}
}

// TestLostLease checks that the loss of the lease ends programs and returns the run.
func TestLostLease(t *testing.T) {
	f := newFixture(t, nil)
	go func() {
		<-f.server.started
		f.close()
	}()
	_, err := f.run(f.execution("trap '' TERM; while :; do sleep 0.05; done"))
	if typeOf(err) != run.TypeRunnerLost {
		t.Errorf("%v", err)
	}
}

// TestNotStarted checks the errors of runs that cannot start.
func TestNotStarted(t *testing.T) {
	f := newFixture(t, nil)
	for _, c := range []struct {
		change func(*run.Input)
		want   string
	}{
		{func(in *run.Input) { in.ProjectDir = "/etc" }, "this runner works in"},
		{func(in *run.Input) { in.ProjectDir = "rel" }, "is not absolute"},
		{func(in *run.Input) { in.Requirements.ExecutorType = "other" },
			`no program for the executor type "other"`},
		{func(in *run.Input) { in.Type = run.StartSession },
			`no program for the executor type "claude-code"`},
		{func(in *run.Input) { in.Blueprint = nil }, "its blueprint is missing"},
		{func(in *run.Input) { in.Type = "dance" }, `its type "dance"`},
		{func(in *run.Input) { in.BlueprintRef, in.Blueprint = missing(), nil },
			"of another machine's data directory"},
		{func(in *run.Input) { in.ParametersRef = missing() }, "of another machine's data directory"},
	} {
		x := f.execution("touch ran")
		c.change(&x.Input)
		r, err := f.run(x)
		if err != nil || r.Status != run.Failed || r.Reason != run.NotStarted ||
			!strings.Contains(r.Error, c.want) {
			t.Errorf("%s: %+v, %v", c.want, r, err)
		}
	}
}

// TestReferences checks that artifacts of the input are fetched.
func TestReferences(t *testing.T) {
	f := newFixture(t, nil)
	x := f.execution("cat")
	b, _ := json.Marshal(x.Input.Blueprint)
	ref, err := f.h.o.Artifacts.PutBytes(t.Context(), b, "application/json")
	if err != nil {
		t.Fatal(err)
	}
	params, err := f.h.o.Artifacts.PutBytes(t.Context(), []byte(`{"a":"b"}`), "application/json")
	if err != nil {
		t.Fatal(err)
	}
	x.Input.Blueprint, x.Input.BlueprintRef, x.Input.Parameters, x.Input.ParametersRef = nil, &ref, nil,
		&params
	if r, err := f.run(x); err != nil || string(r.Output) != `{"a":"b"}` {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestExternal checks that a custom executor gets an invocation and writes a result.
func TestExternal(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mine", "exec")
	if os.Mkdir(filepath.Dir(path), 0o700) != nil ||
		os.WriteFile(path, []byte(
			"#!/bin/sh\ncat > in; echo '{\"status\":\"completed\",\"output\":\"hello\"}'"), 0o700) != nil {
		t.Fatal("no executor")
	}
	x, err := executor.NewExternal(path)
	if err != nil {
		t.Fatal(err)
	}
	f := newFixture(t, func(o *Options) { o.External = []executor.External{x} })
	in := f.execution("")
	in.Input.Type, in.Input.Prompt, in.Input.Requirements.ExecutorType,
		in.Input.Parameters = run.StartSession, "do it", "mine", nil
	in.Input.Blueprint = &run.Blueprint{Name: "a", Type: run.Agent, SystemPrompt: "be good"}
	r, err := f.run(in)
	if err != nil || r.Status != run.Completed || string(r.Output) != `"hello"` || r.OutputIs != "text" {
		t.Fatalf("%+v, %v", r, err)
	}
	data, _ := os.ReadFile(filepath.Join(f.work, "in"))
	got, err := executor.ParseInvocation(data)
	if err != nil || got.Mode != executor.Start || got.Prompt != "do it" ||
		!strings.Contains(string(got.Agent), "be good") || got.SessionID != "ses_1" {
		t.Errorf("%s, %v", data, err)
	}
}

// TestOneProcess checks that one process has a runner's directory, and removes the files of an
// earlier one.
func TestOneProcess(t *testing.T) {
	f := newFixture(t, nil)
	left := filepath.Join(f.h.dir.tmp(), "left")
	if err := os.WriteFile(left, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	again, err := New(f.h.o)
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Run(t.Context(), nil); !errors.Is(err, ErrTaken) {
		t.Errorf("%v", err)
	}
	f.h.dir.release()
	if err := again.dir.acquire(t.Context(), false, nil); err != nil {
		t.Fatal(err)
	}
	defer again.dir.release()
	if _, err := os.Stat(left); err == nil {
		t.Error("files remain")
	}
}

// TestOptions checks the defaults and the errors of options.
func TestOptions(t *testing.T) {
	good := Options{Capabilities: runner.Capabilities{Hostname: "h", ProjectDir: "/p",
		ExecutorTypes: []string{"b", "a", "b"}, Tags: []string{"y", "x", "y"}, Slots: 1}}
	o := good
	if err := o.complete(); err != nil || strings.Join(o.Capabilities.Tags, ",") != "x,y" ||
		strings.Join(o.Capabilities.ExecutorTypes, ",") != "a,b" {
		t.Errorf("%+v, %v", o, err)
	}
	// sha256 of h:/p:a,b
	if o.ID != ID(o.Capabilities) || !strings.HasPrefix(o.ID, "lnch_") || len(o.ID) != 17 {
		t.Error(o.ID)
	}
	for want, change := range map[string]func(*Options){
		"has no executor": func(o *Options) { o.Capabilities.ExecutorTypes = nil },
		"slots 0":         func(o *Options) { o.Capabilities.Slots = 0 },
		"not absolute":    func(o *Options) { o.Capabilities.ProjectDir = "p" },
		`tag "a b": must`: func(o *Options) { o.Capabilities.Tags = []string{"a b"} },
		"valid runner id": func(o *Options) { o.ID = "../x" },
		"at most 64": func(o *Options) {
			o.Capabilities.Tags = make([]string, 0)
			for i := range 70 {
				o.Capabilities.Tags = append(o.Capabilities.Tags, strings.Repeat("t", i+1))
			}
		},
		"another executor has": func(o *Options) {
			o.External = []executor.External{{Type: "a", Path: "/x/a/b"}}
		},
	} {
		o := good
		change(&o)
		if err := o.complete(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

func missing() *ace.Ref { return &ace.Ref{SHA256: strings.Repeat("0", 64), Size: 3} }
