package observe

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"acescope/engine/ace"
	"acescope/engine/agents/observe/batch"
	"acescope/engine/internal/sleep"
	"acescope/engine/temporal/history"
	"acescope/engine/temporal/searchattr"
)

// Timing of deliveries.
const (
	// signalInterval is the minimum time between signals to a run; the first event after a pause
	// is sent at once. An observed run continues as new before its history is full, so it accepts
	// any number of signals.
	signalInterval = 50 * time.Millisecond
	callTimeout    = 5 * time.Second
	minRetry       = 50 * time.Millisecond
	maxRetry       = 5 * time.Second
	closeTimeout   = 3 * time.Second // for a finished run to close
)

// maxLanes bounds the idle lanes that are kept.
const maxLanes = 1000

// Client is the part of a Temporal client that an observer needs.
type Client interface {
	SignalWorkflow(ctx context.Context, workflowID, runID, signalName string, arg any) error
	SignalWithStartWorkflow(ctx context.Context, workflowID, signalName string, signalArg any,
		options client.StartWorkflowOptions, workflow any, workflowArgs ...any) (client.WorkflowRun, error)
	DescribeWorkflowExecution(ctx context.Context, workflowID, runID string) (
		*workflowservice.DescribeWorkflowExecutionResponse, error)
}

// Temporal is an observer that signals the workflows: a run's first event starts the workflow,
// later events are sent in batches. It retries while the server is unreachable.
type Temporal struct {
	recorder
	client  Client
	queue   string // task queue of the runs
	log     *slog.Logger
	ctx     context.Context
	cancel  context.CancelFunc
	waiting atomic.Int64
	dropped atomic.Int64
	failure atomic.Value // string

	lanesMu sync.Mutex
	lanes   map[string]*lane // by workflow id
}

// NewTemporal returns an observer that delivers until it is closed.
func NewTemporal(c Client, queue string, redact Redact, log *slog.Logger) *Temporal {
	log = cmp.Or(log, slog.New(slog.DiscardHandler))
	t := &Temporal{client: c, queue: queue, log: log, lanes: map[string]*lane{}}
	t.ctx, t.cancel = context.WithCancel(context.Background())
	t.recorder = recorder{redact: redact, emit: func(o Observation) {
		if t.waiting.Load() >= MaxWaiting {
			t.dropped.Add(1)
			return
		}
		t.deliver(fit(o, nil), nil)
	}}
	return t
}

// Dropped returns how many events were dropped because too many were waiting.
func (t *Temporal) Dropped() int64 { return t.dropped.Load() }

// Waiting returns how many events are not delivered yet.
func (t *Temporal) Waiting() int64 { return t.waiting.Load() }

// Failure returns why the newest batch could not be delivered, or "".
func (t *Temporal) Failure() string {
	text, _ := t.failure.Load().(string)
	return text
}

// Close delivers the waiting events until ctx ends, and ends the observer.
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

// deliver sends an event to its run. done, if set, is called when the event was delivered, its run
// has closed, or the server refused it for good.
func (t *Temporal) deliver(o Observation, done func(refused error)) {
	t.waiting.Add(1)
	t.lane(ace.WorkflowID(o.TaskID)).queue.Add(delivery{o, done})
}

func (t *Temporal) lane(workflowID string) *lane {
	t.lanesMu.Lock()
	defer t.lanesMu.Unlock()
	l := t.lanes[workflowID]
	if l == nil {
		if len(t.lanes) >= maxLanes {
			// The state of an idle lane can be queried again.
			maps.DeleteFunc(t.lanes, func(_ string, l *lane) bool { return l.queue.Idle() })
		}
		l = &lane{to: t, workflowID: workflowID, log: t.log.With("workflow", workflowID)}
		l.queue = batch.New(batch.Rule[delivery]{
			MinInterval: signalInterval,
			Bytes:       func(d delivery) int { return batch.EventBytes(d.Event) },
			SameBatch:   func(a, b delivery) bool { return a.Start == b.Start },
		}, l.send)
		t.lanes[workflowID] = l
	}
	return l
}

// delivery is an event with its completion callback.
type delivery struct {
	Observation
	done func(refused error)
}

// lane delivers the events of one task in order. Only its queue calls send, one call at a time.
type lane struct {
	to         *Temporal
	workflowID string
	queue      *batch.Queue[delivery]
	log        *slog.Logger
	openStart  string // Start of the run that was open at the last signal
	runID      string
}

type runState int

const (
	runAbsent runState = iota
	runOpen
	runClosed
)

var errRunClosed = errors.New("the run has closed")

// send delivers a batch. It divides a batch that the server refuses, so that only the refused
// events are lost to the run.
func (l *lane) send(deliveries []delivery) {
	refused, ok := l.retry(deliveries)
	if half := len(deliveries) / 2; ok && refused != nil && half > 0 {
		l.send(deliveries[:half])
		l.send(deliveries[half:])
		return
	}
	l.to.waiting.Add(-int64(len(deliveries)))
	for _, d := range deliveries {
		switch {
		case !ok:
		case d.done != nil:
			d.done(refused)
		case refused != nil:
			l.to.dropped.Add(1)
			l.log.Warn("an event was refused and is dropped", "event", d.Event.EventID, "error", refused)
		}
	}
}

