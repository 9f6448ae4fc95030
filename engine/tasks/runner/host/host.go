package host

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"

	"acescope/engine/ace"
	"acescope/engine/internal/sleep"
	"acescope/engine/store/artifact"
	"acescope/engine/tasks/executor"
	"acescope/engine/tasks/run"
	"acescope/engine/tasks/runner"
)

// Host is a runner's process.
type Host struct {
	o     Options
	dir   *directory
	exec  *executor.Executor
	token string
}

// New returns a host. [Host.Run] starts it.
func New(o Options) (*Host, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	h := &Host{o: o, dir: o.directory(), token: rand.Text()}
	h.exec = executor.New(executor.Options{Artifacts: o.Artifacts,
		Logs:    artifact.NewLogs(o.DataDir, o.Artifacts),
		TempDir: h.dir.tmp(), Grace: o.Grace, Logger: o.Logger})
	return h, nil
}

// ID returns the runner's id.
func (h *Host) ID() string { return h.o.ID }

// Run registers the runner and executes runs until the context is done. Then it takes no more
// runs, and waits for the current ones until they end, Options.Drain is over, or force is
// closed. It returns [ErrTaken] if another process is this runner.
func (h *Host) Run(ctx context.Context, force <-chan struct{}) error {
	err := h.dir.acquire(ctx, h.o.WaitForLock, func(pid int) {
		h.o.Logger.Warn("ending a program of an earlier process", "runner", h.o.ID, "pid", pid)
	})
	if err == nil {
		defer h.dir.release()
		err = h.serveLeases(ctx, force)
	}
	if ctx.Err() != nil {
		return nil
	}
	return err
}

func (h *Host) serveLeases(ctx context.Context, force <-chan struct{}) error {
	for {
		lease, err := h.register(ctx)
		if err != nil {
			return err
		}
		w, err := h.startWorker(lease)
		if err != nil {
			return err
		}
		h.emit(Event{Kind: Registered, Lease: lease})
		select {
		case <-ctx.Done():
			return h.drain(w, force)
		case <-w.drained:
			return h.drain(w, force)
		case why := <-w.lost:
			h.emit(Event{Kind: LeaseLost, Lease: lease, Text: why})
			w.close()
		}
	}
}

func (h *Host) emit(e Event) {
	h.o.Logger.Info("runner", "id", h.o.ID, "event", e.Kind, "text", e.Text, "queue", e.Lease.Queue)
	h.o.OnEvent(e)
}

// drain stops taking runs, waits for the current runs, and leaves.
func (h *Host) drain(w *leaseWorker, force <-chan struct{}) error {
	ctx := context.Background()
	if err := h.update(ctx, runner.UpdateDrain, "it is being ended"); err != nil {
		h.o.Logger.Warn("cannot notify the server that the runner drains", "runner", h.o.ID, "error", err)
	}
	w.mu.Lock()
	runs := w.runs
	w.mu.Unlock()
	if runs > 0 {
		h.emit(Event{Kind: Draining, Lease: w.lease,
			Text: "takes no more runs; waits for " + ace.Count(runs, "run")})
	}
	var timeout <-chan time.Time
	if h.o.Drain > 0 {
		timer := time.NewTimer(h.o.Drain)
		defer timer.Stop()
		timeout = timer.C
	}
	agentCtx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		select {
		case <-w.whenIdle():
			h.awaitAgents(agentCtx)
		case <-agentCtx.Done():
		}
	}()
	select {
	case <-done:
	case <-force:
	case <-timeout:
	case <-w.lost:
	}
	w.endPrograms()
	if err := h.update(ctx, runner.UpdateLeave, "it has ended"); err != nil {
		h.o.Logger.Warn("cannot notify the server that the runner leaves", "runner", h.o.ID, "error", err)
	}
	w.stop()
	h.emit(Event{Kind: Left, Lease: w.lease})
	return nil
}

// awaitAgents waits until the runner has no run according to the dispatcher. Agents' runs are
// not executed in this process. It gives up after several failed queries.
func (h *Host) awaitAgents(ctx context.Context) {
	const interval = 500 * time.Millisecond
	const maxFailures = 5
	isAgent := func(executorType string) bool { return runner.Agent(executorType) != "" }
	if !slices.ContainsFunc(h.o.Capabilities.ExecutorTypes, isAgent) {
		return
	}
	for failures := 0; failures < maxFailures; {
		var view runner.View
		err := h.query(ctx, &view, runner.DispatcherID(h.o.TaskQueue), runner.QueryDispatcher,
			runner.ViewOptions{Pending: 1})
		i := slices.IndexFunc(view.Runners, func(r runner.RunnerView) bool { return r.ID == h.o.ID })
		switch {
		case err != nil:
			failures++
		case i < 0 || view.Runners[i].Busy == 0:
			return
		default:
			failures = 0
		}
		if sleep.For(ctx, interval) != nil {
			return
		}
	}
}

