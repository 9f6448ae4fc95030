package engine_test

import (
	"os"
	"strings"
	"sync"
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
	s := newEstate(t, true)
	s.serves(nil)
	s.parent("parent")
	var all sync.WaitGroup
	defer all.Wait() // side by side, as in TestRunsOfDeadWorkers
	for _, c := range []struct {
		name string
		test func(*estate, string)
	}{
		{"fails", runnerKilledFails}, {"moves", runnerKilledMoves}, {"fenced", runnerStoppedIsFenced},
		{"never began", runnerKilledBeforeItBegan}, {"deaf program", runnerKilledDeaf}, {"drains", runnerDrains},
	} {
		all.Go(func() {
			t.Run(c.name, func(t *testing.T) {
				own := &estate{e: s.e, runs: s.runs, t: t, dir: s.dir, work: t.TempDir(), agent: s.agent}
				tag := strings.ReplaceAll(c.name, " ", "-")
				c.test(own, tag)
				own.settled()
			})
		})
	}
}

// runnerKilledFails checks that the program dies with the runner and the run fails.
func runnerKilledFails(s *estate, tag string) {
	a := s.runnerProcess(member{Runner: tag, Tags: []string{tag}})
	in := s.start(run.Request{AgentName: "gated", Requirements: demand(tag), ParentSessionID: "parent"})
	pid := s.pids(in, 1)[0]
	s.until(in, isNow(run.Running))
	a.kill()
	s.dead(pid)
	r := s.ends(in, run.Failed, run.RunnerLost)
	if !strings.Contains(r.Error, "no heartbeat") || !strings.Contains(r.Error, "the program may have run") {
		s.t.Errorf("%q", r.Error)
	}
}

// runnerKilledMoves checks that a repeatable run moves to another runner.
func runnerKilledMoves(s *estate, tag string) {
	a := s.runnerProcess(member{Runner: tag + "-a", Tags: []string{tag}})
	in := s.start(run.Request{AgentName: "mover", Requirements: demand(tag), ParentSessionID: "parent"})
	s.pids(in, 1)
	s.runner(member{Runner: tag + "-b", Tags: []string{tag}})
	a.kill()
	pids := s.pids(in, 2)
	s.dead(pids[0])
	s.lets(in)
	r := s.ends(in, run.Completed, "")
	if r.Runner != tag+"-b" {
		s.t.Errorf("%+v", r)
	}
	if st := s.until(in, isNow(run.Completed)); len(st.Moves) != 1 || st.Moves[0].Runner != tag+"-a" || st.Try != 2 {
		s.t.Errorf("%+v", st)
	}
}

// runnerStoppedIsFenced checks that the late result of a runner that was considered lost is
// rejected.
func runnerStoppedIsFenced(s *estate, tag string) {
	a := s.runnerProcess(member{Runner: tag + "-a", Tags: []string{tag}})
	in := s.start(run.Request{AgentName: "mover", Requirements: demand(tag), ParentSessionID: "parent"})
	s.pids(in, 1)
	s.until(in, isNow(run.Running))
	s.runner(member{Runner: tag + "-b", Tags: []string{tag}})
	if err := a.Process.Signal(syscall.SIGSTOP); err != nil {
		s.t.Fatal(err)
	}
	s.pids(in, 2)
	s.lets(in) // both programs end, and both say that they have
	first := s.ends(in, run.Completed, "")
	if err := a.Process.Signal(syscall.SIGCONT); err != nil {
		s.t.Fatal(err)
	}
	next := s.start(run.Request{AgentName: "quick", Requirements: demand(tag), ParentSessionID: "parent"})
	s.ends(next, run.Completed, "")
	if again := s.result(in); first.Runner != tag+"-b" || again.Runner != tag+"-b" || again.Claim != first.Claim {
		s.t.Errorf("%+v, then %+v", first, again)
	}
}

// runnerKilledBeforeItBegan checks that a run moves if its runner dies before it starts.
func runnerKilledBeforeItBegan(s *estate, tag string) {
	a := s.runnerProcess(member{Runner: tag + "-a", Tags: []string{tag}})
	a.kill()
	in := s.start(run.Request{AgentName: "quick", Requirements: demand(tag), ParentSessionID: "parent"})
	if st := s.until(in, func(st run.State) bool { return st.Claim != nil }); st.Claim.RunnerID != tag+"-a" {
		s.t.Errorf("%+v", st.Claim)
	}
	s.runner(member{Runner: tag + "-b", Tags: []string{tag}})
	if r := s.ends(in, run.Completed, ""); r.Runner != tag+"-b" {
		s.t.Errorf("%+v", r)
	}
}

// runnerKilledDeaf checks that the next process of a runner ends a program that ignored SIGTERM.
func runnerKilledDeaf(s *estate, tag string) {
	m := member{Runner: tag, Tags: []string{tag}}
	a := s.runnerProcess(m)
	in := s.start(run.Request{AgentName: "deaf", Requirements: demand(tag), ParentSessionID: "parent"})
	pid := s.pids(in, 1)[0]
	a.kill()
	s.ends(in, run.Failed, run.RunnerLost)
	if !lives(pid) {
		s.t.Error("the program has heeded SIGTERM")
	}
	s.runnerProcess(m)
	if lives(pid) {
		s.t.Error("the program lives, and its runner works again")
	}
	s.ends(s.start(run.Request{AgentName: "quick", Requirements: demand(tag), ParentSessionID: "parent"}), run.Completed, "")
}