// retry tries to deliver a batch until it is delivered, its run has closed, or the server refuses
// it. It returns false if the observer was closed before.
func (l *lane) retry(deliveries []delivery) (refused error, ok bool) {
	events := make([]ace.ToolEvent, len(deliveries))
	var input *ace.TaskInput
	for i, d := range deliveries {
		events[i] = d.Event
		input = cmp.Or(d.Input, input)
	}
	for wait := minRetry; ; wait = min(2*wait, maxRetry) {
		err := l.try(deliveries[0].Observation, input, events)
		if err == nil || errors.Is(err, errRunClosed) {
			l.to.failure.Store("")
			return nil, true
		}
		if l.to.ctx.Err() == nil && isFinal(err) {
			return err, true
		}
		l.to.failure.Store(err.Error())
		l.log.Warn("delivery of events failed; retrying", "events", len(events), "run", l.runID, "error", err)
		if sleep.For(l.to.ctx, wait) != nil {
			return nil, false
		}
	}
}

// isFinal reports whether the server refuses a request for good: another attempt would fail too.
// Search attributes may be registered later.
func isFinal(err error) bool {
	if invalid, ok := errors.AsType[*serviceerror.InvalidArgument](err); ok {
		return !strings.Contains(invalid.Message, "no mapping defined")
	}
	// gRPC returns the error of an overloaded server for a message that is too large.
	_, exhausted := errors.AsType[*serviceerror.ResourceExhausted](err)
	_, unencodable := errors.AsType[*json.MarshalerError](err)
	return exhausted && strings.Contains(err.Error(), "larger than max") || unencodable
}

// try delivers a batch once. The memo of a run identifies the observation that started it, so
// events of a closed run do not start another one.
func (l *lane) try(of Observation, input *ace.TaskInput, events []ace.ToolEvent) error {
	ctx, cancel := context.WithTimeout(l.to.ctx, callTimeout)
	defer cancel()
	if l.openStart != of.Start {
		state, err := l.state(ctx, of.Start)
		switch {
		case err != nil:
			return err
		case state == runAbsent:
			return l.start(ctx, of, input, events)
		case state == runClosed:
			return l.tooLate(events)
		}
	}
	err := l.to.client.SignalWorkflow(ctx, l.workflowID, "", ace.SignalToolEvent, events)
	if isNotFound(err) && l.openStart == of.Start {
		return l.tooLate(events)
	}
	if err == nil {
		l.openStart = of.Start
	}
	return err // if the run has just closed, the retry queries it again
}

func (l *lane) tooLate(events []ace.ToolEvent) error {
	l.log.Warn("events arrived after their run had closed", "events", len(events), "run", l.runID)
	return errRunClosed
}

func (l *lane) start(ctx context.Context, of Observation, input *ace.TaskInput,
	events []ace.ToolEvent) error {
	in := ace.TaskInput{TaskID: of.TaskID, Observation: ace.Observation{Observed: true}, Adapter: ace.Online}
	if input != nil {
		in = *input
	}
	in.Revision = ace.Revision
	in.By = cmp.Or(in.By, ace.User())
	options := client.StartWorkflowOptions{
		ID: l.workflowID, TaskQueue: l.to.queue, TypedSearchAttributes: searchattr.Task(in),
		Memo: map[string]any{ace.MemoObserved: ace.ObservedStart{ID: of.Start, Source: in.Source,
			SessionID: events[0].SessionID, At: events[0].At}, ace.MemoBy: in.By},
	}
	run, err := l.to.client.SignalWithStartWorkflow(ctx, l.workflowID, ace.SignalToolEvent, events, options,
		ace.TaskWorkflow, in)
	if err != nil {
		return err
	}
	l.openStart, l.runID = of.Start, run.GetRunID()
	l.log.Info("observed run started", "run", l.runID, "session", events[0].SessionID, "source", in.Source)
	return nil
}

// state returns the state of the run that the observation start has started. It waits for an earlier run that
// is about to close.
func (l *lane) state(ctx context.Context, start string) (runState, error) {
	for waited := time.Duration(0); ; waited += minRetry {
		d, err := l.to.client.DescribeWorkflowExecution(ctx, l.workflowID, "")
		if isNotFound(err) {
			return runAbsent, nil
		}
		if err != nil {
			return runAbsent, err
		}
		info := d.GetWorkflowExecutionInfo()
		l.runID = info.GetExecution().GetRunId()
		var started ace.ObservedStart
		_ = json.Unmarshal(history.PayloadJSON(info.GetMemo().GetFields()[ace.MemoObserved]), &started)
		isOpen := info.GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING
		switch {
		case isOpen && (started.ID == start || waited >= closeTimeout):
			return runOpen, nil
		case !isOpen && started.ID == start:
			return runClosed, nil
		case !isOpen:
			return runAbsent, nil
		}
		if sleep.For(ctx, minRetry) != nil {
			return runAbsent, ctx.Err()
		}
	}
}

func isNotFound(err error) bool {
	var notFound *serviceerror.NotFound
	return errors.As(err, &notFound)
}
