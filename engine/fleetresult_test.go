package engine_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"go.temporal.io/api/workflowservice/v1"

	"acescope/engine"
	"acescope/engine/ace"
	"acescope/sources/experiments"
)

// fleetResult is what an experiment gave.
type fleetResult struct {
	progress ace.EpochResult
	playbook string
	answers  map[string]string // answer and verdict by task
}

// sequentialExperiment runs tasks one after another on serving processes, and calls disturb after each with the
// number of those that ended.
func sequentialExperiment(t *testing.T, machines int,
	disturb func(e *engine.Engine, store string, first *process, ended int)) fleetResult {
	t.Helper()
	newCluster(t)
	const tasks = 10
	dir := filepath.Join(t.TempDir(), "store")
	var serving []*process
	for range machines {
		p := startProgram(t, nil, "worker", workerConfig{Dir: t.TempDir(), Store: "file://" + dir})
		serving = append(serving, p.waitLine("serving"))
	}
	e := openEngine(t, engine.Options{DataDir: t.TempDir(), Remote: &engine.Remote{}})
	var lines strings.Builder
	for i := range tasks {
		fmt.Fprintf(&lines, "{\"context\":\"How much is %d + %d?\",\"target\":\"%d\"}\n", i, i%3, i+i%3)
	}
	ref, err := e.Artifacts.PutBytes(t.Context(), []byte(lines.String()), "application/jsonl")
	if err != nil {
		t.Fatal(err)
	}
	in := ace.ExperimentInput{ExperimentID: "sequential", DatasetID: "sums", Dataset: ref, Tasks: tasks,
		Adapter: ace.Online, Window: 1, Epochs: 1, Parallel: 1, Provider: "builtin", Model: "rules", PaceMS: 100}
	runID, err := e.StartExperiment(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	result := fleetResult{answers: map[string]string{}}
	state, err := experiments.Follow(t.Context(), e.Client, e.Namespace(),
		ace.ExperimentWorkflowID(in.ExperimentID), runID, nil,
		func(_ ace.ExperimentInput, f experiments.Finished) {
			result.answers[f.WorkflowID] = f.Result.Answer + " " + string(f.Verdict)
			disturb(e, dir, serving[0], len(result.answers))
		})
	if err != nil || state.Status() != ace.Completed {
		t.Fatal(err, state)
	}
	result.progress, result.playbook = state.Progress.Epochs[0], state.Progress.After
	return result
}

// retries returns nil once an open run, the experiment or its task, tries a step again.
func retries(t *testing.T, e *engine.Engine) error {
	open, err := e.Client.ListWorkflow(t.Context(), &workflowservice.ListWorkflowExecutionsRequest{
		Query: "ExecutionStatus = 'Running'"})
	if err != nil {
		return err
	}
	for _, info := range open.GetExecutions() {
		d, err := e.Client.DescribeWorkflowExecution(t.Context(), info.GetExecution().GetWorkflowId(), "")
		if err != nil {
			return err
		}
		for _, a := range d.GetPendingActivities() {
			if a.GetAttempt() > 1 {
				return nil
			}
		}
	}
	return errors.New("no step is tried again")
}

// TestMachinesGiveTheSameResult checks that an experiment whose tasks follow one another gives the same answers
// and the same playbook on one machine and on two, of which one is killed or the store is away for a while.
func TestMachinesGiveTheSameResult(t *testing.T) {
	want := sequentialExperiment(t, 1, func(*engine.Engine, string, *process, int) {})
	disturbances := map[string]func(e *engine.Engine, store string, first *process, ended int){
		"killed": func(_ *engine.Engine, _ string, first *process, ended int) {
			if ended == 3 {
				first.end()
			}
		},
		"store away": func(e *engine.Engine, store string, _ *process, ended int) {
			if ended != 3 {
				return
			}
			if err := os.Rename(store, store+"-away"); err != nil {
				t.Fatal(err)
			}
			if err := poll(func() error { return retries(t, e) }); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(store+"-away", store); err != nil {
				t.Fatal(err)
			}
		},
	}
	for name, disturb := range disturbances {
		t.Run(name, func(t *testing.T) {
			if got := sequentialExperiment(t, 2, disturb); !reflect.DeepEqual(got, want) {
				t.Errorf("got  %+v\nwant %+v", got, want)
			}
		})
	}
}
