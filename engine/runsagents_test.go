package engine_test

import (
	"strings"
	"testing"
	"time"

	"acescope/engine/agents/session"
	"acescope/engine/tasks/run"
	"acescope/engine/tasks/runner"
)

// TestRunsOfAgents executes runs by agents in real sessions.
func TestRunsOfAgents(t *testing.T) {
	t.Parallel()
	s := newRunEnv(t, false)
	s.startWorker(nil)
	s.open(clientOptions)
	s.startRunner(member{Runner: "r", Agents: true, Slots: 8})
	s.startParent("parent")

	t.Run("start and resume", func(t *testing.T) {
		in := s.startRun(run.Request{AgentName: "writer", Prompt: "a poem"})
		r := s.expectResult(in, run.Completed, "")
		if string(r.Output) != `"reply 1 to: a poem"` || r.OutputIs != "text" || r.Turn != 1 ||
			r.Usage.CostUSD == 0 || r.Runner != "r" {
			t.Errorf("%+v", r)
		}
		again, err := s.runs.Resume(t.Context(), run.Request{SessionID: in.SessionID, Prompt: "another"})
		if err != nil {
			t.Fatal(err)
		}
		if r := s.expectResult(again, run.Completed, ""); string(r.Output) != `"reply 2 to: another"` ||
			r.Turn != 2 {
			t.Errorf("%+v", r)
		}
		if _, err := s.e.Stop(t.Context(), in.SessionID, session.Note{}); err != nil {
			t.Fatal(err)
		}
		s.waitSession(in.SessionID, hasEnded)
		if _, err := s.runs.Resume(t.Context(),
			run.Request{SessionID: in.SessionID, Prompt: "more"}); err == nil {
			t.Error("an ended session was resumed")
		}
	})
	t.Run("stopped", func(t *testing.T) {
		in := s.startRun(run.Request{AgentName: "writer", Prompt: "SCENARIO: hang",
			ParentSessionID: "parent"})
		s.waitRun(in, hasStatus(run.Running))
		s.agent.Await("hang", 1)
		if _, err := s.runs.Stop(t.Context(), in.RunID, run.StopRequest{Reason: "enough"}); err != nil {
			t.Fatal(err)
		}
		if r := s.expectResult(in, run.Stopped, ""); r.Error != "enough" {
			t.Errorf("%+v", r)
		}
		if st := s.waitSession(in.SessionID,
			func(st session.State) bool { return st.Current == nil }); !st.Open() {
			t.Error("the session ended with its run")
		}
	})
	t.Run("out of time", func(t *testing.T) {
		in := s.startRun(run.Request{AgentName: "short", Prompt: "SCENARIO: hang", ParentSessionID: "parent"})
		if r := s.expectResult(in, run.Failed, run.Timeout); r.Error != "it did not end within 2s" {
			t.Errorf("%+v", r)
		}
	})
	t.Run("fails", func(t *testing.T) {
		in := s.startRun(run.Request{AgentName: "writer", Prompt: "SCENARIO: error",
			ParentSessionID: "parent"})
		s.expectResult(in, run.Failed, run.AgentFailed)
	})
	t.Run("joined callbacks", func(t *testing.T) {
		if _, err := s.e.Send(t.Context(), "parent", messageOf("SCENARIO: gate fold; say on")); err != nil {
			t.Fatal(err)
		}
		s.agent.Await("gate", 1)
		before := len(s.agent.Did("turn"))
		s.expectResult(s.startRun(run.Request{AgentName: "quick", ParentSessionID: "parent"}), run.Completed,
			"")
		s.expectResult(s.startRun(run.Request{AgentName: "writer", Prompt: "a line",
			ParentSessionID: "parent"}), run.Completed, "")
		s.waitSession("parent", func(st session.State) bool { return len(st.Queue) >= 2 })
		s.agent.Open("fold")
		s.waitSession("parent", func(st session.State) bool {
			return st.Current == nil && len(st.Queue) == 0
		})
		turns := s.agent.Did("turn")[before:]
		if last := turns[len(turns)-1].Text; strings.Count(last, "<agent-callback") < 2 {
			t.Errorf("the callbacks arrived in several turns: %q", last)
		}
	})
	t.Run("drained", func(t *testing.T) { // the runner waits for its run
		p := s.startRunnerProcess(member{Runner: "leaving", Agents: true, Tags: []string{"leaving"}})
		in := s.startRun(run.Request{AgentName: "writer", Prompt: "SCENARIO: gate leave; say bye",
			Requirements: requireTags("leaving"), ParentSessionID: "parent"})
		s.waitRun(in, hasStatus(run.Running))
		s.agent.Await("gate", 2)
		p.terminate()
		s.waitFor(func() error {
			for _, r := range s.view().Runners {
				if r.ID == "leaving" && r.Status == runner.Draining {
					return nil
				}
			}
			return errNotYet
		})
		s.agent.Open("leave")
		s.expectResult(in, run.Completed, "")
		p.await()
	})
	t.Run("runner killed and back", func(t *testing.T) { // the agent's session continues
		m := member{Runner: "back", Agents: true, Tags: []string{"back"}}
		p := s.startRunnerProcess(m)
		in := s.startRun(run.Request{AgentName: "writer", Prompt: "SCENARIO: gate back; say here",
			Requirements: requireTags("back"), ParentSessionID: "parent"})
		s.waitRun(in, hasStatus(run.Running))
		s.agent.Await("gate", 3)
		p.kill()
		s.startRunnerProcess(m)
		s.agent.Open("back")
		s.expectResult(in, run.Completed, "")
	})
	t.Run("runner removed", func(t *testing.T) {
		p := s.startRunnerProcess(member{Runner: "removed", Agents: true, Tags: []string{"removed"},
			Stale: 2 * time.Second, Remove: time.Second})
		in := s.startRun(run.Request{AgentName: "writer", Prompt: "SCENARIO: hang",
			Requirements: requireTags("removed"), ParentSessionID: "parent"})
		s.waitRun(in, hasStatus(run.Running))
		p.kill()
		if r := s.expectResult(in, run.Failed, run.RunnerLost); !strings.Contains(r.Error, "is gone") {
			t.Errorf("%+v", r)
		}
		s.waitSession(in.SessionID, func(st session.State) bool { return st.Current == nil })
	})
	s.checkSettled()
}
