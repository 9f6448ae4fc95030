package engine_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"acescope/engine"
	"acescope/engine/ace"
	"acescope/engine/agents/observe"
	"acescope/engine/agents/observe/spool"
)

// TestObserved checks that records of hooks in the spool become a run exactly once, whatever
// happens to the forwarding processes.
func TestObserved(t *testing.T) {
	t.Parallel()
	o := engine.Options{DataDir: t.TempDir(), Spool: filepath.Join(t.TempDir(), "spool")}
	hooks, err := os.ReadFile("agents/observe/testdata/hooks.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(hooks)) {
		if err := spool.Append(o.Spool, spool.Hook, []byte(line)); err != nil {
			t.Fatal(err)
		}
	}
	e := openWith(t, o, newScripted())
	const taskID = "claude-5e551011-0000-4000-8000-000000000001"
	var r ace.TaskResult
	eventually(t, func() error {
		return e.Client.GetWorkflow(t.Context(), ace.WorkflowID(taskID), "").Get(t.Context(), &r)
	})
	recordAs(t, e.Client, ace.WorkflowID(taskID), "observed")
	if r.ExitStatus != ace.ExitSuccess || r.Answer != "There are 2 files." || r.Summary.Skills != 3 ||
		r.Summary.SkillsOK != 2 {
		t.Errorf("%+v", r)
	}
	checkFold(t, e, taskID)

	b := observe.NewTemporal(e.Client, e.TaskQueue, nil, nil)
	b.Start(ace.TaskInput{TaskID: "elsewhere", Prompt: "p", Adapter: ace.Online, Model: "m",
		Observation: ace.Observation{IdleMS: 400}})
	b.Step("elsewhere", ace.PhaseGenerator, ace.GeneratorResult{Plan: "a plan"}, nil)
	b.ToolEvent("elsewhere", ace.ToolEvent{CallID: "c", Kind: ace.KindToolUse, Name: "look"})
	b.Close(t.Context())
	var p ace.PhaseAnswer
	eventually(t, func() error {
		err := e.Client.GetWorkflow(t.Context(), ace.WorkflowID("elsewhere"), "").Get(t.Context(), nil)
		if err == nil || !strings.Contains(err.Error(), "no event received for 400ms") {
			return fmt.Errorf("it ended with %w", err)
		}
		return nil
	})
	recordAs(t, e.Client, ace.WorkflowID("elsewhere"), "silent")
	checkFold(t, e, "elsewhere")
	p, _, _ = answers(t, e.Client, ace.WorkflowID("elsewhere"))
	if p.Status != ace.TimedOut || p.Phase != ace.PhaseSkills {
		t.Errorf("%+v", p)
	}
}
