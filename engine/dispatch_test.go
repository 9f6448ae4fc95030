package engine_test

import (
	"context"
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

func tags(t ...string) askFor { return askFor{Demands: runner.Requirements{Tags: t}} }

func withTags(t ...string) func(*runner.Registration) {
	return func(r *runner.Registration) { r.Capabilities.Tags = t }
}

// TestDispatch checks the assignment of runs to runners on a real server.
func TestDispatch(t *testing.T) {
	y := newYard(t, openWith(t, engine.Options{DataDir: t.TempDir(), NoRunner: true}))
	for _, c := range []struct {
		name string
		test func(*yard)
	}{
		{"match", match}, {"stale", stale}, {"removed", removed}, {"drained", drained}, {"again", registeredAgain},
		{"two with one identity", twoWithOneIdentity}, {"refused", badRegistration}, {"nobody", nobody}, {"ended", endedUnheard},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.test(&yard{y.Engine, t})
		})
	}
}

func match(y *yard) {
	for i := range 3 {
		y.start(fmt.Sprint("match-", i), tags("match"))
		y.sees(func(v runner.View) bool { return waitingFor(v, "match") == i+1 })
	}
	r := y.runner("match", withTags("match", "linux"))
	c := y.claimed("match-0", "match")
	if c.Queue != r.lease.Queue || c.SessionQueue != "sessions.match" || c.Try != 1 || c.Capabilities.Hostname != "web-1" {
		y.t.Errorf("claim %+v, lease %+v", c, r.lease)
	}
	y.finish("match-0")
	y.claimed("match-1", "match")
	if err := y.Client.CancelWorkflow(y.t.Context(), run.WorkflowID("match-1"), ""); err != nil {
		y.t.Fatal(err)
	}
	y.claimed("match-2", "match")
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
func stale(y *yard) {
	r := y.runner("stale", func(r *runner.Registration) { r.Capabilities.Tags, r.HeartbeatMS = []string{"stale"}, 1000 })
	y.sees(is("stale", runner.Online))
	r.frozen.Store(true)
	y.sees(is("stale", runner.Stale))
	y.start("stale-1", tags("stale"))
	y.sees(func(v runner.View) bool { return waitingFor(v, "stale") == 1 })
	r.frozen.Store(false)
	<-r.lost // the next heartbeat tells that the lease is gone
	was := r.lease
	if err := r.register(); err != nil || r.lease != was {
		y.t.Fatalf("%+v in place of %+v: %v", r.lease, was, err)
	}
	y.claimed("stale-1", "stale")
	y.sees(is("stale", runner.Online))
}

// removed checks that a lost runner's agent runs are notified.
func removed(y *yard) {
	r := y.runner("removed", func(r *runner.Registration) { r.Capabilities.Tags, r.RemoveMS = []string{"removed"}, 1000 })
	y.start("removed-1", askFor{Demands: runner.Requirements{Tags: []string{"removed"}, ExecutorType: runner.ClaudeCode}})
	c := y.claimed("removed-1", "removed")
	r.stop()
	h := y.hears("removed-1", func(h heard) bool { return len(h.Lost) > 0 })
	if h.Lost[0].Claim != c.Number || h.Lost[0].RunnerID != "removed" {
		y.t.Errorf("%+v", h)
	}
	y.sees(is("removed", runner.Gone))
	// It may come again, and its workflow with it.
	y.start("removed-2", tags("removed"))
	y.runner("removed", withTags("removed"))
	y.claimed("removed-2", "removed")
}

func drained(y *yard) {
	r := y.runner("drained", withTags("drained"))
	y.start("drained-1", tags("drained"))
	y.claimed("drained-1", "drained")
	info, err := y.update("drained", runner.UpdateDrain, runner.Note{Reason: "maintenance", By: "somebody"})
	if err != nil || info.Status != runner.Draining || info.Reason != "maintenance" {
		y.t.Fatalf("%+v, %v", info, err)
	}
	y.sees(is("drained", runner.Draining))
	y.finish("drained-1")
	y.start("drained-2", tags("drained"))
	y.sees(func(v runner.View) bool { return waitingFor(v, "drained") == 1 })
	if _, err := y.update("drained", runner.UpdateLeave, runner.Note{Token: "another"}); err == nil {
		y.t.Error("another process lets it leave")
	}
	if info, err := y.update("drained", runner.UpdateLeave, runner.Note{Token: r.reg.Token}); err != nil || info.Status != runner.Gone {
		y.t.Fatalf("%+v, %v", info, err)
	}
	y.sees(is("drained", runner.Gone))
	if err := y.Client.GetWorkflow(y.t.Context(), runner.WorkflowID("drained"), "").Get(y.t.Context(), nil); err != nil {
		y.t.Error(err)
	}
}

// registeredAgain checks that the runs of a dead process do not occupy the slots of the next one.
func registeredAgain(y *yard) {
	first := y.runner("again", withTags("again"))
	y.start("again-1", tags("again"))
	y.claimed("again-1", "again")
	y.start("again-2", tags("again"))
	y.sees(func(v runner.View) bool { return waitingFor(v, "again") == 1 })
	first.stop()
	y.sees(is("again", runner.Stale))
	second := y.runner("again", withTags("again"))
	if second.lease.Epoch <= first.lease.Epoch || second.lease.Queue == first.lease.Queue {
		y.t.Errorf("%+v after %+v", second.lease, first.lease)
	}
	if c := y.claimed("again-2", "again"); c.Epoch != second.lease.Epoch {
		y.t.Errorf("%+v", c)
	}
	y.finish("again-1") // it gives back what it does not have
	y.start("again-3", tags("again"))
	y.finish("again-2")
	y.claimed("again-3", "again")
}

func twoWithOneIdentity(y *yard) {
	first := y.runner("two", withTags("two"))
	_, err := y.register("two", nil)
	var refused *temporal.ApplicationError
	if !errors.As(err, &refused) || refused.Type() != runner.ErrTypeHeld || !strings.Contains(err.Error(), "pid 4711 on web-1, since ") {
		y.t.Errorf("the second: %v", err)
	}
	if err := first.register(); err != nil {
		y.t.Errorf("the first again: %v", err)
	}
	y.start("two-1", tags("two"))
	y.claimed("two-1", "two")
}

func badRegistration(y *yard) {
	for _, bad := range []func(*runner.Registration){
		func(r *runner.Registration) { r.Capabilities.Slots = 0 },
		func(r *runner.Registration) { r.Capabilities.Tags = []string{"no good"} },
		func(r *runner.Registration) { r.Capabilities.ExecutorTypes = nil },
	} {
		if _, err := y.register("bad", bad); err == nil {
			y.t.Error("it is taken")
		}
	}
	if _, err := y.register("bad", func(r *runner.Registration) { r.ID = "other" }); err != nil {
		y.t.Errorf("under its own id: %v", err)
	}
}

// nobody checks the answer to a run that no runner accepts.
func nobody(y *yard) {
	y.runner("nobody", withTags("nobody"))
	y.start("nobody-1", askFor{Demands: runner.Requirements{Tags: []string{"nobody", "playwright"}}, Within: time.Second})
	h := y.hears("nobody-1", func(h heard) bool { return len(h.Unmatched) > 0 })
	want := "no runner took it within 1s: nearest is nobody on web-1, which lacks tag playwright"
	if u := h.Unmatched[0]; u.Message != want || u.Reason != "no_runner" || u.Try != 1 {
		y.t.Errorf("%+v", u)
	}
	y.start("nobody-2", tags("no good"))
	h = y.hears("nobody-2", func(h heard) bool { return len(h.Unmatched) > 0 })
	if h.Unmatched[0].Reason != "bad_demands" {
		y.t.Errorf("%+v", h)
	}
}

// endedUnheard checks that the slot of an unreachable run is free at once.
func endedUnheard(y *yard) {
	y.start("ended-1", tags("ended"))
	y.sees(func(v runner.View) bool { return waitingFor(v, "ended") == 1 })
	if err := y.Client.TerminateWorkflow(y.t.Context(), run.WorkflowID("ended-1"), "", "a test"); err != nil {
		y.t.Fatal(err)
	}
	y.start("ended-2", tags("ended"))
	y.sees(func(v runner.View) bool { return waitingFor(v, "ended") == 2 })
	y.runner("ended", withTags("ended"))
	y.claimed("ended-2", "ended")
}

// TestDispatcherKilled kills the process that executes the dispatcher and hosts the server while
// runs wait; another process takes over both, and no run is lost.
func TestDispatcherKilled(t *testing.T) {
	t.Parallel()
	h := &house{t: t, dir: t.TempDir(), agent: agentclitest.New(t, "claude")}
	first := h.worker("")
	e, err := engine.Open(t.Context(), engine.Options{DataDir: h.dir, Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close(context.Background()) })
	y := newYard(t, e)
	const runs = 20
	for i := range runs {
		y.start(fmt.Sprint("run-", i), tags("x"))
	}
	y.sees(func(v runner.View) bool { return waitingFor(v, "x") == runs })
	h.worker("")
	first.kill()
	y.runner("r", func(r *runner.Registration) {
		r.Capabilities.Tags, r.Capabilities.Slots, r.HeartbeatMS = []string{"x"}, runs, 20_000
	})
	for i := range runs {
		y.claimed(fmt.Sprint("run-", i), "r")
	}
	v := y.sees(func(v runner.View) bool { return v.Running == runs })
	if v.Matched != runs || v.Waiting != 0 {
		t.Errorf("%+v", v)
	}
}
