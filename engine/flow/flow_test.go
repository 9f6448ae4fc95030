package flow

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"acescope/engine/temporal/operation"
)

func source(text string) Source {
	return Source{Main: "flow.yaml", Files: map[string]string{"flow.yaml": text}}
}

// runFlow runs a flow in Temporal's test environment, with the mock in place of a worker.
func runFlow(t *testing.T, text string, inputs string, mock *operation.Mock) (*Result, State, error) {
	t.Helper()
	src := source(text)
	if _, err := Parse(src); err != nil {
		t.Fatal(err)
	}
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestWorkflowEnvironment()
	mock.Register(env)
	env.ExecuteWorkflow(Run, Input{Name: "test", Digest: src.Digest(), Source: src, Language: 1,
		Inputs: json.RawMessage(inputs), Dir: "/work"})
	var state State
	if v, err := env.QueryWorkflow(QueryFlow); err != nil {
		t.Fatal(err)
	} else if err := v.Get(&state); err != nil {
		t.Fatal(err)
	}
	if err := env.GetWorkflowError(); err != nil {
		return nil, state, err
	}
	var r Result
	if err := env.GetWorkflowResult(&r); err != nil {
		t.Fatal(err)
	}
	return &r, state, nil
}

const example = `flow: example
inputs:
  names: {type: array, items: {type: string}}
  limit: {type: integer, default: 2}
outputs:
  said: {value: "${{ steps.each.results }}", type: array}
  total: ${{ vars.total + 1 }}
steps:
  - set: {total: "${{ inputs.limit }}"}
  - id: each
    for_each: inputs.names
    as: name
    steps:
      - id: greet
        prompt: Greet ${{ name }}, number ${{ name_index + 1 }} of ${{ size(inputs.names) }}.
    collect: ${{ steps.greet.text }}
  - if: vars.total > 1
    then:
      - id: note
        run: [echo, "${{ steps.each.count }}"]
    else:
      - fail: too few
  - id: sides
    parallel:
      left:
        - {id: one, run: [test]}
      right:
        - {id: two, run: [test]}
  - set: {total: "${{ vars.total + steps.one.exit_code + steps.two.exit_code }}"}
`

func TestRun(t *testing.T) {
	done := map[string]any{"exit_code": 0}
	mock := new(operation.Mock).Step("note", done).Step("one", done).Step("two", done)
	mock.Step("greet", func(r operation.Request) (any, error) {
		var p Parameters
		if err := json.Unmarshal(r.Parameters, &p); err != nil {
			return nil, err
		}
		return map[string]any{"text": p.Prompt.Prompt, "usage": map[string]any{"cost_usd": 0.5}}, nil
	})
	r, state, err := runFlow(t, example, `{"names": ["Ann", "Bo"]}`, mock)
	if err != nil {
		t.Fatal(err)
	}
	out, _ := json.Marshal(r.Outputs)
	if string(out) != `{"said":["Greet Ann, number 1 of 2.","Greet Bo, number 2 of 2."],"total":3}` {
		t.Error(string(out))
	}
	if r.Usage.CostUSD != 1 || r.Operations != 5 {
		t.Errorf("%+v", r)
	}
	var lines []string
	for _, s := range state.Steps {
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s %s %s", s.Path, s.Status, s.Operation)))
	}
	want := `set_1 completed
each completed
each/0/greet completed op.greet.each/0.1
each/1/greet completed op.greet.each/1.1
if_1 completed
note completed op.note.-.1
sides completed
sides/left/one completed op.one.sides/left.1
sides/right/two completed op.two.sides/right.1
set_2 completed`
	if got := strings.Join(lines, "\n"); got != want {
		t.Errorf("steps:\n%s\nwant:\n%s", got, want)
	}
}

