package workflows_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	"acescope/engine/ace"
)

// Failed items of an evaluation do not fail the experiment, unless more than MaxFailed of the items failed,
// or all so far. Only the first evaluation reuses what an earlier run has answered.
func TestFailedItems(t *testing.T) {
	for _, c := range []struct {
		failed int // of each part
		share  float64
		want   string // in the error, "" if it completes
	}{
		{1, 0.5, ""}, {12, 0.5, ""}, {13, 0.5, ""}, {25, 0.99,
			"25 of 25 evaluation items failed; at most 99% may fail"},
		{13, 0.2, "26 of 50 evaluation items failed; at most 20% may fail; item 1: refused"},
	} {
		s := newStage(right)
		var mu sync.Mutex
		var answered []int
		register(s, ace.ActivityEvaluate, func(_ context.Context, in ace.EvaluateInput) (ace.EvaluateResult,
			error) {
			mu.Lock()
			defer mu.Unlock()
			if in.Answered != nil {
				answered = append(answered, in.From)
			}
			failed := min(c.failed, in.Count)
			if in.From == 50 {
				failed = 0
			}
			list := []int{}
			for i := range failed {
				list = append(list, in.From+i)
			}
			return ace.EvaluateResult{Tasks: in.Count, Correct: in.Count - failed,
				FailedItems: ace.FailedItems{Failed: failed, List: list, Why: "refused"}}, nil
		})
		in := experiment(1)
		in.EvalTasks, in.MaxFailed = 75, &c.share
		in.Answered = []ace.AnsweredPart{{Playbook: "v0", From: 25, Items: ace.Ref{SHA256: "x"}},
			{Playbook: "other", From: 50, Items: ace.Ref{SHA256: "y"}}}
		p, err := s.run(t, in)
		switch {
		case c.want != "":
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%+v: %v", c, err)
			}
		case err != nil || len(p.Eval) != 3 || p.Eval[0].Failed != 2*c.failed || p.Eval[0].Accuracy != 1 ||
			!slices.Equal(answered, []int{25}):
			t.Errorf("%+v: %+v, answered %v, %v", c, p, answered, err)
		}
	}
}
