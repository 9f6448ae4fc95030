package operation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"acescope/engine/ace"
)

// Handler does what an operation asks for. Its result is recorded as JSON. An error is an
// infrastructure failure, which is tried again, unless it is made by [AgentFailure] or is
// an application error of Temporal's. [CallOf] tells of the operation.
type Handler func(ctx context.Context, parameters json.RawMessage) (any, error)

// Typed makes a handler of a function with parameters and a result of its own types.
// Parameters that do not fit are a permanent failure; fields that P lacks are left out.
func Typed[P, R any](do func(context.Context, P) (R, error)) Handler {
	return func(ctx context.Context, parameters json.RawMessage) (any, error) {
		var p P
		if err := json.Unmarshal(parameters, &p); err != nil {
			return nil, permanent(TypeBadParameters, "operation %s: the parameters do not fit %T: %v", CallOf(ctx).OperationID, p, err)
		}
		return do(ctx, p)
	}
}

// AgentFailure is an error of the agent itself: it refused, or its answer is of no use.
// It is not tried again. AgentFailure(nil) is nil.
func AgentFailure(err error) error {
	if err == nil {
		return nil
	}
	return temporal.NewNonRetryableApplicationError(cut(err.Error()), TypeAgent, nil)
}

// Call tells a handler which operation it serves.
type Call struct {
	OperationID string
	Type        Type
	Step        string
	Branch      string
	Occurrence  int
	Attempt     int32
	// Key is the same for every attempt at this operation and for no other operation: the
	// workflow's id, its first run's and the operation's. Give it to systems that tell
	// repetitions by a key (hash it where they want a short one), or look for its trace
	// before an effect is made again.
	Key string

	beat *beating
}

type callKey struct{}

// CallOf is the call that a handler's context belongs to; the zero Call elsewhere.
func CallOf(ctx context.Context) Call {
	c, _ := ctx.Value(callKey{}).(Call)
	return c
}

// Registry is where activities are made known: a worker, or a test environment.
type Registry interface {
	RegisterActivityWithOptions(fn any, options activity.RegisterOptions)
}

// Handlers are the operations that a worker can run. Set the fields before Register.
type Handlers struct {
	// Put keeps a result that is too large to be recorded; artifact.Store.PutBytes is one.
	// Without it such a result is a permanent failure.
	Put func(ctx context.Context, content []byte, mediaType string) (ace.Ref, error)
	// Have tells whether the content of a reference is there still; without it a cached
	// reference is trusted.
	Have func(ace.Ref) bool
	// Cache answers operations that allow it. What goes wrong there is logged and is no
	// failure of the operation.
	Cache Cache

	mu  sync.RWMutex
	all map[place]handler
}

type place struct {
	t    Type
	step string
}

type handler struct {
	version string
	do      Handler
}

// Handle makes a handler known for a step, or with the step "" for those of the type that
// have none of their own. The version is part of the cache's key: change it when the same
// parameters are to give another result.
func (h *Handlers) Handle(t Type, step, version string, do Handler) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	at := place{t, step}
	switch _, twice := h.all[at]; {
	case !t.known():
		return fmt.Errorf("handler of step %q: no type %q; there are %v", step, t, Types())
	case do == nil:
		return fmt.Errorf("handler of %s %q is nil", t, step)
	case twice:
		return fmt.Errorf("there is a handler of %s %q already", t, step)
	}
	if h.all == nil {
		h.all = map[place]handler{}
	}
	h.all[at] = handler{version, do}
	return nil
}

// Register makes the activities known that operations run as, one for each type.
func (h *Handlers) Register(r Registry) {
	for _, t := range Types() {
		r.RegisterActivityWithOptions(h.serve, activity.RegisterOptions{Name: t.Activity()})
	}
}

func (h *Handlers) find(t Type, step string) (handler, error) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	if found, ok := h.all[place{t, step}]; ok {
		return found, nil
	}
	if found, ok := h.all[place{t, ""}]; ok {
		return found, nil
	}
	var steps []string
	for at := range h.all {
		steps = append(steps, string(at.t)+" "+at.step)
	}
	slices.Sort(steps)
	return handler{}, temporal.NewApplicationError(fmt.Sprintf("this worker has no handler for %s %q; it has: %s", t, step, cut(strings.Join(steps, ", "))), TypeNoHandler)
}

