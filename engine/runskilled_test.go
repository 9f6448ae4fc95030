package engine_test

import (
	"os"
	"strings"
	"syscall"
	"testing"

	"acescope/engine/tasks/run"
	"acescope/engine/tasks/runner/host"
)

// TestRunsOfDeadRunners ends runners with open runs by SIGKILL, SIGTERM and SIGSTOP.
func TestRunsOfDeadRunners(t *testing.T) {
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("programs die with their parent on Linux only")
	}
	t.Parallel()
	s := newRunEnv(t, true)
	s.startWorker(nil)
	s.startParent("parent")
	for _, c := range []struct {
		name string
		test func(*runEnv, string)
	}{
		{"fails", runnerKilledFails}, {"moves", runnerKilledMoves}, {"fenced", runnerStoppedIsFenced},
		{"never started", runnerKilledBeforeStart}, {"program ignores SIGTERM", runnerKilledIgnoringSIGTERM},
		{"drains", runnerDrains},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			own := &runEnv{e: s.e, runs: s.runs, t: t, dir: s.dir, work: t.TempDir(), agent: s.agent}
			tag := strings.ReplaceAll(c.name, " ", "-")
			c.test(own, tag)
			own.checkSettled()
		})
	}
}

// runnerKilledFails checks that the program dies with the runner and the run fails.
func runnerKilledFails(s *runEnv, tag string) {
	a := s.startRunnerProcess(member{Runner: tag, Tags: []string{tag}})
	in := s.startRun(run.Request{AgentName: "gated", Requirements: requireTags(tag),
		ParentSessionID: "parent"})
	pid := s.pids(in, 1)[0]
	s.waitRun(in, hasStatus(run.Running))
	a.kill()
	waitDead(s.t, pid)
	r := s.expectResult(in, run.Failed, run.RunnerLost)
	if !strings.Contains(r.Error, "no heartbeat") || !strings.Contains(r.Error, "the program may have run") {
		s.t.Errorf("%q", r.Error)
	}
}

// runnerKilledMoves checks that a repeatable run moves to another runner.
func runnerKilledMoves(s *runEnv, tag string) {
	a := s.startRunnerProcess(member{Runner: tag + "-a", Tags: []string{tag}})
	in := s.startRun(run.Request{AgentName: "mover", Requirements: requireTags(tag),
		ParentSessionID: "parent"})
	s.pids(in, 1)
	s.startRunner(member{Runner: tag + "-b", Tags: []string{tag}})
	a.kill()
	pids := s.pids(in, 2)
	waitDead(s.t, pids[0])
	s.release(in)
	r := s.expectResult(in, run.Completed, "")
	if r.Runner != tag+"-b" {
		s.t.Errorf("%+v", r)
	}
	if st := s.waitRun(in, hasStatus(run.Completed)); len(st.Moves) != 1 || st.Moves[0].Runner != tag+"-a" ||
		st.Try != 2 {
		s.t.Errorf("%+v", st)
	}
}

// runnerStoppedIsFenced checks that the late result of a runner that was considered lost is
// rejected.
func runnerStoppedIsFenced(s *runEnv, tag string) {
	a := s.startRunnerProcess(member{Runner: tag + "-a", Tags: []string{tag}})
	in := s.startRun(run.Request{AgentName: "mover", Requirements: requireTags(tag),
		ParentSessionID: "parent"})
	s.pids(in, 1)
	s.waitRun(in, hasStatus(run.Running))
	s.startRunner(member{Runner: tag + "-b", Tags: []string{tag}})
	if err := a.Process.Signal(syscall.SIGSTOP); err != nil {
		s.t.Fatal(err)
	}
	s.pids(in, 2)
	s.release(in) // both programs end and report it
	first := s.expectResult(in, run.Completed, "")
	if err := a.Process.Signal(syscall.SIGCONT); err != nil {
		s.t.Fatal(err)
	}
	next := s.startRun(run.Request{AgentName: "quick", Requirements: requireTags(tag),
		ParentSessionID: "parent"})
	s.expectResult(next, run.Completed, "")
	if again := s.result(in); first.Runner != tag+"-b" || again.Runner != tag+"-b" ||
		again.Claim != first.Claim {
		s.t.Errorf("%+v, then %+v", first, again)
	}
}

