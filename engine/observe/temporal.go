package observe

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"acescope/engine/ace"
	"acescope/engine/observe/batch"
)

// Client is the part of a Temporal client that an observer needs.
type Client interface {
	SignalWorkflow(ctx context.Context, workflowID, runID, signalName string, arg any) error
	SignalWithStartWorkflow(ctx context.Context, workflowID, signalName string, signalArg any, options client.StartWorkflowOptions, workflow any, workflowArgs ...any) (client.WorkflowRun, error)
	DescribeWorkflowExecution(ctx context.Context, workflowID, runID string) (*workflowservice.DescribeWorkflowExecutionResponse, error)
}

// signalEvery is how often a run is signalled at most. What comes after a time of quiet
// goes at once; an observed run is continued before its history is full, so that it takes
// any number of signals.
const signalEvery = 50 * time.Millisecond

// maxLanes bounds the runs that are kept in mind while nothing waits for them.
const maxLanes = 1000

// Temporal is the observer that tells the workflows themselves: it starts one with a run's
// first event, and signals the others in batches. While the server is away it tries again.
type Temporal struct {
	teller
	client  Client
	log     *slog.Logger
	ctx     context.Context
	cancel  context.CancelFunc
	waiting atomic.Int64
	dropped atomic.Int64
	late    atomic.Int64
	failure atomic.Pointer[string]

	lanesMu sync.Mutex
	lanes   map[string]*lane // by workflow id
}

// NewTemporal makes an observer that delivers until it is closed.
func NewTemporal(c Client, redact Redact, log *slog.Logger) *Temporal {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	t := &Temporal{client: c, log: log, lanes: map[string]*lane{}}
	t.ctx, t.cancel = context.WithCancel(context.Background())
	t.teller = teller{redact: redact, tell: func(e Told) {
		if t.waiting.Load() >= MaxWaiting {
			t.dropped.Add(1)
			return
		}
		t.deliver(e, nil)
	}}
	return t
}

// Dropped is how many events were dropped since too many waited, Late how many came after
// their run had closed.
func (t *Temporal) Dropped() int64 { return t.dropped.Load() }

// Late is how many events came after their run had closed.
func (t *Temporal) Late() int64 { return t.late.Load() }

// Waiting is how many events are not delivered yet.
func (t *Temporal) Waiting() int64 { return t.waiting.Load() }

// Failure is why the newest batch could not be delivered, "" where it could.
func (t *Temporal) Failure() string {
	if why := t.failure.Load(); why != nil {
		return *why
	}
	return ""
}

// Close ends the observer. What waits is delivered first, for as long as ctx allows.
func (t *Temporal) Close(ctx context.Context) {
	stop := context.AfterFunc(ctx, t.cancel)
	defer stop()
	defer t.cancel()
	t.lanesMu.Lock()
	lanes := t.lanes
	t.lanes = map[string]*lane{}
	t.lanesMu.Unlock()
	var wg sync.WaitGroup
	for _, l := range lanes {
		wg.Go(func() { l.queue.Close(false) })
	}
	wg.Wait()
}

// deliver takes an event to its run. done, where it is not nil, is called once it was
// delivered, or cannot be any more.
func (t *Temporal) deliver(e Told, done func()) {
	t.waiting.Add(1)
	t.lane(ace.WorkflowID(e.TaskID)).queue.Add(parcel{e, done})
}

// lane is the way to a workflow.
func (t *Temporal) lane(workflowID string) *lane {
	t.lanesMu.Lock()
	defer t.lanesMu.Unlock()
	l := t.lanes[workflowID]
	if l == nil {
		t.forget()
		l = &lane{to: t, workflowID: workflowID, log: t.log.With("workflow", workflowID)}
		l.queue = batch.New(batch.Rule[parcel]{Pace: signalEvery,
			Bytes:    func(p parcel) int { return batch.EventBytes(p.Event) },
			Together: func(a, b parcel) bool { return a.Start == b.Start }}, l.send)
		t.lanes[workflowID] = l
	}
	return l
}

// forget drops lanes that nothing waits for, where there are too many; what they know can
// be asked for again.
func (t *Temporal) forget() {
	if len(t.lanes) < maxLanes {
		return
	}
	for id, l := range t.lanes {
		if l.queue.Idle() {
			delete(t.lanes, id)
		}
	}
}
