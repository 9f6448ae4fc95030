// Package task is the kind of the runs of ACE tasks, and of runs of other types with activities of the
// contract.
package task

import (
	"slices"

	historypb "go.temporal.io/api/history/v1"

	"acescope/engine/ace"
	"acescope/engine/kind"
	"acescope/engine/temporal/history"
)

// Kind describes a task of ACE.
var Kind = kind.Kind{Type: ace.TaskWorkflow, New: func() kind.Fold {
	return &fold{state: &ace.State{},
		decoder: &history.Decoder{}}
}}

type fold struct {
	state   *ace.State
	decoder *history.Decoder
}

func (f *fold) Apply(e *historypb.HistoryEvent) kind.Effect {
	fact, ok, err := f.decoder.Fact(e)
	if !ok {
		return kind.Effect{Foreign: err}
	}
	signal := fact.Kind == ace.FactToolEvents
	var before []ace.SkillUsage
	if !signal {
		before = f.state.SkillCounts()
	}
	f.state.Apply(fact)
	if fact.Kind == ace.FactStepScheduled {
		return kind.Effect{}
	}
	// The result of the session repeats the calls that signals reported.
	tool := len(f.state.ChangedCalls()) > 0 && (signal || !slices.Equal(before, f.state.SkillCounts()))
	return kind.Effect{
		Changed: true, ToolsOnly: signal, Tool: tool, Failed: reportsFailure(fact), Foreign: err,
	}
}

// reportsFailure reports whether a fact says that a step or a tool call failed.
func reportsFailure(f ace.Fact) bool {
	if f.Kind == ace.FactStepFailed {
		return true
	}
	for _, e := range f.Events {
		if e.OK != nil && !*e.OK || e.Accepted != nil && !*e.Accepted {
			return true
		}
	}
	if r, ok := f.Result.(*ace.SkillSessionResult); ok {
		return slices.ContainsFunc(r.Invocations, func(i ace.Invocation) bool { return !i.Accepted || !i.OK })
	}
	return false
}

func (f *fold) Clone() kind.Fold { return &fold{f.state.Clone(), f.decoder.Clone()} }
func (f *fold) ID() string       { return f.state.Input.TaskID }
func (f *fold) Phase() string    { return string(f.state.Phase) }

func (f *fold) Answer(a *kind.Answers) {
	phase, skills, delta := f.state.CurrentPhase(), f.state.SkillUsage(), f.state.PlaybookDelta()
	phase.Status = f.state.Status()
	a.Phase, a.Skills, a.Delta = &phase, &skills, &delta
	a.Plan = f.state.Plan
	a.TrajectoryID = f.state.TrajectoryID
	a.BulletIDs = f.state.BulletIDs
}

// State implements [kind.Tasker].
func (f *fold) State() *ace.State { return f.state }
