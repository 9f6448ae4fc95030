package engine_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	sdkactivity "go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"acescope/engine"
	"acescope/engine/ace"
	"acescope/engine/activities"
	"acescope/engine/tasks/run"
	"acescope/engine/tasks/runner"
)

// Stub runs are workflows with the IDs of runs, on a queue of their own. They send the notices of
// runs to the dispatcher and keep the messages that they receive.
const (
	stubQueue    = "stub-runs"
	stubRun      = "StubRun"
	stubFinish   = "finish"
	stubMessages = "heard"
)

// runMessages is the messages that a run received from the dispatcher.
type runMessages struct {
	Claims    []runner.Claim
	Unmatched []runner.Unmatched
	Lost      []runner.Lost
}

// stubInput is the input of a run.
type stubInput struct {
	Demands runner.Requirements
	Within  time.Duration
	Parent  string
}

// stub requests a runner and releases it on request.
func stub(ctx workflow.Context, in stubInput) (runMessages, error) {
	var h runMessages
	info := workflow.GetInfo(ctx)
	id := run.IDOf(info.WorkflowExecution.ID)
	if err := workflow.SetQueryHandler(ctx, stubMessages,
		func() (runMessages, error) { return h, nil }); err != nil {
		return h, err
	}
	finish := false
	workflow.Go(ctx, func(ctx workflow.Context) {
		workflow.GetSignalChannel(ctx, stubFinish).Receive(ctx, nil)
		finish = true
	})
	listen(ctx, run.SignalClaimed, &h.Claims)
	listen(ctx, run.SignalUnmatched, &h.Unmatched)
	listen(ctx, run.SignalLost, &h.Lost)
	err := notifyAs(ctx, runner.Notice{Kind: runner.Enqueue, Run: id,
		Request: &runner.Request{RunID: id, Execution: info.WorkflowExecution.RunID,
			Requirements: in.Demands, Asked: workflow.Now(ctx), Deadline: workflow.Now(ctx).Add(in.Within),
			Try: 1, Parent: in.Parent, Name: "stub"}})
	if err != nil {
		return h, err
	}
	if err := workflow.Await(ctx, func() bool {
		return finish || len(h.Unmatched)+len(h.Lost) > 0
	}); err != nil {
		calm, _ := workflow.NewDisconnectedContext(ctx)
		return h, notifyAs(calm, runner.Notice{Kind: runner.Withdraw, Run: id})
	}
	for _, c := range h.Claims {
		if err := notifyAs(ctx, runner.Notice{Kind: runner.Release, Run: id, Claim: c.Number}); err != nil {
			return h, err
		}
	}
	return h, nil
}

func listen[T any](ctx workflow.Context, name string, to *[]T) {
	workflow.Go(ctx, func(ctx workflow.Context) {
		for {
			var v T
			workflow.GetSignalChannel(ctx, name).Receive(ctx, &v)
			*to = append(*to, v)
		}
	})
}

func notifyAs(ctx workflow.Context, notices ...runner.Notice) error {
	ctx = workflow.WithLocalActivityOptions(ctx,
		workflow.LocalActivityOptions{StartToCloseTimeout: 20 * time.Second,
			RetryPolicy: &temporal.RetryPolicy{InitialInterval: 100 * time.Millisecond,
				MaximumInterval: time.Second}})
	return workflow.ExecuteLocalActivity(ctx, runner.ActivityTell, runner.Notices(notices)).Get(ctx, nil)
}

// dispatchEnv is an engine with stubs.
type dispatchEnv struct {
	*engine.Engine
	t *testing.T
}

// newDispatchEnv executes the stubs' runs on an engine.
func newDispatchEnv(t *testing.T, e *engine.Engine) *dispatchEnv {
	t.Helper()
	w := worker.New(e.Client, stubQueue, worker.Options{MaxConcurrentActivityExecutionSize: 1,
		WorkerStopTimeout: time.Second})
	w.RegisterWorkflowWithOptions(stub, workflow.RegisterOptions{Name: stubRun})
	(&activities.Dispatch{Workflows: e.Client, TaskQueue: ace.TaskQueue,
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil))}).Register(w)
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
	return &dispatchEnv{e, t}
}

// startRun starts a run that requests a runner.
func (env *dispatchEnv) startRun(id string, in stubInput) {
	env.t.Helper()
	if in.Within == 0 {
		in.Within = 5 * time.Minute
	}
	if _, err := env.Client.ExecuteWorkflow(env.t.Context(),
		client.StartWorkflowOptions{ID: run.WorkflowID(id), TaskQueue: stubQueue}, stubRun, in); err != nil {
		env.t.Fatal(err)
	}
}

func (env *dispatchEnv) finishRun(id string) {
	env.t.Helper()
	if err := env.Client.SignalWorkflow(env.t.Context(), run.WorkflowID(id), "", stubFinish,
		nil); err != nil {
		env.t.Fatal(err)
	}
}

// received is the messages that a run received from the dispatcher.
func (env *dispatchEnv) received(id string) (h runMessages, err error) {
	ctx, cancel := context.WithTimeout(env.t.Context(), 20*time.Second)
	defer cancel()
	v, err := env.Client.QueryWorkflow(ctx, run.WorkflowID(id), "", stubMessages)
	if err == nil {
		err = v.Get(&h)
	}
	return h, err
}

