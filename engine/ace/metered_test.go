package ace

import (
	"maps"
	"testing"
)

// A summary meters the steps that no agent's CLI executed and no original of a fork.
func TestMetered(t *testing.T) {
	one := &Usage{InputTokens: 1, CostUSD: 0.5}
	for name, c := range map[string]struct {
		in     TaskInput
		reused bool
		want   ModelUsage
	}{
		"provider": {TaskInput{Model: "m", Provider: "anthropic"}, false,
			ModelUsage{"m": {InputTokens: 2, CostUSD: 1}}},
		"agent": {TaskInput{Model: "m", Provider: "claude"}, false, nil},
		"both": {TaskInput{Model: "m", Provider: "codex",
			Steps: map[string]string{"curator": "openai"}}, false, ModelUsage{"m": *one}},
		"reused": {TaskInput{Model: "m", Provider: "anthropic"}, true, ModelUsage{"m": *one}},
		"observed agent": {TaskInput{Model: "m", Observation: Observation{Observed: true, Source: "claude"}},
			false, nil},
		"observed other": {TaskInput{Model: "m", Observation: Observation{Observed: true,
			Source: "pipeline"}}, false,
			ModelUsage{"m": {InputTokens: 2, CostUSD: 1}}},
	} {
		c.in.Revision = 2
		s := State{Input: c.in, Execution: Execution{Steps: []StepState{{Phase: PhaseGenerator, Usage: one,
			Reused: c.reused},
			{Phase: PhaseCurator, Usage: one}, {Phase: PhasePersist}}}}
		got := s.Summary().Metered
		if (got == nil) != (c.want == nil) || got != nil && !maps.Equal(*got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
		s.Input.Revision = 1
		if got := s.Summary().Metered; got != nil {
			t.Errorf("%s: a run of an earlier version has %v", name, got)
		}
	}
}

// Usage of evaluations that transcripts of an agent's CLI also have is not metered.
func TestMeteredEvaluations(t *testing.T) {
	used := Usage{InputTokens: 3}
	reflects := map[string]string{"reflector": "claude"}
	for name, c := range map[string]struct {
		in      ExperimentInput
		metered bool
	}{
		"model":     {ExperimentInput{Provider: "anthropic"}, true},
		"agent":     {ExperimentInput{Provider: "claude"}, false},
		"reflector": {ExperimentInput{Provider: "openai", Steps: reflects}, true},
		"judge":     {ExperimentInput{Provider: "openai", Steps: reflects, Grader: GraderJudge}, false},
	} {
		c.in.Revision = Revision
		c.in.Model = "m"
		s := ExperimentState{Input: c.in}
		s.Progress.TotalEpochs = 1
		s.Progress.Eval = []EvalResult{{Usage: used}}
		got := s.Summary().Metered
		if (got != nil) != c.metered || got != nil && !maps.Equal(*got, ModelUsage{"m": used}) {
			t.Errorf("%s: %v", name, got)
		}
	}
}
