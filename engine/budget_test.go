package engine_test

import (
	"strings"
	"testing"

	"acescope/engine/ace"
	"acescope/sources/detail"
	"acescope/sources/experiments"
)

// An experiment with a budget stops before the call that it cannot pay: the open task ends as completed without the
// later phases, and the failed task counts what it spent.
func TestExperimentBudget(t *testing.T) {
	t.Parallel()
	e := open(t, t.TempDir(), newScripted()) // a generator costs $0.001
	lines := "{\"context\":\"hello\",\"target\":\"42\"}\n"
	ref, err := e.Artifacts.PutBytes(t.Context(), []byte(strings.Repeat(lines, 6)), "application/jsonl")
	if err != nil {
		t.Fatal(err)
	}
	in := ace.ExperimentInput{ExperimentID: "budget", DatasetID: "six", Dataset: ref, Tasks: 6, Adapter: ace.Offline,
		Epochs: 1, Parallel: 1, Provider: "scripted", Model: "script", MaxCostUSD: 0.0025}
	runID, err := e.StartExperiment(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	state, err := experiments.Follow(t.Context(), e.Client, e.Namespace(), ace.ExperimentWorkflowID("budget"), runID, nil,
		func(ace.ExperimentInput, experiments.Finished) {})
	if err != nil || state.Status() != ace.Completed {
		t.Fatal(err, state)
	}
	p := state.Progress
	if p.Epochs[0].Tasks != 2 || p.Usage.CostUSD != 0.003 || p.Stopped != "budget: $0.0030 of $0.0025 spent" {
		t.Errorf("%+v", p)
	}
	d, err := detail.Read(t.Context(), e.Client, ace.WorkflowID("budget-e1-0003"), "")
	if err != nil || d.Phase.Status != ace.Completed || d.Phase.Stopped != "budget: $0.0010 of $0.0005 spent" {
		t.Fatalf("%+v, %v", d, err)
	}
	for i, want := range []string{ace.StatusDone, ace.StatusNotReached, ace.StatusNotReached} {
		if got := d.Phase.Steps[i]; got.Status != want {
			t.Errorf("%+v", got)
		}
	}
}
