package operation

import (
	"encoding/json"
	"time"

	"go.temporal.io/sdk/workflow"

	"acescope/engine/ace"
)

// EventType says what an operation event tells.
type EventType string

// Types of operation events.
const (
	OperationStarted   EventType = "operation_started"
	OperationCompleted EventType = "operation_completed"
	OperationFailed    EventType = "operation_failed"
	TimeAccessed       EventType = "time_accessed"
	RandomGenerated    EventType = "random_generated"
	VariableSet        EventType = "variable_set"
	VersionDecision    EventType = "version_decision"

	// eventNotes is the marker of [Runner.Flush]; its notes become events of their own.
	eventNotes EventType = "notes"
)

// EventTypes lists them.
func EventTypes() []EventType {
	return []EventType{OperationStarted, OperationCompleted, OperationFailed, TimeAccessed, RandomGenerated, VariableSet, VersionDecision}
}

// Event is one thing that a history says of its operations.
type Event struct {
	Type    EventType `json:"type"`
	EventID int64     `json:"event_id"` // of the history event that says so
	At      time.Time `json:"at"`       // as the server's clock had it

	OperationID   string          `json:"operation_id,omitempty"`
	OperationType Type            `json:"operation_type,omitempty"`
	Activity      string          `json:"activity,omitempty"` // Temporal's activity type
	Step          string          `json:"step,omitempty"`
	Branch        string          `json:"branch,omitempty"`
	Occurrence    int             `json:"occurrence,omitempty"`
	Parameters    json.RawMessage `json:"parameters,omitempty"`
	NotesDropped  int             `json:"notes_dropped,omitempty"`

	Result     json.RawMessage `json:"result,omitempty"`
	ResultRef  *ace.Ref        `json:"result_ref,omitempty"`
	Error      *ace.Failure    `json:"error,omitempty"`
	Attempt    int32           `json:"attempt,omitempty"`
	ExecutedAt time.Time       `json:"executed_at,omitzero"`
	DurationMS *float64        `json:"duration_ms,omitempty"`
	Cached     bool            `json:"cached,omitempty"`
	Unread     bool            `json:"unread,omitempty"` // there are parameters or a result that are not JSON

	Key         string          `json:"key,omitempty"` // of a time or a random value
	Time        time.Time       `json:"time,omitzero"`
	Seed        string          `json:"seed,omitempty"`
	Variable    string          `json:"variable,omitempty"`
	Value       json.RawMessage `json:"value,omitempty"`
	ValueDigest string          `json:"value_sha256,omitempty"` // of a value that was too large for a note
	ValueBytes  int             `json:"value_bytes,omitempty"`

	ChangeID   string            `json:"change_id,omitempty"`
	Version    *workflow.Version `json:"version,omitempty"`
	MinVersion *workflow.Version `json:"min_version,omitempty"`
	MaxVersion *workflow.Version `json:"max_version,omitempty"`
}
