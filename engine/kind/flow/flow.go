// Package flow is the kind of the runs of flows.
package flow

import (
	historypb "go.temporal.io/api/history/v1"

	"acescope/engine/ace"
	"acescope/engine/flow"
	"acescope/engine/kind"
	"acescope/engine/temporal/history"
	"fmt"
	"strings"
)

// Kind describes a flow.
var Kind = kind.Kind{Type: flow.Workflow, New: func() kind.Fold { return &fold{} }}

// fold folds a run of a flow. Its phase is the step that changed last, so that a step by phase stops at
// each step.
type fold struct {
	state   flow.State
	inputID string
	status  ace.Status
	failure *ace.Failure
	task    history.WorkflowTask
	last    string // path and status of the step that changed last
}

func (f *fold) Apply(e *historypb.HistoryEvent) (out kind.Effect) {
	if start := e.GetWorkflowExecutionStartedEventAttributes(); start != nil {
		f.inputID = strings.TrimPrefix(start.GetWorkflowId(), flow.IDPrefix)
		f.status = ace.Running
		out.Changed = true
		if _, ok := flow.InputOf(e); !ok {
			out.Foreign = fmt.Errorf("the input is not that of a flow run")
		}
	}
	if closed, ok := f.task.Closing(e); ok {
		f.status = closed.Status
		f.failure = closed.Failure
		out.Changed = true
	}
	operations := f.state.Operations
	failed := f.failedSteps()
	if f.state.ApplyEvent(e) {
		out.Changed = true
		out.Tool = f.state.Operations != operations
		out.Failed = f.failedSteps() > failed
		if n := len(f.state.Steps); n > 0 {
			f.last = f.newest()
		}
	}
	return out
}

func (f *fold) failedSteps() (n int) {
	for i := range f.state.Steps {
		if f.state.Steps[i].Status == flow.StepFailed {
			n++
		}
	}
	return n
}

// newest lists the open steps with their statuses. The text changes with every step that begins or ends.
func (f *fold) newest() string {
	var open []string
	for i := range f.state.Steps {
		if s := &f.state.Steps[i]; !s.Status.Over() {
			open = append(open, s.Path+" "+string(s.Status))
		}
	}
	return strings.Join(open, ", ")
}

// clone also copies the steps, because events change them in place.
func (f *fold) Clone() kind.Fold {
	c := *f
	c.state = f.state.Clone()
	return &c
}

func (f *fold) ID() string    { return f.inputID }
func (f *fold) Phase() string { return f.last }

func (f *fold) Answer(a *kind.Answers) {
	a.Flow = new(f.state.Clone())
}

func (f *fold) Values() []kind.Value {
	var l kind.ValueList
	s := &f.state
	l.Put("status", string(f.status))
	l.Put("operations", s.Operations)
	l.Put("dropped", s.Dropped)
	newest := map[string]int{}
	for i := range s.Steps {
		newest[s.Steps[i].Path] = i
	}
	for i := range s.Steps {
		step := &s.Steps[i]
		if newest[step.Path] != i {
			continue // it was executed again
		}
		at := "step." + step.Path
		l.Put(at+".status", string(step.Status))
		l.Put(at+".detail", step.Detail)
		l.Put(at+".error", step.Error)
		l.Put(at+".done", step.Done)
		if step.Usage != nil {
			l.Put(at+".cost_usd", step.Usage.CostUSD)
		}
	}
	l.Usage(s.Usage)
	if f.failure != nil {
		l.Put("failure", strings.TrimPrefix(f.failure.Type+": "+f.failure.Message, ": "))
	}
	return l
}

func (f *fold) Sections(kind.Books, *historypb.HistoryEvent) []kind.Section {
	return kind.ValueSections(f.Values())
}
