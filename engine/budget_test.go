package engine_test

import (
	"context"
	"strings"
	"testing"

	"acescope/engine/ace"
	"acescope/engine/ace/calls"
	"acescope/engine/learning/model"
	"acescope/engine/learning/playbook"
	"acescope/sources/detail"
	"acescope/sources/experiments"
)

// An experiment with a budget stops before the call that it cannot pay: the open task ends as completed
// without the later phases, and the failed task counts what it spent.
func TestExperimentBudget(t *testing.T) {
	t.Parallel()
	e := open(t, t.TempDir(), newScripted()) // a generator costs $0.001
	lines := "{\"context\":\"hello\",\"target\":\"42\"}\n"
	ref, err := e.Artifacts.PutBytes(t.Context(), []byte(strings.Repeat(lines, 6)), "application/jsonl")
	if err != nil {
		t.Fatal(err)
	}
	in := ace.ExperimentInput{ExperimentID: "budget", DatasetID: "six", Dataset: ref, Tasks: 6,
		Adapter: ace.Offline,
		Epochs:  1, Parallel: 1, Provider: "scripted", Model: "script",
		ExperimentBounds: ace.ExperimentBounds{MaxCostUSD: 0.0025}}
	runID, err := e.StartExperiment(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	state, err := experiments.Follow(t.Context(), e.Client, e.Namespace(), ace.ExperimentWorkflowID("budget"),
		runID, nil,
		func(ace.ExperimentInput, experiments.Finished) {})
	if err != nil || state.Status() != ace.Completed {
		t.Fatal(err, state)
	}
	p := state.Progress
	if p.Epochs[0].Tasks != 2 || p.Usage.CostUSD != 0.003 || p.Stopped != "budget: $0.0030 of $0.0025 spent" {
		t.Errorf("%+v", p)
	}
	d, err := detail.Read(t.Context(), e.Client, ace.WorkflowID("budget-e1-0003"), "")
	if err != nil || d.Phase.Status != ace.Completed ||
		d.Phase.Stopped != "budget: $0.0010 of $0.0005 spent" {
		t.Fatalf("%+v, %v", d, err)
	}
	for i, want := range []string{ace.StatusDone, ace.StatusNotReached, ace.StatusNotReached} {
		if got := d.Phase.Steps[i]; got.Status != want {
			t.Errorf("%+v", got)
		}
	}
}

// flaky fails the first time that its generator is asked, after a request that cost something.
type flaky struct {
	*scripted
	budgets []*ace.Budget // of each attempt
}

func (f *flaky) Generate(
	ctx context.Context, in ace.GeneratorInput, book *playbook.Playbook,
) (ace.GeneratorResult, error) {
	f.budgets = append(f.budgets, in.Task.Budget)
	u := ace.Usage{InputTokens: 5}
	calls.RecorderOf(ctx).Add(ace.ModelCall{Provider: "flaky", Request: ace.ModelRequest{Model: "m"},
		Response: &ace.ModelResponse{Usage: u}})
	if len(f.budgets) == 1 {
		return ace.GeneratorResult{StepReport: ace.StepReport{Usage: &u}},
			model.Errorf(model.NoKey, "no key yet")
	}
	r, err := f.scripted.Generate(ctx, in, book)
	r.Usage = &u
	return r, err
}

// The requests of a failed attempt stay on record, and their usage counts: in the step, in the run, and in
// the budget of the next attempt.
func TestAttemptsAddUp(t *testing.T) {
	t.Parallel()
	p := &flaky{scripted: newScripted()}
	e := open(t, t.TempDir(), p)
	in := task("attempts", "hello", "42")
	in.Budget = &ace.Budget{Tokens: 1000}
	if r, err := result(t, e, in); err != nil || r.Verdict != ace.Correct {
		t.Fatalf("%+v, %v", r, err)
	}
	d, err := detail.Read(t.Context(), e.Client, ace.WorkflowID("attempts"), "")
	if err != nil {
		t.Fatal(err)
	}
	st := d.Phase.Steps[0]
	if st.Usage == nil || st.Usage.InputTokens != 10 || st.Calls == nil || st.Calls.Requests != 2 {
		t.Errorf("%+v %+v", st.Usage, st.Calls)
	}
	if len(p.budgets) != 2 || p.budgets[0].Tokens != 1000 || p.budgets[1].Tokens != 995 {
		t.Errorf("%+v", p.budgets)
	}
}

// What a failed item of an evaluation cost counts too.
func TestEvaluationAttemptsAddUp(t *testing.T) {
	t.Parallel()
	p := &flaky{scripted: newScripted()}
	e := open(t, t.TempDir(), p)
	ref, err := e.Artifacts.PutBytes(t.Context(), []byte("{\"context\":\"hello\",\"target\":\"42\"}\n"),
		"application/jsonl")
	if err != nil {
		t.Fatal(err)
	}
	in := ace.ExperimentInput{ExperimentID: "again", DatasetID: "one",
		EvaluationPlan: ace.EvaluationPlan{EvalID: "one", Eval: &ref, EvalTasks: 1},
		Adapter:        ace.Offline, Provider: "scripted", Model: "script", Parallel: 1,
		ExperimentBounds: ace.ExperimentBounds{MaxTokens: 1000},
		Protocol:         ace.Protocol{NoSkills: true}}
	runID, err := e.StartExperiment(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	var progress ace.ExperimentProgress
	id := ace.ExperimentWorkflowID("again")
	if err := e.Client.GetWorkflow(t.Context(), id, runID).Get(t.Context(), &progress); err != nil {
		t.Fatal(err)
	}
	if progress.Usage.InputTokens != 10 || len(p.budgets) != 2 || p.budgets[1].Tokens != 995 {
		t.Errorf("%+v, %+v", progress.Usage, p.budgets)
	}
}
