package activities

import (
	"context"
	"reflect"
	"testing"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"acescope/engine/ace"
	"acescope/engine/internal/redact"
	"acescope/engine/learning/grade"
	"acescope/engine/learning/model"
	"acescope/engine/learning/playbook"
	"acescope/engine/store/artifact"
)

// judging is a provider whose model judges by a map of answers to verdicts. Its reflector returns its input.
type judging struct {
	counting
	verdicts map[string]bool
	judged   []string
	got      ace.ReflectorInput
}

func (j *judging) Name() string { return "judging" }

func (j *judging) Judge(_ context.Context, in ace.ReflectorInput) (correct bool, used ace.Usage, err error) {
	used = ace.Usage{InputTokens: 100}
	if why := in.Task.Budget.Spent(ace.Usage{}); why != "" {
		return false, ace.Usage{}, model.Errorf(model.BudgetSpent, "%s", why)
	}
	j.judged = append(j.judged, in.Prompt+"|"+in.Answer+"|"+*in.Label+"|"+in.Task.Model)
	correct, ok := j.verdicts[*in.Label]
	if !ok {
		return false, used, model.Errorf(model.BadAnswer, "no verdict on %q", *in.Label)
	}
	return correct, used, nil
}

func (j *judging) Reflect(
	_ context.Context, in ace.ReflectorInput, _ *playbook.Playbook,
) (r ace.ReflectorResult, err error) {
	j.got = in
	r.Usage = &ace.Usage{OutputTokens: 7}
	r.Correct, r.Score, err = grade.Verdict(in)
	return r, err
}

// The reflector gets the judge's verdict, with or without the label, and its result has the usage of both.
func TestL7JudgedReflection(t *testing.T) {
	for name, c := range map[string]struct {
		answer  string
		hide    bool
		reflect ace.ReflectWhen
		correct bool
		used    ace.Usage
		left    int64 // of the budget of 1000 tokens; 0 without a reflection
	}{
		"same answer":   {"paris", false, "", true, ace.Usage{OutputTokens: 7}, 1000},
		"judged":        {"Paris!", false, "", true, ace.Usage{InputTokens: 100, OutputTokens: 7}, 900},
		"hidden label":  {"Paris!", true, "", true, ace.Usage{InputTokens: 100, OutputTokens: 7}, 900},
		"judged, wrong": {"Lyon", false, "", false, ace.Usage{InputTokens: 100, OutputTokens: 7}, 900},
		"only judged":   {"Paris!", false, ace.ReflectNever, true, ace.Usage{InputTokens: 100}, 0},
		"if wrong": {"Lyon", true, ace.ReflectWrong, false,
			ace.Usage{InputTokens: 100, OutputTokens: 7}, 900},
	} {
		j := &judging{verdicts: map[string]bool{"Paris": c.correct}}
		a := &Activities{secrets: redact.New(), Providers: []model.Provider{j}, NoCallRecords: true}
		var s testsuite.WorkflowTestSuite
		e := s.NewTestActivityEnvironment()
		e.RegisterActivityWithOptions(a.reflector, activity.RegisterOptions{Name: ace.ActivityReflector})
		v, err := e.ExecuteActivity(a.reflector, ace.ReflectorInput{Prompt: "Capital?", Answer: c.answer,
			Label: new("Paris"), Grader: "judge", HideLabel: c.hide, Reflect: c.reflect,
			Task: ace.TaskContext{Provider: "judging", Model: "m", Budget: &ace.Budget{Tokens: 1000}}})
		var r ace.ReflectorResult
		if err == nil {
			err = v.Get(&r)
		}
		if err != nil || *r.Correct != c.correct || (*r.Score == 1) != c.correct || *r.Usage != c.used {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
		got := j.got
		if c.left == 0 && got.Answer == "" {
			continue
		}
		if (got.Label == nil) != c.hide || *got.Correct != c.correct || got.Task.Budget.Tokens != c.left {
			t.Errorf("%s: the reflector got %+v", name, got)
		}
	}
}

// kindOf returns the type of the application error of an activity.
func kindOf(err error) model.ErrorKind {
	var app *temporal.ApplicationError
	if as(err, &app) {
		return model.ErrorKind(app.Type())
	}
	return ""
}

// evaluateLines evaluates tasks, given as JSON lines.
func (a *Activities) evaluateLines(
	t *testing.T, lines string, in ace.EvaluateInput,
) (r ace.EvaluateResult, err error) {
	t.Helper()
	store, err := artifact.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	a.Artifacts = store
	a.secrets = redact.New()
	if in.Dataset, err = store.PutBytes(t.Context(), []byte(lines), "application/jsonl"); err != nil {
		t.Fatal(err)
	}
	var s testsuite.WorkflowTestSuite
	e := s.NewTestActivityEnvironment()
	e.RegisterActivityWithOptions(a.evaluate, activity.RegisterOptions{Name: ace.ActivityEvaluate})
	v, err := e.ExecuteActivity(a.evaluate, in)
	if err == nil {
		err = v.Get(&r)
	}
	r.Items = nil
	return r, err
}

// An evaluation asks the model of the reflector where the answer ("1", one token) is not the label, counts
// its usage, and stops before the request that the budget does not allow.
func TestL7JudgedEvaluation(t *testing.T) {
	const lines = `{"context": "a", "target": "1"}
{"context": "b", "target": "one"}
{"context": "c", "target": "two"}
{"context": "d"}
`
	in := ace.EvaluateInput{Task: ace.TaskContext{Provider: "counting", Model: "m"}, Count: 4, Grader: "judge",
		NoSkills: true, Steps: map[string]string{"reflector": "judging"},
		Models: map[string]string{"reflector": "m-2"}}
	j := &judging{verdicts: map[string]bool{"one": true, "two": false}}
	a := &Activities{Providers: []model.Provider{&counting{}, j}}
	r, err := a.evaluateLines(t, lines, in)
	want := ace.EvaluateResult{Tasks: 4, Correct: 2, Wrong: []int{2}, Unlabeled: 1, Score: 2,
		Usage: ace.Usage{InputTokens: 204}}
	if err != nil || !reflect.DeepEqual(r, want) {
		t.Errorf("%+v, %v", r, err)
	}
	if asked := []string{"b|1|one|m-2", "c|1|two|m-2"}; !reflect.DeepEqual(j.judged, asked) {
		t.Errorf("asked %q", j.judged)
	}

	in.Task.Budget = &ace.Budget{Tokens: 2} // after the second answer
	r, err = a.evaluateLines(t, lines, in)
	want = ace.EvaluateResult{Tasks: 1, Correct: 1, Score: 1, Stopped: true, Usage: ace.Usage{InputTokens: 2}}
	if err != nil || !reflect.DeepEqual(r, want) {
		t.Errorf("%+v, %v", r, err)
	}

	in.Task.Budget = nil
	delete(j.verdicts, "two")
	if r, err = a.evaluateLines(t, lines, in); kindOf(err) != model.BadAnswer {
		t.Errorf("%+v, %v", r, err)
	}
	in.Steps = nil
	if r, err = a.evaluateLines(t, lines, in); kindOf(err) != model.BadRequest {
		t.Errorf("%+v, %v", r, err)
	}
}
