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
	"acescope/engine/internal/sleep"
)

// Handler runs operations. Its result is recorded as JSON. An error is an infrastructure
// failure, which is retried, unless it comes from [AgentFailure] or is a Temporal application
// error. [CallOf] describes the operation.
type Handler func(ctx context.Context, parameters json.RawMessage) (any, error)

// Typed returns a handler for a function with typed parameters and result. Parameters that do
// not fit P are a permanent failure; fields that P lacks are dropped.
func Typed[P, R any](do func(context.Context, P) (R, error)) Handler {
	return func(ctx context.Context, parameters json.RawMessage) (any, error) {
		var p P
		if err := json.Unmarshal(parameters, &p); err != nil {
			return nil, permanent(TypeBadParameters,
				"operation %s: the parameters do not fit %T: %v", CallOf(ctx).OperationID, p, err)
		}
		return do(ctx, p)
	}
}

// AgentFailure returns an error of the agent itself: it refused, or its answer is unusable. It is
// not retried. AgentFailure(nil) is nil.
func AgentFailure(err error) error {
	if err == nil {
		return nil
	}
	return temporal.NewNonRetryableApplicationError(truncate(err.Error()), TypeAgent, nil)
}

// Call describes the operation that a handler runs.
type Call struct {
	OperationID string
	Type        Type
	Step        string
	Branch      string
	Occurrence  int
	Attempt     int32
	// Key is the idempotency key. It is unique to the operation and the same for all attempts:
	// the workflow ID, the first run ID and the operation ID. Pass it to systems that detect
	// repetitions by a key, hashed if they need a short one.
	Key string

	heartbeat *heartbeat
}

type callKey struct{}

// CallOf returns the call of a handler's context, or the zero Call.
func CallOf(ctx context.Context) Call {
	c, _ := ctx.Value(callKey{}).(Call)
	return c
}

// Registry registers activities: a worker or a test environment.
type Registry interface {
	RegisterActivityWithOptions(fn any, options activity.RegisterOptions)
}

// Handlers run the operations of a worker. Set the fields before Register.
type Handlers struct {
	// Put stores a result that is too large to be recorded, like artifact.Store.PutBytes.
	// Without it, such a result is a permanent failure.
	Put func(ctx context.Context, content []byte, mediaType string) (ace.Ref, error)
	// Have reports whether the content of a reference in a cached result still exists, and keeps it.
	// Without it, cached references are trusted.
	Have func(ace.Ref) bool
	// Cache serves operations that allow it. Its errors are logged and do not fail the operation.
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

// Handle registers the handler of a step, or with step "" of all other steps of the type. The
// version is part of the cache key: change it when the same parameters should give another
// result.
func (h *Handlers) Handle(t Type, step, version string, do Handler) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	at := place{t, step}
	switch _, duplicate := h.all[at]; {
	case !t.known():
		return fmt.Errorf("handler of step %q: unknown type %q; types are %v", step, t, types())
	case do == nil:
		return fmt.Errorf("handler of %s %q is nil", t, step)
	case duplicate:
		return fmt.Errorf("duplicate handler of %s %q", t, step)
	}
	if h.all == nil {
		h.all = map[place]handler{}
	}
	h.all[at] = handler{version, do}
	return nil
}

