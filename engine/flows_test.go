package engine_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/client"

	"acescope/engine"
	"acescope/engine/ace"
	"acescope/engine/flow"
	"acescope/engine/flow/flowfork"
	"acescope/engine/flow/flowtest"
	"acescope/engine/temporal/operation"
)

// flowRuns are flows whose runs the tests of engine/workflows replay, by the name of the history.
var flowRuns = map[string]string{
	// conditions, assignments, loops, the recorded time, random values, versions and the cache
	"flow-loop": `flow: loop
inputs: {names: {type: array}}
outputs: {said: "${{ steps.each.results }}", total: "${{ vars.total }}", at: "${{ vars.at }}", cached: "${{ steps.again.stdout }}"}
steps:
  - set: {total: 0, at: "${{ string(now) }}"}
  - {id: dice, random: {min: 1, max: 6}}
  - {id: change, version: loop-change}
  - id: each
    for_each: inputs.names
    as: name
    steps:
      - {id: say, run: [printf, "%s", "${{ name }}"]}
      - set: {total: "${{ vars.total + 1 }}"}
    collect: ${{ steps.say.stdout }}
  - id: until
    repeat: 5
    until: vars.total >= 4
    steps:
      - {id: again, run: [printf, same], cache: true}
      - set: {total: "${{ vars.total + 1 }}"}
  - if: steps.dice.value > 6
    then: [{fail: impossible}]
`,
	"flow-parallel": `flow: parallel
inputs: {names: {type: array}}
steps:
  - id: sides
    parallel:
      left: [{id: one, run: ["true"], timeout: 5s, attempts: 2}, {id: two, run: ["true"]}]
      right: [{id: three, run: ["true"]}]
  - {id: batch, for_each: "[1, 2, 3, 4, 5]", at_once: 2, steps: [{id: work, run: ["true"]}]}
`,
	"flow-approval": `flow: approval
inputs: {names: {type: array}}
outputs: {by: "${{ steps.ok.by }}", told: "${{ steps.go.data }}"}
steps:
  - {id: before, run: ["true"]}
  - {id: ok, approve: "Go on?"}
  - {id: go, wait: {signal: begin}}
  - {id: late, wait: {signal: never, timeout: 1s}}
  - {id: pause, wait: 1ms}
  - {id: after, run: ["true"]}
`,
	"flow-failed": `flow: failed
inputs: {names: {type: array}}
steps:
  - {id: tolerated, run: ["false"], on_error: continue}
  - {id: fatal, run: [test, "${{ steps.tolerated.status }}", "=", completed]}
`,
	// too many events for one run
	"flow-continued": `flow: continued
inputs: {names: {type: array}}
outputs: {count: "${{ steps.each.count }}"}
steps:
  - id: each
    for_each: "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]"
    steps:
      - {id: inner, for_each: "HUNDRED", at_once: 100, steps: [{id: nap, wait: 1ms}]}
  - {id: end, run: ["true"]}
`,
}

func startFlow(t *testing.T, e *engine.Engine, name, text string) client.WorkflowRun {
	t.Helper()
	text = strings.ReplaceAll(text, "HUNDRED", "["+strings.Repeat("0, ", 99)+"0]")
	src := flow.Source{Main: "flow.yaml", Files: map[string]string{"flow.yaml": text}}
	f, err := flow.Parse(src)
	if err != nil {
		t.Fatal(err)
	}
	in := flow.Input{Name: f.Name, Source: src, Dir: t.TempDir(),
		Inputs: json.RawMessage(`{"names":["Ann","Bo"]}`)}
	runID, err := engine.StartFlow(t.Context(), e, name, in)
	if err != nil {
		t.Fatal(err)
	}
	return e.Client.GetWorkflow(t.Context(), flow.IDPrefix+name, runID)
}

// TestFlows runs flows on a real server, and records their histories for the tests of engine/workflows. Each
// run equals its simulation with the recorded results.
func TestFlows(t *testing.T) {
	t.Parallel()
	e := open(t, t.TempDir(), newScripted())
	results := map[string]flow.Result{}
	for name, text := range flowRuns {
		run := startFlow(t, e, name, text)
		if name == "flow-approval" {
			answerFlow(t, e, name)
		}
		var r flow.Result
		err := run.Get(t.Context(), &r)
		if f := operation.FailureOf(err); (name == "flow-failed") != (f != nil && f.Type == flow.TypeExit) {
			t.Fatalf("%s: %v", name, err)
		}
		results[name] = r
		recordAs(t, e.Client, flow.IDPrefix+name, name)
		if name == "flow-continued" {
			continue
		}
		h := eventsOf(t, e.Client, flow.IDPrefix+name)
		report, err := flowtest.TestRecorded(flow.Source{Main: "flow.yaml",
			Files: map[string]string{"flow.yaml": text}}, h.Events)
		if err != nil || !report.Passed() {
			t.Errorf("%s: %q, %v", name, report.Differences, err)
		}
	}
	loop := results["flow-loop"]
	if fmt.Sprint(loop.Outputs["said"], loop.Outputs["total"]) != "[Ann Bo] 4" ||
		loop.Outputs["cached"] != "same" || loop.Operations != 4 {
		t.Errorf("%+v", loop)
	}
	if got := results["flow-approval"].Outputs; fmt.Sprint(got) != "map[by:Ann told:map[to:all]]" {
		t.Errorf("%v", got)
	}
	recordedFlow(t, e)
	timeouts(t, e)
	continuedFlow(t, e, results["flow-continued"])
	forkedFlow(t, e, loop)
}

