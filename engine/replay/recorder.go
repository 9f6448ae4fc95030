package replay

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
)

// recorder notes what replayed code decides, by the workflow task in which it does.
type recorder struct {
	interceptor.WorkerInterceptorBase
	details  bool                // note inputs and results too, which costs as much again as replaying
	commands map[int64][]Command // by the started event of the workflow task
	versions []versionCall
	at       int64 // started event of the last workflow task that ran code

	locals []localCall // that have not ended yet

	mu    sync.Mutex
	steps int64 // grows with all that the code does, as far as it can be seen
	ended bool  // nobody waits for the code any more
}

// maxCommands bounds what the code may decide in one workflow task. A server takes far
// less, so that more is a loop without an end.
const maxCommands = 100_000

type localCall struct {
	future workflow.Future
	kind   string
}

type versionCall struct {
	at       int64
	change   string
	min, max workflow.Version
}

func newRecorder(details bool) *recorder {
	return &recorder{details: details, commands: map[int64][]Command{}}
}

func (r *recorder) note(ctx workflow.Context, c Command) {
	r.reach(ctx, func() {
		list := append(r.commands[r.at], c)
		// The end of the run is the last of its commands, whatever other coroutines decide
		// in the same task behind it.
		if n := len(list); n > 1 && isEnding(list[n-2].Kind) {
			list[n-2], list[n-1] = list[n-1], list[n-2]
		}
		r.commands[r.at] = list
		if n := len(r.commands[r.at]); n > maxCommands {
			panic(fmt.Sprintf("the code made more than %d decisions in one workflow task", maxCommands))
		}
	})
}

// reach tells that the code has come to a place, and does what is to be noted of it. Code
// that nobody waits for any more ends there.
func (r *recorder) reach(ctx workflow.Context, do func()) {
	at := int64(workflow.GetInfo(ctx).GetCurrentHistoryLength())
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		panic("the replay was given up")
	}
	r.at = at
	r.steps++
	r.locals = slices.DeleteFunc(r.locals, func(l localCall) bool {
		ready := l.future.IsReady()
		if ready {
			r.commands[at] = append(r.commands[at], Command{Kind: kindLocal, Name: l.kind})
		}
		return ready
	})
	do()
}

// step tells how far the code has come, for those who wait.
func (r *recorder) step() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.steps
}

// giveUp ends the noting: what is noted can then be read while the code may still run.
func (r *recorder) giveUp() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = true
}

// encoded is the input that a call would record, where details are wanted. A value that
// cannot be encoded fails the workflow itself.
func (r *recorder) encoded(args []any) string {
	if !r.details {
		return ""
	}
	p, err := converter.GetDefaultDataConverter().ToPayloads(args...)
	if err != nil {
		return ""
	}
	return inputOf(p)
}

// InterceptWorkflow implements [interceptor.WorkerInterceptor].
func (r *recorder) InterceptWorkflow(_ workflow.Context, next interceptor.WorkflowInboundInterceptor) interceptor.WorkflowInboundInterceptor {
	return &inbound{WorkflowInboundInterceptorBase: interceptor.WorkflowInboundInterceptorBase{Next: next}, r: r}
}

type inbound struct {
	interceptor.WorkflowInboundInterceptorBase
	r *recorder
}

func (i *inbound) Init(next interceptor.WorkflowOutboundInterceptor) error {
	return i.Next.Init(&outbound{WorkflowOutboundInterceptorBase: interceptor.WorkflowOutboundInterceptorBase{Next: next}, r: i.r})
}

func (i *inbound) ExecuteWorkflow(ctx workflow.Context, in *interceptor.ExecuteWorkflowInput) (any, error) {
	i.r.reach(ctx, func() {})
	defer func() {
		if p := recover(); p != nil { // it goes on: only the place is noted
			i.r.panicked(ctx)
			panic(p)
		}
	}()
	result, err := i.Next.ExecuteWorkflow(ctx, in)
	end := ending(err)
	if err == nil {
		end.Detail = i.r.encoded([]any{result})
	}
	i.r.note(ctx, end)
	return result, err
}

// HandleSignal tells that there is progress: a signal may lead to no decision.
func (i *inbound) HandleSignal(ctx workflow.Context, in *interceptor.HandleSignalInput) error {
	i.r.reach(ctx, func() {})
	return i.Next.HandleSignal(ctx, in)
}

// ExecuteUpdate is called once an update is accepted.
func (i *inbound) ExecuteUpdate(ctx workflow.Context, in *interceptor.UpdateInput) (any, error) {
	i.r.note(ctx, Command{Kind: kindUpdate, Name: in.Name})
	return i.Next.ExecuteUpdate(ctx, in)
}

// panicked notes the place of a panic.
func (r *recorder) panicked(ctx workflow.Context) {
	at := int64(workflow.GetInfo(ctx).GetCurrentHistoryLength())
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.ended {
		r.at = at
	}
}

// ending is the command by which a workflow function ends.
func ending(err error) Command {
	var again *workflow.ContinueAsNewError
	switch {
	case err == nil:
		return Command{Kind: kindComplete}
	case errors.As(err, &again):
		return Command{Kind: kindNew, Name: again.WorkflowType.Name}
	case temporal.IsCanceledError(err):
		return Command{Kind: kindCanceled}
	}
	return Command{Kind: kindFail, Detail: err.Error()}
}

