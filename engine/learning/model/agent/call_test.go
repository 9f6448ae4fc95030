package agent

import (
	"errors"
	"testing"

	"acescope/engine/ace"
	"acescope/engine/agents/agentcall"
	"acescope/engine/agents/agentcli"
	"acescope/engine/learning/model"
)

// TestMissingAgent checks that a step whose agent is missing on this worker is left to another one.
func TestMissingAgent(t *testing.T) {
	for _, class := range []agentcli.Class{agentcli.ClassMissing, agentcli.ClassTooOld} {
		err := failure(t.Context(), &agentcall.Result{Retry: true,
			AgentResult: ace.AgentResult{ExitClass: string(class), Provider: "codex"}})
		e, ok := errors.AsType[*model.Error](err)
		if !ok || e.Kind != model.NoAgent || e.Permanent() {
			t.Errorf("%s: %+v", class, err)
		}
	}
}
