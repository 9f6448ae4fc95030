package grade

import (
	"errors"
	"strings"
	"testing"

	"acescope/engine/ace"
)

func TestL7Graders(t *testing.T) {
	for _, c := range []struct {
		grader, answer, label string
		want                  float64
	}{
		{"", "33.333", "33.33", 1}, {"exact", " Yes", "yes", 1}, {"exact", "the answer is yes", "yes", 0},

		{"numeric:1%", "101", "100", 1}, {"numeric:1%", "101.1", "100", 0}, {"numeric:1%", "-99", "-100", 1},
		{"numeric:0.5", "The total is $1,234.50.", "1,234", 1}, {"numeric:0.5", "1235", "1,234", 0},
		{"numeric:0", "0.1", "0.1", 1}, {"numeric:0.1", "0.3", "0.2", 1}, {"numeric:1%", "none", "3", 0},
		{"numeric:1%", "yes", "Yes", 1}, {"numeric:5%", "about 1e6 of 3", "3", 1}, {"numeric:1%", "", "0", 0},

		{"choice", "B", "B", 1}, {"choice", "(b)", "B", 1}, {"choice", "b. Paris", "B) Paris", 1},
		{"choice", "C", "B", 0},
		{"choice", "A good reason for C is cost, so the answer is: (B).", "B", 1},
		{"choice", "I pick **D**", "d", 1},
		{"choice", "Options A and C fail. Answer: C", "A", 0}, {"choice", "I choose A", "A", 1},
		{"choice", "Paris", "B", 0},
		{"choice", "Paris", "paris", 1}, {"choice", "", "A", 0},

		{"tags", "Revenue, Assets, Debt", "Revenue,Assets,Debt", 1},
		{"tags", "revenue, Debt, Assets", "Revenue,Assets,Debt", 0.333333},
		{"tags", "Revenue", "Revenue,Assets", 0.5}, {"tags", "Revenue,Assets,Debt,Cash", "Revenue,Assets",
			0.5},
		{"tags", `["Revenue", "Assets"]`, "Revenue,Assets", 1},
		{"tags", "b: Debt\na: Assets", "a: Assets, b: Debt", 1},
		{"tags", "a: Debt", "a: Assets, b: Debt", 0}, {"tags", "", "Revenue", 0}, {"tags", "2.0", "2", 1},
	} {
		g, err := New(c.grader)
		if err != nil {
			t.Fatal(err)
		}
		if got := g.Grade(c.answer, c.label); got != c.want {
			t.Errorf("%s: %q for %q: %v, want %v", c.grader, c.answer, c.label, got, c.want)
		}
	}
	for _, name := range []string{"best", "numeric", "numeric:", "numeric:x", "numeric:-1", "numeric:NaN",
		"exact:1", "choice:2", "judge:1", "program", "program:", "program:A b", "program:\x1b[2J"} {
		if err := Check(name); !errors.Is(err, ErrUnknown) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, name := range []string{"judge", "program:unit-tests"} {
		if _, err := New(name); !errors.Is(err, ErrOutside) || Check(name) != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestL7Verdict(t *testing.T) {
	label := "Revenue,Assets"
	for _, c := range []struct {
		in      ace.ReflectorInput
		correct string
		score   float64 // -1 for none
	}{
		{ace.ReflectorInput{Answer: "x"}, "", -1},
		{ace.ReflectorInput{Answer: label, Label: &label}, "true", -1},
		{ace.ReflectorInput{Answer: "x", Label: &label, Grader: "exact"}, "false", -1},
		{ace.ReflectorInput{Answer: "Revenue", Label: &label, Grader: "tags"}, "false", 0.5},
		{ace.ReflectorInput{Answer: "revenue,assets", Label: &label, Grader: "tags"}, "true", 1},
		{ace.ReflectorInput{Answer: "x", Correct: new(false), Score: new(0.5)}, "false", 0.5},
		{ace.ReflectorInput{Label: &label, Grader: "judge", Correct: new(true), Score: new(1.0)}, "true", 1},
	} {
		correct, score, err := Verdict(c.in)
		got := map[bool]string{true: "true", false: "false"}[correct != nil && *correct]
		if correct == nil {
			got = ""
		}
		if err != nil || got != c.correct || (score == nil) != (c.score < 0) || score != nil &&
			*score != c.score {
			t.Errorf("%+v: %s %v, %v", c.in, got, score, err)
		}
	}
	for _, name := range []string{"best", "judge", "program:mine"} {
		if _, _, err := Verdict(ace.ReflectorInput{Label: &label, Grader: name}); err == nil {
			t.Errorf("%s graded", name)
		}
	}
}

func TestL7ParseScore(t *testing.T) {
	for output, want := range map[string]float64{
		`{"score": 0}`: 0, `{"score": 0.3333333}`: 0.333333, "{\"score\": 1}\n": 1,
		`{"score": 1, "note": ["x"]}`: 1, `{"correct": true}`: 1, `{"correct": false, "score": null}`: 0,
	} {
		if got, err := ParseScore(output); err != nil || got != want {
			t.Errorf("%s: %v, %v", output, got, err)
		}
	}
	for _, output := range []string{"", "1", "true", "null", "[]", "{}", `"correct"`, `{"correct": 1}`,
		`{"score": "1"}`, `{"score": 1.01}`, `{"score": -0.1}`, `{"score": 1e999}`,
		`{"score": 1, "correct": true}`, `{"correct": true} ok`, `{"correct": null}`} {
		if got, err := ParseScore(output); err == nil {
			t.Errorf("%s: %v", output, got)
		}
	}
}
