package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"acescope/sources/histories"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"acescope/engine"
	"acescope/engine/temporal/operation"
	"acescope/engine/temporal/operation/example"
)

// recordingOutbox is an outbox that publishes each key once.
type recordingOutbox struct {
	mu       sync.Mutex
	receipts map[string]string
	keys     []string // of all calls
}

func (p *recordingOutbox) Publish(_ context.Context, key string, page example.Page) (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.keys = append(p.keys, key)
	if p.receipts == nil {
		p.receipts = map[string]string{}
	}
	if p.receipts[key] == "" {
		p.receipts[key] = fmt.Sprintf("receipt %d for %d characters", len(p.receipts)+1, len(page.Text))
	}
	return p.receipts[key], nil
}

func (p *recordingOutbox) counts() (effects, calls int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.receipts), len(p.keys)
}

// startOperationWorker runs a worker on a queue of its own.
func startOperationWorker(t *testing.T, e *engine.Engine, queue string, h *operation.Handlers,
	register func(worker.Registry)) worker.Worker {
	t.Helper()
	w := worker.New(e.Client, queue, worker.Options{MaxHeartbeatThrottleInterval: 100 * time.Millisecond})
	register(w)
	h.Register(w)
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	return w
}

func begin(t *testing.T, e *engine.Engine, queue, id string, code any, in any) client.WorkflowRun {
	t.Helper()
	run, err := e.Client.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: id, TaskQueue: queue},
		code, in)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// TestOperations runs the examples of engine/temporal/operation on a real server and records the
// histories that their own tests replay.
func TestOperations(t *testing.T) {
	t.Parallel()
	e := open(t, t.TempDir(), newScripted())
	out := &recordingOutbox{}
	h, err := example.Handlers(out)
	if err != nil {
		t.Fatal(err)
	}
	if h.Cache, err = operation.OpenFileCache(t.TempDir(), 100, 1<<20); err != nil {
		t.Fatal(err)
	}
	w := startOperationWorker(t, e, "operations", h, func(r worker.Registry) { example.Register(r) })
	defer w.Stop()
	first := startOperationWorker(t, e, "refund-first", h, func(r worker.Registry) {
		r.RegisterWorkflowWithOptions(example.RefundFirst,
			workflow.RegisterOptions{Name: example.RefundWorkflow})
	})
	defer first.Stop()

	question := example.Question{Text: "Is it round?", Facts: []string{"it is round", "it is flat",
		"it turns"}, Rounds: 3}
	cached := 0
	for _, name := range []string{"review", "review-cached"} {
		var a example.Answer
		if err := begin(t, e, "operations", name, "Review", question).Get(t.Context(), &a); err != nil {
			t.Fatal(err)
		}
		if a.Text != "Well. Is it round? Yes." || a.Rounds != 2 || len(a.Wrong) != 1 || a.Receipt == "" ||
			a.At.IsZero() {
			t.Errorf("%s: %+v", name, a)
		}
		for _, ev := range operation.Project(eventsOf(t, e.Client, name).Events) {
			if ev.Cached {
				cached++
			}
		}
		recordAs(t, e.Client, name, name)
	}
	if cached != 2 {
		t.Errorf("%d results came from the cache", cached)
	}
	if effects, calls := out.counts(); effects != 2 || calls != 2 {
		t.Errorf("%d pages after %d calls", effects, calls)
	}
	err = begin(t, e, "operations", "review-failed", "Review", example.Question{Rounds: 1}).Get(t.Context(),
		nil)
	if f := operation.FailureOf(err); err == nil || !f.Agent() || !f.Permanent {
		t.Errorf("the agent's failure: %+v, %v", f, err)
	}
	recordAs(t, e.Client, "review-failed", "review-failed")
	for queue, name := range map[string]string{"refund-first": "refund-first",
		"operations": "refund-guarded"} {
		if err := begin(t, e, queue, name, example.RefundWorkflow, "order 17").Get(t.Context(),
			nil); err != nil {
			t.Fatal(err)
		}
		recordAs(t, e.Client, name, name)
	}
	named(t, e)
	chain(t, e, out)
	// The query of docs/design/versioning.md for runs that still need an old branch.
	for _, query := range []string{"TemporalChangeVersion IS NULL",
		`TemporalChangeVersion = "fraud-check-1"`} {
		eventually(t, func() error {
			n, err := e.Client.CountWorkflow(t.Context(),
				&workflowservice.CountWorkflowExecutionsRequest{Query: `WorkflowType = "Refund" AND ` +
					query})
			if err == nil && n.GetCount() != 1 {
				err = fmt.Errorf("%s: %d runs", query, n.GetCount())
			}
			return err
		})
	}
}

