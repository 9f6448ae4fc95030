package host

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"

	"acescope/engine/artifact"
	"acescope/engine/executor"
	"acescope/engine/run"
	"acescope/engine/runner"
)

// Host is a runner's process.
type Host struct {
	o     Options
	place *place
	exec  *executor.Executor
	token string
	// start makes a worker of a queue.
	start func(queue string, slots int, register func(worker.ActivityRegistry)) (stop func(), err error)
}

// New makes a runner's process. [Host.Run] makes it run.
func New(o Options) (*Host, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	h := &Host{o: o, place: o.place(), token: rand.Text()}
	h.exec = executor.New(executor.Options{Artifacts: o.Artifacts, Logs: artifact.NewLogs(o.DataDir, o.Artifacts), TempDir: h.place.tmp(),
		Check: o.Check, Redact: o.Redact, Grace: o.Grace, Logger: o.Logger})
	h.start = func(queue string, slots int, register func(worker.ActivityRegistry)) (func(), error) {
		return startWorker(o.Client, queue, slots, register)
	}
	return h, nil
}

// ID is the runner's id.
func (h *Host) ID() string { return h.o.ID }

// Run registers the runner and executes runs until the context is done. Then it takes no more
// of them, and waits for those under way until they have ended, their time is over, or force
// is closed. An error says why it could not go on; with ErrTaken another process has its
// identity.
func (h *Host) Run(ctx context.Context, force <-chan struct{}) error {
	err := h.place.hold(ctx, h.o.Insist, func(pid int) {
		h.o.Logger.Warn("a program that was left behind is ended", "runner", h.o.ID, "pid", pid)
	})
	if err != nil {
		return orDone(ctx, err)
	}
	defer h.place.release()
	for {
		lease, err := h.register(ctx)
		if err != nil {
			return orDone(ctx, err)
		}
		s, err := h.serve(lease)
		if err != nil {
			return err
		}
		h.tell(Event{Kind: Registered, Lease: lease})
		select {
		case <-ctx.Done():
			return h.drain(s, force)
		case <-s.drained:
			return h.drain(s, force)
		case why := <-s.lost:
			h.tell(Event{Kind: LeaseLost, Lease: lease, Text: why})
			s.close()
		}
	}
}

// orDone is nil where somebody wanted the end.
func orDone(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

func (h *Host) tell(e Event) {
	h.o.Logger.Info("runner", "id", h.o.ID, "event", e.Kind, "text", e.Text, "queue", e.Lease.Queue)
	h.o.Tell(e)
}

// served is what one lease is worked with.
type served struct {
	h       *Host
	lease   runner.Lease
	stop    func()
	lost    chan string // why the lease is not held any more
	drained chan struct{}

	life context.Context // of the programs
	end  context.CancelFunc

	mu     sync.Mutex
	leases int // activities that hold it
	runs   int // under way
	idle   chan struct{}
	leaves bool
	asked  sync.Once // to drain
}

// serve starts to work with a lease.
func (h *Host) serve(lease runner.Lease) (*served, error) {
	s := &served{h: h, lease: lease, lost: make(chan string, 1), drained: make(chan struct{})}
	s.life, s.end = context.WithCancel(context.Background())
	stop, err := h.start(lease.Queue, h.o.Capabilities.Slots, func(r worker.ActivityRegistry) {
		r.RegisterActivityWithOptions(s.hold, activity.RegisterOptions{Name: runner.ActivityLease})
		r.RegisterActivityWithOptions(s.execute, activity.RegisterOptions{Name: run.ActivityExecute})
	})
	if err != nil {
		s.end()
		return nil, fmt.Errorf("runner %s: %w", h.o.ID, err)
	}
	s.stop = stop
	return s, nil
}

// close ends the programs and the worker.
func (s *served) close() {
	s.mu.Lock()
	s.leaves = true
	s.mu.Unlock()
	s.end()
	<-s.whenIdle()
	s.stop()
}

// whenIdle is closed when no run is under way.
func (s *served) whenIdle() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.idle == nil {
		s.idle = make(chan struct{})
		if s.runs == 0 {
			close(s.idle)
		}
	}
	return s.idle
}

// begin counts a run that begins; ok is false where none may begin any more.
func (s *served) begin() (ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.idle != nil && s.runs == 0 || s.life.Err() != nil {
		return false
	}
	s.runs++
	return true
}

func (s *served) ended() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.runs--; s.runs == 0 && s.idle != nil {
		close(s.idle)
	}
}

// workerStop is how long a worker waits for its activities when it is stopped; what they run
// has been ended by then.
const workerStop = 2 * time.Second

// startWorker works on a runner's queue. Beside its runs there is the activity that holds the
// lease, and for a moment another that takes its place.
func startWorker(c client.Client, queue string, slots int, register func(worker.ActivityRegistry)) (func(), error) {
	w := worker.New(c, queue, worker.Options{
		MaxConcurrentActivityExecutionSize: slots + 2,
		MaxHeartbeatThrottleInterval:       time.Second, // a cancellation reaches a run with its next heartbeat
		WorkerStopTimeout:                  workerStop,
		DisableWorkflowWorker:              true,
	})
	register(w)
	if err := w.Start(); err != nil {
		return nil, err
	}
	return w.Stop, nil
}

// Hostname is that of this machine.
func Hostname() string {
	name, err := os.Hostname()
	if err != nil {
		return "localhost"
	}
	return name
}
