package sources

import (
	"testing"

	"go.temporal.io/api/serviceerror"

	"acescope/engine/ace"
	"acescope/sources/detail"
	"acescope/sources/historytest"
	"acescope/sources/runs"
)

func TestNewest(t *testing.T) {
	for query, want := range map[string]string{
		"":                                   `ExecutionStatus != "ContinuedAsNew"`,
		`ExitStatus = "a" OR TaskId="b"`:     `(ExitStatus = "a" OR TaskId="b") AND ExecutionStatus != "ContinuedAsNew"`,
		`ExecutionStatus = "ContinuedAsNew"`: `ExecutionStatus = "ContinuedAsNew"`,
		`RunId = "r"`:                        `RunId = "r"`,
	} {
		if got := runs.Newest(query); got != want {
			t.Errorf("%q becomes %q, want %q", query, got, want)
		}
	}
}

// A query that the server rejects is sent once, as written.
func TestNewestOfAQueryThatIsRefused(t *testing.T) {
	s := newSim(simRuns(3)...)
	s.pageErr = serviceerror.NewInvalidArgument("invalid query")
	for query, want := range map[string]int{"nonsense": 2, `RunId = nonsense`: 1} {
		s.lists = 0
		err := runs.ListNewest(t.Context(), s, query, 0, func(runs.Run) error { return nil })
		if err == nil || s.lists != want {
			t.Errorf("%q: %d listings, %v", query, s.lists, err)
		}
	}
}

// A run that was continued as new reports that and its successor: for a task, an experiment and others.
func TestContinuedRun(t *testing.T) {
	for _, b := range []*historytest.Builder{
		historytest.Task(false),
		historytest.New(ace.ExperimentWorkflow, ace.ExperimentInput{ExperimentID: "e", Tasks: 2, Epochs: 1, Parallel: 1}),
		historytest.New("Foreign", "x"),
	} {
		d, err := detail.ReadEvents(b.Events)
		if err != nil || d.ContinuedAs != "" || d.Phase.ExitStatus != ace.Running && d.Phase.ExitStatus != "" {
			t.Errorf("%s: %q, %q, %v", d.Type, d.ContinuedAs, d.Phase.ExitStatus, err)
		}
		d, err = detail.ReadEvents(b.ContinueAs(1, "next").Events)
		if err != nil || d.ContinuedAs != "next" || d.Phase.ExitStatus != ace.Continued || d.Close.IsZero() {
			t.Errorf("%s: %q, %q, %v", d.Type, d.ContinuedAs, d.Phase.ExitStatus, err)
		}
	}
}
