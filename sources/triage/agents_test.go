package triage

import (
	"os"
	"strings"
	"testing"
	"time"

	failurepb "go.temporal.io/api/failure/v1"
	historypb "go.temporal.io/api/history/v1"

	"acescope/engine/ace"
	"acescope/engine/temporal/history"
	"acescope/engine/temporal/historyfile"
	"acescope/engine/trace"
	"acescope/engine/trace/adapter"
	"acescope/sources/runs"
)

func recorded(t *testing.T, name string) []*historypb.HistoryEvent {
	t.Helper()
	file, err := os.Open("../../engine/trace/adapter/testdata/" + name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	list, err := historyfile.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	return list[0].Events
}

func application(kind, message string, cause *failurepb.Failure) *failurepb.Failure {
	return &failurepb.Failure{Message: message, Cause: cause,
		FailureInfo: &failurepb.Failure_ApplicationFailureInfo{
			ApplicationFailureInfo: &failurepb.ApplicationFailureInfo{Type: kind}}}
}

// One wrong key is one group, whatever SDK and activity reported it; a rejected request is another one.
func TestGroupsByStatusAcrossFrameworks(t *testing.T) {
	events := recorded(t, "oa-401")
	f := Facts{Ends: map[string]Ending{}}
	add := func(id string, end Ending) {
		f.Closed = append(f.Closed, runs.Run{RunID: id, Type: "Desk", Status: ace.Failed, Close: time.Unix(1, 0)})
		f.Ends[id] = end
	}
	var task history.WorkflowTask
	add("oa", EndingOf(events[len(events)-1], runs.Run{Status: ace.Failed}, task))
	for id, failure := range map[string]*failurepb.Failure{
		"adk": application("ClientError", "401 UNAUTHENTICATED. {'error': {'code': 401}}", nil),
		"ai":  application("APICallError", "Incorrect API key provided: sk-stub.", nil),
		"st": application("AuthenticationError", "Error code: 401 - {'error': {'message': 'x'}}",
			application("Inner", "", nil)),
		"bad": application("APIStatusError", "Non retryable OpenAI status code: 400", nil),
	} {
		add(id, Ending{Failure: ace.Failure{Kind: ace.Failed, Type: id, Message: failure.GetMessage()},
			Activity: "activity_" + id, HTTP: statusOf(failure)})
	}
	counts := map[string]int{}
	for _, g := range f.Analyze(time.Unix(2, 0)).Groups {
		counts[g.Pattern] = g.Count
	}
	if counts["HTTP 401 Unauthorized"] != 4 || counts["HTTP 400 Bad Request"] != 1 || len(counts) != 2 {
		t.Errorf("groups %v", counts)
	}
}

func TestLoops(t *testing.T) {
	call := &trace.Call{Operation: trace.Tool, Name: "look_up", Arguments: []byte(`{"q":1}`)}
	looping := trace.Trace{Summary: trace.Summary{Sum: trace.Sum{Requests: 257}}}
	if got := loopOf(&looping); got != "257 model calls in a loop" {
		t.Errorf("%q", got)
	}
	for range 128 {
		looping.Calls = append(looping.Calls, call)
	}
	if got := loopOf(&looping); got != `the same call look_up({"q":1}) 128 times, 257 model calls` {
		t.Errorf("%q", got)
	}
	var f adapter.Folder
	for _, e := range recorded(t, "oa-ok") {
		f.Apply(e)
	}
	if done := f.Trace(); loopOf(&done) != "" {
		t.Errorf("a run of five calls loops: %q", loopOf(&done))
	}
}

// Requests of two frameworks are not one phase, and the calls of a run are not runs.
func TestPhasesOfFrameworks(t *testing.T) {
	facts := Facts{Steps: map[string][]Timed{}}
	for _, name := range []string{"adk-ok", "st-ok"} {
		var steps StepTimer
		var f adapter.Folder
		for _, e := range recorded(t, name) {
			f.Apply(e)
			steps.Add(e)
			steps.nameCall(e, &f)
		}
		facts.Closed = append(facts.Closed, runs.Run{RunID: name, Status: ace.Completed})
		facts.Steps[name] = steps.Done
	}
	rows := 0
	for _, p := range facts.Analyze(time.Unix(2, 0)).Phases {
		if strings.HasSuffix(p.Phase, " invoke_model") {
			rows++
			if p.Runs != 1 || p.Calls < 3 {
				t.Errorf("%+v", p)
			}
		}
	}
	if rows != 2 {
		t.Errorf("%d rows of models", rows)
	}
}

// TestTokensOfAgents counts cached tokens of agents of frameworks, as the list of runs does.
func TestTokensOfAgents(t *testing.T) {
	r := runs.Run{Summary: &ace.Summary{Usage: ace.Usage{InputTokens: 200, CacheReadTokens: 1000, OutputTokens: 45}}}
	if got := Tokens(r); got != 1245 || got != r.Tokens().N {
		t.Errorf("%d tokens", got)
	}
}