// serve is the activity.
func (h *Handlers) serve(ctx context.Context, req Request) (Result, error) {
	found, err := h.find(req.Type, req.Step)
	if err != nil {
		return Result{}, err
	}
	out := Result{OperationID: req.OperationID}
	if req.Cache && h.Cache != nil {
		if out.CacheKey, err = CacheKey(req.Type, req.Step, req.Parameters, found.version); err != nil {
			return Result{}, permanent(TypeBadParameters, "operation %s: the parameters: %v", req.OperationID, err)
		}
		if e, ok := h.cached(ctx, out.CacheKey); ok {
			out.Value, out.Ref, out.ExecutedAt, out.DurationMS, out.Cached = e.Value, e.Ref, e.ExecutedAt, e.DurationMS, true
			return out, nil
		}
	}
	call := callOf(ctx, req)
	call.beat = startBeating(ctx, activity.GetInfo(ctx).HeartbeatTimeout)
	defer call.beat.stop()
	start := time.Now()
	value, err := guarded(context.WithValue(ctx, callKey{}, call), found.do, req.Parameters)
	out.ExecutedAt, out.DurationMS = start.UTC(), float64(time.Since(start).Microseconds())/1000
	if err != nil {
		return Result{}, settle(ctx, err)
	}
	if err := h.fill(ctx, &out, value); err != nil {
		return Result{}, err
	}
	if out.CacheKey != "" {
		h.keep(ctx, req, found.version, out)
	}
	return out, nil
}

func callOf(ctx context.Context, req Request) Call {
	info := activity.GetInfo(ctx)
	return Call{OperationID: req.OperationID, Type: req.Type, Step: req.Step, Branch: req.Branch, Occurrence: req.Occurrence, Attempt: info.Attempt,
		Key: info.WorkflowExecution.ID + "/" + req.RunKey + "/" + req.OperationID}
}

// guarded calls a handler and makes an error of a panic.
func guarded(ctx context.Context, do Handler, parameters json.RawMessage) (value any, err error) {
	defer func() {
		if p := recover(); p != nil {
			id := CallOf(ctx).OperationID
			activity.GetLogger(ctx).Error("a handler panicked", "operation", id, "panic", p, "stack", string(debug.Stack()))
			err = temporal.NewApplicationError(cut(fmt.Sprintf("operation %s: the handler panicked: %v", id, p)), TypePanic)
		}
	}()
	return do(ctx, parameters)
}

// settle makes a handler's error one that says whether it is tried again. A handler that
// ended because it was told to passes its context's error on.
func settle(ctx context.Context, err error) error {
	var app *temporal.ApplicationError
	switch {
	case errors.As(err, &app) && error(app) == err:
		return app
	case app != nil: // wrapped with more words
		return temporal.NewApplicationErrorWithOptions(cut(err.Error()), app.Type(), temporal.ApplicationErrorOptions{
			NonRetryable: app.NonRetryable(), NextRetryDelay: app.NextRetryDelay()})
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		return ctx.Err()
	case errors.Is(err, activity.ErrResultPending):
		return permanent(TypeBadResult, "an operation cannot be completed from outside")
	}
	return temporal.NewApplicationError(cut(err.Error()), TypeInfrastructure)
}

// fill puts a handler's value into the result, by reference where it is large.
func (h *Handlers) fill(ctx context.Context, out *Result, value any) error {
	data, err := encode(value)
	if err != nil {
		return permanent(TypeBadResult, "operation %s: the result: %v", out.OperationID, err)
	}
	if len(data) <= MaxInline {
		out.Value = data
		return nil
	}
	if h.Put == nil {
		return permanent(TypeBadResult, "operation %s: a result of %d bytes, at most %d are recorded, and this worker has no store for larger ones",
			out.OperationID, len(data), MaxInline)
	}
	ref, err := h.Put(ctx, data, "application/json")
	if err != nil {
		return settle(ctx, fmt.Errorf("operation %s: keep the result: %w", out.OperationID, err))
	}
	out.Ref = &ref
	return nil
}

func (h *Handlers) cached(ctx context.Context, key string) (Entry, bool) {
	e, ok, err := h.Cache.Get(ctx, key)
	if err != nil {
		activity.GetLogger(ctx).Warn("the result cache cannot be read", "error", err)
		return Entry{}, false
	}
	if ok && e.Ref != nil && h.Have != nil && !h.Have(*e.Ref) {
		return Entry{}, false
	}
	return e, ok
}

func (h *Handlers) keep(ctx context.Context, req Request, version string, r Result) {
	e := Entry{Key: r.CacheKey, Type: req.Type, Step: req.Step, Version: version, Value: r.Value, Ref: r.Ref, ExecutedAt: r.ExecutedAt, DurationMS: r.DurationMS}
	if err := h.Cache.Put(ctx, e); err != nil {
		activity.GetLogger(ctx).Warn("the result cache cannot be written", "error", err)
	}
}

// maxMessage bounds the message of a failure, in bytes: it is recorded with every attempt.
const maxMessage = 2 << 10

func cut(s string) string {
	s = strings.ToValidUTF8(s, "�")
	if len(s) <= maxMessage {
		return s
	}
	return strings.ToValidUTF8(s[:maxMessage], "") + "…"
}
