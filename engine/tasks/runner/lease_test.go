package runner_test

import (
	"testing"

	"acescope/engine/tasks/runner"
)

// TestTakeOver checks which process may register while another process holds the lease.
func TestTakeOver(t *testing.T) {
	var s runner.LeaseState
	reg := func(token, last string) runner.Registration {
		return runner.Registration{ID: "r", Token: token, LastToken: last, Capabilities: offer("h", 1)}
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