// runnerKilledBeforeStart checks that a run moves if its runner dies before it starts.
func runnerKilledBeforeStart(s *runEnv, tag string) {
	a := s.startRunnerProcess(member{Runner: tag + "-a", Tags: []string{tag}})
	a.kill()
	in := s.startRun(run.Request{AgentName: "quick", Requirements: requireTags(tag),
		ParentSessionID: "parent"})
	if st := s.waitRun(in, func(st run.State) bool { return st.Claim != nil }); st.Claim.RunnerID != tag+
		"-a" {
		s.t.Errorf("%+v", st.Claim)
	}
	s.startRunner(member{Runner: tag + "-b", Tags: []string{tag}})
	if r := s.expectResult(in, run.Completed, ""); r.Runner != tag+"-b" {
		s.t.Errorf("%+v", r)
	}
}

// runnerKilledIgnoringSIGTERM checks that the next process of a runner ends a program that ignored SIGTERM.
func runnerKilledIgnoringSIGTERM(s *runEnv, tag string) {
	m := member{Runner: tag, Tags: []string{tag}}
	a := s.startRunnerProcess(m)
	in := s.startRun(run.Request{AgentName: "deaf", Requirements: requireTags(tag),
		ParentSessionID: "parent"})
	pid := s.pids(in, 1)[0]
	a.kill()
	s.expectResult(in, run.Failed, run.RunnerLost)
	if !isAlive(pid) {
		s.t.Error("the program ended by SIGTERM")
	}
	s.startRunnerProcess(m)
	if isAlive(pid) {
		s.t.Error("the program is still running after the runner returned")
	}
	s.expectResult(s.startRun(run.Request{AgentName: "quick", Requirements: requireTags(tag),
		ParentSessionID: "parent"}), run.Completed, "")
}

// runnerDrains checks that a stopping runner finishes its run and gets no other.
func runnerDrains(s *runEnv, tag string) {
	a := s.startRunnerProcess(member{Runner: tag + "-a", Tags: []string{tag}, Slots: 2})
	in := s.startRun(run.Request{AgentName: "gated", Requirements: requireTags(tag),
		ParentSessionID: "parent"})
	s.pids(in, 1)
	a.terminate()
	a.waitLine("runner " + string(host.Draining))
	late := s.startRun(run.Request{AgentName: "quick", Requirements: requireTags(tag),
		ParentSessionID: "parent"})
	s.waitFor(func() error {
		for _, q := range s.view().Queues {
			if q.Oldest == late.RunID {
				return nil
			}
		}
		return errNotYet
	})
	s.release(in)
	if r := s.expectResult(in, run.Completed, ""); r.Runner != tag+"-a" {
		s.t.Errorf("%+v", r)
	}
	a.await()
	s.startRunner(member{Runner: tag + "-b", Tags: []string{tag}})
	if r := s.expectResult(late, run.Completed, ""); r.Runner != tag+"-b" {
		s.t.Errorf("%+v", r)
	}
}

// TestRunsOfDeadWorkers kills the process that executes workflows before and after its calls to
// the server, while runs start, execute and end.
func TestRunsOfDeadWorkers(t *testing.T) {
	t.Parallel()
	for _, k := range []struct {
		name string
		killAt
	}{
		{"requests a runner", killAt{Method: "SignalWithStartWorkflowExecution", With: "enqueue"}},
		{"is assigned", killAt{Method: "RespondWorkflowTaskCompleted", With: "execute_run"}},
		{"calls back", killAt{Method: "RespondWorkflowTaskCompleted", With: "agent-callback"}},
		{"releases", killAt{Method: "SignalWithStartWorkflowExecution", With: `kind\":\"release`}},
		{"completes", killAt{Method: "RespondWorkflowTaskCompleted", With: "COMPLETE_WORKFLOW_EXECUTION"}},
		{"dispatcher continues", killAt{Method: "RespondWorkflowTaskCompleted",
			With: "CONTINUE_AS_NEW_WORKFLOW_EXECUTION"}},
	} {
		for _, after := range []bool{false, true} {
			kill, name := k.killAt, k.name+" before"
			if kill.After = after; after {
				name = k.name + " after"
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				workerKilled(newRunEnv(t, true), kill, k.name == "dispatcher continues")
			})
		}
	}
}

