package flow

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"acescope/engine/temporal/operation"
)

const longFlow = `flow: long
inputs: {n: {type: integer}}
outputs:
  squares: ${{ steps.each.results }}
  wide: ${{ steps.wide.results }}
  total: ${{ vars.total }}
  sub: ${{ steps.sub.twice }}
  tries: ${{ steps.again.count }}
steps:
  - set: {total: 0}
  - id: each
    for_each: "[1, 2, 3, 4, 5]"
    steps:
      - {id: square, run: [square, "${{ item }}"]}
      - if: item % 2 == 1
        then:
          - {id: odd, run: [square, "${{ item + 1 }}"]}
          - set: {total: "${{ vars.total + int(steps.odd.stdout) }}"}
        else:
          - {id: even, run: [square, "1"]}
      - id: inner
        for_each: "[1, 2]"
        as: other
        steps: [{id: product, run: [square, "${{ item * other }}"]}]
        collect: ${{ steps.product.stdout }}
    collect: "${{ {'square': steps.square.stdout, 'inner': steps.inner.results} }}"
  - id: wide
    for_each: "[1, 2, 3, 4, 5, 6, 7]"
    at_once: 3
    steps: [{id: part, run: [square, "${{ item }}"]}]
    collect: ${{ int(steps.part.stdout) }}
  - id: again
    repeat: 10
    steps:
      - {id: try, run: [square, "2"]}
      - set: {total: "${{ vars.total + 1 }}"}
    until: vars.total > 59
  - {id: sub, flow: sub.yaml, with: {x: "${{ vars.total }}"}}
`

const subFlow = `flow: sub
inputs: {x: {type: integer}}
outputs: {twice: "${{ vars.y + inputs.x }}"}
steps:
  - set: {y: 0}
  - id: loop
    repeat: 3
    steps:
      - {id: add, run: [square, "1"]}
      - set: {y: "${{ vars.y + int(steps.add.stdout) }}"}
`

// square is the answer of a program that squares its argument.
func square(r operation.Request) (any, error) {
	var p Parameters
	if err := json.Unmarshal(r.Parameters, &p); err != nil {
		return nil, err
	}
	var n int
	if _, err := fmt.Sscan(p.Command.Args[1], &n); err != nil {
		return nil, err
	}
	return CommandResult{Stdout: fmt.Sprint(n * n)}, nil
}

// runChain runs a flow that continues as new after every few operations, and returns the result and the
// number of runs.
func runChain(t *testing.T, src Source, every int) (string, int) {
	t.Helper()
	in := Input{Name: "long", Digest: src.Digest(), Source: src, Language: Language,
		Inputs: json.RawMessage(`{"n": 1}`), Dir: "/"}
	for runs := 1; ; runs++ {
		var suite testsuite.WorkflowTestSuite
		env := suite.NewTestWorkflowEnvironment()
		env.RegisterWorkflowWithOptions(Run, workflow.RegisterOptions{Name: Workflow})
		operations := 0
		mock := new(operation.Mock)
		for _, step := range []string{"square", "odd", "even", "product", "part", "try", "add"} {
			mock.Step(step, square)
		}
		mock.Register(env)
		env.SetOnActivityCompletedListener(func(*activity.Info, converter.EncodedValue, error) {
			operations++
			env.SetContinueAsNewSuggested(operations >= every)
		})
		env.ExecuteWorkflow(Run, in)
		var again *workflow.ContinueAsNewError
		if err := env.GetWorkflowError(); errors.As(err, &again) {
			in = Input{}
			if err := converter.GetDefaultDataConverter().FromPayloads(again.Input, &in); err != nil {
				t.Fatal(err)
			}
			continue
		} else if err != nil {
			t.Fatal(err)
		}
		var r Result
		if err := env.GetWorkflowResult(&r); err != nil {
			t.Fatal(err)
		}
		out, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		return string(out), runs
	}
}

// TestContinueAsNew compares runs that continue as new after any number of operations with one that does not.
func TestContinueAsNew(t *testing.T) {
	src := Source{Main: "flow.yaml", Files: map[string]string{"flow.yaml": longFlow, "sub.yaml": subFlow}}
	if _, err := Parse(src); err != nil {
		t.Fatal(err)
	}
	want, _ := runChain(t, src, 1000)
	t.Log(want)
	for every := 1; every <= 12; every++ {
		got, runs := runChain(t, src, every)
		if got != want || runs < 3 {
			t.Errorf("continued after every %d operations, in %d runs:\n%s\nwant:\n%s", every, runs, got,
				want)
		}
	}
}
