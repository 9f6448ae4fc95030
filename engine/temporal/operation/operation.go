// Package operation separates workflow code, which is replayed, from side effects, which happen
// once. It may import engine/ace, engine/internal, engine/store/durable, engine/temporal/history and Temporal's
// API and SDK.
//
// On the workflow's side, a [Runner] gives operations IDs that are the same in every replay,
// runs them as activities, and provides time, random values, variables and versions. On the
// worker's side, [Handlers] run operations, record results as JSON and may use a [Cache].
// [Project] reads any history as operation events. [Mock] replaces the worker in tests.
//
// Order: results of a batch are in the order of its operations. Bounds: parameters and recorded
// results have at most [MaxInline] bytes, and larger results become references; a batch has at
// most [MaxBatch] operations, [MaxWindow] at a time; a [FileCache] is bounded. Loss: a result is
// recorded once. If a worker dies during an operation, another worker runs it with the same
// [Call.Key], with which it can avoid repeating the effect. Notes beyond [MaxNotes] are dropped
// and counted.
package operation

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"acescope/engine/ace"
	"acescope/engine/internal/plainjson"
	"acescope/engine/temporal/history"
)

// Type is the kind of side effect of an operation. It selects the default [Options] and the
// activity type.
type Type string

// Types of operations.
const (
	AgentResponse Type = "agent_response" // asks a model or an agent
	Action        Type = "action"         // acts on the worker's machine
	ExternalCall  Type = "external_call"  // calls another system
)

// types lists the types of operations.
func types() []Type { return []Type{AgentResponse, Action, ExternalCall} }

// Activity returns the activity type that operations of this type run as.
func (t Type) Activity() string { return activityPrefix + string(t) }

const activityPrefix = "operation."

func (t Type) known() bool { return t == AgentResponse || t == Action || t == ExternalCall }

// Bounds.
const (
	// MaxInline bounds the JSON bytes of parameters, a variable and a recorded result. Larger
	// parameters are rejected: store them as an artifact and pass the [ace.Ref]. Larger results
	// become references.
	MaxInline = 32 << 10
	// MaxVariables bounds the variables of a run.
	MaxVariables = 1000
)

// Error types of operations. Permanent errors are not retried.
const (
	TypeAgent          = "AgentFailure"          // permanent: see [AgentFailure]
	TypeInfrastructure = "InfrastructureFailure" // any other error of a handler
	TypePanic          = "Panic"                 // a handler panicked
	TypeNoHandler      = "NoHandler"             // this worker has no handler; another may have one
	TypeBadOperation   = "BadOperation"          // permanent: unknown type, no step, or invalid parameters
	TypeBadParameters  = "BadParameters"         // permanent: the parameters do not fit the handler
	// permanent: the result is not JSON, or too large without a store
	TypeBadResult = "BadResult"
)

// Operation is a side effect that a workflow requests.
type Operation struct {
	Type Type
	// Step names the place in the workflow and selects the handler.
	Step string
	// Parameters are passed to the handler as JSON.
	Parameters any
	// Variable names the variable that the result is assigned to, if any.
	Variable string
	// Activity, unless it is "", is an activity type that any worker may serve. It gets the parameters as
	// they are, without a [Request], and its result is the result of the operation.
	Activity string
	Options  Options
}

// Request is the recorded input of the activity that runs an operation.
type Request struct {
	OperationID string          `json:"operation_id"`
	Type        Type            `json:"operation_type"`
	Step        string          `json:"step"`
	Branch      string          `json:"branch,omitempty"`
	Occurrence  int             `json:"occurrence"`
	Variable    string          `json:"variable,omitempty"`
	RunKey      string          `json:"run_key"` // first run of the workflow, for the idempotency key
	Cache       bool            `json:"cache,omitempty"`
	Parameters  json.RawMessage `json:"parameters"`
	Notes       []Note          `json:"notes,omitempty"`
	Dropped     int             `json:"notes_dropped,omitempty"`
}

// Result is the recorded result of an operation.
type Result struct {
	OperationID string `json:"operation_id"`
	// Value is the result as JSON, or nil if Ref is set.
	Value json.RawMessage `json:"result,omitempty"`
	// Ref refers to a result that is too large to be recorded.
	Ref        *ace.Ref  `json:"result_ref,omitempty"`
	ExecutedAt time.Time `json:"executed_at,omitzero"` // when the handler was first called
	DurationMS float64   `json:"duration_ms"`
	Cached     bool      `json:"cached,omitempty"`
	CacheKey   string    `json:"cache_key,omitempty"`
}

// Decode decodes the result into a pointer. A result by reference can only be decoded into an
// [ace.Ref]: handlers can read its content, workflows cannot.
func (r Result) Decode(into any) error {
	if into == nil {
		return nil
	}
	if r.Ref != nil {
		if ref, ok := into.(*ace.Ref); ok {
			*ref = *r.Ref
			return nil
		}
		return permanent(TypeBadResult,
			"operation %s: the result of %d bytes was stored as artifact %s: decode it into an ace.Ref and pass that on",
			r.OperationID, r.Ref.Size, r.Ref.SHA256)
	}
	if err := json.Unmarshal(r.Value, into); err != nil {
		return permanent(TypeBadResult, "operation %s: the result does not fit %T: %v", r.OperationID, into,
			err)
	}
	return nil
}

