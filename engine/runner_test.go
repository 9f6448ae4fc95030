package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"acescope/engine"
	"acescope/engine/tasks/run"
	"acescope/engine/tasks/runner"
	"acescope/engine/tasks/runner/host"
)

// runnerProgram is a runner of a data directory that runs until it is killed.
func runnerProgram(config []byte) error {
	var dir string
	if err := json.Unmarshal(config, &dir); err != nil {
		return err
	}
	e, err := engine.Open(context.Background(), engine.Options{DataDir: dir, Version: "test"})
	if err != nil {
		return err
	}
	o := runnerOptions("killed", dir)
	o.OnEvent = func(e host.Event) { fmt.Println(e.Kind, e.Lease.Queue) }
	h, err := e.NewRunner(o)
	if err != nil {
		return err
	}
	return h.Run(context.Background(), nil)
}

func runnerOptions(id, dir string) host.Options {
	return host.Options{ID: id, Grace: 200 * time.Millisecond,
		Capabilities: runner.Capabilities{ProjectDir: dir, AnyProject: true, Slots: 4,
			ExecutorTypes: []string{runner.Deterministic}}}
}

// runnerServer is a data directory with a server and a worker in this process, but no runner.
type runnerServer struct {
	*engine.Engine
	t    *testing.T
	dir  string
	work string
}

func newRunnerServer(t *testing.T, change func(*engine.Options)) *runnerServer {
	t.Helper()
	o := engine.Options{DataDir: t.TempDir(), Version: "test", Worker: true, Takeover: true, NoRunner: true}
	if change != nil {
		change(&o)
	}
	e := openEngine(t, o)
	return &runnerServer{e, t, o.DataDir, t.TempDir()}
}

// oneRun is a workflow that has a run executed on a queue.
func oneRun(ctx workflow.Context, queue string, x run.Execution) (r run.Result, err error) {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{TaskQueue: queue,
		ScheduleToStartTimeout: 30 * time.Second,
		StartToCloseTimeout:    time.Hour, HeartbeatTimeout: 5 * time.Second, WaitForCancellation: true,
		RetryPolicy: &temporal.RetryPolicy{MaximumAttempts: 1}})
	x.WorkflowRunID = workflow.GetInfo(ctx).WorkflowExecution.RunID
	err = workflow.ExecuteActivity(ctx, run.ActivityExecute, x).Get(ctx, &r)
	return r, err
}

// execute starts oneRun with a shell script.
func (h *runnerServer) execute(id, queue, script string) client.WorkflowRun {
	h.t.Helper()
	w := worker.New(h.Client, "one-run", worker.Options{WorkerStopTimeout: time.Millisecond})
	w.RegisterWorkflow(oneRun)
	if err := w.Start(); err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(w.Stop)
	x := run.Execution{Input: run.Input{RunID: id, SessionID: "ses_1", Type: run.ExecuteTask,
		TaskName: "test", Parameters: json.RawMessage(`{}`), ProjectDir: h.work,
		Blueprint: &run.Blueprint{Name: "test", Type: run.Deterministic, Script: script,
			TimeoutSeconds: 600}}}
	r, err := h.Client.ExecuteWorkflow(h.t.Context(), client.StartWorkflowOptions{ID: run.WorkflowID(id),
		TaskQueue: "one-run"}, oneRun, queue, x)
	if err != nil {
		h.t.Fatal(err)
	}
	return r
}

// file waits for a file that a program writes and returns its content.
func (h *runnerServer) file(name string) string {
	h.t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if b, err := os.ReadFile(filepath.Join(h.work, name)); err == nil &&
			strings.HasSuffix(string(b), "\n") {
			return strings.TrimSpace(string(b))
		}
	}
	h.t.Fatalf("file %s does not exist", name)
	return ""
}

// runner runs a runner in this process and returns its events.
func (h *runnerServer) runner(o host.Options) (events chan host.Event, end context.CancelFunc,
	result chan error) {
	h.t.Helper()
	events, result = make(chan host.Event, 1000), make(chan error, 1)
	o.OnEvent = func(e host.Event) { events <- e }
	r, err := h.NewRunner(o)
	if err != nil {
		h.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	over := make(chan struct{})
	go func() {
		defer close(over)
		result <- r.Run(ctx, ctx.Done())
	}()
	h.t.Cleanup(func() { cancel(); <-over })
	return events, cancel, result
}

// await waits for an event of a kind.
func await(t *testing.T, events chan host.Event, kind host.EventKind) host.Event {
	t.Helper()
	for limit := time.After(time.Minute); ; {
		select {
		case e := <-events:
			if e.Kind == kind {
				return e
			}
		case <-limit:
			t.Fatalf("no event %s", kind)
		}
	}
}

const slowScript = "echo $$ > pid; while :; do sleep 0.1; done"

// TestRunnerKilled kills a runner's process while a program runs: the program dies, the run times
// out, and the next process gets the lease at once.
func TestRunnerKilled(t *testing.T) {
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("programs die with their parent on Linux only")
	}
	t.Parallel()
	h := newRunnerServer(t, nil)
	p := startProgram(t, nil, "runner", h.dir)
	line := strings.Join(p.output(), "\n")
	queue, ok := strings.CutPrefix(line, string(host.Registered)+" ")
	if !ok {
		t.Fatal(line)
	}
	r := h.execute("r1", queue, slowScript)
	pid := h.file("pid")
	p.kill()
	waitDead(t, pid)
	var timeout *temporal.TimeoutError
	if err := r.Get(t.Context(), nil); !errors.As(err, &timeout) ||
		timeout.TimeoutType() != enumspb.TIMEOUT_TYPE_HEARTBEAT {
		t.Errorf("%v", err)
	}
	events, _, _ := h.runner(runnerOptions("killed", h.dir))
	if e := await(t, events, host.Registered); e.Lease.Queue == queue {
		t.Errorf("it has the queue of the killed process: %s", queue)
	}
}

