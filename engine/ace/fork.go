package ace

import (
	"encoding/json"
	"strconv"
	"strings"
)

// Fork makes a run reuse the recorded step results of its original and execute only the later
// steps. It is part of the input, so that the fold of the run's history knows the results.
type Fork struct {
	Forked
	// Steps holds the reused results. A step before Phase that is missing here is executed.
	Steps map[Phase]ReusedStep `json:"steps,omitempty"`
	// Passes holds the reused results of the second and later answers, in order. The curator and persist
	// phases follow the last answer.
	Passes []map[Phase]ReusedStep `json:"passes,omitempty"`
}

// Forked identifies the original of a fork and the changes to its input.
type Forked struct {
	WorkflowID string `json:"of"`
	RunID      string `json:"run"`
	Event      int64  `json:"event"` // the last event of the original that the fork follows
	Phase      Phase  `json:"phase"` // the first phase that is executed again
	// Step is the path of the first step that is executed again, in a run of a flow, which has no phases.
	Step string `json:"step,omitempty"`
	// Changed maps the names of changed input fields to their values.
	Changed map[string]ForkChange `json:"changed,omitempty"`
}

// Place returns the first phase or step that is executed again.
func (f Forked) Place() string {
	if f.Step != "" {
		return f.Step
	}
	return string(f.Phase)
}

// ForkChange is a field's value before and after, truncated like a [Preview].
type ForkChange struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// ReusedStep is the reused result of a step: its JSON, or above [InlineBytes] an artifact, which
// [ActivityLoadStep] reads.
type ReusedStep struct {
	Result json.RawMessage `json:"result,omitempty"`
	Ref    *Ref            `json:"ref,omitempty"`
}

// LoadStepInput is the input of [ActivityLoadStep], which returns the result of the step.
type LoadStepInput struct {
	Phase Phase `json:"phase"`
	Ref   Ref   `json:"ref"`
}

// step returns the reused result of a step after a number of passes. A nil Fork reuses nothing.
func (f *Fork) step(passes int, step Phase) (result ReusedStep, ok bool) {
	switch {
	case f == nil || passes > len(f.Passes):
	case passes > 0:
		result, ok = f.Passes[passes-1][step]
	default:
		result, ok = f.Steps[step]
	}
	return result, ok
}

// Reuses reports whether the fork reuses the result of the step after a number of passes.
func (f *Fork) Reuses(passes int, step Phase) bool {
	_, ok := f.step(passes, step)
	return ok
}

// InlineResult returns the reused result of a step if the input holds it, otherwise nil.
func (f *Fork) InlineResult(passes int, step Phase) json.RawMessage {
	result, _ := f.step(passes, step)
	if result.Ref != nil {
		return nil
	}
	return result.Result
}

// InlineResults returns the reused results of a step that the input holds, in their order.
func (f *Fork) InlineResults(step Phase) (all []json.RawMessage) {
	for passes := 0; f != nil && passes <= len(f.Passes); passes++ {
		if result := f.InlineResult(passes, step); result != nil {
			all = append(all, result)
		}
	}
	return all
}

// StoredResult returns the artifact of a reused result, or nil if the result is inline or not reused.
func (f *Fork) StoredResult(passes int, step Phase) *Ref {
	result, _ := f.step(passes, step)
	return result.Ref
}

// FirstPhase returns the first phase that the run executes.
func (in TaskInput) FirstPhase() Phase {
	if in.Fork == nil || in.Fork.Phase == "" {
		return PhaseGenerator
	}
	return in.Fork.Phase
}

// forkMark separates the ID of the root, which is the original without a fork's suffix, from the number of
// the fork. Forks of forks are numbered together with the forks of the root, so one prefix search finds them
// all.
const forkMark = "~f"

// ForkID returns the ID of fork n, from 1, of the root. It applies to workflow IDs and task IDs.
func ForkID(root string, n int) string { return root + forkMark + strconv.Itoa(n) }

// ForkRoot splits the ID of a fork into the root's ID and the number. For other IDs it returns
// the ID and 0.
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

// BatchPrefix begins the IDs of batches of forks. A batch is the experiment of its forks.
const BatchPrefix = "forks-"

// ForkPrefix returns the common prefix of the IDs of all forks of a root.
func ForkPrefix(root string) string { return root + forkMark }

// ForkBranch returns the default playbook branch of a fork; no other run uses it.
func ForkBranch(taskID string) string { return "fork/" + taskID }
