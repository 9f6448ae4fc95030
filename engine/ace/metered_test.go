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
		"provider":       {TaskInput{Model: "m", Provider: "anthropic"}, false, ModelUsage{"m": {InputTokens: 2, CostUSD: 1}}},
		"agent":          {TaskInput{Model: "m", Provider: "claude"}, false, nil},
		"both":           {TaskInput{Model: "m", Provider: "codex", Steps: map[string]string{"curator": "openai"}}, false, ModelUsage{"m": *one}},
		"reused":         {TaskInput{Model: "m", Provider: "anthropic"}, true, ModelUsage{"m": *one}},
		"observed agent": {TaskInput{Model: "m", Observed: true, Source: "claude"}, false, nil},
		"observed other": {TaskInput{Model: "m", Observed: true, Source: "pipeline"}, false, ModelUsage{"m": {InputTokens: 2, CostUSD: 1}}},
	} {
		c.in.Revision = 2
		s := State{Input: c.in, Steps: []StepState{{Phase: PhaseGenerator, Usage: one, Reused: c.reused},
			{Phase: PhaseCurator, Usage: one}, {Phase: PhasePersist}}}
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