// TestRunnerStopped checks that a canceled run stops its program and reports it.
func TestRunnerStopped(t *testing.T) {
	t.Parallel()
	h := newRunnerServer(t, nil)
	events, _, _ := h.runner(runnerOptions("r", h.work))
	r := h.execute("r1", await(t, events, host.Registered).Lease.Queue, "trap 'echo bye; exit 0' TERM; "+
		slowScript)
	pid := h.file("pid")
	if err := h.Client.CancelWorkflow(t.Context(), r.GetID(), ""); err != nil {
		t.Fatal(err)
	}
	var got run.Result
	if err := r.Get(t.Context(), &got); err != nil || got.Status != run.Stopped || got.Stdout != "bye\n" ||
		got.Log == nil {
		t.Errorf("%+v, %v", got, err)
	}
	waitDead(t, pid)
}

// TestRunnerLosesLease checks that the loss of the lease stops the programs and that the runner
// returns with another queue.
func TestRunnerLosesLease(t *testing.T) {
	t.Parallel()
	h := newRunnerServer(t, nil)
	o := runnerOptions("r", h.work)
	o.Stale = 2 * time.Second
	events, _, _ := h.runner(o)
	first := await(t, events, host.Registered)
	r := h.execute("r1", first.Lease.Queue, slowScript)
	pid := h.file("pid")
	if err := h.Client.TerminateWorkflow(t.Context(), runner.WorkflowID("r"), "", "a test"); err != nil {
		t.Fatal(err)
	}
	await(t, events, host.LeaseLost)
	if again := await(t, events, host.Registered); again.Lease.Queue == first.Lease.Queue {
		t.Errorf("%+v", again.Lease)
	}
	waitDead(t, pid)
	var app *temporal.ApplicationError
	if err := r.Get(t.Context(), nil); !errors.As(err, &app) || app.Type() != run.TypeRunnerLost {
		t.Errorf("%v", err)
	}
}

// TestRunnerTwice checks that only one process holds a runner ID, also across machines without a
// shared directory.
func TestRunnerTwice(t *testing.T) {
	t.Parallel()
	h := newRunnerServer(t, nil)
	events, _, _ := h.runner(runnerOptions("r", h.work))
	await(t, events, host.Registered)
	_, _, result := h.runner(runnerOptions("r", h.work))
	if err := <-result; !errors.Is(err, host.ErrTaken) || !strings.Contains(err.Error(), "on this machine") {
		t.Errorf("%v", err)
	}
	o := runnerOptions("r", h.work)
	o.Client, o.DataDir, o.Artifacts, o.Capabilities.Hostname = h.Client, t.TempDir(), h.Artifacts,
		"elsewhere"
	other, err := host.New(o)
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Run(t.Context(), nil); !errors.Is(err, host.ErrTaken) ||
		!strings.Contains(err.Error(), "is already running") {
		t.Errorf("%v", err)
	}
}

// TestRunnerDrained checks that a drained runner finishes its runs and leaves.
func TestRunnerDrained(t *testing.T) {
	t.Parallel()
	h := newRunnerServer(t, nil)
	o := runnerOptions("r", h.work)
	o.Stale = 2 * time.Second
	events, _, result := h.runner(o)
	r := h.execute("r1", await(t, events, host.Registered).Lease.Queue,
		"echo > up; while [ ! -e go ]; do sleep 0.02; done; echo done")
	h.file("up")
	if _, err := h.DrainRunner(t.Context(), "r", runner.Note{Reason: "a test"}); err != nil {
		t.Fatal(err)
	}
	await(t, events, host.Draining)
	if err := os.WriteFile(filepath.Join(h.work, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	await(t, events, host.Left)
	if err := <-result; err != nil {
		t.Error(err)
	}
	var got run.Result
	if err := r.Get(t.Context(), &got); err != nil || got.Status != run.Completed || got.Stdout != "done\n" {
		t.Errorf("%+v, %v", got, err)
	}
	if info, err := h.Runner(t.Context(), "r"); err != nil || info.Status != runner.Gone {
		t.Errorf("%+v, %v", info, err)
	}
}

// TestLocalRunner checks that a data directory has one local runner.
func TestLocalRunner(t *testing.T) {
	t.Parallel()
	h := newRunnerServer(t, func(o *engine.Options) { o.NoRunner = false })
	local := func(e *engine.Engine, not string) runner.Info {
		t.Helper()
		for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
			info, err := e.Runner(t.Context(), engine.LocalRunner)
			if err == nil && info.Status == runner.Online && info.Registration.Token != not {
				return info
			}
		}
		t.Fatal("no local runner registered")
		return runner.Info{}
	}
	first := local(h.Engine, "")
	if c := first.Registration.Capabilities; !c.AnyProject || c.Slots < 4 ||
		c.ExecutorTypes[len(c.ExecutorTypes)-1] == "" || first.Registration.PID != os.Getpid() {
		t.Errorf("%+v", first)
	}
	second := openEngine(t, engine.Options{DataDir: h.dir, Worker: true, Takeover: true})
	if err := h.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	local(second, first.Registration.Token)
}
