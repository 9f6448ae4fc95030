package sources

import (
	"testing"

	"acescope/engine/ace"
	"acescope/sources/detail"
	"acescope/sources/historytest"
)

// A run that was continued as new reports that and its successor: for a task, an experiment and others.
func TestContinuedRun(t *testing.T) {
	for _, b := range []*historytest.Builder{
		historytest.Task(false),
		historytest.New(ace.ExperimentWorkflow, ace.ExperimentInput{ExperimentID: "e", Tasks: 2, Epochs: 1,
			Parallel: 1}),
		historytest.New("Foreign", "x"),
	} {
		d, err := detail.ReadEvents(b.Events)
		if err != nil || d.ContinuedAs != "" || d.Phase.Status != ace.Running && d.Phase.Status != "" {
			t.Errorf("%s: %q, %q, %v", d.Type, d.ContinuedAs, d.Phase.Status, err)
		}
		d, err = detail.ReadEvents(b.ContinueAs(1, "next").Events)
		if err != nil || d.ContinuedAs != "next" || d.Phase.Status != ace.ContinuedAsNew || d.Close.IsZero() {
			t.Errorf("%s: %q, %q, %v", d.Type, d.ContinuedAs, d.Phase.Status, err)
		}
	}
}