// waitReceived waits until a run received the expected messages.
func (env *dispatchEnv) waitReceived(id string, ok func(runMessages) bool) (h runMessages) {
	env.t.Helper()
	err := poll(func() (err error) {
		if h, err = env.received(id); err == nil && !ok(h) {
			err = errNotYet
		}
		return err
	})
	if err != nil {
		env.t.Fatalf("run %s received %+v: %v; the dispatcher has %+v", id, h, err, env.view())
	}
	return h
}

func (env *dispatchEnv) waitClaim(id, by string) runner.Claim {
	env.t.Helper()
	h := env.waitReceived(id, func(h runMessages) bool { return len(h.Claims) > 0 })
	if len(h.Claims) != 1 || h.Claims[0].RunnerID != by {
		env.t.Fatalf("run %s was assigned to %+v, not to %s", id, h.Claims, by)
	}
	return h.Claims[0]
}

func (env *dispatchEnv) view() (v runner.View) {
	ctx, cancel := context.WithTimeout(env.t.Context(), 20*time.Second)
	defer cancel()
	if got, err := env.Client.QueryWorkflow(ctx, runner.DispatcherID(ace.TaskQueue), "",
		runner.QueryDispatcher, runner.ViewOptions{}); err == nil {
		_ = got.Get(&v)
	}
	return v
}

// waitView waits until the dispatcher has the expected state.
func (env *dispatchEnv) waitView(ok func(runner.View) bool) (v runner.View) {
	env.t.Helper()
	eventually(env.t, func() error {
		if v = env.view(); !ok(v) {
			return fmt.Errorf("the dispatcher has %+v", v)
		}
		return nil
	})
	return v
}

func runnerHas(id string, status runner.Status) func(runner.View) bool {
	return func(v runner.View) bool {
		for _, r := range v.Runners {
			if r.ID == id {
				return r.Status == status
			}
		}
		return false
	}
}

// stubRunner is the process of a runner.
type stubRunner struct {
	env    *dispatchEnv
	reg    runner.Registration
	lease  runner.Lease
	frozen atomic.Bool // sends no heartbeats
	lost   chan struct{}
	stop   func()
}

// register requests the lease of a runner once, as a new process.
func (env *dispatchEnv) register(id string, change func(*runner.Registration)) (*stubRunner, error) {
	r := &stubRunner{env: env, lost: make(chan struct{}, 10),
		reg: runner.Registration{ID: id, Token: rand.Text(), PID: 4711, HeartbeatMS: 8000, RemoveMS: 600_000,
			SessionQueue: "sessions." + id,
			Capabilities: runner.Capabilities{Hostname: "web-1", ProjectDir: "/srv",
				ExecutorTypes: []string{runner.Deterministic, runner.ClaudeCode}, Slots: 1}}}
	if change != nil {
		change(&r.reg)
	}
	return r, r.register()
}

func (r *stubRunner) register() error {
	ctx, cancel := context.WithTimeout(r.env.t.Context(), 20*time.Second)
	defer cancel()
	id := runner.WorkflowID(r.reg.ID)
	start := r.env.Client.NewWithStartWorkflowOperation(client.StartWorkflowOptions{ID: id,
		TaskQueue:                ace.TaskQueue,
		WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING}, runner.Workflow,
		runner.Input{RunnerID: r.reg.ID})
	h, err := r.env.Client.UpdateWithStartWorkflow(ctx,
		client.UpdateWithStartWorkflowOptions{StartWorkflowOperation: start,
			UpdateOptions: client.UpdateWorkflowOptions{WorkflowID: id, UpdateName: runner.UpdateRegister,
				Args:         []any{r.reg},
				WaitForStage: client.WorkflowUpdateStageCompleted}})
	if err != nil {
		return err
	}
	return h.Get(ctx, &r.lease)
}

// startRunner registers a runner and holds its lease.
func (env *dispatchEnv) startRunner(id string, change func(*runner.Registration)) *stubRunner {
	env.t.Helper()
	r, err := env.register(id, change)
	if err != nil {
		env.t.Fatal(err)
	}
	r.serve()
	return r
}

func (r *stubRunner) serve() {
	r.env.t.Helper()
	w := worker.New(r.env.Client, r.lease.Queue, worker.Options{DisableWorkflowWorker: true,
		MaxHeartbeatThrottleInterval: 100 * time.Millisecond,
		WorkerStopTimeout:            100 * time.Millisecond})
	w.RegisterActivityWithOptions(r.hold, sdkactivity.RegisterOptions{Name: runner.ActivityLease})
	if err := w.Start(); err != nil {
		r.env.t.Fatal(err)
	}
	var once sync.Once
	r.stop = func() { once.Do(w.Stop) }
	r.env.t.Cleanup(r.stop)
}

func (r *stubRunner) hold(ctx context.Context, _ runner.LeaseInput) error {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if !r.frozen.Load() {
				sdkactivity.RecordHeartbeat(ctx)
			}
		case <-ctx.Done():
			r.lost <- struct{}{}
			return ctx.Err()
		case <-sdkactivity.GetWorkerStopChannel(ctx):
			return fmt.Errorf("the process is ending")
		}
	}
}

// update sends an update to the runner's workflow.
func (env *dispatchEnv) update(id, name string, n runner.Note) (info runner.Info, err error) {
	ctx, cancel := context.WithTimeout(env.t.Context(), 20*time.Second)
	defer cancel()
	h, err := env.Client.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{WorkflowID: runner.WorkflowID(id),
		UpdateName: name, Args: []any{n},
		WaitForStage: client.WorkflowUpdateStageCompleted})
	if err == nil {
		err = h.Get(ctx, &info)
	}
	return info, err
}