func TestProblems(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"empty":    {"", "flow.yaml:1:1: the file is empty"},
		"no steps": {"flow: a\n", `flow.yaml:1:1: a flow needs the field "steps"`},
		"no kind":  {"flow: a\nsteps:\n  - id: x\n", "flow.yaml:3:5: the step does not say what to do"},
		"two kinds": {"flow: a\nsteps:\n  - {id: x, run: [a], wait: 1s}\n",
			"a step does one thing, not run and wait"},
		"unknown": {"flow: a\nsteps:\n  - {id: x, run: [a], timout: 1s}\n", `did you mean "timeout"?`},
		"later": {"flow: a\nsteps:\n  - {id: x, run: [a, '${{ steps.y.stdout }}']}\n  - {id: y, run: [b]}\n",
			`flow.yaml:3:26: step "y" (line 4) has no result here`},
		"undeclared": {"flow: a\nsteps:\n  - {id: x, run: [a, '${{ inputs.b }}']}\n", "undefined field 'b'"},
		"env": {"flow: a\nsteps:\n  - {id: x, run: [a, '${{ env.KEY }}']}\n",
			"expressions cannot read the environment"},
		"wrong type": {"flow: a\ninputs: {n: {type: string}}\nsteps:\n  - {id: x, for_each: inputs.n, steps: [{wait: 1s}]}\n",
			`the expression "inputs.n" is a string where a list(dyn) is needed`},
		"part of an expression": {"flow: a\nsteps:\n  - {wait: 1s, if: \"${{ run.dir }} == 1\"}\n",
			"not a text with expressions"},
		"unclosed": {"flow: a\nsteps:\n  - {id: x, prompt: \"${{ run.dir \"}\n",
			"is not closed with }}"},
		"shell": {"flow: a\nsteps:\n  - {id: x, run: rm -rf /}\n", "no shell reads it"},
		"program of a result": {"flow: a\nsteps:\n  - {id: x, run: [a]}\n  - {id: y, run: '${{ steps.x.json }}'}\n",
			"a list that the caller of the flow gives"},
		"program of a text": {"flow: a\ninputs: {c: {type: string}}\nsteps:\n  - {id: y, run: '${{ inputs.c }}'}\n",
			`the expression " inputs.c " is a string where a list(dyn) is needed`},
		"colon": {"flow: a\ndescription: do: it\n",
			`flow.yaml:2:1: not YAML: mapping values are not allowed in this context; put quotes`},
		"field":      {"flow: a\nsteps:\n  - {id: x, run: [a]}\n  - {id: y, run: [a], if: steps.x.exitcode == 0}\n", `did you mean "exit_code"?`},
		"assignment": {"flow: a\nsteps:\n  - {id: x, run: [a], if: 'run.dir = 1'}\n", "== compares"},
		"braces": {"flow: a\nsteps:\n  - {id: x, run: [a], if: '{{ run.dir == 1 }}'}\n",
			"this field needs no braces"},
		"short schema": {"flow: a\ninputs: {n: string}\nsteps: [{wait: 1s}]\n",
			`flow.yaml:2:13: the input "n" needs a JSON Schema, not "string"; such as {type: string}`},
		"bad schema": {"flow: a\nsteps: [{id: x, prompt: a, schema: {type: objct}}]\n",
			"schema: $.answer.type: "},
		"exit codes": {"flow: a\nsteps:\n  - {id: x, run: [a], allowed_exit_codes: []}\n",
			"write any to allow all"},
		"permission": {"flow: a\nsteps:\n  - {id: x, agent: claude, prompt: a, permission: root}\n",
			`permission "root" not found`},
		"agent": {"flow: a\nsteps:\n  - {id: x, agent: clod, prompt: a}\n", `agent "clod" not found`},
		"program": {"flow: a\nsteps:\n  - {id: x, run: [\"${{ run.dir }}\"]}\n",
			"the program must not depend on expressions"},
		"anchor":  {"flow: a\nsteps: &s\n  - {wait: 1s}\n", "anchors and aliases are not supported"},
		"outside": {"flow: a\nsteps:\n  - {id: x, flow: ../b.yaml}\n", "leaves the directory of the flow"},
		"cycle": {"flow: a\nsteps:\n  - {id: x, flow: flow.yaml}\n",
			"the flow includes itself: flow.yaml → flow.yaml"},
		"duplicate": {"flow: a\nsteps:\n  - {id: x, run: [a]}\n  - {id: x, run: [a]}\n", "line 3 has it too"},
		"loop item": {"flow: a\nsteps:\n  - {id: x, for_each: '[1]', steps: [{wait: 1s}]}\n  - {id: y, run: [a, '${{ item }}']}\n",
			`"item" is not an item of an enclosing loop`},
		"hidden": {"flow: a\nsteps:\n  - {id: x, prompt: \"a\u202eb\"}\n", "bidirectional character"},
		"large":  {"flow: a\n# " + strings.Repeat("x", MaxSource), "at most 256 KB are allowed"},
		"schema": {"flow: a\ninputs: {n: {type: strin}}\nsteps: [{wait: 1s}]\n", "inputs: "},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse(source(c.text))
			var problems Problems
			if !errors.As(err, &problems) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v\nwant %s", err, c.want)
			}
		})
	}
}

