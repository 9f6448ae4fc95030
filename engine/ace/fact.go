package ace

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// FactKind is the kind of a [Fact].
type FactKind int

// Fact kinds. Only readers of the history see FactStepScheduled, and FactClosed: a terminated workflow runs
// no code.
const (
	FactStarted FactKind = iota + 1
	FactStepCompleted
	FactStepFailed
	FactToolEvents
	FactCancelRequested
	FactClosed
	FactIdleTimeout
	FactStepScheduled
	FactReviewOpened
	FactReviewed
	FactReviewTimeout
	FactReviewClosed // applied by the workflow only
)

// Fact is one change of a run, the input of the fold. Only the fields of its kind are set.
type Fact struct {
	Kind  FactKind
	Input *TaskInput
	Step  Phase
	// *GeneratorResult, *SkillSessionResult, *ReflectorResult, *CuratorResult or *PersistResult
	Result     any
	Failure    *Failure
	Events     []ToolEvent
	Status     Status
	Until      time.Time       // end of a time limit
	Decision   *ReviewDecision // nil if it is unreadable; Unread then says why
	Unreadable int             // number of unreadable payloads
	// Unread names the parts of the input or the result that could not be read. Foreign marks the start of a
	// workflow of another type. Only readers of histories set these two. A step with Unread may have failed
	// and still have a partial Result.
	Unread  []string
	Foreign bool
}

// Failure is the reason why a step or a run did not complete. Kind is the status that it causes; Type is the
// error type of the application or of Temporal.
type Failure struct {
	Kind    Status `json:"kind"`
	Type    string `json:"type,omitempty"`
	Message string `json:"message"`
	// Calls is the record of the requests of a step that failed, if it asked a model.
	Calls *CallLog `json:"model_calls,omitempty"`
	// Usage is the usage of a failed task in an experiment with a budget.
	Usage *Usage `json:"usage,omitempty"`
}

// Failure types of the fold.
const (
	TypeBadResult   = "BadStepResult"   // the result of a step violates the contract
	TypeIdleTimeout = "ObserverSilent"  // an observed run had no event for too long
	TypeObserved    = "ObservedFailure" // the observer reported the failure
	TypeTerminated  = "Terminated"      // the server closed the run
)

// Started returns the fact of a run's input.
func Started(in TaskInput) Fact { return Fact{Kind: FactStarted, Input: &in} }

// StartedFrom decodes the JSON of the input for [Started].
func StartedFrom(data []byte) (Fact, error) {
	var in TaskInput
	if len(data) == 0 {
		return Fact{}, errors.New("task input is missing or unreadable")
	}
	if err := json.Unmarshal(data, &in); err != nil {
		return Fact{}, fmt.Errorf("task input: %w", err)
	}
	return Started(in), nil
}

var results = map[Phase]func() any{
	PhaseGenerator: func() any { return &GeneratorResult{} },
	PhaseSkills:    func() any { return &SkillSessionResult{} },
	PhaseReflector: func() any { return &ReflectorResult{} },
	PhaseCurator:   func() any { return &CuratorResult{} },
	PhasePersist:   func() any { return &PersistResult{} },
}

// StepCompleted decodes the JSON result of a step. If the result violates the contract, the
// fact is that the step failed.
func StepCompleted(step Phase, data []byte) Fact {
	newResult := results[step]
	if newResult == nil {
		return StepFailed(step, Failure{Kind: Failed, Type: TypeBadResult, Message: "no such step"})
	}
	result := newResult()
	if len(bytes.TrimSpace(data)) > 0 {
		if err := json.Unmarshal(data, result); err != nil {
			message := fmt.Sprintf("%s returned a result that does not fit the contract: %v", step.Activity(),
				err)
			return StepFailed(step, Failure{Kind: Failed, Type: TypeBadResult, Message: message})
		}
	}
	return Fact{Kind: FactStepCompleted, Step: step, Result: result}
}

// StepScheduled returns the fact that the activity of a step was scheduled.
func StepScheduled(step Phase) Fact { return Fact{Kind: FactStepScheduled, Step: step} }

// StepFailed returns the fact that a step failed after its last retry.
func StepFailed(step Phase, f Failure) Fact {
	return Fact{Kind: FactStepFailed, Step: step, Failure: &f}
}

// ToolEvents returns the fact that tool events were reported.
func ToolEvents(events []ToolEvent) Fact { return Fact{Kind: FactToolEvents, Events: events} }

// ToolEventsFrom decodes the argument of [SignalToolEvent] for [ToolEvents]. It counts an
// unreadable argument instead of failing, so that a reporter cannot break a run.
func ToolEventsFrom(data []byte) Fact {
	events, err := DecodeToolEvents(data)
	if err != nil {
		return Fact{Kind: FactToolEvents, Unreadable: 1}
	}
	return ToolEvents(events)
}

// CancelRequested returns the fact that cancellation of the run was requested.
func CancelRequested() Fact { return Fact{Kind: FactCancelRequested} }

// IdleTimeout returns the fact that an observed run had no event for too long.
func IdleTimeout() Fact { return Fact{Kind: FactIdleTimeout} }

// Closed returns the fact that the server closed the run.
func Closed(status Status, f *Failure) Fact {
	return Fact{Kind: FactClosed, Status: status, Failure: f}
}

// EventKind is the kind of a [ToolEvent].
type EventKind string

// Event kinds. Unknown kinds are counted and do not appear in the skill usage.
const (
	KindToolUse      EventKind = "tool_use"
	KindToolResult   EventKind = "tool_result"
	KindSlashCommand EventKind = "slash_command"
	KindPermission   EventKind = "permission"
	KindMessage      EventKind = "message"

	// KindPhase, KindStep, KindUsage and KindFinish define the progress of an observed run. In
	// other runs they are only counted.
	KindPhase  EventKind = "phase"
	KindStep   EventKind = "step"
	KindUsage  EventKind = "usage"
	KindFinish EventKind = "finish"
)

// ToolEvent is an event of a skills session or of an observed run. CallID connects the events of
// one tool call (gen_ai.tool.call.id in OpenTelemetry); without it, EventID identifies the call.
type ToolEvent struct {
	EventID string `json:"event_id"`
	// Seq is the position of the event in its observer's order, above 0, or 0 if unknown. It
	// must increase but may have gaps, like microseconds since 1970.
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

// Call returns the ID of the tool call that the event belongs to.
func (e ToolEvent) Call() string { return cmp.Or(e.CallID, e.EventID) }

// NextSeq returns the [ToolEvent.Seq] of an event that happens now, after the event last. It
// counts microseconds since 1970, which JSON represents exactly.
func NextSeq(now time.Time, last int64) int64 { return max(now.UnixMicro(), last+1) }

// DecodeToolEvents decodes the argument of [SignalToolEvent]: one event or a list.
func DecodeToolEvents(data []byte) ([]ToolEvent, error) {
	data = bytes.TrimSpace(data)
	if !bytes.HasPrefix(data, []byte("[")) {
		var event ToolEvent
		if err := json.Unmarshal(data, &event); err != nil {
			return nil, fmt.Errorf("tool event: %w", err)
		}
		return []ToolEvent{event}, nil
	}
	var events []ToolEvent
	if err := json.Unmarshal(data, &events); err != nil {
		return nil, fmt.Errorf("tool events: %w", err)
	}
	return events, nil
}
