package activities

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"go.temporal.io/sdk/testsuite"

	"acescope/engine/ace"
	"acescope/engine/internal/redact"
	"acescope/engine/learning/model"
	"acescope/engine/learning/model/builtin"
	"acescope/engine/learning/model/llm"
	"acescope/engine/learning/prompts"
	"acescope/engine/store/artifact"
	"acescope/engine/store/bucket"
)

// echo is a model that keeps the system prompts that it gets.
type echo struct {
	mu   sync.Mutex
	seen []string
}

func (e *echo) Complete(_ context.Context, r llm.Request, _ func(string)) (llm.Response, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.seen = append(e.seen, r.SystemText())
	return llm.Response{Text: `{"reasoning": "r", "final_answer": "1"}`, Stop: llm.StopEnd}, nil
}

// elsewhere returns the activities of a machine whose shared store has the prompt of another machine.
func elsewhere(t *testing.T, m *echo) (*Activities, *artifact.Store, ace.PhasePrompt) {
	t.Helper()
	shared, err := bucket.Make(t.Context(), "file://"+t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var stores [2]*artifact.Store
	for i := range stores {
		if stores[i], err = artifact.OpenShared(t.TempDir(), shared); err != nil {
			t.Fatal(err)
		}
	}
	v, _, err := prompts.Open(shared, "default", stores[0]).Put(t.Context(), ace.PhaseGenerator, "brief",
		"Be BRIEF.\n{{playbook}}", "")
	if err != nil {
		t.Fatal(err)
	}
	a := &Activities{Artifacts: stores[1], secrets: redact.New(),
		Providers: []model.Provider{llm.New(m, llm.Options{Name: "stub", Model: "m"}), builtin.New()}}
	return a, stores[1], v.PhasePrompt
}

// A step on another machine reads its prompt by the hash in its input.
func TestPhasePromptFromElsewhere(t *testing.T) {
	m := &echo{}
	a, _, prompt := elsewhere(t, m)
	var s testsuite.WorkflowTestSuite
	e := s.NewTestActivityEnvironment()
	a.register(e)
	in := ace.GeneratorInput{Prompt: "1?", Task: ace.TaskContext{Provider: "stub", PhasePrompt: &prompt}}
	if _, err := e.ExecuteActivity(ace.ActivityGenerator, in); err != nil {
		t.Fatal(err)
	}
	if len(m.seen) != 1 || !strings.HasPrefix(m.seen[0], "Be BRIEF.\n\n<playbook-") {
		t.Errorf("the model got %q", m.seen)
	}
	in.Task.Provider = "builtin"
	if _, err := e.ExecuteActivity(ace.ActivityGenerator, in); err == nil ||
		!strings.Contains(err.Error(), "builtin asks no model, so it has no phase prompt") {
		t.Errorf("the built-in learner: %v", err)
	}
	lost := prompt
	lost.SHA256 = strings.Repeat("0", 64)
	in.Task = ace.TaskContext{Provider: "stub", PhasePrompt: &lost}
	if _, err := e.ExecuteActivity(ace.ActivityGenerator, in); err == nil ||
		!strings.Contains(err.Error(), "phase prompt brief@1: open artifact: artifact not found") {
		t.Errorf("a lost text: %v", err)
	}
}

// An evaluation asks with the prompts of its phases.
func TestEvaluatePhasePrompts(t *testing.T) {
	m := &echo{}
	a, store, prompt := elsewhere(t, m)
	set, err := store.PutBytes(t.Context(), []byte(`{"context": "1?", "target": "1"}`+"\n"),
		"application/jsonl")
	if err != nil {
		t.Fatal(err)
	}
	var s testsuite.WorkflowTestSuite
	e := s.NewTestActivityEnvironment()
	a.register(e)
	in := ace.EvaluateInput{Task: ace.TaskContext{Provider: "stub"}, Dataset: set, Count: 1,
		Prompts: ace.Prompts{}.With(ace.PhaseGenerator, &prompt)}
	if _, err := e.ExecuteActivity(ace.ActivityEvaluate, in); err != nil {
		t.Fatal(err)
	}
	if len(m.seen) != 2 || !strings.HasPrefix(m.seen[0], "Be BRIEF.") ||
		!strings.HasPrefix(m.seen[1], "You carry out a plan") {
		t.Errorf("the model got %s", fmt.Sprintf("%.40q", m.seen))
	}
}
