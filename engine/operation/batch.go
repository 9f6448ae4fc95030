package operation

import (
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
)

// Bounds of a batch. Temporal allows 2,000 pending activities.
const (
	MaxBatch      = 2000
	MaxWindow     = 1000
	DefaultWindow = 16
)

// TypeNotRun is the type of the error of operations that a batch no longer began.
const TypeNotRun = "NotRun"

// Policy says what a batch does when one of its operations fails.
type Policy int8

// Policies.
const (
	// FailFast begins no more, cancels those that are under way, waits for them and gives
	// the error of the one that failed first.
	FailFast Policy = iota
	// CollectAll runs them all; the errors are in the outcomes.
	CollectAll
)

// BatchOptions say how a batch is run.
type BatchOptions struct {
	Window   int // how many run at a time; 0: [DefaultWindow]
	OnFailed Policy
}

// Outcome is what became of one operation of a batch.
type Outcome struct {
	Result
	Err error
}

// Batch runs operations in parallel and gives their outcomes in their order. Their ids
// follow that order too, whatever ends first.
func (r *Runner) Batch(ctx workflow.Context, ops []Operation, o BatchOptions) ([]Outcome, error) {
	if len(ops) > MaxBatch {
		return nil, permanent(TypeBadOperation, "a batch of %d operations: at most %d; split it, and continue as new between", len(ops), MaxBatch)
	}
	b := &batch{o: o, all: make([]prepared, len(ops)), out: make([]Outcome, len(ops))}
	for i, op := range ops {
		b.all[i] = r.prepare(op)
		b.out[i] = Outcome{Result: Result{OperationID: b.all[i].request.OperationID}, Err: errNotRun}
	}
	return b.out, b.run(ctx)
}

var errNotRun = temporal.NewNonRetryableApplicationError("it was not begun: another operation of the batch failed, or the run was cancelled", TypeNotRun, nil)

// batch is one that is under way.
type batch struct {
	o     BatchOptions
	all   []prepared
	next  int
	out   []Outcome
	first error // in time
}

func (b *batch) run(ctx workflow.Context) error {
	window := b.o.Window
	if window <= 0 {
		window = DefaultWindow
	}
	inner, cancel := workflow.WithCancel(ctx)
	defer cancel()
	lanes := workflow.NewWaitGroup(ctx)
	for range min(window, MaxWindow, len(b.all)) {
		lanes.Add(1)
		workflow.Go(inner, func(ctx workflow.Context) {
			defer lanes.Done()
			b.lane(ctx, cancel)
		})
	}
	// Lanes end by themselves, also when the run is cancelled: what they did is waited for.
	waiting, _ := workflow.NewDisconnectedContext(ctx)
	lanes.Wait(waiting)
	switch {
	case b.first != nil && b.o.OnFailed == FailFast:
		return b.first
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return nil
}

// lane runs one operation after the other.
func (b *batch) lane(ctx workflow.Context, cancel workflow.CancelFunc) {
	for b.next < len(b.all) && ctx.Err() == nil {
		i := b.next
		b.next++
		id := b.out[i].OperationID
		b.out[i].Result, b.out[i].Err = b.all[i].start(ctx).Result(ctx)
		b.out[i].OperationID = id
		if b.out[i].Err == nil {
			continue
		}
		if b.first == nil {
			b.first = b.out[i].Err
		}
		if b.o.OnFailed == FailFast {
			cancel()
			return
		}
	}
}
