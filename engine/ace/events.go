package ace

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"
)

// EventKind is the kind of a [ToolEvent].
type EventKind string

// Event kinds. Unknown kinds are counted and kept out of the skill table.
const (
	KindToolUse      EventKind = "tool_use"
	KindToolResult   EventKind = "tool_result"
	KindSlashCommand EventKind = "slash_command"
	KindPermission   EventKind = "permission"
	KindMessage      EventKind = "message"
	KindPhase        EventKind = "phase"

	// KindStep and KindFinish, like KindPhase, are the word of whoever observes a run that
	// happens elsewhere; in runs that acescope executes they are counted and change nothing.
	KindStep   EventKind = "step"
	KindFinish EventKind = "finish"
)

// ToolEvent is something that happened inside a skills session. CallID ties the
// events of one tool call together (OpenTelemetry's gen_ai.tool.call.id); where it
// is absent, a tool_result belongs to the event id it carries.
type ToolEvent struct {
	EventID string `json:"event_id"`
	// Seq is the event's place in the order of its observer, above 0; 0 where he gives none.
	// It need not be without gaps, only grow: microseconds since 1970 serve well.
	Seq        int64           `json:"seq,omitempty"`
	CallID     string          `json:"call_id,omitempty"`
	Kind       EventKind       `json:"kind"`
	Name       string          `json:"name,omitempty"`
	Args       json.RawMessage `json:"args,omitempty"`
	Result     json.RawMessage `json:"result,omitempty"`
	Accepted   *bool           `json:"accepted,omitempty"`
	OK         *bool           `json:"ok,omitempty"`
	At         time.Time       `json:"at,omitzero"`
	DurationMS float64         `json:"duration_ms,omitempty"`
	SessionID  string          `json:"session_id,omitempty"`
	Source     string          `json:"source,omitempty"`
	Error      string          `json:"error,omitempty"`
}

// Call is the id of the tool call that the event belongs to.
func (e ToolEvent) Call() string {
	if e.CallID != "" {
		return e.CallID
	}
	return e.EventID
}

// DecodeToolEvents reads the argument of [SignalToolEvent]: one event or a list.
func DecodeToolEvents(data []byte) ([]ToolEvent, error) {
	data = bytes.TrimSpace(data)
	if len(data) > 0 && data[0] == '[' {
		var list []ToolEvent
		if err := json.Unmarshal(data, &list); err != nil {
			return nil, fmt.Errorf("tool events: %w", err)
		}
		return list, nil
	}
	var one ToolEvent
	if err := json.Unmarshal(data, &one); err != nil {
		return nil, fmt.Errorf("tool event: %w", err)
	}
	return []ToolEvent{one}, nil
}
