// Package kind says what a kind of run is: how it is recognized, how its events change its state, and how
// that state is described. Each kind has a package below this one; engine/kind/kinds lists them. Screens and
// commands draw what a [Fold] describes and do not ask which kind a run is.
//
// The package does no I/O and starts no goroutine.
package kind

import (
	historypb "go.temporal.io/api/history/v1"

	"acescope/engine/ace"
	"acescope/engine/agents/session"
	"acescope/engine/flow"
	"acescope/engine/tasks/run"
	"acescope/engine/trace"
)

// Kind is a kind of run.
type Kind struct {
	// Type is the workflow type of the runs, or "" for the kind of all workflows that no other kind
	// recognizes.
	Type string
	// New returns the state before the first event.
	New func() Fold
}

// Fold is the state of a run after some of its events. It is not safe for concurrent use.
type Fold interface {
	// Apply applies the next event.
	Apply(*historypb.HistoryEvent) Effect
	// Clone returns a copy that later events do not change.
	Clone() Fold
	// ID returns the ID of the task, session, run or experiment, or "".
	ID() string
	// Phase returns where the run is; a step by phase stops where the text changes.
	Phase() string
	// Values lists the values that can be watched.
	Values() []Value
	// Sections describes the state. The items of the event that was applied last have its whole payloads if
	// the event is given; it may be nil.
	Sections(Books, *historypb.HistoryEvent) []Section
	// Answer sets the answers that the queries of a live run give in this state.
	Answer(*Answers)
}

// Tasker is a fold of a run that works on an ACE task, as State describes it.
type Tasker interface{ State() *ace.State }

// Tracer is a fold that knows what the agents of a run did.
type Tracer interface{ Trace() trace.Trace }

// Effect describes what an event did to a fold.
type Effect struct {
	Changed   bool
	ToolsOnly bool  // the event only reports tool calls of a task
	Tool      bool  // the event reports a tool call, or a task of an experiment
	Failed    bool  // the event reports a failure
	Foreign   error // the event does not fit the contract
}

// Answers are the answers of the contract's queries, and what else the contract says of a state.
type Answers struct {
	Phase        *ace.PhaseAnswer        `json:"phase,omitempty"`
	Skills       *ace.SkillAnswer        `json:"skills,omitempty"`
	Delta        *ace.DeltaAnswer        `json:"delta,omitempty"`
	Experiment   *ace.ExperimentProgress `json:"experiment,omitempty"`
	Task         *ace.TaskResult         `json:"task,omitempty"` // of an experiment, that the event completes
	Session      *session.State          `json:"session,omitempty"`
	Run          *run.State              `json:"run_state,omitempty"`
	Flow         *flow.State             `json:"flow,omitempty"`
	Plan         string                  `json:"plan,omitempty"`
	TrajectoryID string                  `json:"trajectory_id,omitempty"`
	BulletIDs    []string                `json:"bullet_ids,omitempty"`
}
