package flows

import (
	"cmp"
	"encoding/json"
	"errors"
	"strings"
	"time"

	historypb "go.temporal.io/api/history/v1"

	"acescope/engine/ace"
	"acescope/engine/flow"
	"acescope/engine/temporal/history"
	"acescope/engine/temporal/operation"
)

// PhaseApproval is the phase of a run that waits for an approval.
const PhaseApproval = ace.Phase(flow.PhaseApproval)

// View is a run of a flow as screens and commands show it. It is immutable.
type View struct {
	Name   string          `json:"name"`
	Digest string          `json:"digest"`
	By     string          `json:"started_by,omitempty"`
	Dir    string          `json:"dir,omitempty"`
	Inputs json.RawMessage `json:"inputs,omitempty"`
	// Steps are the flow's steps in its order, with their executions in loops.
	Steps      []Step         `json:"steps"`
	Outputs    map[string]any `json:"outputs,omitempty"` // of a run that completed
	Usage      ace.Usage      `json:"usage,omitzero"`
	Operations int            `json:"operations"`
	// ended steps of iterations that the run no longer lists
	Dropped int    `json:"dropped_steps,omitempty"`
	Problem string `json:"problem,omitempty"` // why steps that have not begun are unknown
	// ChainRun is the number of the run in its chain, from 1, and ChainStart the start of the first run. Of a
	// run that continues no other, both are zero. Steps, usage and operations are those since run 1.
	ChainRun   int       `json:"chain_run,omitempty"`
	ChainStart time.Time `json:"chain_start,omitzero"`

	Phase ace.Phase `json:"-"`

	hidden int // executions in iterations that Steps leaves out
	source flow.Source
	flow   *flow.Flow
}

// Flow returns the flow of the run, nil if its file cannot be parsed.
func (v *View) Flow() *flow.Flow { return v.flow }

// Prompt returns the prompt of a step by its path, before its expressions are evaluated.
func (v *View) Prompt(path string) (prompt string, ok bool) {
	if v.flow == nil {
		return "", false
	}
	return v.source.PromptAt(v.flow, path)
}

// Waiting lists the steps that wait for an approval.
func (v *View) Waiting() (list []*Step) {
	for i := range v.Steps {
		if v.Steps[i].Waits() {
			list = append(list, &v.Steps[i])
		}
	}
	return list
}

// Counts returns how many steps have ended, and the number of all steps. Each execution in a loop counts,
// even if it is not listed.
func (v *View) Counts() (ended, all int) {
	ended = v.hidden + v.Dropped
	all = ended
	for i := range v.Steps {
		s := &v.Steps[i]
		switch {
		case s.Earlier > 0:
		case s.Begun() && s.Status.Over():
			ended++
			all++
		default:
			all++
		}
	}
	return ended, all
}

// Folder folds the history of a run of a flow, with its operations.
type Folder struct {
	Run
	Foreign error // why its input cannot be read

	operations *operations
}

// NewFolder returns a folder that has read nothing.
func NewFolder() *Folder {
	return &Folder{operations: &operations{projector: operation.NewProjector(),
		byID: map[string]*Operation{}}}
}

// Apply folds the next event. It reports whether the state of the steps changed.
func (f *Folder) Apply(e *historypb.HistoryEvent) bool {
	f.operations.apply(e)
	changed := f.Run.apply(e)
	start := e.GetWorkflowExecutionStartedEventAttributes()
	if start != nil && f.Run.Input.Source.Main == "" {
		f.Foreign = errors.New("the input of the run is not that of a flow")
		if _, readable := history.Values(start.GetInput()); !readable {
			f.Foreign = errors.New("the input of the run cannot be read")
		}
	}
	return changed
}

// Changed lists the steps whose status the last event changed, in order. Of each it has the path, what the
// event says and, as its start, the time of the change.
func (f *Folder) Changed() []flow.StepState { return f.operations.steps }

// View returns the run with a state, which is that of the history or a newer one that its worker has
// returned. most bounds the listed iterations of a loop, 0 for all.
func (f *Folder) View(s flow.State, most int) *View {
	in := &f.Input
	v := &View{Name: in.Name, Digest: in.Digest, By: in.By, Dir: in.Dir, Inputs: in.Inputs, Usage: s.Usage,
		Operations: s.Operations, Dropped: s.Dropped, Phase: ace.Phase(flow.PhaseRunning), source: in.Source}
	def, err := flow.Parsed(in.Source, in.Digest)
	if err != nil {
		v.Problem = err.Error()
	}
	v.flow = def
	v.Steps = stepTree(def, &s, most, func(id string) *Operation { return f.operations.byID[id] })
	v.hidden = max(len(s.Steps)-v.begun(), 0)
	if c := in.Carried; c != nil {
		v.ChainRun = c.Operation.Generation + 1
		v.ChainStart = c.Started
	}
	if f.Result != nil {
		v.Outputs = f.Result.Outputs
	}
	switch {
	case f.Status != ace.Running && f.Status != "":
		v.Phase = ace.Phase(flow.PhaseDone)
		v.settle(f.Status)
	case len(s.Waiting()) > 0:
		v.Phase = PhaseApproval
	}
	return v
}

// begun returns how many of the listed steps have begun.
func (v *View) begun() (n int) {
	for i := range v.Steps {
		if v.Steps[i].Begun() {
			n++
		}
	}
	return n
}

// ChangeText describes a change of a step in one line.
func ChangeText(s flow.StepState) string {
	summary := strings.TrimSpace(string(s.Status) + " " + s.Path)
	if s.Status == flow.StepWaiting && s.Approval {
		summary = "waits for approval: " + s.Path
	}
	if s.Reused {
		summary += ", reused"
	}
	if detail := cmp.Or(s.Error, s.Detail); detail != "" {
		summary += ": " + detail
	}
	return summary
}

// settle marks the open steps of a run that closed without ending them, such as a terminated one.
func (v *View) settle(status ace.Status) {
	if status == ace.ContinuedAsNew {
		return // the next run has them
	}
	for i := range v.Steps {
		if s := &v.Steps[i]; s.Begun() && !s.Status.Over() {
			s.Status = flow.StepCanceled
			s.Error = "the run was " + string(status)
		}
	}
}