type outbound struct {
	interceptor.WorkflowOutboundInterceptorBase
	r *recorder
}

func (o *outbound) ExecuteActivity(ctx workflow.Context, kind string, args ...any) workflow.Future {
	o.r.note(ctx, Command{Kind: kindActivity, Name: kind, ID: workflow.GetActivityOptions(ctx).ActivityID, Detail: o.r.encoded(args)})
	return o.Next.ExecuteActivity(ctx, kind, args...)
}

// A local activity leaves its marker when it has ended, before what the code does with its
// result; where there is nothing more to do in the workflow task, somebody must look.
func (o *outbound) ExecuteLocalActivity(ctx workflow.Context, kind string, args ...any) workflow.Future {
	f := o.Next.ExecuteLocalActivity(ctx, kind, args...)
	o.r.reach(ctx, func() { o.r.locals = append(o.r.locals, localCall{f, kind}) })
	workflow.Go(ctx, func(ctx workflow.Context) {
		if workflow.Await(ctx, f.IsReady) == nil {
			o.r.reach(ctx, func() {})
		}
	})
	return f
}

func (o *outbound) ExecuteChildWorkflow(ctx workflow.Context, kind string, args ...any) workflow.ChildWorkflowFuture {
	o.r.note(ctx, Command{Kind: kindChild, Name: kind, ID: workflow.GetChildWorkflowOptions(ctx).WorkflowID, Detail: o.r.encoded(args)})
	return o.Next.ExecuteChildWorkflow(ctx, kind, args...)
}

func (o *outbound) timer(ctx workflow.Context, d time.Duration) {
	if d > 0 {
		o.r.note(ctx, Command{Kind: kindTimer, Detail: lengthOf(d)})
	}
}

func (o *outbound) NewTimer(ctx workflow.Context, d time.Duration) workflow.Future {
	o.timer(ctx, d)
	return o.Next.NewTimer(ctx, d)
}

// Sleeping is a timer made through NewTimerWithOptions.
func (o *outbound) NewTimerWithOptions(ctx workflow.Context, d time.Duration, options workflow.TimerOptions) workflow.Future {
	o.timer(ctx, d)
	return o.Next.NewTimerWithOptions(ctx, d, options)
}

func (o *outbound) RequestCancelExternalWorkflow(ctx workflow.Context, id, runID string) workflow.Future {
	o.r.note(ctx, Command{Kind: kindCancel, ID: id})
	return o.Next.RequestCancelExternalWorkflow(ctx, id, runID)
}

func (o *outbound) SignalExternalWorkflow(ctx workflow.Context, id, runID, name string, arg any) workflow.Future {
	o.r.note(ctx, Command{Kind: kindSignal, Name: name, ID: id, Detail: o.r.encoded([]any{arg})})
	return o.Next.SignalExternalWorkflow(ctx, id, runID, name, arg)
}

func (o *outbound) SignalChildWorkflow(ctx workflow.Context, id, name string, arg any) workflow.Future {
	o.r.note(ctx, Command{Kind: kindSignal, Name: name, ID: id, Detail: o.r.encoded([]any{arg})})
	return o.Next.SignalChildWorkflow(ctx, id, name, arg)
}

func (o *outbound) UpsertSearchAttributes(ctx workflow.Context, attributes map[string]any) error {
	o.r.note(ctx, Command{Kind: kindAttrs})
	return o.Next.UpsertSearchAttributes(ctx, attributes)
}

func (o *outbound) UpsertTypedSearchAttributes(ctx workflow.Context, attributes ...temporal.SearchAttributeUpdate) error {
	o.r.note(ctx, Command{Kind: kindAttrs})
	return o.Next.UpsertTypedSearchAttributes(ctx, attributes...)
}

func (o *outbound) UpsertMemo(ctx workflow.Context, memo map[string]any) error {
	o.r.note(ctx, Command{Kind: kindMemo})
	return o.Next.UpsertMemo(ctx, memo)
}

func (o *outbound) SideEffect(ctx workflow.Context, f func(workflow.Context) any) converter.EncodedValue {
	o.r.note(ctx, Command{Kind: kindMarker, Name: markerSideEffect})
	return o.Next.SideEffect(ctx, f)
}

func (o *outbound) SideEffectWithOptions(ctx workflow.Context, options workflow.SideEffectOptions, f func(workflow.Context) any) converter.EncodedValue {
	o.r.note(ctx, Command{Kind: kindMarker, Name: markerSideEffect})
	return o.Next.SideEffectWithOptions(ctx, options, f)
}

func (o *outbound) GetVersion(ctx workflow.Context, change string, low, high workflow.Version) workflow.Version {
	o.r.reach(ctx, func() { o.r.versions = append(o.r.versions, versionCall{o.r.at, change, low, high}) })
	return o.Next.GetVersion(ctx, change, low, high)
}

func (o *outbound) ExecuteNexusOperation(ctx workflow.Context, in interceptor.ExecuteNexusOperationInput) workflow.NexusOperationFuture {
	name := ""
	if s, ok := in.Operation.(string); ok {
		name = in.Client.Service() + "." + s
	}
	o.r.note(ctx, Command{Kind: kindNexus, Name: name})
	return o.Next.ExecuteNexusOperation(ctx, in)
}
