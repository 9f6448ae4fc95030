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
	s := newEstate(t, false)
	s.serves(nil)
	s.open(optionsOfLooker)
	s.runner(member{Runner: "r", Agents: true, Slots: 8})
	s.parent("parent")

	t.Run("start and resume", func(t *testing.T) {
		in := s.start(run.Request{AgentName: "writer", Prompt: "a poem"})
		r := s.ends(in, run.Completed, "")
		if string(r.Output) != `"reply 1 to: a poem"` || r.OutputIs != "text" || r.Turn != 1 || r.Usage.CostUSD == 0 || r.Runner != "r" {
			t.Errorf("%+v", r)
		}
		again, err := s.runs.Resume(t.Context(), run.Request{SessionID: in.SessionID, Prompt: "another"})
		if err != nil {
			t.Fatal(err)
		}
		if r := s.ends(again, run.Completed, ""); string(r.Output) != `"reply 2 to: another"` || r.Turn != 2 {
			t.Errorf("%+v", r)
		}
		if _, err := s.e.Stop(t.Context(), in.SessionID, session.Note{}); err != nil {
			t.Fatal(err)
		}
		s.talks(in.SessionID, over)
		if _, err := s.runs.Resume(t.Context(), run.Request{SessionID: in.SessionID, Prompt: "more"}); err == nil {
			t.Error("a session was resumed that has ended")
		}
	})
	t.Run("stopped", func(t *testing.T) {
		in := s.start(run.Request{AgentName: "writer", Prompt: "SCENARIO: hang", ParentSessionID: "parent"})
		s.until(in, isNow(run.Running))
		s.agent.Await("hang", 1)
		if _, err := s.runs.Stop(t.Context(), in.RunID, run.StopRequest{Reason: "enough"}); err != nil {
			t.Fatal(err)
		}
		if r := s.ends(in, run.Stopped, ""); r.Error != "enough" {
			t.Errorf("%+v", r)
		}
		if st := s.talks(in.SessionID, func(st session.State) bool { return st.Current == nil }); !st.Open() {
			t.Error("the session has ended with its run")
		}
	})
	t.Run("out of time", func(t *testing.T) {
		in := s.start(run.Request{AgentName: "short", Prompt: "SCENARIO: hang", ParentSessionID: "parent"})
		if r := s.ends(in, run.Failed, run.Timeout); r.Error != "it did not end within 2s" {
			t.Errorf("%+v", r)
		}
	})
	t.Run("fails", func(t *testing.T) {
		in := s.start(run.Request{AgentName: "writer", Prompt: "SCENARIO: error", ParentSessionID: "parent"})
		s.ends(in, run.Failed, run.AgentFailed)
	})
	t.Run("folded", func(t *testing.T) {
		if _, err := s.e.Send(t.Context(), "parent", messageOf("SCENARIO: gate fold; say on")); err != nil {
			t.Fatal(err)
		}
		s.agent.Await("gate", 1)
		before := len(s.agent.Did("turn"))
		s.ends(s.start(run.Request{AgentName: "quick", ParentSessionID: "parent"}), run.Completed, "")
		s.ends(s.start(run.Request{AgentName: "writer", Prompt: "a line", ParentSessionID: "parent"}), run.Completed, "")
		s.talks("parent", func(st session.State) bool { return len(st.Queue) >= 2 })
		s.agent.Open("fold")
		s.talks("parent", func(st session.State) bool { return st.Current == nil && len(st.Queue) == 0 })
		turns := s.agent.Did("turn")[before:]
		if last := turns[len(turns)-1].Text; strings.Count(last, "<agent-callback") < 2 {
			t.Errorf("the callbacks are in several turns: %q", last)
		}
	})
	t.Run("drained", func(t *testing.T) { // its runner waits for it
		p := s.runnerProcess(member{Runner: "leaver", Agents: true, Tags: []string{"leaver"}})
		in := s.start(run.Request{AgentName: "writer", Prompt: "SCENARIO: gate leave; say bye", Requirements: demand("leaver"), ParentSessionID: "parent"})
		s.until(in, isNow(run.Running))
		s.agent.Await("gate", 2)
		p.term()
		s.soon(func() error {
			for _, r := range s.view().Runners {
				if r.ID == "leaver" && r.Status == runner.Draining {
					return nil
				}
			}
			return errNotYet
		})
		s.agent.Open("leave")
		s.ends(in, run.Completed, "")
		p.await()
	})
	t.Run("runner killed and back", func(t *testing.T) { // the agent's session goes on
		m := member{Runner: "back", Agents: true, Tags: []string{"back"}}
		p := s.runnerProcess(m)
		in := s.start(run.Request{AgentName: "writer", Prompt: "SCENARIO: gate back; say here", Requirements: demand("back"), ParentSessionID: "parent"})
		s.until(in, isNow(run.Running))
		s.agent.Await("gate", 3)
		p.kill()
		s.runnerProcess(m)
		s.agent.Open("back")
		s.ends(in, run.Completed, "")
	})
	t.Run("runner removed", func(t *testing.T) {
		p := s.runnerProcess(member{Runner: "removed", Agents: true, Tags: []string{"removed"}, Stale: 2 * time.Second, Remove: time.Second})
		in := s.start(run.Request{AgentName: "writer", Prompt: "SCENARIO: hang", Requirements: demand("removed"), ParentSessionID: "parent"})
		s.until(in, isNow(run.Running))
		p.kill()
		if r := s.ends(in, run.Failed, run.RunnerLost); !strings.Contains(r.Error, "is gone") {
			t.Errorf("%+v", r)
		}
		s.talks(in.SessionID, func(st session.State) bool { return st.Current == nil })
	})
	s.settled()
}
