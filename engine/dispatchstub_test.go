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

// What stands in for runs: workflows with the ids of runs, on a queue of their own, that say
// to the dispatcher what runs say, and keep what they hear.
const (
	stubQueue  = "stub-runs"
	stubRun    = "StubRun"
	stubFinish = "finish"
	stubHeard  = "heard"
)

// heard is the messages that a run received from the dispatcher.
type heard struct {
	Claims    []runner.Claim
	Unmatched []runner.Unmatched
	Lost      []runner.Lost
}

// askFor is the input of a run.
type askFor struct {
	Demands runner.Requirements
	Within  time.Duration
	Parent  string
}

// stub requests a runner and releases it on request.
func stub(ctx workflow.Context, in askFor) (heard, error) {
	var h heard
	info := workflow.GetInfo(ctx)
	id := run.IDOf(info.WorkflowExecution.ID)
	if err := workflow.SetQueryHandler(ctx, stubHeard, func() (heard, error) { return h, nil }); err != nil {
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
	err := say(ctx, runner.Notice{Kind: runner.Enqueue, Run: id, Request: &runner.Request{RunID: id, Execution: info.WorkflowExecution.RunID,
		Requirements: in.Demands, Asked: workflow.Now(ctx), Deadline: workflow.Now(ctx).Add(in.Within), Try: 1, Parent: in.Parent, Name: "stub"}})
	if err != nil {
		return h, err
	}
	if err := workflow.Await(ctx, func() bool { return finish || len(h.Unmatched)+len(h.Lost) > 0 }); err != nil {
		calm, _ := workflow.NewDisconnectedContext(ctx)
		return h, say(calm, runner.Notice{Kind: runner.Withdraw, Run: id})
	}
	for _, c := range h.Claims {
		if err := say(ctx, runner.Notice{Kind: runner.Release, Run: id, Claim: c.Number}); err != nil {
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

func say(ctx workflow.Context, notices ...runner.Notice) error {
	ctx = workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{StartToCloseTimeout: 20 * time.Second,
		RetryPolicy: &temporal.RetryPolicy{InitialInterval: 100 * time.Millisecond, MaximumInterval: time.Second}})
	return workflow.ExecuteLocalActivity(ctx, runner.ActivityTell, runner.Notices(notices)).Get(ctx, nil)
}

// yard is an engine with stubs.
type yard struct {
	*engine.Engine
	t *testing.T
}

// newYard executes the stubs' runs on an engine.
func newYard(t *testing.T, e *engine.Engine) *yard {
	t.Helper()
	w := worker.New(e.Client, stubQueue, worker.Options{MaxConcurrentActivityExecutionSize: 1, WorkerStopTimeout: time.Second})
	w.RegisterWorkflowWithOptions(stub, workflow.RegisterOptions{Name: stubRun})
	(&activities.Dispatch{Workflows: e.Client, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))}).Register(w)
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
	return &yard{e, t}
}

// start starts a run that requests a runner.
func (y *yard) start(id string, in askFor) {
	y.t.Helper()
	if in.Within == 0 {
		in.Within = 5 * time.Minute
	}
	if _, err := y.Client.ExecuteWorkflow(y.t.Context(), client.StartWorkflowOptions{ID: run.WorkflowID(id), TaskQueue: stubQueue}, stubRun, in); err != nil {
		y.t.Fatal(err)
	}
}

func (y *yard) finish(id string) {
	y.t.Helper()
	if err := y.Client.SignalWorkflow(y.t.Context(), run.WorkflowID(id), "", stubFinish, nil); err != nil {
		y.t.Fatal(err)
	}
}

// heard is the messages that a run received from the dispatcher.
func (y *yard) heard(id string) (h heard, err error) {
	ctx, cancel := context.WithTimeout(y.t.Context(), 5*time.Second)
	defer cancel()
	v, err := y.Client.QueryWorkflow(ctx, run.WorkflowID(id), "", stubHeard)
	if err == nil {
		err = v.Get(&h)
	}
	return h, err
}

// hears waits until a run received the expected messages.
func (y *yard) hears(id string, ok func(heard) bool) (h heard) {
	y.t.Helper()
	eventually(y.t, func() (err error) {
		if h, err = y.heard(id); err == nil && !ok(h) {
			err = fmt.Errorf("run %s has heard %+v; the dispatcher knows %+v", id, h, y.view())
		}
		return err
	})
	return h
}

func (y *yard) claimed(id, by string) runner.Claim {
	y.t.Helper()
	h := y.hears(id, func(h heard) bool { return len(h.Claims) > 0 })
	if len(h.Claims) != 1 || h.Claims[0].RunnerID != by {
		y.t.Fatalf("run %s was given to %+v, not to %s", id, h.Claims, by)
	}
	return h.Claims[0]
}

func (y *yard) view() (v runner.View) {
	ctx, cancel := context.WithTimeout(y.t.Context(), 5*time.Second)
	defer cancel()
	if got, err := y.Client.QueryWorkflow(ctx, runner.DispatcherID, "", runner.QueryDispatcher, runner.ViewOptions{}); err == nil {
		_ = got.Get(&v)
	}
	return v
}

// sees waits until the dispatcher has the expected state.
func (y *yard) sees(ok func(runner.View) bool) (v runner.View) {
	y.t.Helper()
	eventually(y.t, func() error {
		if v = y.view(); !ok(v) {
			return fmt.Errorf("the dispatcher knows %+v", v)
		}
		return nil
	})
	return v
}

func is(id string, status runner.Status) func(runner.View) bool {
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
	y      *yard
	reg    runner.Registration
	lease  runner.Lease
	frozen atomic.Bool // sends no heartbeats
	lost   chan struct{}
	stop   func()
}

// register requests the lease of a runner once, as a new process.
func (y *yard) register(id string, change func(*runner.Registration)) (*stubRunner, error) {
	r := &stubRunner{y: y, lost: make(chan struct{}, 10), reg: runner.Registration{ID: id, Token: rand.Text(), PID: 4711, HeartbeatMS: 8000, RemoveMS: 600_000,
		SessionQueue: "sessions." + id,
		Capabilities: runner.Capabilities{Hostname: "web-1", ProjectDir: "/srv", ExecutorTypes: []string{runner.Deterministic, runner.ClaudeCode}, Slots: 1}}}
	if change != nil {
		change(&r.reg)
	}
	return r, r.register()
}

func (r *stubRunner) register() error {
	ctx, cancel := context.WithTimeout(r.y.t.Context(), 20*time.Second)
	defer cancel()
	id := runner.WorkflowID(r.reg.ID)
	start := r.y.Client.NewWithStartWorkflowOperation(client.StartWorkflowOptions{ID: id, TaskQueue: ace.TaskQueue,
		WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING}, runner.Workflow, runner.Input{RunnerID: r.reg.ID})
	h, err := r.y.Client.UpdateWithStartWorkflow(ctx, client.UpdateWithStartWorkflowOptions{StartWorkflowOperation: start,
		UpdateOptions: client.UpdateWorkflowOptions{WorkflowID: id, UpdateName: runner.UpdateRegister, Args: []any{r.reg},
			WaitForStage: client.WorkflowUpdateStageCompleted}})
	if err != nil {
		return err
	}
	return h.Get(ctx, &r.lease)
}

// runner registers a runner and holds its lease.
func (y *yard) runner(id string, change func(*runner.Registration)) *stubRunner {
	y.t.Helper()
	r, err := y.register(id, change)
	if err != nil {
		y.t.Fatal(err)
	}
	r.serve()
	return r
}

func (r *stubRunner) serve() {
	r.y.t.Helper()
	w := worker.New(r.y.Client, r.lease.Queue, worker.Options{DisableWorkflowWorker: true, MaxHeartbeatThrottleInterval: 100 * time.Millisecond,
		WorkerStopTimeout: 100 * time.Millisecond})
	w.RegisterActivityWithOptions(r.hold, sdkactivity.RegisterOptions{Name: runner.ActivityLease})
	if err := w.Start(); err != nil {
		r.y.t.Fatal(err)
	}
	var once sync.Once
	r.stop = func() { once.Do(w.Stop) }
	r.y.t.Cleanup(r.stop)
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
			return fmt.Errorf("the process ends")
		}
	}
}

// update sends an update to the runner's workflow.
func (y *yard) update(id, name string, n runner.Note) (info runner.Info, err error) {
	ctx, cancel := context.WithTimeout(y.t.Context(), 20*time.Second)
	defer cancel()
	h, err := y.Client.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{WorkflowID: runner.WorkflowID(id), UpdateName: name, Args: []any{n},
		WaitForStage: client.WorkflowUpdateStageCompleted})
	if err == nil {
		err = h.Get(ctx, &info)
	}
	return info, err
}
