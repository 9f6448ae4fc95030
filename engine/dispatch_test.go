package engine_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/temporal"

	"acescope/engine"
	"acescope/engine/agents/agentcli/agentclitest"
	"acescope/engine/tasks/run"
	"acescope/engine/tasks/runner"
)

func tags(t ...string) stubInput { return stubInput{Demands: runner.Requirements{Tags: t}} }

func withTags(t ...string) func(*runner.Registration) {
	return func(r *runner.Registration) { r.Capabilities.Tags = t }
}

// TestDispatch checks the assignment of runs to runners on a real server.
func TestDispatch(t *testing.T) {
	t.Parallel()
	env := newDispatchEnv(t, openWith(t, engine.Options{DataDir: t.TempDir(), NoRunner: true}))
	for _, c := range []struct {
		name string
		test func(*dispatchEnv)
	}{
		{"match", match}, {"stale", stale}, {"removed", removed}, {"drained", drained},
		{"again", registeredAgain},
		{"two with one identity", sameIDTwice}, {"refused", badRegistration},
		{"no capable runner", noCapableRunner}, {"ended", terminatedWhileWaiting},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.test(&dispatchEnv{env.Engine, t})
		})
	}
}

func match(env *dispatchEnv) {
	for i := range 3 {
		env.startRun(fmt.Sprint("match-", i), tags("match"))
		env.waitView(func(v runner.View) bool { return waitingFor(v, "match") == i+1 })
	}
	r := env.startRunner("match", withTags("match", "linux"))
	c := env.waitClaim("match-0", "match")
	if c.Queue != r.lease.Queue || c.SessionQueue != "sessions.match" || c.Try != 1 ||
		c.Capabilities.Hostname != "web-1" {
		env.t.Errorf("claim %+v, lease %+v", c, r.lease)
	}
	env.finishRun("match-0")
	env.waitClaim("match-1", "match")
	if err := env.Client.CancelWorkflow(env.t.Context(), run.WorkflowID("match-1"), ""); err != nil {
		env.t.Fatal(err)
	}
	env.waitClaim("match-2", "match")
}

func waitingFor(v runner.View, tag string) int {
	for _, q := range v.Queues {
		if strings.Join(q.Requirements.Tags, " ") == tag {
			return q.Waiting
		}
	}
	return 0
}

// stale checks that a runner without heartbeats gets no runs until it sends them again.
func stale(env *dispatchEnv) {
	r := env.startRunner("stale", func(r *runner.Registration) {
		r.Capabilities.Tags, r.HeartbeatMS = []string{"stale"}, 1000
	})
	env.waitView(runnerHas("stale", runner.Online))
	r.frozen.Store(true)
	env.waitView(runnerHas("stale", runner.Stale))
	env.startRun("stale-1", tags("stale"))
	env.waitView(func(v runner.View) bool { return waitingFor(v, "stale") == 1 })
	r.frozen.Store(false)
	<-r.lost // the next heartbeat reports that the lease is lost
	was := r.lease
	if err := r.register(); err != nil || r.lease != was {
		env.t.Fatalf("%+v in place of %+v: %v", r.lease, was, err)
	}
	env.waitClaim("stale-1", "stale")
	env.waitView(runnerHas("stale", runner.Online))
}

// removed checks that a lost runner's agent runs are notified.
func removed(env *dispatchEnv) {
	r := env.startRunner("removed", func(r *runner.Registration) {
		r.Capabilities.Tags, r.RemoveMS = []string{"removed"}, 1000
	})
	env.startRun("removed-1", stubInput{Demands: runner.Requirements{Tags: []string{"removed"},
		ExecutorType: runner.ClaudeCode}})
	c := env.waitClaim("removed-1", "removed")
	r.stop()
	h := env.waitReceived("removed-1", func(h runMessages) bool { return len(h.Lost) > 0 })
	if h.Lost[0].Claim != c.Number || h.Lost[0].RunnerID != "removed" {
		env.t.Errorf("%+v", h)
	}
	env.waitView(runnerHas("removed", runner.Gone))
	// The runner may return; another workflow then holds its lease.
	env.startRun("removed-2", tags("removed"))
	env.startRunner("removed", withTags("removed"))
	env.waitClaim("removed-2", "removed")
}

func drained(env *dispatchEnv) {
	r := env.startRunner("drained", withTags("drained"))
	env.startRun("drained-1", tags("drained"))
	env.waitClaim("drained-1", "drained")
	info, err := env.update("drained", runner.UpdateDrain, runner.Note{Reason: "maintenance", By: "user"})
	if err != nil || info.Status != runner.Draining || info.Reason != "maintenance" {
		env.t.Fatalf("%+v, %v", info, err)
	}
	env.waitView(runnerHas("drained", runner.Draining))
	env.finishRun("drained-1")
	env.startRun("drained-2", tags("drained"))
	env.waitView(func(v runner.View) bool { return waitingFor(v, "drained") == 1 })
	if _, err := env.update("drained", runner.UpdateLeave, runner.Note{Token: "another"}); err == nil {
		env.t.Error("another process made the runner leave")
	}
	if info, err := env.update("drained", runner.UpdateLeave, runner.Note{Token: r.reg.Token}); err != nil ||
		info.Status != runner.Gone {
		env.t.Fatalf("%+v, %v", info, err)
	}
	env.waitView(runnerHas("drained", runner.Gone))
	if err := env.Client.GetWorkflow(env.t.Context(), runner.WorkflowID("drained"), "").Get(env.t.Context(),
		nil); err != nil {
		env.t.Error(err)
	}
}