// Register registers the activities that operations run as, one for each type.
func (h *Handlers) Register(r Registry) {
	for _, t := range types() {
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
	return handler{}, temporal.NewApplicationError(fmt.Sprintf(
		"this worker has no handler for %s %q; it has: %s", t, step, truncate(strings.Join(steps, ", "))),
		TypeNoHandler)
}

func (h *Handlers) serve(ctx context.Context, req Request) (Result, error) {
	found, err := h.find(req.Type, req.Step)
	if err != nil {
		return Result{}, err
	}
	out := Result{OperationID: req.OperationID}
	if req.Cache && h.Cache != nil {
		if out.CacheKey, err = cacheKey(req.Type, req.Step, req.Parameters, found.version); err != nil {
			return Result{}, permanent(TypeBadParameters, "operation %s: the parameters: %v", req.OperationID,
				err)
		}
		if e, ok := h.cached(ctx, out.CacheKey); ok {
			e.OperationID = req.OperationID
			e.CacheKey = out.CacheKey
			e.Cached = true
			return e.Result, nil
		}
	}
	info := activity.GetInfo(ctx)
	call := Call{
		OperationID: req.OperationID, Type: req.Type, Step: req.Step, Branch: req.Branch,
		Occurrence: req.Occurrence, Attempt: info.Attempt,
		Key: info.WorkflowExecution.ID + "/" + req.RunKey + "/" + req.OperationID,
	}
	call.heartbeat = startHeartbeat(ctx, info.HeartbeatTimeout)
	defer call.heartbeat.stop()
	start := time.Now()
	value, err := callHandler(context.WithValue(ctx, callKey{}, call), found.do, req.Parameters)
	out.ExecutedAt = start.UTC()
	out.DurationMS = float64(time.Since(start).Microseconds()) / 1000
	if err != nil {
		return Result{}, activityError(ctx, err)
	}
	if err := h.setValue(ctx, &out, value); err != nil {
		return Result{}, err
	}
	if out.CacheKey != "" {
		h.store(ctx, req, found.version, out)
	}
	return out, nil
}

func callHandler(ctx context.Context, do Handler, parameters json.RawMessage) (value any, err error) {
	defer func() {
		if p := recover(); p != nil {
			id := CallOf(ctx).OperationID
			activity.GetLogger(ctx).Error("a handler panicked", "operation", id, "panic", p, "stack",
				string(debug.Stack()))
			err = temporal.NewApplicationError(truncate(fmt.Sprintf("operation %s: the handler panicked: %v",
				id, p)), TypePanic)
		}
	}()
	return do(ctx, parameters)
}

// activityError converts a handler's error into one that says whether to retry. It passes on the
// context's error if the handler was canceled.
func activityError(ctx context.Context, err error) error {
	var app *temporal.ApplicationError
	switch {
	case errors.As(err, &app) && error(app) == err:
		return app
	case app != nil: // the application error is wrapped
		return temporal.NewApplicationErrorWithOptions(truncate(err.Error()), app.Type(),
			temporal.ApplicationErrorOptions{
				NonRetryable: app.NonRetryable(), NextRetryDelay: app.NextRetryDelay()})
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		return ctx.Err()
	case errors.Is(err, activity.ErrResultPending):
		return permanent(TypeBadResult, "an operation cannot be completed asynchronously")
	}
	return temporal.NewApplicationError(truncate(err.Error()), TypeInfrastructure)
}

func (h *Handlers) setValue(ctx context.Context, out *Result, value any) error {
	data, err := encode(value)
	if err != nil {
		return permanent(TypeBadResult, "operation %s: the result: %v", out.OperationID, err)
	}
	if len(data) <= MaxInline {
		out.Value = data
		return nil
	}
	if h.Put == nil {
		return permanent(TypeBadResult,
			"operation %s: the result of %d bytes exceeds the limit of %d, and this worker has no store for larger results",
			out.OperationID, len(data), MaxInline)
	}
	ref, err := h.Put(ctx, data, "application/json")
	if err != nil {
		return activityError(ctx, fmt.Errorf("operation %s: store the result: %w", out.OperationID, err))
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
	if text, err := json.Marshal(e.Result); ok && err == nil && h.Have != nil {
		ok = !slices.ContainsFunc(ace.RefsIn(text), func(ref ace.Ref) bool { return !h.Have(ref) })
	}
	return e, ok
}

func (h *Handlers) store(ctx context.Context, req Request, version string, r Result) {
	e := Entry{Key: r.CacheKey, Type: req.Type, Step: req.Step, Version: version, Result: r}
	if err := h.Cache.Put(ctx, e); err != nil {
		activity.GetLogger(ctx).Warn("the result cache cannot be written", "error", err)
	}
}

// maxMessage bounds the bytes of a failure message, which is recorded with every attempt.
const maxMessage = 2 << 10

func truncate(s string) string { return ace.Cut(strings.ToValidUTF8(s, "�"), maxMessage) }

// heartbeat reports to the server that a handler is alive, with its last checkpoint.
type heartbeat struct {
	ctx  context.Context
	stop func()

	mu         sync.Mutex
	checkpoint []any // at most one
}

// startHeartbeat sends four heartbeats per timeout until stop is called. A handler learns of a
// cancellation by the next heartbeat.
func startHeartbeat(ctx context.Context, timeout time.Duration) *heartbeat {
	ctx, stop := context.WithCancel(ctx)
	b := &heartbeat{ctx: ctx, stop: stop}
	if activity.HasHeartbeatDetails(ctx) {
		var before any
		if activity.GetHeartbeatDetails(ctx, &before) == nil {
			b.checkpoint = []any{before} // so that the next heartbeat does not erase it
		}
	}
	if timeout <= 0 {
		return b
	}
	go sleep.Every(ctx, max(timeout/4, 10*time.Millisecond), b.send)
	return b
}

func (b *heartbeat) send() {
	b.mu.Lock()
	defer b.mu.Unlock()
	activity.RecordHeartbeat(b.ctx, b.checkpoint...)
}

// Checkpoint reports the progress of a handler, so that the next attempt can continue there. Reports are
// delayed, so the last report may be lost.
func Checkpoint(ctx context.Context, checkpoint any) {
	b := CallOf(ctx).heartbeat
	if b == nil {
		return
	}
	b.mu.Lock()
	b.checkpoint = []any{checkpoint}
	b.mu.Unlock()
	b.send()
}

// LastCheckpoint reads the checkpoint of an earlier attempt. It returns false without a checkpoint.
func LastCheckpoint(ctx context.Context, into any) (bool, error) {
	if CallOf(ctx).heartbeat == nil || !activity.HasHeartbeatDetails(ctx) {
		return false, nil
	}
	if err := activity.GetHeartbeatDetails(ctx, into); err != nil {
		return false, permanent(TypeBadParameters,
			"operation %s: the checkpoint does not fit %T: %v", CallOf(ctx).OperationID, into, err)
	}
	return true, nil
}
