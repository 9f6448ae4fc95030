package histories

import (
	"fmt"
	"testing"

	"acescope/engine/temporal/replay"
	"acescope/sources/runs"
)

// TestUnverifiedAreGrouped checks that runs that are unverified for one reason share rows when they are many,
// and that they displace no other run.
func TestUnverifiedAreGrouped(t *testing.T) {
	m := &manyVerifier{progress: func(int64, int64) {}, reasons: map[string]reason{}}
	add := func(outcome replay.Outcome, why string) {
		m.add(VerifiedRun{Run: runs.Run{RunID: fmt.Sprint(m.out.Done)},
			Verdict: replay.Verdict{Outcome: outcome, Why: why}})
	}
	add(replay.Unverified, "another reason")
	for range 6000 {
		add(replay.Unverified, "the type is unknown")
	}
	add(replay.Nondeterministic, "")
	add(replay.Unverified, "another reason")
	if n := len(m.others); n != maxSameReason+3 || m.out.Unverified != 6002 || m.out.Nondeterministic != 1 {
		t.Errorf("%d rows, %+v", n, m.out)
	}
	if first := m.others[1]; first.More != 6000-maxSameReason || m.others[0].More != 0 {
		t.Errorf("%d more, %d more", first.More, m.others[0].More)
	}
}