// named checks that the timeline names operations by their step.
func named(t *testing.T, e *engine.Engine) {
	l, err := histories.ReadEvents(t.Context(), e.Client, e.Namespace(), "review", "", 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, s := range l.Spans {
		names[s.Name] = true
	}
	for _, want := range []string{"draft", "draft 2", "check [facts] 3", "publish"} {
		if !names[want] {
			t.Errorf("no span %q in %v", want, names)
		}
	}
}

// chain is a workflow that continues as new: it keeps its variables, and the operation at the
// same place in the next run is a different one.
func chain(t *testing.T, e *engine.Engine, out *recordingOutbox) {
	before, _ := out.counts()
	var looks int
	run := begin(t, e, "operations", "watch", "Watch", example.Watching{Left: 2})
	first := run.GetRunID()
	if err := run.Get(t.Context(), &looks); err != nil || looks != 3 {
		t.Fatalf("%d, %v", looks, err)
	}
	out.mu.Lock()
	defer out.mu.Unlock()
	for i, suffix := range []string{"", "+1", "+2"} {
		if want := "watch/" + first + suffix + "/op.publish.-.1"; out.keys[before+i] != want {
			t.Errorf("key %q, want %q", out.keys[before+i], want)
		}
	}
}

// publishOnce has one operation; its worker counts as lost after a second.
func publishOnce(ctx workflow.Context, text string) (string, error) {
	var receipt string
	r := operation.New(ctx)
	err := r.Do(ctx, operation.Operation{Type: operation.Action, Step: "publish",
		Parameters: example.Page{Text: text},
		Options:    operation.Options{Heartbeat: time.Second}}, &receipt)
	return receipt, err
}

// blockingOutbox has its effect and then blocks, like a killed worker.
type blockingOutbox struct {
	*recordingOutbox
	reached, release chan struct{}
}

func (h *blockingOutbox) Publish(ctx context.Context, key string, p example.Page) (string, error) {
	if _, err := h.recordingOutbox.Publish(ctx, key, p); err != nil {
		return "", err
	}
	close(h.reached)
	<-h.release
	return "", errors.New("unused")
}

// TestOperationCrash (S2.7, S2.8, S2.16) loses the worker between the effect of an operation and
// its record. Another worker finishes the operation without repeating the effect.
func TestOperationCrash(t *testing.T) {
	t.Parallel()
	e := open(t, t.TempDir(), newScripted())
	out := &recordingOutbox{}
	dying := &blockingOutbox{out, make(chan struct{}), make(chan struct{})}
	defer close(dying.release)
	register := func(r worker.Registry) {
		r.RegisterWorkflowWithOptions(publishOnce, workflow.RegisterOptions{Name: "PublishOnce"})
	}
	h, err := example.Handlers(dying)
	if err != nil {
		t.Fatal(err)
	}
	first := startOperationWorker(t, e, "crash", h, register)
	run := begin(t, e, "crash", "crash", "PublishOnce", "news")
	<-dying.reached
	first.Stop()

	if h, err = example.Handlers(out); err != nil {
		t.Fatal(err)
	}
	second := startOperationWorker(t, e, "crash", h, register)
	defer second.Stop()
	var receipt string
	if err := run.Get(t.Context(), &receipt); err != nil {
		t.Fatal(err)
	}
	if effects, calls := out.counts(); effects != 1 || calls != 2 || receipt != "receipt 1 for 4 characters" {
		t.Errorf("%d effects in %d calls, receipt %q", effects, calls, receipt)
	}
	if key := "crash/" + run.GetRunID() + "/op.publish.-.1"; out.keys[0] != key || out.keys[1] != key {
		t.Errorf("keys %q, want %q twice", out.keys, key)
	}

	history := eventsOf(t, e.Client, "crash").Events
	scheduled := 0
	for _, ev := range history {
		if ev.GetEventType() == enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED {
			scheduled++
		}
	}
	events := operation.Project(history)
	// The stopped worker may have been given the second attempt too.
	if scheduled != 1 || len(events) != 2 || events[0].Type != operation.OperationStarted ||
		events[1].Type != operation.OperationCompleted || events[1].Attempt < 2 {
		data, _ := json.Marshal(events)
		t.Errorf("%d times scheduled; %s", scheduled, data)
	}
}
