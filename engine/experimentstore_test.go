package engine_test

import (
	"fmt"
	"testing"

	"acescope/sources/experiments"

	"acescope/engine/ace"
)

// TestStoreFollowsExperiments reads the list and the series of an experiment while it runs, at
// its end, and again from the stored data.
func TestStoreFollowsExperiments(t *testing.T) {
	t.Parallel()
	script := newScripted()
	e := open(t, t.TempDir(), script)
	s := watch(t, e)
	ref, err := e.Artifacts.PutBytes(t.Context(), []byte(`{"context":"hello 1","target":"42"}
{"context":"slow","target":"42"}
{"context":"fail-for-good","target":"1"}
`), "application/jsonl")
	if err != nil {
		t.Fatal(err)
	}
	id := ace.ExperimentWorkflowID("seen")
	if _, err := e.StartExperiment(t.Context(), ace.ExperimentInput{ExperimentID: "seen", DatasetID: "three",
		Dataset: ref, Tasks: 3,
		Adapter: ace.Offline, Epochs: 1, Parallel: 1, Provider: "scripted", Model: "script"}); err != nil {
		t.Fatal(err)
	}
	s.Experiments.Show([]string{id})
	s.Experiments.Look(true)
	<-script.reached
	until(t, s, func(snap *snapshot) error {
		x := snap.Experiments
		if x == nil || len(x.Rows) != 1 || x.Rows[0].Progress == nil || x.Rows[0].Status != ace.Running ||
			len(x.Series) != 1 || len(x.Series[0].Tasks) != 1 {
			return fmt.Errorf("one task has ended: %+v", x)
		}
		return nil
	})
	script.release <- struct{}{}
	whole := func(snap *snapshot) error {
		x := snap.Experiments
		if len(x.Series) != 1 || len(x.Series[0].Tasks) != 3 || x.Series[0].Close.IsZero() ||
			x.Rows[0].Status != ace.Completed || x.Rows[0].Progress == nil || x.Rows[0].Progress.Done() != 3 {
			return fmt.Errorf("not at its end: %+v", x)
		}
		return nil
	}
	first := until(t, s, whole).Experiments.Series[0]
	if r := first.Tasks[2]; r.TaskID != "seen-e1-0003" || r.Index != 2 || r.Status != ace.Failed ||
		r.Verdict != "" {
		t.Errorf("the last task is %+v", r)
	}
	s.Experiments.Look(false)
	s.Experiments.Show(nil)
	s.Experiments.Look(true)
	until(t, s, func(snap *snapshot) error {
		if n := len(snap.Experiments.Series); n != 0 {
			return fmt.Errorf("%d series though none is wanted", n)
		}
		return nil
	})
	s.Experiments.Show([]string{id})
	if again := until(t, s, whole).Experiments.Series[0]; again != first {
		t.Error("a closed series was read again")
	}
	read, err := experiments.ReadSeries(t.Context(), e.Client, id)
	if err != nil || len(read.Tasks) != 3 ||
		read.Progress.Epochs[0].Accuracy != first.Progress.Epochs[0].Accuracy {
		t.Errorf("read %+v, %v", read, err)
	}
	s.Experiments.Show([]string{"ace-experiment/nothing"})
	until(t, s, func(snap *snapshot) error {
		if x := snap.Experiments.Series; len(x) != 1 || x[0].Err == "" {
			return fmt.Errorf("an experiment that is not there has no error: %+v", x)
		}
		return nil
	})
}
