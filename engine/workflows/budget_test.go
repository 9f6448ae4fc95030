package workflows_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"acescope/engine/ace"
)

// TestExperimentBudget checks that no task starts on a spent budget, that tasks at the same time share what
// is left, and that the evaluation after the tasks is left out.
func TestExperimentBudget(t *testing.T) {
	for _, parallel := range []int{1, 4} {
		s := newStage(right) // a task uses 5 tokens, a part of an evaluation 1
		in := experiment(60)
		in.Parallel, in.MaxTokens = parallel, 52
		p, err := s.run(t, in)
		if err != nil {
			t.Fatal(err)
		}
		if used := p.Usage.Tokens(); used < 52 || used >= 52+5*int64(parallel) || len(p.Eval) != 1 ||
			p.Epochs[0].Correct != len(s.started) || p.Status != ace.Completed ||
			p.Stopped != fmt.Sprintf("budget: %d of 52 tokens used", used) {
			t.Errorf("parallel %d: %d tasks started, %+v", parallel, len(s.started), p)
		}
		for _, task := range s.started {
			i, b := task.Index, task.Budget
			if b == nil || b.Tokens < 1 || parallel == 1 && b.Tokens != int64(50-5*i) ||
				i == 0 && b.Tokens != int64(50/parallel) {
				t.Errorf("parallel %d: task %d has the budget %+v", parallel, i, b)
			}
		}
	}
}

// TestExperimentBudgetOfTasks checks the tasks that end for want of budget: their usage counts, and the task
// itself only if it was graded.
func TestExperimentBudgetOfTasks(t *testing.T) {
	s := newStage(func(in ace.TaskInput) (ace.TaskResult, error) {
		r, err := right(in)
		if in.Index == 2 {
			r.Stopped, r.Correct = "budget: 6 of 5 tokens used", nil
		}
		return r, err
	})
	in := experiment(60)
	in.MaxCostUSD, in.Eval = 0.5, nil
	p, err := s.run(t, in)
	if err != nil || len(s.started) != 3 || p.Epochs[0].Tasks != 2 || p.Usage.OutputTokens != 15 ||
		!strings.HasPrefix(p.Stopped, "budget: $0 of $0.5 spent") {
		t.Errorf("%d tasks started, %+v, %v", len(s.started), p, err)
	}
}

// TestExperimentBudgetOfEvaluation checks that an evaluation without budget for all items is kept as
// incomplete.
func TestExperimentBudgetOfEvaluation(t *testing.T) {
	s := newStage(right)
	var mu sync.Mutex // activities run at the same time
	var given []int64
	register(s, ace.ActivityEvaluate, func(_ context.Context, in ace.EvaluateInput) (ace.EvaluateResult,
		error) {
		mu.Lock()
		defer mu.Unlock()
		given = append(given, in.Task.Budget.Tokens)
		return ace.EvaluateResult{Tasks: 10, Correct: 9, Wrong: []int{in.From}, Stopped: true,
			Usage: ace.Usage{InputTokens: 10}}, nil
	})
	in := experiment(60)
	in.EvalTasks, in.Parallel, in.MaxTokens, in.KeepBest = 100, 2, 21, true
	p, err := s.run(t, in)
	if err != nil || len(s.started) != 0 || len(given) != 2 || given[0] != 10 || given[1] != 10 {
		t.Fatalf("%d tasks started, budgets %v, %v", len(s.started), given, err)
	}
	if len(p.Eval) != 1 || !p.Eval[0].Incomplete || p.Eval[0].Tasks != 20 || p.Eval[0].Correct != 18 ||
		p.Best != nil ||
		p.Usage.InputTokens != 20 || !strings.HasPrefix(p.Stopped, "budget: 20 of 21 tokens used") {
		t.Errorf("%+v", p)
	}
}