// TestProgramOfSubFlow: a sub-flow's program may come from the caller of the run, never from a result.
func TestProgramOfSubFlow(t *testing.T) {
	inner := "flow: inner\ninputs: {check: {type: array}}\nsteps: [{id: c, run: '${{ inputs.check }}'}]\n"
	for with, want := range map[string]string{
		"[make, test]":                    "",
		"${{ inputs.check }}":             "",
		"${{ steps.x.json }}":             `the sub-flow runs the input "check" as a program`,
		"[make, '${{ steps.x.stdout }}']": `the sub-flow runs the input "check" as a program`,
	} {
		outer := "flow: outer\ninputs: {check: {type: array, default: []}}\nsteps:\n  - {id: x, run: [a]}\n" +
			"  - {id: s, flow: inner.yaml, with: {check: " + quoted(with) + "}}\n"
		f, err := Parse(Source{Main: "flow.yaml", Files: map[string]string{"flow.yaml": outer,
			"inner.yaml": inner}})
		switch {
		case want != "":
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v", with, err)
			}
		case err != nil || f.programs["check"] != strings.Contains(with, "inputs"):
			t.Errorf("%s: %v", with, err)
		}
	}
}

func quoted(value string) string {
	if strings.HasPrefix(value, "$") {
		return "\"" + value + "\""
	}
	return value
}

const named = `flow: named
inputs: {check: {type: array, items: {type: string}}, agent: {type: string}}
outputs: {code: "${{ steps.check.exit_code }}", ref: "${{ steps.check.stdout_ref }}", asked: "${{ steps.ask.session_id }}"}
steps:
  - id: ask
    name: "task\n  ${{ inputs.agent }}"
    agent: ${{ inputs.agent }}
    permission: ${{ 'plan' }}
    prompt: hello
  - {id: check, run: "${{ inputs.check }}", allowed_exit_codes: any}
  - {fail: no}
`

// TestMissingResults: the error of a step that reads what does not exist says how to read it.
func TestMissingResults(t *testing.T) {
	for _, c := range []string{"steps.x.stdout", "vars.later"} {
		text := "flow: a\nsteps:\n  - {id: x, if: 'false', run: [a]}\n  - set: {y: \"${{ " + c +
			" }}\"}\n  - set: {later: 1}\n"
		_, _, err := runFlow(t, text, `{}`, new(operation.Mock))
		if err == nil || !strings.Contains(err.Error(), "no such key") ||
			!strings.Contains(err.Error(), "orValue") {
			t.Errorf("%s: %v", c, err)
		}
	}
}

// TestNamed: steps have names, programs and agents may be inputs, results have all fields, and a flow that
// fails on purpose has outputs.
func TestNamed(t *testing.T) {
	var calls []Parameters
	note := func(result map[string]any) func(operation.Request) (any, error) {
		return func(r operation.Request) (any, error) {
			var p Parameters
			err := json.Unmarshal(r.Parameters, &p)
			calls = append(calls, p)
			return result, err
		}
	}
	mock := new(operation.Mock).Step("ask", note(map[string]any{"success": true})).Step("check",
		note(map[string]any{"exit_code": 3}))
	_, state, err := runFlow(t, named, `{"check": ["make", "-k"], "agent": "codex"}`, mock)
	var failure *temporal.ApplicationError
	var r Result
	if !errors.As(err, &failure) || failure.Type() != TypeFailed || failure.Details(&r) != nil {
		t.Fatal(err)
	}
	if out, _ := json.Marshal(r.Outputs); string(out) != `{"asked":"","code":3,"ref":null}` {
		t.Error(string(out))
	}
	if len(calls) != 2 || calls[0].Agent.Provider != "codex" || calls[0].Agent.PermissionMode != "plan" ||
		strings.Join(calls[1].Command.Args, " ") != "make -k" {
		t.Errorf("%+v", calls)
	}
	if s := state.Steps[0]; s.Name != "task codex" || s.Status != StepCompleted {
		t.Errorf("%+v", s)
	}
	for inputs, want := range map[string]string{
		`{"check": [], "agent": "codex"}`:   "is not a list of a program and its arguments",
		`{"check": ["a"], "agent": "clod"}`: `agent "clod" not found`,
	} {
		if _, _, err := runFlow(t, named, inputs, mock); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", inputs, err)
		}
	}
}

