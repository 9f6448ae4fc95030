package workflows_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	"acescope/engine/ace"
)

// TestAblation plans two rounds of trials, answers each item once over several runs of a chain, and creates
// the branch of the pruned playbook.
func TestAblation(t *testing.T) {
	in := ace.ExperimentInput{ExperimentID: "x", PlaybookHash: "whole", Adapter: ace.Offline, Parallel: 2,
		EvaluationPlan: ace.EvaluationPlan{Eval: &ace.Ref{}, EvalTasks: 30},
		Ablation:       &ace.Ablation{Budget: 200}}
	var mu sync.Mutex // activities run at the same time
	answered := map[string]int{}
	var heads []string
	for runs := 1; ; runs++ {
		s := newStage(right)
		register(s, ace.ActivityEvaluate, func(_ context.Context, in ace.EvaluateInput) (ace.EvaluateResult,
			error) {
			trials := "evaluation"
			if in.Trials != nil {
				trials = in.Trials.SHA256
			}
			mu.Lock()
			defer mu.Unlock()
			for i := range in.Count {
				answered[fmt.Sprintf("%s %d", trials, in.From+i)]++
			}
			items := ace.Ref{SHA256: fmt.Sprintf("%s-%d", trials, in.From)}
			return ace.EvaluateResult{Tasks: in.Count, Correct: in.Count, Usage: ace.Usage{InputTokens: 1},
				Items: &items}, nil
		})
		register(s, ace.ActivityPlanTrials,
			func(_ context.Context, in ace.PlanTrialsInput) (ace.PlanTrialsResult, error) {
				p := in.Progress
				if len(p.Evaluated) != 2 || in.Task.PlaybookHash != "whole" {
					t.Errorf("planned with %+v", in)
				}
				switch len(p.Rounds) {
				case 0:
					first := &ace.AblationRound{Trials: ace.Ref{SHA256: "first"}, Answers: 120}
					return ace.PlanTrialsResult{Skipped: 3, Round: first}, nil
				case 1:
					return ace.PlanTrialsResult{Round: &ace.AblationRound{Trials: ace.Ref{SHA256: "second"},
						Answers: 10}}, nil
				}
				return ace.PlanTrialsResult{Pruned: &ace.Pruned{Playbook: "pruned", Kept: true}}, nil
			})
		register(s, ace.ActivityHead, func(_ context.Context, in ace.HeadInput) (ace.HeadResult, error) {
			heads = append(heads, in.Branch+" "+in.Initial)
			return ace.HeadResult{PlaybookHash: in.Initial, Branch: in.Branch}, nil
		})
		started := 0
		s.SetOnActivityStartedListener(func(*activity.Info, context.Context, converter.EncodedValues) {
			if started++; started == 4 {
				s.SetContinueAsNewSuggested(true)
			}
		})
		p, err := s.run(t, in)
		var again *workflow.ContinueAsNewError
		if errors.As(err, &again) {
			in = ace.ExperimentInput{}
			if err := converter.GetDefaultDataConverter().FromPayloads(again.Input, &in); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		a := p.Ablation
		done, planned := a.Answers()
		if runs < 2 || !a.Done || done != 130 || planned != 130 || a.Skipped != 3 ||
			len(a.Rounds[0].Items) != 5 ||
			a.Pruned.Branch != "x-pruned" || p.Usage.InputTokens != 8 || len(p.Eval) != 1 ||
			p.Stage != ace.StageDone {
			t.Errorf("%d runs, %d of %d answers, %+v", runs, done, planned, p)
		}
		break
	}
	if len(answered) != 160 || !slices.Equal(heads, []string{"x-pruned pruned"}) {
		t.Errorf("%d answers, heads %q", len(answered), heads)
	}
	for item, n := range answered {
		if n != 1 {
			t.Errorf("%s was answered %d times", item, n)
		}
	}
}
