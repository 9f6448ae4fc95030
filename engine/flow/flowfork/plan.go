// Package flowfork plans forks of runs of flows. From the history of a run it derives the input of a new run
// that reuses values which the run recorded before a step: results of operations, times, random values and
// the ends of waits. It may import engine/flow, engine/flow/flowtest and Temporal's API types. It does no
// I/O.
//
// A fork reuses a value if the run asked for it before the step began. It reuses the result of an operation
// only if the operation has the same parameters in the fork. So operations that depend on a changed input are
// executed again, also before the step. Files that an operation wrote are not restored: fork before the step
// that writes a file that later steps read.
package flowfork

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	historypb "go.temporal.io/api/history/v1"

	"acescope/engine/ace"
	"acescope/engine/flow"
	"acescope/engine/flow/flowtest"
	"acescope/engine/temporal/fork"
	"acescope/engine/temporal/history"
)

// Point is where a fork leaves the original: before a step, by its path, or after an event.
type Point struct {
	Step  string
	Event int64
}

// Changes are the changes of a fork to its original.
type Changes struct {
	Inputs map[string]json.RawMessage
	Source *flow.Source // nil: the file of the original
	// Prompt is another prompt for the step of the point, with expressions as in the file; nil: no change.
	Prompt *string
}

// Plan is a planned fork.
type Plan struct {
	WorkflowID string                    `json:"of"`     // of the original
	RunID      string                    `json:"of_run"` // of the original
	Event      int64                     `json:"event"`  // last event of the original that has a reused value
	Step       string                    `json:"step,omitempty"`
	Changed    map[string]ace.ForkChange `json:"changed"`
	Reused     []string                  `json:"reused"` // IDs of operations
	Rerun      []Operation               `json:"rerun"`  // with the results of the original
	// Estimate is the usage of the operations in Rerun in the original. Unknown counts the operations that
	// the original did not execute.
	Estimate ace.Usage  `json:"estimate"`
	Unknown  int        `json:"unknown"`
	Input    flow.Input `json:"-"`
}

// Operation is an operation that a fork executes.
type Operation struct {
	ID   string `json:"operation_id"`
	Step string `json:"step"` // path
	// Changed is set if the operation is before the point and has other parameters.
	Changed bool `json:"changed_parameters,omitempty"`
}

// maxReused bounds the reused values, because they are part of the input, in bytes of JSON.
const maxReused = 1 << 20

// New plans a fork of a run. The error wraps [fork.ErrPoint] or [fork.ErrNoChange] if point or changes are
// not possible.
func New(workflowID string, events []*historypb.HistoryEvent, at Point, c Changes) (*Plan, error) {
	rec, err := flow.ReadRecord(events)
	if err != nil {
		return nil, err
	}
	p := &Plan{WorkflowID: workflowID, RunID: history.OriginOf(events).RunID, Step: at.Step, Input: rec.Input,
		Changed: map[string]ace.ForkChange{}, Reused: []string{}, Rerun: []Operation{}}
	f, err := p.change(rec, at.Step, c)
	if err != nil {
		return nil, err
	}
	if err := p.reuse(rec, at, events[len(events)-1].GetEventId()); err != nil {
		return nil, err
	}
	p.Input.Fork = &ace.Forked{WorkflowID: p.WorkflowID, RunID: p.RunID, Event: p.Event, Step: p.Step,
		Changed: p.Changed}
	return p, p.preview(rec, f)
}

// change applies the changes to the input.
func (p *Plan) change(rec *flow.Record, step string, c Changes) (*flow.Flow, error) {
	f, err := p.changeSource(rec, step, c)
	if err != nil {
		return nil, err
	}
	inputs := map[string]json.RawMessage{}
	if err := json.Unmarshal(p.Input.Inputs, &inputs); err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(c.Inputs)) {
		if string(inputs[name]) != string(c.Inputs[name]) {
			p.Changed["inputs."+name] = ace.ForkChange{From: ace.Cut(string(inputs[name]), ace.PreviewBytes),
				To: ace.Cut(string(c.Inputs[name]), ace.PreviewBytes)}
		}
		inputs[name] = c.Inputs[name]
	}
	data, err := json.Marshal(inputs)
	if err != nil {
		return nil, err
	}
	if p.Input.Inputs, err = f.CheckInputs(data); err != nil {
		return nil, fmt.Errorf("%w: %w", fork.ErrNoChange, err)
	}
	return f, nil
}

