package flowtest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"acescope/engine/ace"
	"acescope/engine/flow"
	"acescope/engine/temporal/operation"
)

// Report is the result of a test: the status of the run and the differences from the expectation.
type Report struct {
	Status      ace.Status `json:"status"`
	Operations  int        `json:"operations"` // executed, not reused
	Differences []string   `json:"differences"`
}

// Passed reports whether there are no differences.
func (r Report) Passed() bool { return len(r.Differences) == 0 }

func (r *Report) differ(format string, args ...any) {
	r.Differences = append(r.Differences, fmt.Sprintf(format, args...))
}

// Test runs a case of a flow.
func Test(src flow.Source, name string, f *flow.Flow, c flow.Case) (Report, error) {
	inputs, err := f.CheckInputs(c.Inputs)
	if err != nil {
		return Report{Differences: []string{err.Error()}}, nil
	}
	s := Simulation{Start: c.Start, Signals: c.Signals,
		Input:  flow.Input{Name: name, Source: src, Inputs: inputs, Dir: c.Dir, Reuse: c.Reuse},
		Answer: answers(c.Mocks),
		Decide: func(path string) (flow.Decision, bool) {
			if d, ok := c.Decisions[path]; ok {
				return d, true
			}
			d, ok := c.Decisions[path[strings.LastIndexByte(path, '/')+1:]]
			return d, ok
		}}
	out, err := s.Run()
	if err != nil {
		return Report{}, err
	}
	r := newReport(out)
	r.unfinished(out)
	if r.Passed() {
		r.expected(out, c.Expect)
	}
	return r, nil
}

// answers returns the function that answers operations with mocks. The mock of an operation takes precedence
// over that of its step.
func answers(mocks []flow.Answers) func(operation.Request, int) (json.RawMessage, *ace.Failure, bool) {
	byKey := map[string]flow.Answers{}
	for _, m := range mocks {
		byKey[m.Key] = m
	}
	return func(r operation.Request, n int) (json.RawMessage, *ace.Failure, bool) {
		m, ok := byKey[r.OperationID]
		if !ok {
			m, ok = byKey[r.Step]
		}
		if !ok || m.Failure != nil {
			return nil, m.Failure, ok
		}
		return m.Results[min(n, len(m.Results)-1)], nil, true
	}
}

func newReport(out Outcome) Report {
	r := Report{Status: ace.Completed, Operations: len(out.Operations), Differences: []string{}}
	switch {
	case len(out.Waiting) > 0:
		r.Status = ace.Running
	case out.Failure != nil:
		r.Status = cmp.Or(out.Failure.Kind, ace.Failed)
	}
	return r
}

// unfinished reports missing mocks, decisions and signals.
func (r *Report) unfinished(out Outcome) {
	for _, id := range out.Unanswered {
		op := flow.Operation{ID: id}
		r.differ("step %s has no answer for operation %s: add it to \"mocks\"", op.Path(), id)
	}
	for _, t := range out.Waiting {
		switch {
		case t.Approval:
			r.differ("step %s waits for approval: add it to \"decisions\"", t.Path)
		default:
			r.differ("step %s waits for %s, which never comes", t.Path, t.Detail)
		}
	}
}

// expected reports the differences of a run from an expectation.
func (r *Report) expected(out Outcome, e flow.Expectation) {
	failure := cmp.Or(out.Failure, &ace.Failure{})
	switch {
	case r.Status != e.Status && out.Failure != nil:
		r.differ("status: %s, want %s: %s: %s", r.Status, e.Status, failure.Type, failure.Message)
	case r.Status != e.Status:
		r.differ("status: %s, want %s", r.Status, e.Status)
	}
	if e.Error != "" && failure.Type != e.Error {
		r.differ("error: %q, want %q", failure.Type, e.Error)
	}
	if !strings.Contains(failure.Message, e.Message) {
		r.differ("message: %q does not contain %q", failure.Message, e.Message)
	}
	if e.Outputs != nil && out.Result != nil {
		r.compare("outputs", plain(out.Result.Outputs), plain(e.Outputs), true)
	}
	r.inOrder(out, e.Order)
}

// plain converts a value to JSON and decodes it, so that values of different Go types can be compared.
func plain(v any) (p any) {
	if data, err := json.Marshal(v); err == nil && json.Unmarshal(data, &p) == nil {
		return p
	}
	return nil
}

// compare reports the differences of two values. If part is set, objects in got may have further members.
func (r *Report) compare(at string, got, want any, part bool) {
	wanted, isObject := want.(map[string]any)
	found, alsoObject := got.(map[string]any)
	switch {
	case isObject && alsoObject:
		for _, name := range slices.Sorted(maps.Keys(wanted)) {
			if value, ok := found[name]; ok {
				r.compare(at+"."+name, value, wanted[name], part)
			} else {
				r.differ("%s.%s: missing, want %s", at, name, short(wanted[name]))
			}
		}
		for _, name := range slices.Sorted(maps.Keys(found)) {
			if _, ok := wanted[name]; !ok && !part {
				r.differ("%s.%s: %s, want nothing", at, name, short(found[name]))
			}
		}
		return
	}
	wantedList, isList := want.([]any)
	foundList, alsoList := got.([]any)
	if isList && alsoList && len(wantedList) == len(foundList) {
		for i := range wantedList {
			r.compare(fmt.Sprintf("%s[%d]", at, i), foundList[i], wantedList[i], part)
		}
		return
	}
	if a, b := short(got), short(want); isList || isObject || got != want {
		r.differ("%s: %s, want %s", at, a, b)
	}
}

// short returns a value as truncated JSON.
func short(v any) string {
	data, _ := json.Marshal(v)
	return ace.Cut(string(data), 200)
}

// inOrder checks that steps or operations began in the order of want. Others may begin between them.
func (r *Report) inOrder(out Outcome, want []string) {
	var began []string
	next := 0
	for _, t := range out.State.Steps {
		if t.Status == flow.StepSkipped {
			continue
		}
		began = append(began, t.Path)
		if next < len(want) && slices.Contains([]string{t.Path, t.ID(), t.Operation}, want[next]) {
			next++
		}
	}
	if next < len(want) {
		after := "the start"
		if next > 0 {
			after = want[next-1]
		}
		r.differ("order: %s did not begin after %s; the steps were %s", want[next], after,
			ace.Cut(strings.Join(began, ", "), 500))
	}
}
