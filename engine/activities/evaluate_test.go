package activities

import (
	"context"
	"slices"
	"testing"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/testsuite"

	"acescope/engine/ace"
	"acescope/engine/internal/redact"
	"acescope/engine/learning/model"
	"acescope/engine/learning/playbook"
	"acescope/engine/store/artifact"
)

// counting answers every problem with "1" and counts its calls.
type counting struct {
	model.Provider
	asked int
}

func (c *counting) Name() string { return "counting" }

func (c *counting) Generate(context.Context, ace.GeneratorInput, *playbook.Playbook) (ace.GeneratorResult, error) {
	c.asked++
	return ace.GeneratorResult{Answer: "1", Usage: &ace.Usage{InputTokens: 1}}, nil
}

func (c *counting) Skills(context.Context, ace.SkillsInput, *playbook.Playbook, model.Toolbox) (ace.SkillSessionResult, error) {
	return ace.SkillSessionResult{}, nil
}

// TestEvaluateResumes checks that a retry does not repeat the problems of the last attempt.
func TestEvaluateResumes(t *testing.T) {
	store, err := artifact.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	set, err := store.PutBytes(t.Context(), []byte("{\"context\": \"a\", \"target\": \"1\"}\n{\"context\": \"b\", \"target\": \"2\"}\n{\"context\": \"c\", \"target\": \"1\"}\n"), "application/jsonl")
	if err != nil {
		t.Fatal(err)
	}
	c := &counting{}
	a := &Activities{Artifacts: store, secrets: redact.New(), Providers: []model.Provider{c}}
	var s testsuite.WorkflowTestSuite
	e := s.NewTestActivityEnvironment()
	e.RegisterActivityWithOptions(a.evaluate, activity.RegisterOptions{Name: ace.ActivityEvaluate})
	e.SetHeartbeatDetails(ace.EvaluateResult{Tasks: 2, Correct: 1, Wrong: []int{1}, Usage: ace.Usage{InputTokens: 2}})
	v, err := e.ExecuteActivity(a.evaluate, ace.EvaluateInput{Task: ace.TaskContext{Provider: "counting"}, Dataset: set, Count: 3})
	var r ace.EvaluateResult
	if err == nil {
		err = v.Get(&r)
	}
	if err != nil || c.asked != 1 || r.Tasks != 3 || r.Correct != 2 || len(r.Wrong) != 1 || r.Usage.InputTokens != 3 {
		t.Errorf("asked %d times: %+v, %v", c.asked, r, err)
	}
}

// An answer without a label is neither correct nor wrong.
func TestEvaluateWithoutLabels(t *testing.T) {
	store, err := artifact.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	set, err := store.PutBytes(t.Context(), []byte("{\"context\": \"a\"}\n{\"context\": \"b\", \"target\": \"1\"}\n"), "application/jsonl")
	if err != nil {
		t.Fatal(err)
	}
	a := &Activities{Artifacts: store, Providers: []model.Provider{&counting{}}}
	var s testsuite.WorkflowTestSuite
	e := s.NewTestActivityEnvironment()
	e.RegisterActivityWithOptions(a.evaluate, activity.RegisterOptions{Name: ace.ActivityEvaluate})
	v, err := e.ExecuteActivity(a.evaluate, ace.EvaluateInput{Task: ace.TaskContext{Provider: "counting"}, Dataset: set, Count: 2})
	var r ace.EvaluateResult
	if err == nil {
		err = v.Get(&r)
	}
	if err != nil || r.Tasks != 2 || r.Correct != 1 || r.Unlabeled != 1 || len(r.Wrong) != 0 {
		t.Errorf("%+v, %v", r, err)
	}
}

// solver is a provider of the skills step of an evaluation.
type solver struct {
	model.Provider
	tasks []string
}

func (s *solver) Skills(_ context.Context, in ace.SkillsInput, _ *playbook.Playbook, _ model.Toolbox) (ace.SkillSessionResult, error) {
	s.tasks = append(s.tasks, in.Task.TaskID+" "+in.Task.Provider)
	return ace.SkillSessionResult{Answer: "2"}, nil
}

// TestEvaluateProviders checks that an evaluation uses the provider of each step, and that the steps
// of different tasks have different task IDs.
func TestEvaluateProviders(t *testing.T) {
	store, err := artifact.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	set, err := store.PutBytes(t.Context(), []byte("{\"context\": \"a\", \"target\": \"2\"}\n{\"context\": \"b\", \"target\": \"2\"}\n"), "application/jsonl")
	if err != nil {
		t.Fatal(err)
	}
	c, by := &counting{}, &solver{}
	a := &Activities{Artifacts: store, secrets: redact.New(), Providers: []model.Provider{c}, Blueprint: func(name string) (model.Provider, error) {
		if name != "mine" {
			t.Errorf("asked for %q", name)
		}
		return by, nil
	}}
	var s testsuite.WorkflowTestSuite
	e := s.NewTestActivityEnvironment()
	e.RegisterActivityWithOptions(a.evaluate, activity.RegisterOptions{Name: ace.ActivityEvaluate})
	v, err := e.ExecuteActivity(a.evaluate, ace.EvaluateInput{Task: ace.TaskContext{TaskID: "exp", Provider: "counting"},
		Steps: map[string]string{"skills": "blueprint:mine"}, Dataset: set, Count: 2})
	var r ace.EvaluateResult
	if err == nil {
		err = v.Get(&r)
	}
	if want := []string{"exp-eval-0001 blueprint:mine", "exp-eval-0002 blueprint:mine"}; err != nil || r.Correct != 2 || c.asked != 2 || !slices.Equal(by.tasks, want) {
		t.Errorf("%+v, %q, %v", r, by.tasks, err)
	}
}
