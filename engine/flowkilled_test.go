package engine_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"acescope/engine/agents/agentcli/agentclitest"
	"acescope/engine/flow"
	flows "acescope/engine/flow/library"
	"acescope/engine/workflows"
)

// standInRules are what the stand-in of the agent answers.
const standInRules = `is not finished => write done.txt yes
to scaffold the package => say {"tasks": [{"id": "s1", "title": "Lay the base", "instructions": "make files"}]}
to implement the package => say {"tasks": [{"id": "t2", "title": "Count", "instructions": "count", "needs": ["t1"]}, {"id": "t1", "title": "Parse", "instructions": "parse"}]}
You plan a package => say first the base, then the rest
`

// TestFlowKilledAfterEachStep kills the worker after each operation of package-build, when the server has its result:
// the next worker continues, and no call of the agent is repeated.
func TestFlowKilledAfterEachStep(t *testing.T) {
	t.Parallel()
	s := newRunEnv(t, true)
	if err := os.WriteFile(filepath.Join(s.work, agentclitest.RulesFile), []byte(standInRules), 0o600); err != nil {
		t.Fatal(err)
	}
	entry, err := flows.Library{}.Find("package-build")
	if err != nil {
		t.Fatal(err)
	}
	given := json.RawMessage(`{"prompt": "count words", "check": ["test", "-e", "done.txt"]}`)
	inputs, err := entry.Flow.CheckInputs(given)
	if err != nil {
		t.Fatal(err)
	}
	in := flow.Input{Name: entry.Name, Digest: entry.Source.Digest(), Source: entry.Source, Language: flow.Language,
		Inputs: inputs, Dir: s.work}
	o := client.StartWorkflowOptions{ID: flow.IDPrefix + "killed", TaskQueue: s.e.TaskQueue,
		TypedSearchAttributes: workflows.FlowAttributes(in.Name),
		WorkflowTaskTimeout:   time.Second} // the worker that dies may have the next task already
	if _, err := s.e.Client.ExecuteWorkflow(t.Context(), o, flow.Workflow, in); err != nil {
		t.Fatal(err)
	}
	kills := 0
	for closed := false; !closed; {
		p := s.startWorker(&killAt{Method: "RespondActivityTaskCompleted", After: true})
		closed = s.awaitFlowOr(p, flow.IDPrefix+"killed")
		if !closed {
			kills++
		}
	}
	var r flow.Result
	if err := s.e.Client.GetWorkflow(t.Context(), flow.IDPrefix+"killed", "").Get(t.Context(), &r); err != nil {
		t.Fatal(err)
	}
	if r.Outputs["succeeded"] != true || kills != r.Operations {
		t.Errorf("%d kills, %d operations: %+v", kills, r.Operations, r)
	}
	var turns []string
	for _, e := range s.agent.Did("turn") {
		first, _, _ := strings.Cut(e.Text, "\n")
		turns = append(turns, first)
	}
	if len(turns) != 7 { // a plan, two breakdowns, three tasks and a repair
		t.Errorf("%d turns:\n%s", len(turns), strings.Join(turns, "\n"))
	}
	t.Logf("%d kills", kills)
}

// awaitFlowOr waits until a run is closed or a process has ended. It returns true if the run is closed.
func (s *runEnv) awaitFlowOr(p *process, workflowID string) bool {
	s.t.Helper()
	for limit := time.After(time.Minute); ; {
		select {
		case <-p.gone:
			return false
		case <-limit:
			s.t.Fatalf("the run neither continues nor closes: %s", s.logs())
		case <-time.After(20 * time.Millisecond):
		}
		d, err := s.e.Client.DescribeWorkflowExecution(s.t.Context(), workflowID, "")
		if err == nil && d.GetWorkflowExecutionInfo().GetStatus() != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING {
			return true
		}
	}
}
