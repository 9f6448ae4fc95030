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

		{"choice", "B", "B", 1}, {"choice", "(b)", "B", 1}, {"choice", "b. Paris", "B) Paris", 1}, {"choice", "C", "B", 0},
		{"choice", "A good reason for C is cost, so the answer is: (B).", "B", 1}, {"choice", "I pick **D**", "d", 1},
		{"choice", "Options A and C fail. Answer: C", "A", 0}, {"choice", "I choose A", "A", 1}, {"choice", "Paris", "B", 0},
		{"choice", "Paris", "paris", 1}, {"choice", "", "A", 0},

		{"tags", "Revenue, Assets, Debt", "Revenue,Assets,Debt", 1}, {"tags", "revenue, Debt, Assets", "Revenue,Assets,Debt", 0.333333},
		{"tags", "Revenue", "Revenue,Assets", 0.5}, {"tags", "Revenue,Assets,Debt,Cash", "Revenue,Assets", 0.5},
		{"tags", `["Revenue", "Assets"]`, "Revenue,Assets", 1}, {"tags", "b: Debt\na: Assets", "a: Assets, b: Debt", 1},
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
		"exact:1", "choice:2", "judge:1"} {
		if err := Check(name); !errors.Is(err, ErrUnknown) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := New("judge"); !errors.Is(err, ErrOutside) || Check("judge") != nil {
		t.Errorf("judge: %v", err)
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
		if err != nil || got != c.correct || (score == nil) != (c.score < 0) || score != nil && *score != c.score {
			t.Errorf("%+v: %s %v, %v", c.in, got, score, err)
		}
	}
	for _, name := range []string{"best", "judge"} {
		if _, _, err := Verdict(ace.ReflectorInput{Label: &label, Grader: name}); err == nil {
			t.Errorf("%s graded", name)
		}
	}
}
