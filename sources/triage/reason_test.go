package triage

import (
	"fmt"
	"testing"
	"time"

	"acescope/engine/ace"
	"acescope/sources/runs"
)

func TestCauseIn(t *testing.T) {
	for _, c := range []struct{ insights, want string }{
		{`The answer "23.5" is wrong: the label is "42". [calc-00012] has the right calculation but took the wrong operands.`,
			"[<id>] has the right calculation but took the wrong operands"},
		// nothing else is said
		{"The answer is 23.5 but should be 42.", "The answer is <n> but should be <n>"},
		{"It confuses Return on Equity of ACME Corp in 2023 with income.",
			"It confuses <name> on <name> of <name> in <n> with income"},
		{"The label is a * ((1 + r)^t - 1) / r, from a common shape.",
			"The label is <formula>, from a common shape"},
		{"It is sqrt(2 * d * k / h) or total_assets / net_income.", "It is <formula> or <formula>"},
		{"Rounded - too early - then.", "Rounded - too early - then"},
		{"Rounded too early!\nThen more.", "Rounded too early"},
		{"", ""},
		// an answer with sentences of its own, a truncated one, and a label within a number
		{`The answer "23.5" is wrong: it says "It grew. A lot." The year was ignored.`, "The year was ignored"},
		{"The answer \"23\"… is wrong. None of 423 rows was read.", "None of <n> rows was read"},
		{"The answer is 23.5. It read 420 rows. Then more.", "It read <n> rows"},
	} {
		if got := causeIn(c.insights, "23.5", "42"); got != c.want {
			t.Errorf("%q: %q, want %q", c.insights, got, c.want)
		}
	}
}

// Wrong answers are grouped by cause, whatever their data sets: that of the memo, or of the history for older
// runs. A run whose history is not read yet is in no group.
func TestWrongGroups(t *testing.T) {
	f := Facts{Ends: map[string]Ending{}, Reasons: map[string]Reason{}}
	for i, cause := range []string{"no recipe", "no recipe", "wrong operands", "", ""} {
		r := runs.Run{RunID: fmt.Sprint(i), Dataset: fmt.Sprint("set", i), Status: ace.Completed,
			Verdict: ace.Wrong,
			Close:   time.Unix(int64(9-i), 0), Summary: &ace.Summary{Cause: cause, Answer: fmt.Sprint(i),
				Expected: "7"}}
		f.Closed = append(f.Closed, r)
	}
	f.Reasons["3"] = Reason{Cause: "no recipe", Answer: "3", Expected: "7", Insights: "No recipe is known."}
	t1 := f.Analyze(time.Unix(10, 0))
	if len(t1.Groups) != 2 || t1.Grouped != 4 {
		t.Fatalf("%+v", t1.Groups)
	}
	g := t1.Groups[0]
	if g.Pattern != "no recipe" || g.Count != 3 || g.Verdict != ace.Wrong || !g.Exact() ||
		len(g.Reasons) != 3 ||
		g.Last.Reason.Answer != "0" || g.Reasons[2].Insights == "" ||
		g.Query() != "RunId IN ('0', '1', '3')" {
		t.Errorf("%+v", g)
	}
}

// The newest run of each cause is read for its example, and every run whose memo states no cause.
func TestReasonOfHistory(t *testing.T) {
	label := "42"
	s := &ace.State{TaskAnswers: ace.TaskAnswers{AnswerState: ace.AnswerState{Answer: "23.5"}},
		Input: ace.TaskInput{Prompt: "What is\n 6 times 7?", Label: &label}}
	s.Insights = `The answer "23.5" is wrong. Divided instead.`
	want := Reason{"What is 6 times 7?", "23.5", "42", "Divided instead", s.Insights}
	if got := reasonOf(s, nil); got != want {
		t.Errorf("%+v", got)
	}
	s.Cause = "wrong operation"
	if got := reasonOf(s, nil); got.Cause != s.Cause {
		t.Errorf("%+v", got)
	}
	s.Cause, s.Insights = "", ""
	if got := reasonOf(s, &ace.Summary{Skills: 1}); got.Cause != "wrong answer; no tool call succeeded" {
		t.Errorf("%+v", got)
	}
}

// The insights of the built-in learner in runs of earlier versions, which state no cause, give the causes that
// it states today.
func TestCausesOfEarlierVersions(t *testing.T) {
	const wrong = `The answer "0.0" is wrong: the label is "14.99". `
	const known = "Ratio: compute a / b as [calc-00001] says (helpful 1, harmful 0; 1 of 2 known recipes fit). " +
		"Look it up."
	const unknown = "Ratio: no recipe is known. Guess: the first number over the second."
	const best = " calculations tried the most plausible that gives the label is "
	const none = "no recipe was known for the formula"
	for _, c := range []struct{ insights, want string }{
		{"Of 86" + best + "a / b, from a common shape.", none},
		{"Of 9" + best + "exp(a), from the prompt's formula.", none},
		{"[calc-00012] would have given it.", "another known recipe gives the label"},
		{"None of 512 calculations tried with the question's 3 quantities gives the label.",
			"no calculation tried gives the label"},
		{"[calc-00012] has the right calculation but took the wrong operands.",
			"right calculation, wrong operands"},
		{"The prompt names no formula or the label is not a number, so there is no recipe to learn.",
			"no formula to learn: none is named, or the label is not a number"},
	} {
		insights, want := c.insights, c.want
		s := &ace.State{Input: ace.TaskInput{Provider: ace.Builtin}}
		s.Insights, s.Plan = wrong+insights, unknown
		if got := reasonOf(s, nil).Cause; got != want {
			t.Errorf("%s: %q, want %q", insights, got, want)
		}
		s.Plan = known
		if want == none {
			want = "the known recipes calculate something else"
		}
		if got := reasonOf(s, nil).Cause; got != want {
			t.Errorf("%s: %q, want %q", insights, got, want)
		}
	}
}