// runnerDrains checks that a stopping runner finishes its run and gets no other.
func runnerDrains(s *estate, tag string) {
	a := s.runnerProcess(member{Runner: tag + "-a", Tags: []string{tag}, Slots: 2})
	in := s.start(run.Request{AgentName: "gated", Requirements: demand(tag), ParentSessionID: "parent"})
	s.pids(in, 1)
	a.term()
	a.says("runner " + string(host.Draining))
	late := s.start(run.Request{AgentName: "quick", Requirements: demand(tag), ParentSessionID: "parent"})
	s.soon(func() error {
		for _, q := range s.view().Queues {
			if q.Oldest == late.RunID {
				return nil
			}
		}
		return errNotYet
	})
	s.lets(in)
	if r := s.ends(in, run.Completed, ""); r.Runner != tag+"-a" {
		s.t.Errorf("%+v", r)
	}
	a.await()
	s.runner(member{Runner: tag + "-b", Tags: []string{tag}})
	if r := s.ends(late, run.Completed, ""); r.Runner != tag+"-b" {
		s.t.Errorf("%+v", r)
	}
}

// TestRunsOfDeadWorkers kills the process that executes workflows before and after its calls to
// the server, while runs start, execute and end.
func TestRunsOfDeadWorkers(t *testing.T) {
	t.Parallel()
	var all sync.WaitGroup // side by side, however many tests are otherwise: each waits most of its time
	for _, k := range []struct {
		name string
		killAt
	}{
		{"asks", killAt{Method: "SignalWithStartWorkflowExecution", With: "enqueue"}},
		{"is given", killAt{Method: "RespondWorkflowTaskCompleted", With: "execute_run"}},
		{"calls back", killAt{Method: "RespondWorkflowTaskCompleted", With: "agent-callback"}},
		{"releases", killAt{Method: "SignalWithStartWorkflowExecution", With: `kind\":\"release`}},
		{"completes", killAt{Method: "RespondWorkflowTaskCompleted", With: "COMPLETE_WORKFLOW_EXECUTION"}},
		{"dispatcher continues", killAt{Method: "RespondWorkflowTaskCompleted", With: "CONTINUE_AS_NEW_WORKFLOW_EXECUTION"}},
	} {
		for _, after := range []bool{false, true} {
			kill, name := k.killAt, k.name+" before"
			if kill.After = after; after {
				name = k.name + " after"
			}
			all.Go(func() {
				t.Run(name, func(t *testing.T) { workerKilled(newEstate(t, true), kill, k.name == "dispatcher continues") })
			})
		}
	}
	all.Wait()
}

func workerKilled(s *estate, kill killAt, fill bool) {
	first := s.serves(&kill)
	s.runner(member{Runner: "r", Slots: 2})
	s.parent("parent")
	gated := s.start(run.Request{AgentName: "gated", ParentSessionID: "parent"})
	for range 3 {
		s.start(run.Request{AgentName: "quick", ParentSessionID: "parent"})
	}
	if fill {
		s.fillDispatcher()
	}
	first.await()
	s.serves(nil)
	s.start(run.Request{AgentName: "quick", ParentSessionID: "parent"})
	s.lets(gated)
	s.settled()
	for _, in := range s.started {
		s.ends(in, run.Completed, "")
	}
}

// TestAllKilled kills all processes while runs wait, execute and end, and restarts them.
func TestAllKilled(t *testing.T) {
	t.Parallel()
	s := newEstate(t, false)
	members := []*process{s.serves(nil)}
	s.open(optionsOfLooker)
	r := member{Runner: "r", Slots: 3, Agents: true}
	members = append(members, s.runnerProcess(r))
	s.parent("parent")
	s.parent("busy")
	if _, err := s.e.Send(t.Context(), "busy", messageOf("SCENARIO: gate busy; say done")); err != nil {
		t.Fatal(err)
	}
	s.agent.Await("gate", 1)
	done := s.start(run.Request{AgentName: "quick", ParentSessionID: "busy"})
	s.ends(done, run.Completed, "")
	running := s.start(run.Request{AgentName: "gated", ParentSessionID: "parent"})
	moves := s.start(run.Request{AgentName: "mover", ParentSessionID: "busy"})
	s.pids(running, 1)
	s.pids(moves, 1)
	agent := s.start(run.Request{AgentName: "writer", Prompt: "SCENARIO: gate agent; say written", ParentSessionID: "parent"})
	s.agent.Await("gate", 2)
	waits := s.start(run.Request{AgentName: "quick", ParentSessionID: "parent"})
	for _, p := range members {
		_ = p.Process.Kill()
	}
	for _, p := range members {
		p.await()
	}
	s.serves(nil)
	s.runnerProcess(r)
	s.agent.Open("busy")
	s.agent.Open("agent")
	s.lets(moves)
	s.ends(waits, run.Completed, "")
	s.ends(running, run.Failed, run.RunnerLost)
	if got := s.ends(moves, run.Completed, ""); got.Claim == 0 {
		t.Errorf("%+v", got)
	}
	s.ends(agent, run.Completed, "")
	s.settled()
}

// TestServerKilled kills the process that hosts the server and executes workflows; another
// process takes over, and a runner survives.
func TestServerKilled(t *testing.T) {
	t.Parallel()
	s := newEstate(t, false)
	first := s.serves(nil)
	s.open(optionsOfLooker)
	s.serves(nil)
	s.runner(member{Runner: "r", Slots: 1})
	s.parent("parent")
	running := s.start(run.Request{AgentName: "gated", ParentSessionID: "parent"})
	s.pids(running, 1)
	s.until(running, isNow(run.Running))
	waits := s.start(run.Request{AgentName: "quick", ParentSessionID: "parent"})
	awaited := make(chan run.Result, 1)
	go func() { awaited <- s.result(waits) }() // over the death of the server
	first.kill()
	s.lets(running)
	s.ends(running, run.Completed, "")
	if r := <-awaited; r.Status != run.Completed {
		t.Errorf("%+v", r)
	}
	s.settled()
}
