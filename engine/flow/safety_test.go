package flow

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"go.temporal.io/sdk/temporal"

	"acescope/engine/temporal/operation"
)

// TestFailures: how runs fail, by error type and message.
func TestFailures(t *testing.T) {
	const head = "flow: a\ninputs: {x: {}}\n"
	costs := map[string]any{"text": "t", "usage": map[string]any{"cost_usd": 2}}
	for name, c := range map[string]struct {
		text, input, kind, want string
	}{
		"flag": {"steps: [{id: a, run: [rm, '${{ inputs.x }}']}]\n", `"-rf"`, TypeUnsafe,
			`"-rf" begins with "-"`},
		"directory": {"steps: [{id: a, run: [ls], dir: '${{ inputs.x }}'}]\n", `"b/../../c"`, TypeUnsafe,
			"leaves the directory of the run"},
		"absolute directory": {"steps: [{id: a, run: [ls], dir: '${{ inputs.x }}'}]\n", `"/etc"`, TypeUnsafe,
			"leaves the directory"},
		"model as a flag": {"steps: [{id: a, agent: claude, prompt: p, model: '${{ inputs.x }}'}]\n",
			`"--yolo"`, TypeUnsafe,
			"would be read as a flag"},
		"not a list": {"steps: [{id: a, for_each: inputs.x, steps: [{wait: 1s}]}]\n", `"abc"`, TypeValue,
			"for_each needs a list, not a text"},
		"too many items": {"steps: [{id: a, for_each: inputs.x, max: 2, steps: [{set: {y: 1}}]}]\n",
			`[1, 2, 3]`, TypeLimit,
			"the list has 3 items, and the step allows 2"},
		"missing field": {"steps: [{set: {y: '${{ inputs.x.name }}'}}]\n", `{}`, "BadExpression",
			"flow.yaml:3:"},
		"endless expression": {"steps: [{set: {y: '${{ inputs.x.map(a, inputs.x.map(b, inputs.x.map(c, a + b + c))) }}'}}]\n",
			"[" + strings.Repeat("1,", 300) + "1]", "BadExpression", "cost limit"},
		"cost": {"limits: {cost_usd: 3}\nsteps:\n  - {id: a, repeat: 5, steps: [{id: b, prompt: p, provider: m}]}\n", `1`, TypeLimit,
			"the flow has cost $4.00, and its limit is $3.00"},
		"operations": {"limits: {operations: 2}\nsteps:\n  - {id: a, repeat: 5, steps: [{id: b, prompt: p, provider: m}]}\n", `1`,
			TypeLimit, "2 operations, its limit"},
		"exit code": {"steps: [{id: c, run: [make]}]\n", `1`, TypeExit,
			"make ended with exit code 2: no rule"},
		"fail": {"steps: [{fail: 'because of ${{ inputs.x }}'}]\n", `"me"`, TypeFailed, "because of me"},
		"bad output": {"outputs: {n: {value: '${{ inputs.x }}', type: integer}}\nsteps: [{set: {y: 1}}]\n",
			`"a"`, "BadExpression", "outputs of a"},
		"branch": {"steps:\n  - id: p\n    parallel: {l: [{id: c, run: [make]}], r: [{id: d, run: [make]}]}\n", `1`, TypeExit,
			"exit code 2"},
	} {
		t.Run(name, func(t *testing.T) {
			mock := new(operation.Mock).Step("b", costs).Step("c",
				map[string]any{"exit_code": 2, "stderr": "x\nno rule\n"})
			mock.Step("d", map[string]any{"exit_code": 2})
			_, _, err := runFlow(t, head+c.text, `{"x": `+c.input+`}`, mock)
			var app *temporal.ApplicationError
			if !errors.As(err, &app) || app.Type() != c.kind || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v\nwant %s: %s", err, c.kind, c.want)
			}
			if calls := mock.Calls(); c.kind == TypeUnsafe && len(calls) > 0 {
				t.Errorf("it was executed: %v", calls)
			}
		})
	}
}

// TestValuesAreNotRead: what is inserted into a text is never read as an expression, and after -- it may look
// like a flag.
func TestValuesAreNotRead(t *testing.T) {
	var args []string
	mock := new(operation.Mock).Step("a", func(r operation.Request) (any, error) {
		var p Parameters
		err := json.Unmarshal(r.Parameters, &p)
		args = p.Command.Args
		return map[string]any{"exit_code": 0}, err
	})
	_, _, err := runFlow(
		t, "flow: a\ninputs: {x: {}}\nsteps:\n  - {id: a, run: [echo, 'a ${{ inputs.x }}', --, '${{ inputs.x }}', '$${{ x']}\n",
		`{"x": "-${{ run.dir }}; $(id) `+"`id`"+`"}`, mock)
	if want := []string{"echo", "a -${{ run.dir }}; $(id) `id`", "--", "-${{ run.dir }}; $(id) `id`",
		"${{ x"}; err != nil ||
		strings.Join(args, "|") != strings.Join(want, "|") {
		t.Errorf("%q, %v", args, err)
	}
}

// TestOnError: a step that may fail leaves its error to later steps.
func TestOnError(t *testing.T) {
	mock := new(operation.Mock).Step("c", map[string]any{"exit_code": 2, "stderr": "no rule"})
	r, state, err := runFlow(t, `flow: a
outputs: {error: "${{ steps.c.error }}", code: "${{ steps.c.exit_code }}", other: "${{ steps.e.status }}"}
steps:
  - {id: c, run: [make], on_error: continue}
  - {id: e, if: steps.c.status == 'completed', run: [make]}
`, `{}`, mock)
	if err != nil {
		t.Fatal(err)
	}
	out, _ := json.Marshal(r.Outputs)
	if string(out) != `{"code":2,"error":"make ended with exit code 2: no rule","other":"skipped"}` ||
		state.Steps[0].Status != StepFailed || state.Steps[1].Status != StepSkipped {
		t.Errorf("%s %+v", out, state.Steps)
	}
}

// TestTimeLimit ends a run that waits for longer than the limit of its flow.
func TestTimeLimit(t *testing.T) {
	_, state, err := runFlow(t, "flow: a\nlimits: {time: 1h}\nsteps: [{id: ask, approve: 'Well?'}]\n", `{}`,
		new(operation.Mock))
	var app *temporal.ApplicationError
	if !errors.As(err, &app) || app.Type() != TypeLimit ||
		app.Message() != "the flow took longer than its limit of 1h0m0s" ||
		state.Steps[0].Status != StepCanceled {
		t.Errorf("%v, %+v", err, state)
	}
}
