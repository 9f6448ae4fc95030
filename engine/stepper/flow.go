package stepper

import (
	"fmt"
	"strings"

	historypb "go.temporal.io/api/history/v1"

	"acescope/engine/ace"
	"acescope/engine/flow"
	"acescope/engine/temporal/history"
)

// flowFold folds a run of a flow. Its phase is the step that changed last, so that a step by phase stops at
// each step.
type flowFold struct {
	state   flow.State
	inputID string
	status  ace.Status
	failure *ace.Failure
	task    history.WorkflowTask
	last    string // path and status of the step that changed last
}

func (f *flowFold) apply(e *historypb.HistoryEvent) (out effect) {
	if start := e.GetWorkflowExecutionStartedEventAttributes(); start != nil {
		f.inputID = strings.TrimPrefix(start.GetWorkflowId(), flow.IDPrefix)
		f.status = ace.Running
		out.changed = true
		if _, ok := flow.InputOf(e); !ok {
			out.foreign = fmt.Errorf("the input is not that of a flow run")
		}
	}
	if closed, ok := f.task.Closing(e); ok {
		f.status = closed.Status
		f.failure = closed.Failure
		out.changed = true
	}
	operations := f.state.Operations
	failed := f.failedSteps()
	if f.state.ApplyEvent(e) {
		out.changed = true
		out.tool = f.state.Operations != operations
		out.failed = f.failedSteps() > failed
		if n := len(f.state.Steps); n > 0 {
			f.last = f.newest()
		}
	}
	return out
}

func (f *flowFold) failedSteps() (n int) {
	for i := range f.state.Steps {
		if f.state.Steps[i].Status == flow.StepFailed {
			n++
		}
	}
	return n
}

// newest lists the open steps with their statuses. The text changes with every step that begins or ends.
func (f *flowFold) newest() string {
	var open []string
	for i := range f.state.Steps {
		if s := &f.state.Steps[i]; !s.Status.Over() {
			open = append(open, s.Path+" "+string(s.Status))
		}
	}
	return strings.Join(open, ", ")
}

// clone also copies the steps, because events change them in place.
func (f *flowFold) clone() fold {
	c := *f
	c.state = f.state.Clone()
	return &c
}

func (f *flowFold) id() string    { return f.inputID }
func (f *flowFold) phase() string { return f.last }

func (f *flowFold) fill(frame *Frame) {
	frame.Flow = new(f.state.Clone())
}

func (f *flowFold) values() []value {
	var l valueList
	s := &f.state
	l.put("status", string(f.status))
	l.put("operations", s.Operations)
	l.put("dropped", s.Dropped)
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
		l.put(at+".status", string(step.Status))
		l.put(at+".detail", step.Detail)
		l.put(at+".error", step.Error)
		l.put(at+".done", step.Done)
		if step.Usage != nil {
			l.put(at+".cost_usd", step.Usage.CostUSD)
		}
	}
	l.usage(s.Usage)
	if f.failure != nil {
		l.put("failure", strings.TrimPrefix(f.failure.Type+": "+f.failure.Message, ": "))
	}
	return l.all
}
