package stepper

import (
	"fmt"
	"slices"

	historypb "go.temporal.io/api/history/v1"

	"acescope/engine/ace"
	"acescope/engine/agents/session"
	"acescope/engine/flow"
	"acescope/engine/tasks/run"
	"acescope/engine/temporal/history"
)

// fold is the state of a run. Events change it.
type fold interface {
	apply(*historypb.HistoryEvent) effect
	clone() fold
	id() string      // ID of the task, session, run or experiment
	phase() string   // a step by phase stops where it changes
	values() []value // values that can be watched
	fill(*Frame)     // sets the answers of a live run
	// sections describes the state. The event has the whole payloads of tool calls; it may be nil.
	sections(Books, *historypb.HistoryEvent) []Section
}

// effect describes what an event did to a fold.
type effect struct {
	changed   bool
	toolsOnly bool  // the event only reports tool calls of a task
	tool      bool  // the event reports a tool call, or a task of an experiment
	failed    bool  // the event reports a failure
	foreign   error // the event does not fit the contract
}

func newFold(workflowType string) fold {
	switch workflowType {
	case session.Workflow:
		return &sessionFold{decoder: &session.Decoder{}}
	case run.Workflow:
		return &runFold{decoder: &run.Decoder{}}
	case flow.Workflow:
		return &flowFold{}
	case ace.ExperimentWorkflow:
		return &experimentFold{state: &ace.ExperimentState{}, decoder: &history.ExperimentDecoder{}}
	}
	return &taskFold{state: &ace.State{}, decoder: &history.Decoder{}}
}

type taskFold struct {
	state   *ace.State
	decoder *history.Decoder
}

func (f *taskFold) apply(e *historypb.HistoryEvent) effect {
	fact, ok, err := f.decoder.Fact(e)
	if !ok {
		return effect{foreign: err}
	}
	signal := fact.Kind == ace.FactToolEvents
	var before []ace.SkillUsage
	if !signal {
		before = f.state.SkillCounts()
	}
	f.state.Apply(fact)
	if fact.Kind == ace.FactStepScheduled {
		return effect{}
	}
	// The result of the session repeats the calls that signals reported.
	tool := len(f.state.ChangedCalls()) > 0 && (signal || !slices.Equal(before, f.state.SkillCounts()))
	return effect{
		changed: true, toolsOnly: signal, tool: tool, failed: reportsFailure(fact), foreign: err,
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

func (f *taskFold) clone() fold   { return &taskFold{f.state.Clone(), f.decoder.Clone()} }
func (f *taskFold) id() string    { return f.state.Input.TaskID }
func (f *taskFold) phase() string { return string(f.state.Phase) }

func (f *taskFold) fill(frame *Frame) {
	phase, skills, delta := f.state.CurrentPhase(), f.state.SkillUsage(), f.state.PlaybookDelta()
	phase.Status = f.state.Status()
	frame.Phase, frame.Skills, frame.Delta = &phase, &skills, &delta
	frame.Plan = f.state.Plan
	frame.TrajectoryID = f.state.TrajectoryID
	frame.BulletIDs = f.state.BulletIDs
}

type experimentFold struct {
	state   *ace.ExperimentState
	decoder *history.ExperimentDecoder
	fact    ace.ExperimentFact // of the last event, zero if it says nothing
}

func (f *experimentFold) apply(e *historypb.HistoryEvent) effect {
	fact, ok, err := f.decoder.Fact(e)
	f.fact = fact
	if !ok {
		return effect{foreign: err}
	}
	f.state.Apply(fact)
	return effect{
		changed: true, tool: fact.Failed != nil || fact.Completed != nil,
		failed:  fact.Failed != nil,
		foreign: err,
	}
}

func (f *experimentFold) clone() fold {
	return &experimentFold{f.state.Clone(), f.decoder.Clone(), f.fact}
}

func (f *experimentFold) id() string { return f.state.Input.ExperimentID }

func (f *experimentFold) phase() string {
	return fmt.Sprint(f.state.Progress.Stage, " ", f.state.Progress.Epoch)
}

func (f *experimentFold) fill(frame *Frame) {
	p := f.state.Progress
	p.Status = f.state.Status()
	frame.Experiment, frame.Task = &p, f.fact.Completed
}

// sessionFold folds an agent session. The state replaces its slices and maps and never changes them in place.
type sessionFold struct {
	state   session.State
	decoder *session.Decoder
}

func (f *sessionFold) apply(e *historypb.HistoryEvent) effect {
	fact, ok, err := f.decoder.Fact(e)
	if !ok {
		return effect{foreign: err}
	}
	before := f.calls()
	f.state.Apply(fact)
	return effect{
		changed: true, tool: fact.Kind == session.FactToolRan || f.calls() != before,
		failed: fact.Failure != nil || fact.Result != nil && fact.Result.Failed != nil ||
			fact.Tool != nil && fact.Tool.Error,
		foreign: err,
	}
}

// calls returns the number of tool calls that are pending, decided or running.
func (f *sessionFold) calls() int {
	return len(f.state.Pending) + len(f.state.Decided) + len(f.state.Running)
}

func (f *sessionFold) clone() fold   { return &sessionFold{f.state, f.decoder.Clone()} }
func (f *sessionFold) id() string    { return f.state.Input.SessionID }
func (f *sessionFold) phase() string { return string(f.state.Status) }

func (f *sessionFold) fill(frame *Frame) {
	frame.Session = new(f.state)
}

// runFold folds a blueprint run. The state replaces its slices and maps and never changes them in place.
type runFold struct {
	state   run.State
	decoder *run.Decoder
}

func (f *runFold) apply(e *historypb.HistoryEvent) effect {
	fact, ok, err := f.decoder.Fact(e)
	if !ok {
		return effect{foreign: err}
	}
	f.state.Apply(fact)
	if fact.Kind == run.FactTask {
		return effect{}
	}
	return effect{
		changed: true, tool: fact.Kind == run.FactSubmitted,
		failed: fact.Failure != nil || fact.Lost != nil || fact.Unmatched != nil ||
			fact.Result != nil && fact.Result.Status == run.Failed,
	}
}

func (f *runFold) clone() fold   { return &runFold{f.state, f.decoder.Clone()} }
func (f *runFold) id() string    { return f.state.Input.RunID }
func (f *runFold) phase() string { return string(f.state.Status) }

func (f *runFold) fill(frame *Frame) {
	frame.Run = new(f.state)
}