// leaseWorker works on the queue of a lease.
type leaseWorker struct {
	h       *Host
	lease   runner.Lease
	stop    func()
	lost    chan string   // why the lease is lost
	drained chan struct{} // closed when the runner is asked to drain

	life context.Context // of the programs
	end  context.CancelFunc

	mu        sync.Mutex
	leases    int           // activities that hold the lease
	runs      int           // current runs
	idle      chan struct{} // closed when there are no more runs; nil until whenIdle
	leaving   bool
	drainOnce sync.Once
}

func (h *Host) startWorker(lease runner.Lease) (*leaseWorker, error) {
	w := &leaseWorker{h: h, lease: lease, lost: make(chan string, 1), drained: make(chan struct{})}
	w.life, w.end = context.WithCancel(context.Background())
	tasks := worker.New(h.o.Client, lease.Queue, worker.Options{
		// The lease needs a slot too, and another one while it is renewed.
		MaxConcurrentActivityExecutionSize: h.o.Capabilities.Slots + 2,
		MaxHeartbeatThrottleInterval:       time.Second,     // delays cancellation of runs
		WorkerStopTimeout:                  2 * time.Second, // programs have ended before
		DisableWorkflowWorker:              true,
	})
	tasks.RegisterActivityWithOptions(w.holdLease, activity.RegisterOptions{Name: runner.ActivityLease})
	tasks.RegisterActivityWithOptions(w.execute, activity.RegisterOptions{Name: run.ActivityExecute})
	if err := tasks.Start(); err != nil {
		w.end()
		return nil, fmt.Errorf("runner %s: %w", h.o.ID, err)
	}
	w.stop = tasks.Stop
	return w, nil
}

// close ends the programs and the worker.
func (w *leaseWorker) close() {
	w.endPrograms()
	w.stop()
}

// endPrograms ends the programs and waits for them. No more runs start.
func (w *leaseWorker) endPrograms() {
	w.mu.Lock()
	w.leaving = true
	w.mu.Unlock()
	w.end()
	<-w.whenIdle()
}

// whenIdle returns a channel that is closed when there are no more runs.
func (w *leaseWorker) whenIdle() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.idle == nil {
		w.idle = make(chan struct{})
		if w.runs == 0 {
			close(w.idle)
		}
	}
	return w.idle
}

// startRun counts a run that starts. It returns false if no more runs may start.
func (w *leaseWorker) startRun() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.idle != nil && w.runs == 0 || w.life.Err() != nil {
		return false
	}
	w.runs++
	return true
}

func (w *leaseWorker) endRun() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.runs--
	if w.runs == 0 && w.idle != nil {
		close(w.idle)
	}
}

// holdLease holds the lease with heartbeats while this process is alive.
func (w *leaseWorker) holdLease(ctx context.Context, in runner.LeaseInput) error {
	if in.Token != w.h.token || in.Lease.Epoch != w.lease.Epoch {
		return temporal.NewNonRetryableApplicationError("the lease is another process's", "NotMine", nil)
	}
	w.mu.Lock()
	w.leases++
	w.mu.Unlock()
	defer w.leaseEnded()
	tick := time.NewTicker(w.h.o.Stale / 2)
	defer tick.Stop()
	activity.RecordHeartbeat(ctx)
	for {
		select {
		case <-tick.C:
			activity.RecordHeartbeat(ctx)
			go w.checkDrain(ctx)
		case <-ctx.Done():
			return ctx.Err()
		case <-activity.GetWorkerStopChannel(ctx):
			return nil
		}
	}
}

// leaseEnded reports the loss of the lease, unless another activity holds it soon or the
// runner leaves.
func (w *leaseWorker) leaseEnded() {
	const renewWithin = 2 * time.Second
	w.mu.Lock()
	w.leases--
	w.mu.Unlock()
	if !w.leaseMissing() {
		return
	}
	time.AfterFunc(renewWithin, func() {
		if !w.leaseMissing() || w.checkDrain(w.life) {
			return
		}
		why := fmt.Sprintf("runner %s has lost its lease: its runs are ended, and it registers again",
			w.h.o.ID)
		select {
		case w.lost <- why:
		default: // the loss was already reported
		}
	})
}

func (w *leaseWorker) leaseMissing() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.leases == 0 && !w.leaving
}

// checkDrain closes w.drained and returns true if the runner was asked to drain.
func (w *leaseWorker) checkDrain(ctx context.Context) bool {
	var info runner.Info
	err := w.h.query(ctx, &info, runner.WorkflowID(w.h.o.ID), runner.QueryRunner)
	if err != nil || info.Status != runner.Draining || info.Lease.Epoch != w.lease.Epoch {
		return false
	}
	w.drainOnce.Do(func() { close(w.drained) })
	return true
}
