package run

import (
	"slices"
	"time"

	"acescope/engine/ace"
	"acescope/engine/tasks/runner"
)

// State is the state of a run: the value of the fold, and the answer to [QueryRun]. The zero
// value is the state before the first fact. It is bounded, and not safe for concurrent use.
type State struct {
	Input        Input         `json:"input"`
	Status       Status        `json:"status"`
	Try          int           `json:"try"` // number of requests for a runner so far
	Claim        *runner.Claim `json:"claim,omitempty"`
	ProgramStart *ProgramStart `json:"began,omitempty"`
	Result       *Result       `json:"result,omitempty"`
	Moves        []MoveRecord  `json:"moves,omitempty"` // earlier claims
	Stop         *StopRequest  `json:"stop,omitempty"`
	// Ignored counts signals that did not match the current claim: late or forged ones.
	Ignored int `json:"ignored,omitempty"`
	// Notified is how the parent session was notified: "" if it was not yet, otherwise one of
	// [NotifiedSession], [NotifiedEnded] and [NotifiedNone].
	Notified  string    `json:"told,omitempty"`
	TimeoutAt time.Time `json:"timeout_at,omitzero"`
	// TimedOut is set while an agent is being stopped because it exceeded its time limit.
	TimedOut bool       `json:"timed_out,omitempty"`
	Exit     ace.Status `json:"workflow_status"`

	submitted bool // the current claim is being executed
	arrived   arrivals
}

// MoveRecord is a claim that ended without a result.
type MoveRecord struct {
	Claim  int64  `json:"claim"`
	Runner string `json:"runner_id"`
	Queue  string `json:"queue"` // of the runner's registration
	Reason string `json:"why"`
}

// maxOfKind bounds the facts of one kind that are folded between two workflow tasks. Only forged signals
// exceed it; they count as ignored.
const maxOfKind = 64

// arrivals holds the facts since the last workflow task, and the state before them. Workflow
// code cannot see in which order signals of different names and ends of activities arrived
// between two tasks. So they are folded by kind, and within a kind in the order of arrival;
// then the fold of a history equals the state of the workflow.
type arrivals struct {
	before *State
	facts  []Fact // by kind; copies of the state share them
	// skipped counts facts that only count as ignored.
	skipped int
}

// Apply folds one fact into the state.
func (s *State) Apply(f Fact) {
	if f.arrives() {
		s.arrive(f)
		return
	}
	s.arrived = arrivals{}
	if f.Kind != FactTask {
		s.fold(f)
	}
}

func (s *State) arrive(f Fact) {
	all := s.arrived
	from, to := all.ofKind(f.Kind)
	if f.Kind == FactUnreadable || to-from == maxOfKind {
		s.Ignored++
		s.arrived.skipped++
		return
	}
	if all.before == nil {
		before := *s
		before.Ignored -= all.skipped
		all.before = &before
	}
	all.facts = slices.Insert(slices.Clip(all.facts), to, f)
	rest := all.facts[to:]
	if len(rest) > 1 { // fold again, in the order of kinds
		rest = all.facts
		*s = *all.before
		s.Ignored += all.skipped
	}
	for _, f := range rest {
		s.fold(f)
	}
	s.arrived = all
}

// ofKind returns the range of the facts of a kind.
func (a *arrivals) ofKind(kind FactKind) (from, to int) {
	compare := func(f Fact, kind FactKind) int { return int(f.Kind - kind) }
	from, _ = slices.BinarySearchFunc(a.facts, kind, compare)
	to, _ = slices.BinarySearchFunc(a.facts, kind+1, compare)
	return from, to
}
