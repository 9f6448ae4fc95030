package ace

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// FactKind is the kind of a [Fact].
type FactKind int

// Fact kinds. All but Closed are seen by the workflow itself; that only by those who read
// its history, since a terminated run is not asked.
const (
	FactStarted FactKind = iota + 1
	FactStepCompleted
	FactStepFailed
	FactToolEvents
	FactCancelRequested
	FactClosed
	FactSilent
)

// Fact is one thing that became known of a run. Only the fields of its kind are set.
type Fact struct {
	Kind    FactKind
	Input   *TaskInput
	Step    Phase
	Result  any // *GeneratorResult, *SkillSessionResult, *ReflectorResult, *CuratorResult or *PersistResult
	Failure *Failure
	Events  []ToolEvent
	Exit    ExitStatus
	Bad     int // payloads in this fact that could not be read
}

// Failure is why a step or a run did not complete. Kind is one of failed, timeout,
// cancelled; Type is the application's or Temporal's error type.
type Failure struct {
	Kind    ExitStatus `json:"kind"`
	Type    string     `json:"type,omitempty"`
	Message string     `json:"message"`
}

// TypeBadResult is the failure type of a step whose result does not fit the contract.
const TypeBadResult = "BadStepResult"

// TypeSilent is the failure type of an observed run of which nothing was heard for too
// long, TypeObserved that of one whose observer says that it failed.
const (
	TypeSilent   = "ObserverSilent"
	TypeObserved = "ObservedFailure"
)

// Started is the fact of a run's input.
func Started(in TaskInput) Fact { return Fact{Kind: FactStarted, Input: &in} }

// StartedFrom is [Started] from the JSON of the input.
func StartedFrom(data []byte) (Fact, error) {
	var in TaskInput
	if len(data) == 0 {
		return Fact{}, errors.New("it has none, or none that can be read here")
	}
	if err := json.Unmarshal(data, &in); err != nil {
		return Fact{}, fmt.Errorf("task input: %w", err)
	}
	return Started(in), nil
}

// StepCompleted is the fact of a step's result, given as its JSON. A result that does
// not fit the contract is the fact that the step failed.
func StepCompleted(step Phase, data []byte) Fact {
	result := map[Phase]any{
		PhaseGenerator: &GeneratorResult{},
		PhaseSkills:    &SkillSessionResult{},
		PhaseReflector: &ReflectorResult{},
		PhaseCurator:   &CuratorResult{},
		PhasePersist:   &PersistResult{},
	}[step]
	if result == nil {
		return StepFailed(step, Failure{Kind: Failed, Type: TypeBadResult, Message: "no such step"})
	}
	if len(bytes.TrimSpace(data)) > 0 {
		if err := json.Unmarshal(data, result); err != nil {
			return StepFailed(step, Failure{Kind: Failed, Type: TypeBadResult,
				Message: fmt.Sprintf("%s returned a result that does not fit the contract: %v", step.Activity(), err)})
		}
	}
	return Fact{Kind: FactStepCompleted, Step: step, Result: result}
}

// StepFailed is the fact that a step ended without a result, after its last retry.
func StepFailed(step Phase, f Failure) Fact {
	return Fact{Kind: FactStepFailed, Step: step, Failure: &f}
}

// ToolEvents is the fact that tool events were reported.
func ToolEvents(events []ToolEvent) Fact { return Fact{Kind: FactToolEvents, Events: events} }

// ToolEventsFrom is [ToolEvents] from a signal's JSON; an unreadable signal is
// counted, never an error, since a reporter must not be able to harm a run.
func ToolEventsFrom(data []byte) Fact {
	events, err := DecodeToolEvents(data)
	if err != nil {
		return Fact{Kind: FactToolEvents, Bad: 1}
	}
	return ToolEvents(events)
}

// CancelRequested is the fact that somebody asked for the run to be cancelled.
func CancelRequested() Fact { return Fact{Kind: FactCancelRequested} }

// Silent is the fact that nothing was heard of an observed run for too long.
func Silent() Fact { return Fact{Kind: FactSilent} }

// Closed is the fact that the server closed the run.
func Closed(exit ExitStatus, f *Failure) Fact {
	return Fact{Kind: FactClosed, Exit: exit, Failure: f}
}