// changeSource applies the changes to the file of the flow.
func (p *Plan) changeSource(rec *flow.Record, step string, c Changes) (f *flow.Flow, err error) {
	f = rec.Flow
	src := p.Input.Source
	other := c.Source != nil && c.Source.Digest() != rec.Input.Digest
	switch {
	case (other || c.Prompt != nil) && rec.Input.Carried != nil:
		return nil, fmt.Errorf(
			"%w: the run continues an earlier run in the middle of the file, so the file cannot change",
			fork.ErrNoChange)
	case c.Prompt != nil && step == "":
		return nil, fmt.Errorf("%w: to change a prompt, fork from the step that has it", fork.ErrNoChange)
	}
	if other {
		src = *c.Source
		p.Changed["flow"] = ace.ForkChange{From: rec.Input.Digest[:12], To: src.Digest()[:12]}
		if f, err = flow.Parsed(src, src.Digest()); err != nil {
			return nil, err
		}
	}
	if c.Prompt != nil {
		before, ok := src.PromptAt(f, step)
		if !ok || before != *c.Prompt {
			p.Changed["prompt"] = ace.ForkChange{From: ace.Cut(before, ace.PreviewBytes),
				To: ace.Cut(*c.Prompt, ace.PreviewBytes)}
			if src, f, err = src.WithPrompt(f, step, *c.Prompt); err != nil {
				return nil, fmt.Errorf("%w: %w", fork.ErrNoChange, err)
			}
		}
	}
	p.Input.Source = src
	p.Input.Digest = src.Digest()
	return f, nil
}

// reuse sets the values that the fork reuses.
func (p *Plan) reuse(rec *flow.Record, at Point, last int64) error {
	before := func(v flow.Recorded) bool { return v.Event <= at.Event }
	p.Event = at.Event
	switch began, ok := rec.BeganAt(at.Step); {
	case at.Step == "" && (at.Event < 1 || at.Event > last):
		return fmt.Errorf("%w: event %d not found; the history has events 1 to %d", fork.ErrPoint, at.Event,
			last)
	case at.Step == "":
	case !ok:
		return fmt.Errorf("%w: the run did not begin a step %q; it began %s", fork.ErrPoint, at.Step,
			stepsOf(rec))
	default:
		p.Event = 1
		before = func(v flow.Recorded) bool { return v.Began < began }
	}
	p.Input.Reuse = map[string]json.RawMessage{}
	p.Input.ReuseParameters = map[string]string{}
	size := 0
	for _, v := range rec.Values {
		if v.Value == nil || !before(v) {
			continue
		}
		p.Input.Reuse[v.ID] = v.Value
		if v.Digest != "" {
			p.Input.ReuseParameters[v.ID] = v.Digest
		}
		p.Event = max(p.Event, v.Event)
		size += len(v.ID) + len(v.Value) + len(v.Digest)
	}
	if size > maxReused {
		return fmt.Errorf("%w: the values before it have %d KB; a fork can reuse %d KB: fork from an earlier step",
			fork.ErrPoint, size>>10, maxReused>>10)
	}
	return nil
}

func stepsOf(rec *flow.Record) string {
	var paths []string
	for _, s := range rec.State.Steps {
		paths = append(paths, s.Path)
	}
	return ace.Cut(strings.Join(paths, ", "), 500)
}

// preview sets the operations that the fork reuses and executes, on the assumption that executed operations
// have the same results as in the original.
func (p *Plan) preview(rec *flow.Record, f *flow.Flow) error {
	in := p.Input
	in.Reuse = maps.Clone(in.Reuse)
	for _, v := range rec.Values {
		if !v.IsOperation() && v.Value != nil {
			in.Reuse[v.ID] = v.Value
		}
	}
	out, err := flowtest.Predict(in, rec)
	if err != nil {
		return err
	}
	executed := map[string]bool{}
	for _, op := range out.Operations {
		_, changed := p.Input.Reuse[op.ID]
		executed[op.ID] = true
		p.Rerun = append(p.Rerun, Operation{op.ID, op.Path(), changed})
		v, known := rec.Find(op.ID)
		if usage := v.Usage(); usage != nil {
			p.Estimate = p.Estimate.Add(*usage)
		}
		if !known {
			p.Unknown++
		}
	}
	for _, v := range rec.Values {
		if _, ok := p.Input.Reuse[v.ID]; ok && v.IsOperation() && !executed[v.ID] && f.StepAt(v.Path) != nil {
			p.Reused = append(p.Reused, v.ID)
		}
	}
	return nil
}

// Name returns the name of the original in IDs and prompts.
func (p *Plan) Name() string {
	return cmp.Or(strings.TrimPrefix(p.WorkflowID, flow.IDPrefix), p.WorkflowID)
}
