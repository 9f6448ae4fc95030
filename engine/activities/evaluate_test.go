package activities

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
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
	asked    int
	failAt   int   // the call that fails; 0 for none
	failed   error // of that call; nil for one that a retry may fix
	answered *ace.Ref
	store    *artifact.Store
	budget   *ace.Budget
}

func (c *counting) Name() string { return "counting" }

func (c *counting) Generate(context.Context, ace.GeneratorInput, *playbook.Playbook) (ace.GeneratorResult,
	error) {
	c.asked++
	if c.asked == c.failAt && c.failed != nil {
		return ace.GeneratorResult{Plan: "try",
			StepReport: ace.StepReport{Usage: &ace.Usage{InputTokens: 1}}}, c.failed
	}
	if c.asked == c.failAt {
		return ace.GeneratorResult{}, errors.New("away")
	}
	return ace.GeneratorResult{Answer: "1", StepReport: ace.StepReport{Usage: &ace.Usage{InputTokens: 1}}},
		nil
}

func (c *counting) Skills(context.Context, ace.SkillsInput, *playbook.Playbook,
	model.Toolbox) (ace.SkillSessionResult, error) {
	return ace.SkillSessionResult{}, nil
}

// counted evaluates three tasks.
func (c *counting) evaluate(
	t *testing.T, journals string, reported []ace.EvalItem,
) (r ace.EvaluateResult, items []ace.EvalItem, err error) {
	t.Helper()
	store := c.store
	if store == nil {
		if store, err = artifact.Open(t.TempDir()); err != nil {
			t.Fatal(err)
		}
	}
	const lines = `{"context": "a", "target": "1"}
{"context": "b", "target": "2"}
{"context": "c", "target": "1"}
`
	set, err := store.PutBytes(t.Context(), []byte(lines), "application/jsonl")
	if err != nil {
		t.Fatal(err)
	}
	a := &Activities{Artifacts: store, secrets: redact.New(), Providers: []model.Provider{c},
		JournalDir: journals}
	var s testsuite.WorkflowTestSuite
	e := s.NewTestActivityEnvironment()
	a.register(e)
	if reported != nil {
		e.SetHeartbeatDetails(reported)
	}
	in := ace.EvaluateInput{Task: ace.TaskContext{Provider: "counting", Budget: c.budget}, Dataset: set,
		Count: 3, Answered: c.answered}
	v, err := e.ExecuteActivity(ace.ActivityEvaluate, in)
	if err != nil {
		return r, nil, err
	}
	if err := v.Get(&r); err != nil {
		t.Fatal(err)
	}
	data, err := store.Get(t.Context(), *r.Items, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(data) {
		var item ace.EvalItem
		if err := json.Unmarshal(line, &item); err != nil {
			t.Fatal(err)
		}
		items = append(items, item)
	}
	return r, items, nil
}

// A retry on another machine does not repeat the items of the last heartbeat.
func TestEvaluateResumes(t *testing.T) {
	c := &counting{}
	u := &ace.Usage{InputTokens: 1}
	r, items, err := c.evaluate(t, "", []ace.EvalItem{{Index: 0, Answer: "1", Correct: new(true), Usage: u},
		{Index: 1, Answer: "1", Correct: new(false), Usage: u}})
	if err != nil || c.asked != 1 || r.Tasks != 3 || r.Correct != 2 || len(r.Wrong) != 1 ||
		r.Usage.InputTokens != 3 {
		t.Errorf("asked %d times: %+v, %v", c.asked, r, err)
	}
	if len(items) != 3 || items[2].Index != 2 || items[2].Answer != "1" || !*items[2].Correct ||
		*items[2].Label != "1" {
		t.Errorf("%+v", items)
	}
}

// An item that fails for good spoils no other: it is named, and neither correct nor wrong. A second
// evaluation answers only this item.
func TestEvaluateFailedItem(t *testing.T) {
	store, err := artifact.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	refused := model.Errorf(model.Refused, "the model\nrefused")
	c := &counting{store: store, failAt: 2, failed: refused}
	r, items, err := c.evaluate(t, t.TempDir(), nil)
	want := ace.FailedItems{Failed: 1, List: []int{1}, Why: "the model refused"}
	if err != nil || c.asked != 3 || r.Tasks != 3 || r.Correct != 2 || r.Unlabeled != 0 ||
		len(r.Wrong) != 0 ||
		!reflect.DeepEqual(r.FailedItems, want) || r.Usage.InputTokens != 3 {
		t.Errorf("asked %d times: %+v, %v", c.asked, r, err)
	}
	if len(items) != 3 || items[1].Error != want.Why || items[1].Correct != nil || items[1].Plan != "try" {
		t.Errorf("%+v", items)
	}
	again := &counting{store: store, answered: r.Items}
	r, items, err = again.evaluate(t, t.TempDir(), nil)
	if err != nil || again.asked != 1 || r.Tasks != 3 || r.Correct != 2 || len(r.Wrong) != 1 ||
		r.Failed != 0 ||
		r.Usage.InputTokens != 1 || !items[0].Reused || items[1].Reused || items[1].Answer != "1" {
		t.Errorf("asked %d times: %+v, %+v, %v", again.asked, r, items, err)
	}
}

// Without a valid key no item can be answered: the evaluation fails, or keeps the items before.
func TestEvaluateWithoutKey(t *testing.T) {
	locked := model.Errorf(model.Auth, "the key is wrong")
	c := &counting{failAt: 1, failed: locked}
	if _, _, err := c.evaluate(t, "", nil); err == nil || c.asked != 1 {
		t.Errorf("asked %d times, %v", c.asked, err)
	}
	c = &counting{failAt: 2, failed: locked}
	r, items, err := c.evaluate(t, "", nil)
	if err != nil || c.asked != 2 || r.Tasks != 3 || r.Correct != 1 || !slices.Equal(r.List, []int{1, 2}) ||
		items[2].Error != "the key is wrong" {
		t.Errorf("asked %d times: %+v, %v", c.asked, r, err)
	}
}

// An error that a retry may fix fails the item in the last attempt only.
func TestEvaluateLastAttempt(t *testing.T) {
	p := &temporal.RetryPolicy{MaximumAttempts: 3}
	for _, c := range []struct {
		attempt activity.Info
		err     error
		want    bool
	}{
		{activity.Info{Attempt: 2, RetryPolicy: p}, model.Errorf(model.Network, "away"), false},
		{activity.Info{Attempt: 3, RetryPolicy: p}, model.Errorf(model.Network, "away"), true},
		{activity.Info{Attempt: 3}, errors.New("away"), false},
		{activity.Info{Attempt: 1, RetryPolicy: p}, model.Errorf(model.BadAnswer, "prose"), true},
		{activity.Info{Attempt: 3, RetryPolicy: p}, model.Errorf(model.NoModel, "gone"), false},
		{activity.Info{Attempt: 3, RetryPolicy: p}, model.Errorf(model.BudgetSpent, "spent"), false},
	} {
		if got := hasFailed(c.attempt, c.err); got != c.want {
			t.Errorf("attempt %d, %v: %v", c.attempt.Attempt, c.err, got)
		}
	}
}

// An evaluation starts no item when its budget is spent, and keeps the items before.
func TestEvaluateBudget(t *testing.T) {
	for tokens, want := range map[int64]int{2: 2, 3: 3, -1: 0} {
		c := &counting{budget: &ace.Budget{Tokens: tokens}}
		r, items, err := c.evaluate(t, t.TempDir(), nil)
		if err != nil || c.asked != want || r.Tasks != want || len(items) != want || r.Stopped != (want < 3) {
			t.Errorf("%d tokens: asked %d times, %d items: %+v, %v", tokens, c.asked, len(items), r, err)
		}
	}
}

// A retry on the same machine repeats no finished item, even if no heartbeat reported it and the process was
// killed while it wrote the next one.
func TestEvaluateResumesFromJournal(t *testing.T) {
	dir := t.TempDir()
	c := &counting{failAt: 3}
	if _, _, err := c.evaluate(t, dir, nil); err == nil {
		t.Fatal("no error")
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%q, %v", files, err)
	}
	f, err := os.OpenFile(files[0], os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"index": 2, "ans`); err != nil {
		t.Fatal(err)
	}
	f.Close()
	c.failAt, c.asked = 0, 0
	r, items, err := c.evaluate(t, dir, []ace.EvalItem{})
	if err != nil || c.asked != 1 || r.Tasks != 3 || len(items) != 3 || r.Usage.InputTokens != 3 {
		t.Errorf("asked %d times: %+v, %+v, %v", c.asked, r, items, err)
	}
	if files, _ := filepath.Glob(filepath.Join(dir, "*")); len(files) != 0 {
		t.Errorf("%q is left", files)
	}
}

// An answer without a label is neither correct nor wrong.
func TestEvaluateWithoutLabels(t *testing.T) {
	store, err := artifact.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	set, err := store.PutBytes(t.Context(),
		[]byte("{\"context\": \"a\"}\n{\"context\": \"b\", \"target\": \"1\"}\n"), "application/jsonl")
	if err != nil {
		t.Fatal(err)
	}
	a := &Activities{Artifacts: store, secrets: redact.New(), Providers: []model.Provider{&counting{}}}
	var s testsuite.WorkflowTestSuite
	e := s.NewTestActivityEnvironment()
	a.register(e)
	v, err := e.ExecuteActivity(ace.ActivityEvaluate,
		ace.EvaluateInput{Task: ace.TaskContext{Provider: "counting"},
			Dataset: set, Count: 2})
	var r ace.EvaluateResult
	if err == nil {
		err = v.Get(&r)
	}
	if err != nil || r.Tasks != 2 || r.Correct != 1 || r.Unlabeled != 1 || len(r.Wrong) != 0 {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestL7EvaluateScores keeps partial scores, also those of the attempt that a retry resumes.
func TestL7EvaluateScores(t *testing.T) {
	store, err := artifact.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	set, err := store.PutBytes(t.Context(),
		[]byte("{\"context\": \"a\", \"target\": \"1\"}\n{\"context\": \"b\", \"target\": \"1,2,3\"}\n{\"context\": \"c\", \"target\": \"1,2\"}\n"), "application/jsonl")
	if err != nil {
		t.Fatal(err)
	}
	a := &Activities{Artifacts: store, secrets: redact.New(), Providers: []model.Provider{&counting{}}}
	for grader, want := range map[string]ace.EvaluateResult{
		"tags": {Tasks: 3, Correct: 1, Wrong: []int{1, 2}, Score: 1.833333},
		"":     {Tasks: 3, Correct: 1, Wrong: []int{1, 2}},
	} {
		var s testsuite.WorkflowTestSuite
		e := s.NewTestActivityEnvironment()
		a.register(e)
		done := ace.EvalItem{Correct: new(true)}
		if grader != "" {
			done.Score = new(1.0)
		}
		e.SetHeartbeatDetails([]ace.EvalItem{done})
		v, err := e.ExecuteActivity(ace.ActivityEvaluate,
			ace.EvaluateInput{Task: ace.TaskContext{Provider: "counting"},
				Dataset: set, Count: 3, Grader: grader})
		var r ace.EvaluateResult
		if err == nil {
			err = v.Get(&r)
		}
		r.Usage = ace.Usage{}
		r.Items = nil
		if err != nil || !reflect.DeepEqual(r, want) {
			t.Errorf("%q: %+v, %v", grader, r, err)
		}
	}
	var s testsuite.WorkflowTestSuite
	e := s.NewTestActivityEnvironment()
	a.register(e)
	_, err = e.ExecuteActivity(ace.ActivityEvaluate,
		ace.EvaluateInput{Task: ace.TaskContext{Provider: "counting"},
			Dataset: set, Count: 1, Grader: "best"})
	var app *temporal.ApplicationError
	if !errors.As(err, &app) || !app.NonRetryable() {
		t.Errorf("unknown grader: %v", err)
	}
}

// solver is a provider of the skills step of an evaluation.
type solver struct {
	model.Provider
	tasks []string
}

func (s *solver) Skills(_ context.Context, in ace.SkillsInput, _ *playbook.Playbook,
	_ model.Toolbox) (ace.SkillSessionResult, error) {
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
	set, err := store.PutBytes(t.Context(),
		[]byte("{\"context\": \"a\", \"target\": \"2\"}\n{\"context\": \"b\", \"target\": \"2\"}\n"),
		"application/jsonl")
	if err != nil {
		t.Fatal(err)
	}
	c, by := &counting{}, &solver{}
	a := &Activities{Artifacts: store, secrets: redact.New(), Providers: []model.Provider{c},
		Blueprint: func(name string) (model.Provider, error) {
			if name != "mine" {
				t.Errorf("asked for %q", name)
			}
			return by, nil
		}}
	var s testsuite.WorkflowTestSuite
	e := s.NewTestActivityEnvironment()
	a.register(e)
	v, err := e.ExecuteActivity(ace.ActivityEvaluate,
		ace.EvaluateInput{Task: ace.TaskContext{TaskID: "exp", Provider: "counting"},
			Steps: map[string]string{"skills": "blueprint:mine"}, Dataset: set, Count: 2})
	var r ace.EvaluateResult
	if err == nil {
		err = v.Get(&r)
	}
	if want := []string{"exp-eval-0001 blueprint:mine", "exp-eval-0002 blueprint:mine"}; err != nil ||
		r.Correct != 2 || c.asked != 2 || !slices.Equal(by.tasks, want) {
		t.Errorf("%+v, %q, %v", r, by.tasks, err)
	}
}
