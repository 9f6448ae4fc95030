package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"acescope/sources/detail"
	"acescope/sources/experiments"

	"acescope/engine/ace"
)

func TestExperiment(t *testing.T) {
	t.Parallel()
	e := open(t, t.TempDir(), newScripted())
	var lines strings.Builder
	for i := range 7 {
		prompt := "hello"
		if i == 3 {
			prompt = "fail-for-good"
		}
		fmt.Fprintf(&lines, "{\"context\":\"%s %d\",\"target\":\"%d\"}\n", prompt, i, 42+i%2)
	}
	ref, err := e.Artifacts.PutBytes(t.Context(), []byte(lines.String()), "application/jsonl")
	if err != nil {
		t.Fatal(err)
	}
	in := ace.ExperimentInput{ExperimentID: "exp", DatasetID: "seven", Dataset: ref, Tasks: 7,
		EvaluationPlan: ace.EvaluationPlan{Eval: &ref, EvalTasks: 3},
		Adapter:        ace.Online, Window: 3, Epochs: 1, Parallel: 2, Provider: "scripted", Model: "script"}
	runID, err := e.StartExperiment(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	ended := map[string]ace.Status{}
	books := map[string]bool{}
	state, err := experiments.Follow(t.Context(), e.Client, e.Namespace(), ace.ExperimentWorkflowID("exp"),
		runID, nil,
		func(_ ace.ExperimentInput, f experiments.Finished) {
			ended[f.Result.TaskID] = f.Status
			if f.Result.PlaybookHash != "" {
				books[f.Result.PlaybookHash] = true
			}
		})
	if err != nil || state.Status() != ace.Completed {
		t.Fatal(err, state)
	}
	p := state.Progress
	recordAs(t, e.Client, ace.ExperimentWorkflowID("exp"), "experiment")
	if got := p.Epochs[0]; got.Tasks != 7 || got.Failed != 1 || got.Correct+got.Wrong != 6 ||
		len(ended) != 7 || ended["exp-e1-0004"] != ace.Failed {
		t.Errorf("epoch %+v, ended %v", got, ended)
	}
	// Six tasks each add one bullet of their own: none may be lost to another that ran
	// beside it.
	book, err := e.Books.Get(t.Context(), p.After)
	if err != nil || len(book.Bullets) != 6 || p.Bullets != 6 || len(books) != 6 {
		t.Errorf("playbook %+v, %v; %d versions", book, err, len(books))
	}
	if len(p.Eval) != 2 || p.Eval[1].Correct != 2 || p.Eval[1].Tasks != 3 {
		t.Errorf("eval %+v", p.Eval)
	}
	d, err := detail.Read(t.Context(), e.Client, ace.ExperimentWorkflowID("exp"), runID)
	if err != nil || d.Experiment == nil || d.Experiment.Epochs[0].Tasks != 7 || len(d.Log) != 7 {
		t.Errorf("shown %+v, %v", d, err)
	}
}
