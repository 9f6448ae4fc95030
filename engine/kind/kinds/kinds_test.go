package kinds_test

import (
	"slices"
	"testing"

	historypb "go.temporal.io/api/history/v1"
	"google.golang.org/protobuf/proto"

	"acescope/engine/ace"
	"acescope/engine/agents/session"
	"acescope/engine/flow"
	"acescope/engine/kind"
	"acescope/engine/kind/kinds"
	"acescope/engine/tasks/run"
	"acescope/engine/temporal/replay/replaytest"
)

var types = []string{ace.TaskWorkflow, ace.ExperimentWorkflow, session.Workflow, run.Workflow, flow.Workflow,
	"AnyOther"}

// FuzzFolds applies events of any shape to the folds of all kinds, and describes each state.
func FuzzFolds(f *testing.F) {
	for _, name := range append(replaytest.RecordedNames, "session-talk", "run-completed") {
		data, err := proto.Marshal(&historypb.History{Events: replaytest.Recorded(f, name)})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var h historypb.History
		if proto.Unmarshal(data, &h) != nil {
			return
		}
		for _, name := range types {
			fold := kinds.Of(name).New()
			for _, e := range h.Events[:min(len(h.Events), 200)] {
				before := fold.Clone()
				fold.Apply(e)
				fold.Phase()
				fold.Values()
				fold.Sections(kind.Books{}, e)
				fold.Answer(&kind.Answers{})
				before.Values()
			}
		}
	})
}

// A clone does not change with later events.
func TestClone(t *testing.T) {
	for _, name := range append(replaytest.RecordedNames, "session-talk", "run-completed") {
		events := replaytest.Recorded(t, name)
		for _, workflowType := range []string{events[0].GetWorkflowExecutionStartedEventAttributes().
			GetWorkflowType().GetName(), "AnyOther"} {
			fold := kinds.Of(workflowType).New()
			var clones []kind.Fold
			var values [][]kind.Value
			for i, e := range events {
				fold.Apply(e)
				if i%7 == 0 {
					clones, values = append(clones, fold.Clone()), append(values, fold.Values())
				}
			}
			for i, c := range clones {
				if got := c.Values(); !slices.Equal(got, values[i]) {
					t.Errorf("%s as %s: clone %d changed from %v to %v", name, workflowType, i, values[i],
						got)
				}
			}
		}
	}
}
