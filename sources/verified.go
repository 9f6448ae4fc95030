package sources

import (
	"time"

	"acescope/engine/temporal/replay"
	"acescope/sources/histories"
	"acescope/sources/runs"
)

// Outcomes of verifying, and the kind of a drift, as views know them.
const (
	VerifyChanged    = replay.KindChanged
	VerifySame       = replay.Same
	VerifyDiverged   = replay.Diverged
	VerifyDrifted    = replay.Drifted
	VerifyUnverified = replay.Unverified
)

// Verified is what verifying many runs has found so far. It is immutable.
//
// Bounds: of the runs that are not the same the first [MaxVerified] are held, of the same
// ones the first [MaxSame]; the rest is counted.
type Verified struct {
	Of     VerifyWish
	Began  time.Time
	Ended  time.Time // zero while it goes on
	Broken bool      // it was stopped, or broke off, before the end
	Done   int64
	Total  int64 // 0 while it is not known

	Same, Diverged, Drifted, Unverified int64

	Events int64
	Rows   []VerifiedRun // that are not the same, then the same ones, each in the order in which they ended
	Err    string        // why the runs could not be listed to the end
}

// Bounds of what is held.
const (
	MaxVerified = 5000
	MaxSame     = 1000
)

// VerifiedRun is a run and its verdict.
type VerifiedRun struct {
	Run     runs.Run
	Verdict histories.ReplayVerdict
	At      time.Time
	Took    time.Duration
}

// Dropped is how many runs are counted and not held.
func (v *Verified) Dropped() int64 { return v.Done - int64(len(v.Rows)) }

// of is the verdict of a run, nil where it has none.
func (v *Verified) of(sel selection) (verdict *histories.ReplayVerdict, strict bool, at time.Time) {
	if v == nil {
		return nil, false, time.Time{}
	}
	for i := range v.Rows {
		if r := &v.Rows[i]; r.Run.WorkflowID == sel.workflowID && r.Run.RunID == sel.runID {
			return &r.Verdict, v.Of.Strict, r.At
		}
	}
	return nil, false, time.Time{}
}

// VerifyWish is which runs are to be verified: those given, else all that match the query.
type VerifyWish struct {
	Runs   []runs.Run
	Query  string
	Strict bool
}

// verifiedEvery bounds how often the list is shown while it grows.
const verifiedEvery = 100 * time.Millisecond

// countTimeout bounds the counting of what is to be verified, which can do without.
const countTimeout = 5 * time.Second
