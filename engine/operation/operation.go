package operation

import (
	"encoding/json"
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"

	"acescope/engine/ace"
)

// Type says what kind of side effect an operation has; it chooses the defaults of its
// [Options] and the activity type that it runs as.
type Type string

// Types of operations.
const (
	AgentResponse Type = "agent_response" // a model or an agent is asked
	Action        Type = "action"         // something is done on a machine of ours
	ExternalCall  Type = "external_call"  // another system is called
)

// Types lists the types of operations.
func Types() []Type { return []Type{AgentResponse, Action, ExternalCall} }

// Activity is the activity type that operations of this type run as.
func (t Type) Activity() string { return activityPrefix + string(t) }

const activityPrefix = "operation."

func (t Type) known() bool { return t == AgentResponse || t == Action || t == ExternalCall }

// Bounds.
const (
	// MaxInline is how many bytes of JSON parameters, a variable and a recorded result may
	// have. Larger parameters are refused, so that histories hold no transcripts: put the
	// text into the artifact store and pass its [ace.Ref]. Larger results become references.
	MaxInline = 32 << 10
	// MaxVariables is how many variables a run may have.
	MaxVariables = 1000
)

// Types of errors that operations fail with. Those of a permanent kind are not tried again.
const (
	TypeAgent          = "AgentFailure"          // permanent: the agent itself gave up, see [AgentFailure]
	TypeInfrastructure = "InfrastructureFailure" // any other error of a handler
	TypePanic          = "Panic"                 // a handler panicked
	TypeNoHandler      = "NoHandler"             // this worker has none; another may
	TypeBadOperation   = "BadOperation"          // permanent: no such type, no step, or parameters that cannot be passed
	TypeBadParameters  = "BadParameters"         // permanent: the handler expects others
	TypeBadResult      = "BadResult"             // permanent: it is not JSON, or too large where nothing keeps large ones
)

// Operation is one side effect that a workflow asks for.
type Operation struct {
	Type Type
	// Step names the place in the workflow; the handler is chosen by it.
	Step string
	// Parameters are given to the handler as JSON.
	Parameters any
	// Variable, where it is set, names the variable that the result is assigned to.
	Variable string
	Options  Options
}

// Request is what is recorded of an operation when it begins: the input of its activity.
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

// Result is what is recorded of an operation when it completed.
type Result struct {
	OperationID string `json:"operation_id"`
	// Value is the result as JSON; nil where Ref is set.
	Value json.RawMessage `json:"result,omitempty"`
	// Ref names a result that is too large to be recorded.
	Ref        *ace.Ref  `json:"result_ref,omitempty"`
	ExecutedAt time.Time `json:"executed_at,omitzero"` // when the handler was called; of a cached one, the first time
	DurationMS float64   `json:"duration_ms"`
	Cached     bool      `json:"cached,omitempty"`
	CacheKey   string    `json:"cache_key,omitempty"`
}

// Decode reads the result into a pointer. A result that went by reference can be read into
// an [ace.Ref] only: a workflow cannot read the content, a handler can.
func (r Result) Decode(into any) error {
	if into == nil {
		return nil
	}
	if r.Ref != nil {
		if ref, ok := into.(*ace.Ref); ok {
			*ref = *r.Ref
			return nil
		}
		return permanent(TypeBadResult, "operation %s: the result of %d bytes was kept as artifact %s: read it into an ace.Ref and pass that on",
			r.OperationID, r.Ref.Size, r.Ref.SHA256)
	}
	if err := json.Unmarshal(r.Value, into); err != nil {
		return permanent(TypeBadResult, "operation %s: the result does not fit %T: %v", r.OperationID, into, err)
	}
	return nil
}

// permanent is an error that is not tried again.
func permanent(kind, format string, args ...any) error {
	return temporal.NewNonRetryableApplicationError(fmt.Sprintf(format, args...), kind, nil)
}
