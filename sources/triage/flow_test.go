package triage

import (
	"testing"
	"time"

	"acescope/engine/ace"
	"acescope/sources/runs"
)

// Failed runs of flows are grouped by the step and the type of the error.
func TestFlowGroups(t *testing.T) {
	f := Facts{Ends: map[string]Ending{}}
	for id, c := range map[string]struct{ kind, message string }{
		"1": {"ExitCode", "step publish (a.yaml:7:5): ls ended with exit code 2"},
		"2": {"ExitCode", "step publish (a.yaml:9:5): ls ended with exit code 1"},
		"3": {"ExitCode", "step build (a.yaml:3:5): ls ended with exit code 2"},
		"4": {"NoDecision", "step publish (a.yaml:7:5): ls ended with exit code 2"},
	} {
		r := runs.Run{RunID: id, Flow: "release", Phase: "done", Status: ace.Failed, Close: time.Unix(1, 0)}
		f.Closed = append(f.Closed, r)
		f.Ends[id] = Ending{Failure: ace.Failure{Kind: ace.Failed, Type: c.kind, Message: c.message}}
	}
	counts := map[string]int{}
	for _, g := range f.Analyze(time.Unix(2, 0)).Groups {
		counts[string(g.Phase)+" "+g.Type] += g.Count
	}
	if counts["publish ExitCode"] != 2 || counts["build ExitCode"] != 1 ||
		counts["publish NoDecision"] != 1 || len(counts) != 3 {
		t.Errorf("%v", counts)
	}
}
