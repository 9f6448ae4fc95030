package runner_test

import (
	"testing"

	"acescope/engine/runner"
)

// TestRecall holds that a table which knows nothing takes in what an earlier one had decided,
// whichever comes first, the run or its runner.
func TestRecall(t *testing.T) {
	for _, runFirst := range []bool{true, false} {
		table := runner.NewTable()
		table.NumberFrom(1000)
		holds := asks("has", runner.Demands{ExecutorType: runner.Deterministic})
		holds.Kind, holds.Held = runner.Holds, &runner.Claim{Number: 1007, RunnerID: "r", Epoch: 3}
		comes := registered("r", 3, offer("h", 1))
		all := runner.Notices{asks("has", runner.Demands{}), comes, holds, holds, asks("waits", runner.Demands{})}
		if runFirst {
			all = runner.Notices{holds, comes, asks("waits", runner.Demands{})}
		}
		for _, n := range all {
			table.Apply(n, noon)
		}
		if got := table.Match(noon); len(got) != 0 {
			t.Fatalf("%+v", got)
		}
		v := carry(t, table).View(runner.ViewOptions{}, 1)
		if len(v.Runners) != 1 || v.Runners[0].Busy != 1 || v.Runners[0].Status != runner.Online || v.Waiting != 1 {
			t.Fatalf("%+v", v)
		}
		table.Apply(runner.Notice{Kind: runner.Release, Run: "has", Claim: 1007}, noon)
		if got := table.Match(noon); len(got) != 1 || got[0].RunID != "waits" || got[0].Claimed.Number <= 1007 {
			t.Fatalf("%+v", got)
		}
	}
}

// TestTakesOver holds who may be a runner while another process's lease lives.
func TestTakesOver(t *testing.T) {
	var s runner.LeaseState
	reg := func(token, last string) runner.Registration {
		return runner.Registration{ID: "r", Token: token, Last: last, Capabilities: offer("h", 1)}
	}
	first := s.Register(reg("a", ""), noon)
	for _, last := range []string{"", "b", "z"} {
		if err, held := s.Check("r", reg("b", last)); err == nil || !held {
			t.Errorf("last %q: %v", last, err)
		}
	}
	if err, _ := s.Check("r", reg("b", "a")); err != nil {
		t.Fatal(err)
	}
	if second := s.Register(reg("b", "a"), noon); second.Epoch <= first.Epoch || second.Queue == first.Queue {
		t.Errorf("%+v after %+v", second, first)
	}
}
