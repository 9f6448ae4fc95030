package activities

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

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
// Its reason has two lines, a secret and more than maxReason bytes.
type judging struct {
	counting
	verdicts map[string]bool
	judged   []string
	got      ace.ReflectorInput
}

func (j *judging) Name() string { return "judging" }

func (j *judging) Judge(_ context.Context, in ace.ReflectorInput) (got model.Judgment, used ace.Usage,
	err error) {
	got.Reason = "the same\ncity as secret-of-the-house " + strings.Repeat("*", maxReason)
	used = ace.Usage{InputTokens: 100}
	if why := in.Task.Budget.Spent(ace.Usage{}); why != "" {
		return got, ace.Usage{}, model.Errorf(model.BudgetSpent, "%s", why)
	}
	j.judged = append(j.judged, in.Prompt+"|"+in.Answer+"|"+*in.Label+"|"+in.Task.Model)
	correct, ok := j.verdicts[*in.Label]
	got.Correct = correct
	if !ok {
		return got, used, model.Errorf(model.BadAnswer, "no verdict on %q", *in.Label)
	}
	return got, used, nil
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
func TestJudgedReflection(t *testing.T) {
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
		secrets := redact.New(redact.Environ([]string{"HOUSE_KEY=secret-of-the-house"})...)
		a := &Activities{secrets: secrets, Providers: []model.Provider{j}, NoCallRecords: true}
		var s testsuite.WorkflowTestSuite
		e := s.NewTestActivityEnvironment()
		a.register(e)
		v, err := e.ExecuteActivity(ace.ActivityReflector, ace.ReflectorInput{Prompt: "Capital?", Answer: c.answer,
			Label: new("Paris"), Grader: "judge", HideLabel: c.hide, Reflect: c.reflect,
			Task: ace.TaskContext{Provider: "judging", Model: "m", Budget: &ace.Budget{Tokens: 1000}}})
		var r ace.ReflectorResult
		if err == nil {
			err = v.Get(&r)
		}
		if err != nil || *r.Correct != c.correct || (*r.Score == 1) != c.correct || *r.Usage != c.used {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
		because, ok := strings.CutPrefix(r.GradeReason, "the same city as ")
		if ok != (len(j.judged) > 0) || strings.Contains(because, "secret") || len(r.GradeReason) > maxReason+
			len("…") {
			t.Errorf("%s: the reason is %q", name, r.GradeReason)
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
	a.secrets = redact.OfProcess()
	if in.Dataset, err = store.PutBytes(t.Context(), []byte(lines), "application/jsonl"); err != nil {
		t.Fatal(err)
	}
	var s testsuite.WorkflowTestSuite
	e := s.NewTestActivityEnvironment()
	a.register(e)
	v, err := e.ExecuteActivity(ace.ActivityEvaluate, in)
	if err == nil {
		err = v.Get(&r)
	}
	r.Items = nil
	return r, err
}

// An evaluation asks the model of the reflector where the answer ("1", one token) is not the label, counts
// its usage, and stops before the request that the budget does not allow.
func TestJudgedEvaluation(t *testing.T) {
	const lines = `{"context": "a", "target": "1"}
{"context": "b", "target": "one"}
{"context": "c", "target": "two"}
{"context": "d"}
`
	in := ace.EvaluateInput{Task: ace.TaskContext{Provider: "counting", Model: "m"}, Count: 4,
		Grader:   "judge",
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
	r, err = a.evaluateLines(t, lines, in)
	if err != nil || r.Correct != 2 || r.Failed != 1 || r.List[0] != 2 || r.Why != `no verdict on "two"` {
		t.Errorf("%+v, %v", r, err)
	}
	in.Steps = nil
	if r, err = a.evaluateLines(t, lines, in); kindOf(err) != model.BadRequest {
		t.Errorf("%+v, %v", r, err)
	}
}

// A program grades what it gets on standard input. Whatever else it does is an error that is retried, never
// wrong.
func TestGraderPrograms(t *testing.T) {
	t.Setenv("L7_API_KEY", "s3cretvalue")
	const lines = `{"context": "a", "question": "b", "target": "one"}`
	in := ace.EvaluateInput{Task: ace.TaskContext{TaskID: "exp", Provider: "counting"}, Count: 1,
		NoSkills: true, Grader: "program:mine"}
	for name, c := range map[string]struct {
		script string
		score  float64
		kind   model.ErrorKind
		text   string
	}{
		"score":   {`echo '{"score": 0.25, "note": "nearly"}'`, 0.25, "", ""},
		"correct": {`echo '{"correct": true}'`, 1, "", ""},
		"wrong":   {`echo '{"correct": false}'`, 0, "", ""},
		"input": {`in=$(cat)
			test "$in" = '{"task_id":"exp-eval-0001","question":"a\n\nb","answer":"1","label":"one"}' || exit 9
			echo '{"score": 1}'`, 1, "", ""},
		"unread":      {`exec 0<&-; echo '{"score": 1}'`, 1, "", ""},
		"directory":   {`test "$(pwd)" = / && echo '{"score": 1}'`, 1, "", ""},
		"environment": {`test -z "$L7_API_KEY" && echo '{"score": 1}'`, 1, "", ""},
		"exit code": {`echo '{"score": 1}'; echo "first
key s3cretvalue" >&2; exit 3`, 0, model.GraderFailed,
			"program:mine: it ended with exit code 3: key [redacted:L7_API_KEY]"},
		"exit only": {`exit 3`, 0, model.GraderFailed, "program:mine: it ended with exit code 3"},
		"prose":     {`echo correct`, 0, model.GraderFailed, `a boolean "correct": "correct"`},
		"silent":    {`true`, 0, model.GraderFailed, `"correct": ""`},
		"long":      {`yes | head -c 99999`, 0, model.GraderFailed, `"correct": "y\ny`},
		"absent":    {`exec kill -9 $$`, 0, model.GraderFailed, `it was ended by the signal "killed"`},
		"too far":   {`echo '{"score": 2}'`, 0, model.GraderFailed, "its score 2 is not from 0 to 1"},
		"slow":      {`exec sleep 600`, 0, model.GraderFailed, "it did not end within 1s"},
	} {
		a := &Activities{Providers: []model.Provider{&counting{}}, Graders: map[string]grade.Program{
			"mine": {Argv: []string{"sh", "-c", c.script}, Dir: "/", Timeout: time.Second}}}
		r, err := a.evaluateLines(t, lines, in)
		text := fmt.Sprint(err)
		if kindOf(err) != c.kind || isPermanent(err) || err != nil && !strings.Contains(text, c.text) ||
			strings.Contains(text, "s3cret") {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil && (r.Score != c.score || r.Correct != int(c.score) || len(r.Wrong) != 1-r.Correct) {
			t.Errorf("%s: %+v", name, r)
		}
	}
	large := []string{"sh", "-c", `test $(wc -c) -gt 2000000 && echo '{"score": 1}'`}
	a := &Activities{Providers: []model.Provider{&counting{}},
		Graders: map[string]grade.Program{"mine": {Argv: large, Timeout: time.Minute}}}
	long := fmt.Sprintf(`{"context": "%s", "target": "one"}`, strings.Repeat("x", 2<<20))
	if r, err := a.evaluateLines(t, long, in); err != nil || r.Correct != 1 {
		t.Errorf("a long prompt: %+v, %v", r, err)
	}
}

// A worker without the program leaves the step to another one.
func TestGraderProgramsNotStarted(t *testing.T) {
	in := ace.EvaluateInput{Task: ace.TaskContext{Provider: "counting"}, Count: 1, NoSkills: true,
		Grader: "program:mine"}
	for _, c := range []struct {
		a    Activities
		text string
	}{
		{Activities{}, "program:mine: this worker has no [graders.mine] in its config.toml"},
		{Activities{Graders: map[string]grade.Program{"mine": {Argv: []string{"true"}}},
			Withheld: "not here"},
			"program:mine is not started: not here"},
	} {
		c.a.Providers = []model.Provider{&counting{}}
		_, err := c.a.evaluateLines(t, `{"context": "a", "target": "one"}`, in)
		if kindOf(err) != model.NoGrader || isPermanent(err) || !strings.Contains(err.Error(), c.text) {
			t.Error(err)
		}
	}
}
