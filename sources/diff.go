package sources

import (
	"context"
	"sync"
	"time"

	"acescope/engine/ace"
	"acescope/engine/compare"
)

// PartDiff is two runs side by side.
const PartDiff Part = "diff"

// What is compared, as engine/compare has it.
type (
	Diff       = compare.Diff
	DiffPair   = compare.Pair
	DiffStep   = compare.Step
	DiffChange = compare.Change
	DiffMetric = compare.Metric
	DiffAbout  = compare.About
	Divergence = compare.Divergence
)

// Ways in which a pair of a [Diff] is; see engine/compare.
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

// diffWish is which runs are to be compared.
type diffWish struct {
	a, b DiffRef
	all  bool
}

// DiffRuns compares two runs, with all also in what differs between any two. It clears
// what was compared before.
func (s *Store) DiffRuns(a, b DiffRef, all bool) {
	s.mu.Lock()
	s.diff = diffWish{a, b, all}
	s.mu.Unlock()
	s.update(func(snap *Snapshot) { snap.RunDiff = &RunDiff{A: a, B: b, AllFields: all, Reading: true} })
	s.again(PartDiff)
}

// progressEvery is how often it is said how far the reading is.
const progressEvery = 100 * time.Millisecond

// readDiff reads the two runs and compares them, unless that is done already.
func (s *Store) readDiff(ctx context.Context, d Deps) {
	s.mu.Lock()
	wish, now := s.diff, s.snap.RunDiff
	s.mu.Unlock()
	if wish.a.WorkflowID == "" || now != nil && !now.Reading && now.A == wish.a && now.B == wish.b && now.AllFields == wish.all {
		return
	}
	publish := func(r RunDiff) {
		s.update(func(snap *Snapshot) {
			if s.diff == wish && ctx.Err() == nil {
				snap.RunDiff = &r
			}
		})
	}
	working, progress, end := s.StartWork(ctx, "comparing two runs")
	defer end()
	var mu sync.Mutex
	r := RunDiff{A: wish.a, B: wish.b, AllFields: wish.all, Reading: true}
	var said time.Time
	count := func(at *int) func(int) {
		return func(n int) {
			mu.Lock()
			defer mu.Unlock()
			if *at = n; time.Since(said) > progressEvery {
				said = time.Now()
				progress(int64(r.ReadA+r.ReadB), 0)
				publish(r)
			}
		}
	}
	began := time.Now()
	// Two runs under one workflow id may be of one chain.
	alone := wish.a.WorkflowID == wish.b.WorkflowID && wish.a.RunID != wish.b.RunID
	sides := make([]compare.Side, 2)
	errs := make([]error, 2)
	var wg sync.WaitGroup
	for i, side := range []struct {
		ref  DiffRef
		read *int
	}{{wish.a, &r.ReadA}, {wish.b, &r.ReadB}} {
		wg.Go(func() {
			var chain Chain
			chain, errs[i] = ReadChain(working, d.Client, d.Namespace, side.ref.WorkflowID, side.ref.RunID, alone, count(side.read))
			sides[i] = DiffSide(chain, d.Artifact)
		})
	}
	wg.Wait()
	r.Reading, r.Updated = false, s.now()
	for i, err := range errs {
		if err == nil {
			continue
		}
		said := plainError(err)
		if working.Err() != nil && ctx.Err() == nil {
			said = "reading was stopped"
		}
		*[]*string{&r.ErrA, &r.ErrB}[i] = said
	}
	if r.ErrA == "" && r.ErrB == "" {
		r.Diff = compare.Of(sides[0], sides[1], compare.Options{AllFields: wish.all})
		r.Took = time.Since(began)
	}
	publish(r)
}

// DiffSide is a chain as one side of a comparison.
func DiffSide(c Chain, artifact func(ref ace.Ref, limit int64) ([]byte, error)) compare.Side {
	side := compare.Side{Runs: c.Runs, RunIDs: c.RunIDs, Before: c.Before, Partial: c.Partial}
	if artifact != nil {
		side.Artifact = func(ref ace.Ref) ([]byte, error) { return artifact(ref, ArtifactLimit) }
	}
	return side
}
