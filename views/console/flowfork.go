package console

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"acescope/engine/flow"
	"acescope/sources/flows"
	"acescope/sources/runs"
)

// selectedFlow reports whether the selected run is that of a flow.
func (fs *Forks) selectedFlow() bool {
	return fs.nav.Selected.Ok && fs.nav.Selected.Run.Type == flow.Workflow
}

// flowView returns the steps and inputs of the selected run of a flow, nil until they are read.
func (fs *Forks) flowView() *flows.View {
	if d := fs.nav.Detail(); d != nil {
		return d.Flow
	}
	return nil
}

// ParseFlowFork reads a fork of a run of a flow from name=value pairs. Exactly one of step and event is set.
func ParseFlowFork(line string) (step string, event int64, fields []runs.Field, err error) {
	pairs, err := SplitPairs(line)
	if err != nil {
		return "", 0, nil, err
	}
	for _, p := range pairs {
		switch name, isInput := strings.CutPrefix(p.Name, inputKey); {
		case p.Name == "at":
			if event, err = parseEvent(p.Value); err != nil {
				return "", 0, nil, err
			}
		case p.Name == "from":
			step = p.Value
		case p.Name == "prompt", p.Name == "flow", isInput && strings.TrimSuffix(name, ":") != "":
			fields = append(fields, p)
		default:
			return "", 0, nil, fmt.Errorf(
				"%s: not possible for a run of a flow; use from, at, %sNAME, prompt, flow",
				p.Name, inputKey)
		}
	}
	switch {
	case event == 0 && step == "":
		err = errors.New("missing point; give from=STEP or at=EVENT")
	case event != 0 && step != "":
		err = errors.New("give from=STEP or at=EVENT, not both")
	}
	return step, event, fields, err
}

// inputKey begins the names of fields that change an input of a flow.
const inputKey = "inputs."

// PreviewFlowFork describes the fork that a typed line makes, or says what is missing. v may be nil.
func PreviewFlowFork(v *flows.View, line string) string {
	step, event, fields, err := ParseFlowFork(line)
	if err != nil {
		return err.Error()
	}
	summary := "reuses the results up to event " + strconv.FormatInt(event, 10)
	if step != "" {
		summary = "reuses the results before step " + step
		if v != nil && !begun(v, step) {
			return "the run did not begin a step " + step
		}
	}
	if len(fields) == 0 {
		return summary + "; no changes yet"
	}
	var names []string
	for _, f := range fields {
		names = append(names, strings.TrimSuffix(f.Name, ":"))
	}
	return summary + "; changes " + strings.Join(names, ", ")
}

// begun reports whether a run began a step. Steps of iterations that are no longer listed count as begun.
func begun(v *flows.View, path string) bool {
	for i := range v.Steps {
		if s := &v.Steps[i]; s.Path == path {
			return s.Begun()
		}
	}
	return v.Flow() == nil || v.Flow().StepAt(path) != nil
}

// defaultStep returns the point where a fork starts: the step that failed, or the first one.
func defaultStep(v *flows.View) string {
	if v == nil {
		return ""
	}
	first, failed := "", ""
	for i := range v.Steps {
		switch s := &v.Steps[i]; {
		case !s.Begun():
		case s.Status == flow.StepFailed:
			failed = s.Path // the innermost of nested steps follows those around it
		case first == "":
			first = s.Path
		}
	}
	if point := cmp.Or(failed, first); point != "" {
		return "from=" + point
	}
	return ""
}

// completeFlowFork completes fields, begun steps, and the present values of inputs and of the prompt.
func completeFlowFork(v *flows.View, typed string) (from int, options []string) {
	if v == nil || strings.Count(strings.ReplaceAll(typed, `\"`, ""), `"`)%2 == 1 {
		return len(typed), nil
	}
	from = strings.LastIndexByte(typed, ' ') + 1
	word := typed[from:]
	name, _, isValue := strings.Cut(word, "=")
	inputs := inputsOf(v)
	switch {
	case !isValue:
		options = []string{"from=", "at="}
		for _, in := range inputs {
			options = append(options, in.Name+"=")
		}
		options = append(options, "prompt=", "flow=")
	case name == "from":
		for i := range v.Steps {
			if s := &v.Steps[i]; s.Begun() {
				options = append(options, "from="+s.Path)
			}
		}
	case name == "prompt":
		step, _, _, _ := ParseFlowFork(strings.TrimSpace(typed[:from]))
		if prompt, ok := v.Prompt(step); ok {
			options = []string{"prompt=" + strconv.Quote(prompt)}
		}
	default:
		for _, in := range inputs {
			if in.Name == name {
				options = []string{name + "=" + in.Value}
			}
		}
	}
	return from, WithPrefix(word, options)
}

// inputsOf returns the inputs of a run as fields of a fork, sorted, with their values as they are typed.
func inputsOf(v *flows.View) (fields []runs.Field) {
	values := map[string]json.RawMessage{}
	if v.Flow() == nil || json.Unmarshal(v.Inputs, &values) != nil {
		return nil
	}
	for _, in := range v.Flow().Inputs {
		f := runs.Field{Name: inputKey + in.Name, Value: string(values[in.Name])}
		var text string
		if json.Unmarshal(values[in.Name], &text) == nil {
			f.Value = text
		} else if in.Type == "array" {
			f.Name += ":" // a list as a whole
		}
		if strings.ContainsAny(f.Value, " \"\n") {
			f.Value = strconv.Quote(f.Value)
		}
		fields = append(fields, f)
	}
	return fields
}
