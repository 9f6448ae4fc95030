package histories

import (
	"time"

	"acescope/engine/ace"
	"acescope/engine/temporal/compare"
	"acescope/sources/cluster"
)

// What is compared, as engine/temporal/compare has it.
type (
	Diff       = compare.Diff
	DiffPair   = compare.Pair
	DiffStep   = compare.Step
	DiffChange = compare.Change
	DiffMetric = compare.Metric
	DiffAbout  = compare.About
	Divergence = compare.Divergence
)

// Ways in which a pair of a [Diff] is; see engine/temporal/compare.
const (
	DiffSame       = compare.Same
	DiffChanged    = compare.Changed
	DiffOnlyA      = compare.OnlyA
	DiffOnlyB      = compare.OnlyB
	DiffMoved      = compare.Moved
	DiffNotReached = compare.NotReached
	DiffUnreadable = compare.Unreadable
)

// DiffDiffers tells whether a status says that the runs differ.
func DiffDiffers(status string) bool { return compare.Differs(status) }

// DiffRef names one of the two runs.
type DiffRef struct {
	WorkflowID string
	RunID      string // "" for the newest
	TaskID     string // for the eye; "" where there is none
}

// Name is what the run is called.
func (r DiffRef) Name() string {
	if r.TaskID != "" {
		return r.TaskID
	}
	return r.WorkflowID
}

// RunDiff is two runs side by side, as far as they are read. It is immutable.
type RunDiff struct {
	A, B         DiffRef
	AllFields    bool
	Reading      bool
	ReadA, ReadB int    // events
	ErrA, ErrB   string // why a side cannot be read, "" if it can
	Diff         *Diff  // nil until both are read
	Took         time.Duration
	Updated      time.Time
}

// ProgressEvery is how often it is said how far the reading is.
const ProgressEvery = 100 * time.Millisecond

// DiffSide is a chain as one side of a comparison.
func DiffSide(c cluster.Chain, artifact func(ref ace.Ref, limit int64) ([]byte, error)) compare.Side {
	side := compare.Side{Runs: c.Runs, RunIDs: c.RunIDs, Before: c.Before, Partial: c.Partial}
	if artifact != nil {
		side.Artifact = func(ref ace.Ref) ([]byte, error) { return artifact(ref, ArtifactLimit) }
	}
	return side
}
