package ace

import (
	"reflect"
	"testing"
)

// Failed items are counted and named, in whatever order the parts arrive. The accuracy does not cover them,
// and an evaluation is not the best one for their sake.
func TestFailedItems(t *testing.T) {
	parts := []EvaluateResult{{Tasks: 25, Correct: 20, Wrong: []int{3, 4}, FailedItems: FailedItems{3,
		[]int{7, 8, 9},
		"first"}}, {Tasks: 5, Correct: 5, FailedItems: FailedItems{}}, {Tasks: 2, FailedItems: FailedItems{2,
		[]int{30, 31}, "last"}}}
	want := EvalResult{Tasks: 32, Correct: 25, Accuracy: 25. / 27, Wrong: []int{3, 4},
		FailedItems: FailedItems{5, []int{7, 8, 9, 30, 31}, "first"}}
	for _, order := range [][]int{{0, 1, 2}, {2, 1, 0}, {1, 2, 0}} {
		s := &ExperimentState{}
		s.Apply(ExperimentFact{Input: &ExperimentInput{EvaluationPlan: EvaluationPlan{Eval: &Ref{},
			EvalTasks: 32,
			KeepBest:  true}}})
		for i, part := range order {
			if open := s.OpenEval(); (open == nil) != (i == 0) || open != nil && !open.Incomplete {
				t.Errorf("after %d parts: %+v is open", i, open)
			}
			s.Apply(ExperimentFact{Evaluated: &parts[part]})
		}
		e := s.Progress.Eval
		if len(e) != 1 || !reflect.DeepEqual(e[0], want) || e[0].Labeled() != 27 || s.OpenEval() != nil {
			t.Errorf("in order %v: %+v", order, e)
		}
		if failed, answered, all := s.FailedItems(); failed.Failed != 5 || answered != 32 || all != 32 ||
			failed.Text(all) != "5 of 32 failed" {
			t.Errorf("%+v of %d of %d", failed, answered, all)
		}
	}
	s := &ExperimentState{Input: ExperimentInput{EvaluationPlan: EvaluationPlan{EvalTasks: 10,
		KeepBest: true}}}
	s.Apply(ExperimentFact{Evaluated: &EvaluateResult{Tasks: 10, Correct: 6, Wrong: []int{0, 1, 2, 3}}})
	s.Apply(ExperimentFact{Evaluated: &EvaluateResult{Tasks: 10, Correct: 5,
		FailedItems: FailedItems{5, []int{5, 6, 7, 8, 9}, "why"}}})
	if b := s.Progress.Best; b == nil || b.Evaluation != 0 || b.Accuracy != 0.6 {
		t.Errorf("%+v is the best one", b)
	}
}
