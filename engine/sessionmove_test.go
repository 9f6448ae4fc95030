package engine_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"go.temporal.io/sdk/client"

	"acescope/engine/agents/session"
)

// TestSessionMachineLost checks that a session whose machine is gone in the middle of a turn is
// moved, and that the agent there gets the turn's message and the recorded turns.
func TestSessionMachineLost(t *testing.T) {
	h := newSessionEnv(t)
	h.startWorker("")
	h.startSession("s", func(in *session.Input) {
		in.First = &session.Message{ID: "m1", Text: "remember this"}
	})
	h.waitSession("s", turnsEnded(1))
	away, err := h.Client.UpdateWorkflow(t.Context(), client.UpdateWorkflowOptions{
		WorkflowID: session.WorkflowID("s"), UpdateName: session.UpdateMove,
		WaitForStage: client.WorkflowUpdateStageCompleted,
		Args:         []any{session.Move{Host: session.Host{Name: "gone", Queue: "session.gone"}}}})
	if err != nil || away.Get(t.Context(), nil) != nil {
		t.Fatal(err)
	}
	config := h.agent.ConfigDir()
	if err := errors.Join(os.RemoveAll(config), os.Mkdir(config, 0o700), os.RemoveAll(h.work),
		os.Mkdir(h.work, 0o700)); err != nil {
		t.Fatal(err)
	}
	other := t.TempDir() // the warm process has the old directory
	h.sendMessage("s", "m2", "and now")
	h.waitSession("s", func(s session.State) bool { return s.Current != nil })
	if _, err := h.Move(t.Context(), "s", other, session.Note{By: "ada"}); err != nil {
		t.Fatal(err)
	}
	s := h.waitSession("s", func(s session.State) bool { return len(s.Recent) == 3 && s.Current == nil })
	r := s.Recent[2]
	if r.Status != session.TurnCompleted || r.Rebuilt == nil || !strings.Contains(r.Text, "and now") ||
		s.MovedFrom != "gone" {
		t.Errorf("%+v; moved from %s", r, s.MovedFrom)
	}
	if s.Recent[1].Status == session.TurnCompleted || s.Input.WorkingDir != other || len(s.Queue) != 0 {
		t.Errorf("%+v", s)
	}
}
