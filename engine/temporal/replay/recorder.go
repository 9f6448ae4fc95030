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

	"acescope/engine/temporal/history"
)

// recorder is an interceptor that records the decisions of replayed code by workflow task.
type recorder struct {
	interceptor.WorkerInterceptorBase
	details bool // record inputs and results too, which doubles the cost of a replay

	mu       sync.Mutex          // guards the fields below until the replay ends or is abandoned
	commands map[int64][]Command // by the started event of the workflow task
	versions []versionCall
	locals   []localCall // local activities that have not ended
	at       int64       // started event of the last workflow task that ran code
	progress int64       // number of observed calls
	stopped  bool        // the replay was abandoned
}

// maxCommands bounds the decisions in one workflow task. A server accepts far fewer, so more decisions mean
// an endless loop.
const maxCommands = 100_000

type localCall struct {
	future       workflow.Future
	activityType string
}

type versionCall struct {
	change   string
	min, max workflow.Version
}

func (r *recorder) record(ctx workflow.Context, c Command) {
	r.observe(ctx, func() {
		list := append(r.commands[r.at], c)
		// The closing command stays last, even if other coroutines decide after it.
		if n := len(list); n > 1 && isClosing(list[n-2].Kind) {
			list[n-2], list[n-1] = list[n-1], list[n-2]
		}
		r.commands[r.at] = list
		if len(list) > maxCommands {
			panic(fmt.Sprintf("the code made more than %d decisions in one workflow task", maxCommands))
		}
	})
}

// observe notes that the code made progress and runs update, unless it is nil, under the lock.
// It panics to end code whose replay was abandoned.
func (r *recorder) observe(ctx workflow.Context, update func()) {
	at := int64(workflow.GetInfo(ctx).GetCurrentHistoryLength())
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stopped {
		panic("the replay was abandoned")
	}
	r.at = at
	r.progress++
	r.locals = slices.DeleteFunc(r.locals, func(l localCall) bool {
		ready := l.future.IsReady()
		if ready {
			r.commands[at] = append(r.commands[at], Command{Kind: kindLocal, Name: l.activityType})
		}
		return ready
	})
	if update != nil {
		update()
	}
}

func (r *recorder) observed() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.progress
}

// stop ends the recording, so that it can be read while the code may still run.
func (r *recorder) stop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stopped = true
}

// digest returns the digest of the input of a call, or "" without details. It ignores values
// that cannot be encoded, which fail the workflow itself.
func (r *recorder) digest(args ...any) string {
	if !r.details {
		return ""
	}
	p, err := converter.GetDefaultDataConverter().ToPayloads(args...)
	if err != nil {
		return ""
	}
	return digest(p)
}

// InterceptWorkflow implements [interceptor.WorkerInterceptor].
func (r *recorder) InterceptWorkflow(
	_ workflow.Context, next interceptor.WorkflowInboundInterceptor,
) interceptor.WorkflowInboundInterceptor {
	i := &inbound{r: r}
	i.Next = next
	return i
}

type inbound struct {
	interceptor.WorkflowInboundInterceptorBase
	r *recorder
}

func (i *inbound) Init(next interceptor.WorkflowOutboundInterceptor) error {
	o := &outbound{r: i.r}
	o.Next = next
	return i.Next.Init(o)
}

func (i *inbound) ExecuteWorkflow(ctx workflow.Context, in *interceptor.ExecuteWorkflowInput) (any, error) {
	i.r.observe(ctx, nil)
	defer func() {
		if p := recover(); p != nil {
			i.r.recordPanic(ctx)
			panic(p)
		}
	}()
	result, err := i.Next.ExecuteWorkflow(ctx, in)
	closing := closingCommand(err)
	if err == nil {
		closing.Detail = i.r.digest(result)
	}
	i.r.record(ctx, closing)
	return result, err
}

// HandleSignal only notes progress: a signal may lead to no decision.
func (i *inbound) HandleSignal(ctx workflow.Context, in *interceptor.HandleSignalInput) error {
	i.r.observe(ctx, nil)
	return i.Next.HandleSignal(ctx, in)
}

// ExecuteUpdate records an accepted update.
func (i *inbound) ExecuteUpdate(ctx workflow.Context, in *interceptor.UpdateInput) (any, error) {
	i.r.record(ctx, Command{Kind: kindUpdate, Name: in.Name})
	return i.Next.ExecuteUpdate(ctx, in)
}

// recordPanic notes the workflow task in which the code panicked.
func (r *recorder) recordPanic(ctx workflow.Context) {
	at := int64(workflow.GetInfo(ctx).GetCurrentHistoryLength())
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.stopped {
		r.at = at
	}
}

func closingCommand(err error) Command {
	if err == nil {
		return Command{Kind: kindComplete}
	}
	if next, ok := errors.AsType[*workflow.ContinueAsNewError](err); ok {
		return Command{Kind: kindNew, Name: next.WorkflowType.Name}
	}
	if temporal.IsCanceledError(err) {
		return Command{Kind: kindCanceled}
	}
	return Command{Kind: kindFail, Detail: err.Error()}
}

type outbound struct {
	interceptor.WorkflowOutboundInterceptorBase
	r *recorder
}

