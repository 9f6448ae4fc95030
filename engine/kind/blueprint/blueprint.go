// Package blueprint is the kind of the runs of blueprints.
package blueprint

import (
	"fmt"

	historypb "go.temporal.io/api/history/v1"

	"acescope/engine/kind"
	"acescope/engine/tasks/run"
)

// Kind describes a run of a blueprint.
var Kind = kind.Kind{Type: run.Workflow, New: func() kind.Fold { return &fold{decoder: &run.Decoder{}} }}

// fold folds a blueprint run. The state replaces its slices and maps and never changes them in place.
type fold struct {
	state   run.State
	decoder *run.Decoder
}

func (f *fold) Apply(e *historypb.HistoryEvent) kind.Effect {
	fact, ok, err := f.decoder.Fact(e)
	if !ok {
		return kind.Effect{Foreign: err}
	}
	f.state.Apply(fact)
	if fact.Kind == run.FactTask {
		return kind.Effect{}
	}
	return kind.Effect{
		Changed: true, Tool: fact.Kind == run.FactSubmitted,
		Failed: fact.Failure != nil || fact.Lost != nil || fact.Unmatched != nil ||
			fact.Result != nil && fact.Result.Status == run.Failed,
	}
}

func (f *fold) Clone() kind.Fold { return &fold{f.state, f.decoder.Clone()} }
func (f *fold) ID() string       { return f.state.Input.RunID }
func (f *fold) Phase() string    { return string(f.state.Status) }

func (f *fold) Answer(a *kind.Answers) {
	a.Run = new(f.state)
}
func (f *fold) Values() []kind.Value {
	var l kind.ValueList
	s := &f.state
	l.Put("status", string(s.Status))
	l.Put("workflow_status", string(s.Exit))
	l.Put("blueprint", s.Input.Name())
	l.Put("session_id", s.Input.SessionID)
	l.Put("try", s.Try)
	if c := s.Claim; c != nil {
		l.Put("claim.number", c.Number)
		l.Put("claim.runner", c.RunnerID)
		l.Put("claim.queue", c.Queue)
	}
	if b := s.ProgramStart; b != nil {
		l.Put("pid", b.PID)
	}
	for i, m := range s.Moves {
		l.Put(fmt.Sprintf("moves.%d", i+1), m.Runner+": "+m.Reason)
	}
	if n := s.Stop; n != nil {
		l.Request("stop", n.By, n.Reason)
	}
	if r := s.Result; r != nil {
		l.Put("result.status", string(r.Status))
		l.Put("result.reason", string(r.Reason))
		l.Put("result.error", r.Error)
		l.Put("result.output", string(r.Output))
		if r.ExitCode != nil {
			l.Put("result.exit_code", *r.ExitCode)
		}
		l.Put("result.duration_seconds", r.DurationSeconds)
		l.Usage(r.Usage)
	}
	l.Put("ignored", s.Ignored)
	l.Put("told", s.Notified)
	return l
}

func (f *fold) Sections(kind.Books, *historypb.HistoryEvent) []kind.Section {
	return kind.ValueSections(f.Values())
}
