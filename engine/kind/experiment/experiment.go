// Package experiment is the kind of the runs of experiments.
package experiment

import (
	"cmp"
	"fmt"
	"strings"

	historypb "go.temporal.io/api/history/v1"

	"acescope/engine/ace"
	"acescope/engine/kind"
	"acescope/engine/temporal/history"
)

// Kind describes an experiment.
var Kind = kind.Kind{Type: ace.ExperimentWorkflow,
	New: func() kind.Fold {
		return &fold{state: &ace.ExperimentState{}, decoder: &history.ExperimentDecoder{}}
	}}

type fold struct {
	state   *ace.ExperimentState
	decoder *history.ExperimentDecoder
	fact    ace.ExperimentFact // of the last event, zero if it says nothing
}

func (f *fold) Apply(e *historypb.HistoryEvent) kind.Effect {
	fact, ok, err := f.decoder.Fact(e)
	f.fact = fact
	if !ok {
		return kind.Effect{Foreign: err}
	}
	f.state.Apply(fact)
	return kind.Effect{
		Changed: true, Tool: fact.Failed != nil || fact.Completed != nil,
		Failed:  fact.Failed != nil,
		Foreign: err,
	}
}

func (f *fold) Clone() kind.Fold {
	return &fold{f.state.Clone(), f.decoder.Clone(), f.fact}
}

func (f *fold) ID() string { return f.state.Input.ExperimentID }

func (f *fold) Phase() string {
	return fmt.Sprint(f.state.Progress.Stage, " ", f.state.Progress.Epoch)
}

func (f *fold) Answer(a *kind.Answers) {
	p := f.state.Progress
	p.Status = f.state.Status()
	a.Experiment, a.Task = &p, f.fact.Completed
}

func (f *fold) Values() []kind.Value {
	var l kind.ValueList
	s := f.state
	p := &s.Progress
	l.Put("stage", p.Stage)
	if p.Stage != "" { // the run has started
		l.Put("status", string(s.Status()))
	}
	l.Put("epoch", p.Epoch)
	l.Put("runs", p.Runs)
	for _, e := range p.Epochs {
		at := fmt.Sprintf("epochs.%d.", e.Epoch)
		l.Put(at+"tasks", e.Tasks)
		l.Put(at+"correct", e.Correct)
		l.Put(at+"wrong", e.Wrong)
		l.Put(at+"failed", e.Failed)
		l.Put(at+"canceled", e.Canceled)
		l.Put(at+"unlabeled", e.Unlabeled)
		l.Put(at+"ungraded", e.Ungraded)
		if e.Labeled() > 0 {
			l.Put(at+"accuracy", e.Accuracy)
		}
	}
	for _, e := range p.Eval {
		if e.Labeled() > 0 {
			l.Put(fmt.Sprintf("eval.%d.accuracy", e.Epoch), e.Accuracy)
		}
	}
	if s.Failure != nil {
		l.Put("failure", strings.TrimPrefix(s.Failure.Type+": "+s.Failure.Message, ": "))
	}
	l.Usage(p.Usage)
	l.Put("operations.accepted", p.Accepted)
	l.Put("operations.rejected", p.Rejected)
	l.Put(kind.PathTotal, p.Summary.Skills)
	l.Put("playbook.before", p.Before)
	l.Put("playbook.after", p.After)
	l.Put("playbook.bullets", p.Bullets)
	return l
}

// sections begins with the task or the part of an evaluation that the event completes.
func (f *fold) Sections(kind.Books, *historypb.HistoryEvent) []kind.Section {
	var l kind.Sections
	if r := f.fact.Completed; r != nil {
		s := r.Summary
		i := kind.AnswerItem(r.TaskID, cmp.Or(s.Answer, r.Answer), nil, r.Correct, s.Cause)
		i.Fields = append(kind.Fields(kind.Field{Label: "task", Text: s.Subject}), i.Fields...)
		operations := fmt.Sprintf("%d added, %d updated, %d removed, %d tagged, %d rejected",
			s.Added, s.Updated, s.Removed, s.Tagged, s.Rejected)
		i.Fields = append(i.Fields, kind.Fields(kind.Field{Label: "expected", Text: s.Expected},
			kind.Field{Label: "stopped", Text: r.Stopped},
			kind.Field{Label: "tool calls", Text: fmt.Sprintf("%d, %d of them succeeded", s.Skills,
				s.SkillsOK)},
			kind.Field{Label: "operations", Text: operations},
			kind.Field{Label: "playbook", Text: fmt.Sprintf("v%d, %s", r.Seq, ace.Count(r.Bullets,
				"bullet"))})...)
		l.Add("Task", "O opens its run", i)
	}
	if e := f.fact.Evaluated; e != nil {
		l.Add("Evaluation", "a part of the evaluation set",
			kind.Item{Fields: []kind.Field{{Label: "correct", Text: fmt.Sprintf("%d of %d", e.Correct,
				e.Tasks)}}})
	}
	return append(l, kind.ValueSections(f.Values())...)
}