func (o *outbound) ExecuteActivity(ctx workflow.Context, kind string, args ...any) workflow.Future {
	id := workflow.GetActivityOptions(ctx).ActivityID
	o.r.record(ctx, Command{Kind: kindActivity, Name: kind, ID: id, Detail: o.r.digest(args...)})
	return o.Next.ExecuteActivity(ctx, kind, args...)
}

// ExecuteLocalActivity records the local activity when it ends, which is when it leaves its
// marker. An extra coroutine observes the end in case the code does nothing after it.
func (o *outbound) ExecuteLocalActivity(ctx workflow.Context, kind string, args ...any) workflow.Future {
	f := o.Next.ExecuteLocalActivity(ctx, kind, args...)
	o.r.observe(ctx, func() { o.r.locals = append(o.r.locals, localCall{f, kind}) })
	workflow.Go(ctx, func(ctx workflow.Context) {
		if workflow.Await(ctx, f.IsReady) == nil {
			o.r.observe(ctx, nil)
		}
	})
	return f
}

func (o *outbound) ExecuteChildWorkflow(
	ctx workflow.Context, kind string, args ...any,
) workflow.ChildWorkflowFuture {
	id := workflow.GetChildWorkflowOptions(ctx).WorkflowID
	o.r.record(ctx, Command{Kind: kindChild, Name: kind, ID: id, Detail: o.r.digest(args...)})
	return o.Next.ExecuteChildWorkflow(ctx, kind, args...)
}

func (o *outbound) timer(ctx workflow.Context, d time.Duration) {
	if d > 0 {
		o.r.record(ctx, Command{Kind: kindTimer, Detail: d.String()})
	}
}

func (o *outbound) NewTimer(ctx workflow.Context, d time.Duration) workflow.Future {
	o.timer(ctx, d)
	return o.Next.NewTimer(ctx, d)
}

// NewTimerWithOptions also records workflow.Sleep.
func (o *outbound) NewTimerWithOptions(
	ctx workflow.Context, d time.Duration, options workflow.TimerOptions,
) workflow.Future {
	o.timer(ctx, d)
	return o.Next.NewTimerWithOptions(ctx, d, options)
}

func (o *outbound) RequestCancelExternalWorkflow(ctx workflow.Context, id, runID string) workflow.Future {
	o.r.record(ctx, Command{Kind: kindCancel, ID: id})
	return o.Next.RequestCancelExternalWorkflow(ctx, id, runID)
}

func (o *outbound) SignalExternalWorkflow(
	ctx workflow.Context, id, runID, name string, arg any,
) workflow.Future {
	o.r.record(ctx, Command{Kind: kindSignal, Name: name, ID: id, Detail: o.r.digest(arg)})
	return o.Next.SignalExternalWorkflow(ctx, id, runID, name, arg)
}

func (o *outbound) SignalChildWorkflow(ctx workflow.Context, id, name string, arg any) workflow.Future {
	o.r.record(ctx, Command{Kind: kindSignal, Name: name, ID: id, Detail: o.r.digest(arg)})
	return o.Next.SignalChildWorkflow(ctx, id, name, arg)
}

func (o *outbound) UpsertSearchAttributes(ctx workflow.Context, attributes map[string]any) error {
	o.r.record(ctx, Command{Kind: kindAttrs})
	return o.Next.UpsertSearchAttributes(ctx, attributes)
}

func (o *outbound) UpsertTypedSearchAttributes(
	ctx workflow.Context, attributes ...temporal.SearchAttributeUpdate,
) error {
	o.r.record(ctx, Command{Kind: kindAttrs})
	return o.Next.UpsertTypedSearchAttributes(ctx, attributes...)
}

func (o *outbound) UpsertMemo(ctx workflow.Context, memo map[string]any) error {
	o.r.record(ctx, Command{Kind: kindMemo})
	return o.Next.UpsertMemo(ctx, memo)
}

func (o *outbound) SideEffect(ctx workflow.Context, f func(workflow.Context) any) converter.EncodedValue {
	o.r.record(ctx, Command{Kind: kindMarker, Name: history.MarkerSideEffect})
	return o.Next.SideEffect(ctx, f)
}

func (o *outbound) SideEffectWithOptions(
	ctx workflow.Context, options workflow.SideEffectOptions, f func(workflow.Context) any,
) converter.EncodedValue {
	o.r.record(ctx, Command{Kind: kindMarker, Name: history.MarkerSideEffect})
	return o.Next.SideEffectWithOptions(ctx, options, f)
}

func (o *outbound) GetVersion(
	ctx workflow.Context, change string, low, high workflow.Version,
) workflow.Version {
	o.r.observe(ctx, func() { o.r.versions = append(o.r.versions, versionCall{change, low, high}) })
	return o.Next.GetVersion(ctx, change, low, high)
}

func (o *outbound) ExecuteNexusOperation(
	ctx workflow.Context, in interceptor.ExecuteNexusOperationInput,
) workflow.NexusOperationFuture {
	name := ""
	if s, ok := in.Operation.(string); ok {
		name = in.Client.Service() + "." + s
	}
	o.r.record(ctx, Command{Kind: kindNexus, Name: name})
	return o.Next.ExecuteNexusOperation(ctx, in)
}