// answerFlow approves the run, and sends it the signal that it waits for.
func answerFlow(t *testing.T, e *engine.Engine, name string) {
	t.Helper()
	eventually(t, func() error {
		_, err := engine.DecideFlow(t.Context(), e, flow.IDPrefix+name, "",
			flow.Decision{Approved: true, By: "Ann"})
		return err
	})
	if err := e.Signal(t.Context(), flow.IDPrefix+name, "", "begin", []byte(`{"to":"all"}`)); err != nil {
		t.Fatal(err)
	}
}

// recordedFlow checks the operation events of a run: each side effect is recorded, a repeated one comes from
// the cache, and the time, the random value, the variables and the decision on the version are in the
// history.
func recordedFlow(t *testing.T, e *engine.Engine) {
	t.Helper()
	count := map[operation.EventType]int{}
	var cached []string
	for _, ev := range operation.Project(eventsOf(t, e.Client, flow.IDPrefix+"flow-loop").Events) {
		count[ev.Type]++
		if ev.Cached {
			cached = append(cached, ev.OperationID)
		}
	}
	if !slices.Equal(cached, []string{"op.again.until/1.1"}) {
		t.Errorf("from the cache: %q", cached)
	}
	want := map[operation.EventType]int{operation.OperationStarted: 4, operation.OperationCompleted: 4,
		operation.TimeAccessed: 1, operation.RandomGenerated: 1, operation.VersionDecision: 1,
		operation.VariableSet: 6}
	delete(count, operation.StepChanged)
	if !reflect.DeepEqual(count, want) {
		t.Errorf("%v, want %v", count, want)
	}
}

// timeouts checks that a step has its own timeout and number of attempts, or those of its type.
func timeouts(t *testing.T, e *engine.Engine) {
	t.Helper()
	ofType := operation.Defaults(operation.Action)
	for _, ev := range eventsOf(t, e.Client, flow.IDPrefix+"flow-parallel").Events {
		a := ev.GetActivityTaskScheduledEventAttributes()
		if a == nil {
			continue
		}
		timeout, attempts := ofType.Timeout, ofType.Retry.MaximumAttempts
		if a.GetActivityId() == "op.one.sides/left.1" {
			timeout, attempts = 5*time.Second, 2
		}
		if got := a.GetStartToCloseTimeout().AsDuration(); got != timeout ||
			a.GetRetryPolicy().GetMaximumAttempts() != attempts {
			t.Errorf("%s: %s, %d attempts", a.GetActivityId(), got, a.GetRetryPolicy().GetMaximumAttempts())
		}
	}
}

// continuedFlow checks a run that continued as new: nothing is lost between its parts.
func continuedFlow(t *testing.T, e *engine.Engine, r flow.Result) {
	t.Helper()
	if fmt.Sprint(r.Outputs) != "map[count:12]" {
		t.Errorf("%v", r.Outputs)
	}
	in, ok := flow.InputOf(eventsOf(t, e.Client, flow.IDPrefix+"flow-continued").Events[0])
	if !ok || in.Carried == nil || in.Carried.Operation.Generation < 1 {
		t.Errorf("the run did not continue as new: %+v", in.Carried)
	}
}

// forkedFlow forks the loop before its second iteration: what is before it is reused, with its time and its
// random value.
func forkedFlow(t *testing.T, e *engine.Engine, of flow.Result) {
	t.Helper()
	id := flow.IDPrefix + "flow-loop"
	p, err := flowfork.New(id, eventsOf(t, e.Client, id).Events, flowfork.Point{Step: "each/1/say"},
		flowfork.Changes{Inputs: map[string]json.RawMessage{"names": json.RawMessage(`["Ann","Cy"]`)}})
	if err != nil {
		t.Fatal(err)
	}
	fork, runID, err := engine.StartFlowFork(t.Context(), e, p, "test")
	if err != nil || fork != "flow-loop~f1" {
		t.Fatal(fork, err)
	}
	var r flow.Result
	if err := e.Client.GetWorkflow(t.Context(), flow.IDPrefix+fork, runID).Get(t.Context(), &r); err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(r.Outputs["said"]) != "[Ann Cy]" || r.Outputs["at"] != of.Outputs["at"] {
		t.Errorf("%v of %v", r.Outputs, of.Outputs)
	}
	var executed, planned []string
	for _, ev := range operation.Project(eventsOf(t, e.Client, flow.IDPrefix+fork).Events) {
		if ev.Type == operation.OperationStarted {
			executed = append(executed, ev.OperationID)
		}
	}
	for _, op := range p.Rerun {
		planned = append(planned, op.ID)
	}
	want := []string{"op.say.each/1.1", "op.again.until/0.1", "op.again.until/1.1"}
	if !slices.Equal(executed, want) || !slices.Equal(planned, want) ||
		!slices.Equal(p.Reused, []string{"op.say.each/0.1"}) {
		t.Errorf("executed %q, planned %q, reused %q", executed, planned, p.Reused)
	}
	recordAs(t, e.Client, flow.IDPrefix+fork, "flow-fork")
	if p.Input.Fork.Changed["inputs.names"] != (ace.ForkChange{From: `["Ann","Bo"]`, To: `["Ann","Cy"]`}) {
		t.Errorf("%v", p.Input.Fork.Changed)
	}
}