// TestNumbersKeepTheirTypes: JSON writes 1.0 as 1, and expressions cannot add an integer to a decimal number.
func TestNumbersKeepTheirTypes(t *testing.T) {
	text := "flow: a\ninputs: {rate: {type: number}}\noutputs: {sum: \"${{ vars.sum }}\"}\nsteps:\n" +
		"  - set: {sum: \"${{ inputs.rate + 0.5 }}\"}\n  - {id: ask, provider: x, prompt: hi}\n" +
		"  - set: {sum: \"${{ vars.sum + steps.ask.cost_usd }}\"}\n"
	mock := new(operation.Mock).Step("ask", map[string]any{"text": "", "cost_usd": 1})
	r, _, err := runFlow(t, text, `{"rate": 2}`, mock)
	if err != nil || r.Outputs["sum"] != 3.5 {
		t.Errorf("%v, %v", r, err)
	}
	before := frame{Next: 2, Vars: map[string]any{"cost": 3.0, "n": int64(3),
		"deep": []any{map[string]any{"x": -0.5, "y": 1e300}}},
		Items: []any{1.0, "a", nil}, Steps: map[string]any{"s": map[string]any{"d": 0.0}}}
	data, err := json.Marshal(Carried{Frames: map[string]*frame{"p": &before}})
	if err != nil {
		t.Fatal(err)
	}
	var c Carried
	if err := json.Unmarshal(data, &c); err != nil {
		t.Fatal(err)
	}
	x := execution{frames: map[string]*frame{}, signals: map[string][]json.RawMessage{}}
	x.restore(&c)
	if after := x.frames["p"]; !reflect.DeepEqual(*after, before) {
		t.Errorf("%#v\n%#v", *after, before)
	}
}

// TestMapsAreOrdered: Go's maps iterate in another order in each replay.
func TestMapsAreOrdered(t *testing.T) {
	text := "flow: a\ninputs: {m: {type: object}}\noutputs: {keys: \"${{ inputs.m.map(k, k) }}\", own: \"${{ {'b': 1, 'a': 2, 'c': 3}.map(k, k) }}\"}\n" +
		"steps: [{wait: 0s}]\n"
	text = strings.Replace(text, "wait: 0s", "set: {a: 1}", 1)
	for range 20 {
		r, _, err := runFlow(t, text, `{"m": {"z": 1, "y": 2, "x": 3, "w": 4, "v": 5}}`, new(operation.Mock))
		if err != nil {
			t.Fatal(err)
		}
		out, _ := json.Marshal(r.Outputs)
		if string(out) != `{"keys":["v","w","x","y","z"],"own":["a","b","c"]}` {
			t.Fatal(string(out))
		}
	}
}

// TestFailedStep: the message of a failed run names its step.
func TestFailedStep(t *testing.T) {
	_, _, err := runFlow(t, "flow: a\nsteps:\n  - {id: publish, fail: no}\n", "{}", new(operation.Mock))
	if err == nil {
		t.Fatal("the run completed")
	}
	var failure *temporal.ApplicationError
	if !errors.As(err, &failure) || FailedStep(failure.Message()) != "publish" {
		t.Errorf("%v", err)
	}
	for _, message := range []string{"", "step ", "step a b (x): y", "no step (x)"} {
		if id := FailedStep(message); id != "" {
			t.Errorf("%q names %q", message, id)
		}
	}
}