func workerKilled(s *runEnv, kill killAt, fill bool) {
	first := s.startWorker(&kill)
	s.startRunner(member{Runner: "r", Slots: 2})
	s.startParent("parent")
	gated := s.startRun(run.Request{AgentName: "gated", ParentSessionID: "parent"})
	for range 3 {
		s.startRun(run.Request{AgentName: "quick", ParentSessionID: "parent"})
	}
	if fill {
		s.fillDispatcher()
	}
	first.await()
	s.startWorker(nil)
	s.startRun(run.Request{AgentName: "quick", ParentSessionID: "parent"})
	s.release(gated)
	s.checkSettled()
	for _, in := range s.started {
		s.expectResult(in, run.Completed, "")
	}
}

// TestAllKilled kills all processes while runs wait, execute and end, and restarts them.
func TestAllKilled(t *testing.T) {
	t.Parallel()
	s := newRunEnv(t, false)
	members := []*process{s.startWorker(nil)}
	s.open(clientOptions)
	r := member{Runner: "r", Slots: 3, Agents: true}
	members = append(members, s.startRunnerProcess(r))
	s.startParent("parent")
	s.startParent("busy")
	if _, err := s.e.Send(t.Context(), "busy", messageOf("SCENARIO: gate busy; say done")); err != nil {
		t.Fatal(err)
	}
	s.agent.Await("gate", 1)
	done := s.startRun(run.Request{AgentName: "quick", ParentSessionID: "busy"})
	s.expectResult(done, run.Completed, "")
	running := s.startRun(run.Request{AgentName: "gated", ParentSessionID: "parent"})
	moves := s.startRun(run.Request{AgentName: "mover", ParentSessionID: "busy"})
	s.pids(running, 1)
	s.pids(moves, 1)
	agent := s.startRun(run.Request{AgentName: "writer", Prompt: "SCENARIO: gate agent; say written",
		ParentSessionID: "parent"})
	s.agent.Await("gate", 2)
	waits := s.startRun(run.Request{AgentName: "quick", ParentSessionID: "parent"})
	for _, p := range members {
		_ = p.Process.Kill()
	}
	for _, p := range members {
		p.await()
	}
	s.startWorker(nil)
	s.startRunnerProcess(r)
	s.agent.Open("busy")
	s.agent.Open("agent")
	s.release(moves)
	s.expectResult(waits, run.Completed, "")
	s.expectResult(running, run.Failed, run.RunnerLost)
	if got := s.expectResult(moves, run.Completed, ""); got.Claim == 0 {
		t.Errorf("%+v", got)
	}
	s.expectResult(agent, run.Completed, "")
	s.checkSettled()
}

// TestServerKilled kills the process that hosts the server and executes workflows; another
// process takes over, and a runner survives.
func TestServerKilled(t *testing.T) {
	t.Parallel()
	s := newRunEnv(t, false)
	first := s.startWorker(nil)
	s.open(clientOptions)
	s.startWorker(nil)
	s.startRunner(member{Runner: "r", Slots: 1})
	s.startParent("parent")
	running := s.startRun(run.Request{AgentName: "gated", ParentSessionID: "parent"})
	s.pids(running, 1)
	s.waitRun(running, hasStatus(run.Running))
	waits := s.startRun(run.Request{AgentName: "quick", ParentSessionID: "parent"})
	awaited := make(chan run.Result, 1)
	go func() { awaited <- s.result(waits) }() // across the end of the server
	first.kill()
	s.release(running)
	s.expectResult(running, run.Completed, "")
	if r := <-awaited; r.Status != run.Completed {
		t.Errorf("%+v", r)
	}
	s.checkSettled()
}
