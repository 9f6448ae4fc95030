package ace

import (
	"encoding/json"
	"strconv"
	"strings"
)

// Fork says that a run takes the recorded results of another one's steps and executes
// only what comes after them. It is part of the input, so that whoever folds the run's
// history knows of the steps that were taken over.
type Fork struct {
	Forked
	// Steps are the results that are taken over, by step. A step before Phase that is not
	// among them is executed.
	Steps map[Phase]TakenStep `json:"steps,omitempty"`
}

// Forked is where a run was forked from, and what was changed.
type Forked struct {
	WorkflowID string `json:"of"`
	RunID      string `json:"run"`
	Event      int64  `json:"event"` // the last event of that run that counts
	Phase      Phase  `json:"phase"` // the first that is executed anew
	// Changed is the fields of the input that were given other values, by name.
	Changed map[string]ForkChange `json:"changed,omitempty"`
}

// ForkChange is a field's value before and after, cut as a [Preview] is.
type ForkChange struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// TakenStep is the result of a step that is taken over: its JSON, or where that exceeds
// [InlineBytes] the artifact that holds it, which [ActivityLoadStep] reads.
type TakenStep struct {
	Result json.RawMessage `json:"result,omitempty"`
	Ref    *Ref            `json:"ref,omitempty"`
}

// LoadStepInput is the input of [ActivityLoadStep]; its result is the step's.
type LoadStepInput struct {
	Phase Phase `json:"phase"`
	Ref   Ref   `json:"ref"`
}

// Takes tells whether the result of the step is taken over from another run.
func (f *Fork) Takes(step Phase) bool {
	if f == nil {
		return false
	}
	_, ok := f.Steps[step]
	return ok
}

// Inline is the result of a step that is taken over and stands in the input, nil where
// there is none.
func (f *Fork) Inline(step Phase) json.RawMessage {
	if f == nil || f.Steps[step].Ref != nil {
		return nil
	}
	return f.Steps[step].Result
}

// Stored is where the result of a step lies that is taken over and must be loaded, nil
// where there is none.
func (f *Fork) Stored(step Phase) *Ref {
	if f == nil {
		return nil
	}
	return f.Steps[step].Ref
}

// FirstPhase is the first phase of a run that is executed: where it is seen to start.
func (in TaskInput) FirstPhase() Phase {
	if in.Fork == nil || in.Fork.Phase == "" {
		return PhaseGenerator
	}
	return in.Fork.Phase
}

// forkMark stands in a workflow id between the first run's and the number of the fork.
// All forks of a run, and the forks of those, are numbered in one row, so that a search
// for what begins so finds them all.
const forkMark = "~f"

// ForkID is the id of a run's n-th fork, from 1. It serves workflow ids and task ids.
func ForkID(root string, n int) string { return root + forkMark + strconv.Itoa(n) }

// ForkRoot is the id of the run that a fork, or a fork of a fork, began with; of any other
// run its own id. number is 0 for that.
func ForkRoot(id string) (root string, number int) {
	at := strings.LastIndex(id, forkMark)
	if at <= 0 {
		return id, 0
	}
	n, err := strconv.Atoi(id[at+len(forkMark):])
	if err != nil || n < 1 {
		return id, 0
	}
	return id[:at], n
}

// ForkPrefix begins the ids of all forks of a run.
func ForkPrefix(root string) string { return root + forkMark }

// ForkBranch is the line of playbook versions that a fork's delta is merged into unless
// another is asked for; no other run uses it.
func ForkBranch(taskID string) string { return "fork/" + taskID }