// registeredAgain checks that the runs of a dead process do not occupy the slots of the next one.
func registeredAgain(env *dispatchEnv) {
	first := env.startRunner("again", withTags("again"))
	env.startRun("again-1", tags("again"))
	env.waitClaim("again-1", "again")
	env.startRun("again-2", tags("again"))
	env.waitView(func(v runner.View) bool { return waitingFor(v, "again") == 1 })
	first.stop()
	env.waitView(runnerHas("again", runner.Stale))
	second := env.startRunner("again", withTags("again"))
	if second.lease.Epoch <= first.lease.Epoch || second.lease.Queue == first.lease.Queue {
		env.t.Errorf("%+v after %+v", second.lease, first.lease)
	}
	if c := env.waitClaim("again-2", "again"); c.Epoch != second.lease.Epoch {
		env.t.Errorf("%+v", c)
	}
	env.finishRun("again-1") // it releases a slot that it no longer has
	env.startRun("again-3", tags("again"))
	env.finishRun("again-2")
	env.waitClaim("again-3", "again")
}

func sameIDTwice(env *dispatchEnv) {
	first := env.startRunner("two", withTags("two"))
	_, err := env.register("two", nil)
	var refused *temporal.ApplicationError
	if !errors.As(err, &refused) || refused.Type() != runner.ErrTypeHeld ||
		!strings.Contains(err.Error(), "pid 4711 on web-1, since ") {
		env.t.Errorf("the second process: %v", err)
	}
	if err := first.register(); err != nil {
		env.t.Errorf("the first process again: %v", err)
	}
	env.startRun("two-1", tags("two"))
	env.waitClaim("two-1", "two")
}

func badRegistration(env *dispatchEnv) {
	for _, bad := range []func(*runner.Registration){
		func(r *runner.Registration) { r.Capabilities.Slots = 0 },
		func(r *runner.Registration) { r.Capabilities.Tags = []string{"no good"} },
		func(r *runner.Registration) { r.Capabilities.ExecutorTypes = nil },
	} {
		if _, err := env.register("bad", bad); err == nil {
			env.t.Error("the registration was accepted")
		}
	}
	if _, err := env.register("bad", func(r *runner.Registration) { r.ID = "other" }); err != nil {
		env.t.Errorf("another ID in the registration: %v", err)
	}
}

// noCapableRunner checks the answer to a run that no runner accepts.
func noCapableRunner(env *dispatchEnv) {
	env.startRunner("idle", withTags("idle"))
	env.startRun("unserved-1", stubInput{Demands: runner.Requirements{Tags: []string{"idle", "playwright"}},
		Within: time.Second})
	h := env.waitReceived("unserved-1", func(h runMessages) bool { return len(h.Unmatched) > 0 })
	want := "no runner took it within 1s: nearest is idle on web-1, which lacks tag playwright"
	if u := h.Unmatched[0]; u.Message != want || u.Reason != "no_runner" || u.Try != 1 {
		env.t.Errorf("%+v", u)
	}
	env.startRun("unserved-2", tags("no good"))
	h = env.waitReceived("unserved-2", func(h runMessages) bool { return len(h.Unmatched) > 0 })
	if h.Unmatched[0].Reason != "bad_demands" {
		env.t.Errorf("%+v", h)
	}
}

// terminatedWhileWaiting checks that the slot of an unreachable run is free at once.
func terminatedWhileWaiting(env *dispatchEnv) {
	env.startRun("ended-1", tags("ended"))
	env.waitView(func(v runner.View) bool { return waitingFor(v, "ended") == 1 })
	if err := env.Client.TerminateWorkflow(env.t.Context(), run.WorkflowID("ended-1"), "",
		"a test"); err != nil {
		env.t.Fatal(err)
	}
	env.startRun("ended-2", tags("ended"))
	env.waitView(func(v runner.View) bool { return waitingFor(v, "ended") == 2 })
	env.startRunner("ended", withTags("ended"))
	env.waitClaim("ended-2", "ended")
}

// TestDispatcherKilled kills the process that executes the dispatcher and hosts the server while
// runs wait; another process takes over both, and no run is lost.
func TestDispatcherKilled(t *testing.T) {
	t.Parallel()
	h := &sessionEnv{t: t, dir: t.TempDir(), agent: agentclitest.New(t, "claude")}
	first := h.startWorker("")
	e := openEngine(t, engine.Options{DataDir: h.dir})
	env := newDispatchEnv(t, e)
	const runs = 20
	for i := range runs {
		env.startRun(fmt.Sprint("run-", i), tags("x"))
	}
	env.waitView(func(v runner.View) bool { return waitingFor(v, "x") == runs })
	h.startWorker("")
	first.kill()
	env.startRunner("r", func(r *runner.Registration) {
		r.Capabilities.Tags, r.Capabilities.Slots, r.HeartbeatMS = []string{"x"}, runs, 20_000
	})
	for i := range runs {
		env.waitClaim(fmt.Sprint("run-", i), "r")
	}
	v := env.waitView(func(v runner.View) bool { return v.Running == runs })
	if v.Matched != runs || v.Waiting != 0 {
		t.Errorf("%+v", v)
	}
}