func permanent(kind, format string, args ...any) error {
	return temporal.NewNonRetryableApplicationError(fmt.Sprintf(format, args...), kind, nil)
}

// Options are options of an operation. Zero fields mean the default of the runner or the type.
type Options struct {
	// Timeout bounds one attempt, and Total all attempts together unless it is 0.
	Timeout, Total time.Duration
	// Heartbeat is the time after which the operation of a dead worker is retried. Workers send
	// heartbeats for their handlers. A negative value disables heartbeats.
	Heartbeat time.Duration
	// Retry is the retry policy for infrastructure failures.
	Retry temporal.RetryPolicy
	// TaskQueue selects the workers of another task queue.
	TaskQueue string
	// Cache lets the worker use and fill its cache.
	Cache Choice
	// Summary names the operation in timelines, in at most 200 bytes. The default is its step.
	Summary string
}

// Choice is yes, no, or the inherited choice.
type Choice int8

// Choices.
const (
	Inherit Choice = iota
	Yes
	No
)

// Defaults returns the default options of a type. Models are slow and expensive, so they get
// long timeouts and slow retries.
func Defaults(t Type) Options {
	switch t {
	case AgentResponse:
		return defaults(10*time.Minute, 5, time.Second, 30*time.Second)
	case ExternalCall:
		return defaults(2*time.Minute, 8, 500*time.Millisecond, 30*time.Second)
	}
	return defaults(time.Minute, 10, 200*time.Millisecond, 5*time.Second)
}

func defaults(timeout time.Duration, attempts int32, first, longest time.Duration) Options {
	return Options{Timeout: timeout, Heartbeat: 10 * time.Second, Retry: temporal.RetryPolicy{
		MaximumAttempts: attempts, InitialInterval: first, MaximumInterval: longest, BackoffCoefficient: 2,
	}}
}

func (o Options) with(more Options) Options {
	o.Timeout = cmp.Or(more.Timeout, o.Timeout)
	o.Total = cmp.Or(more.Total, o.Total)
	o.Heartbeat = cmp.Or(more.Heartbeat, o.Heartbeat)
	o.TaskQueue = cmp.Or(more.TaskQueue, o.TaskQueue)
	o.Cache = cmp.Or(more.Cache, o.Cache)
	o.Summary = cmp.Or(more.Summary, o.Summary)
	o.Retry.MaximumAttempts = cmp.Or(more.Retry.MaximumAttempts, o.Retry.MaximumAttempts)
	o.Retry.InitialInterval = cmp.Or(more.Retry.InitialInterval, o.Retry.InitialInterval)
	o.Retry.BackoffCoefficient = cmp.Or(more.Retry.BackoffCoefficient, o.Retry.BackoffCoefficient)
	o.Retry.MaximumInterval = cmp.Or(more.Retry.MaximumInterval, o.Retry.MaximumInterval)
	if len(more.Retry.NonRetryableErrorTypes) > 0 {
		o.Retry.NonRetryableErrorTypes = more.Retry.NonRetryableErrorTypes
	}
	return o
}

// activity returns the options of an operation's activity. Cancellation waits for the activity,
// so that its result is known before the run closes.
func (o Options) activity(id string) workflow.ActivityOptions {
	label, _ := history.OperationLabel(id)
	retry := o.Retry
	retry.MaximumInterval = max(retry.MaximumInterval, retry.InitialInterval)
	return workflow.ActivityOptions{
		ActivityID:             id,
		Summary:                cmp.Or(o.Summary, label),
		TaskQueue:              o.TaskQueue,
		StartToCloseTimeout:    o.Timeout,
		ScheduleToCloseTimeout: o.Total,
		HeartbeatTimeout:       max(o.Heartbeat, 0),
		WaitForCancellation:    true,
		RetryPolicy:            &retry,
	}
}

// errIsError rejects an error as a value, because JSON encodes it as "{}".
var errIsError = errors.New("an error does not survive JSON: pass its text, or fail with it")

// encode encodes a value as canonical JSON: no white space, object keys sorted by bytes, no
// HTML escapes, and numbers with their original digits.
func encode(v any) (json.RawMessage, error) {
	if holdsError(v) {
		return nil, errIsError
	}
	data, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return plainjson.Canonical(data)
}

// holdsError reports whether a value, or an element of a map or list of any, is an error.
func holdsError(v any) bool {
	switch t := v.(type) {
	case json.Marshaler:
		return false
	case error:
		return true
	case map[string]any:
		return anyHoldsError(t)
	case []any:
		return slices.ContainsFunc(t, holdsError)
	}
	return false
}

// anyHoldsError checks all fields, so that their order does not matter.
func anyHoldsError(fields map[string]any) (found bool) {
	//workflowcheck:ignore
	for _, v := range fields {
		found = found || holdsError(v)
	}
	return found
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
