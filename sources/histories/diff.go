package histories

import (
	"context"
	"sync"
	"time"

	"acescope/engine/ace"
	"acescope/engine/temporal/compare"
	"acescope/sources/cluster"
	"acescope/sources/feed"
)

// DiffRef names one of the two runs.
type DiffRef struct {
	WorkflowID string
	RunID      string // "" for the newest
	TaskID     string // for display, may be ""
}

// Name returns the task id, or the workflow id.
func (r DiffRef) Name() string {
	if r.TaskID != "" {
		return r.TaskID
	}
	return r.WorkflowID
}

// RunDiff is the comparison of two runs, as far as they are read. It is immutable.
type RunDiff struct {
	A, B         DiffRef
	AllFields    bool
	Reading      bool
	ReadA, ReadB int           // number of events
	ErrA, ErrB   string        // why a run cannot be read
	Diff         *compare.Diff // nil until both are read
	Duration     time.Duration
	Updated      time.Time
}

// progressEvery is the time between two reports of progress.
const progressEvery = 100 * time.Millisecond

// DiffSide returns a chain as one side of a comparison.
func DiffSide(
	ctx context.Context, c cluster.Chain, artifact func(ctx context.Context, ref ace.Ref,
		limit int64) ([]byte, error),
) compare.Side {
	side := compare.Side{Runs: c.Runs, RunIDs: c.RunIDs, Before: c.Before, Partial: c.Partial}
	if artifact != nil {
		side.Artifact = func(ref ace.Ref) ([]byte, error) { return artifact(ctx, ref, ArtifactLimit) }
	}
	return side
}

// DiffAsk names the two runs to compare. With AllFields, fields that differ between any two runs are compared
// too.
type DiffAsk struct {
	A, B      DiffRef
	AllFields bool
}

// NewDiffFeed returns a feed that compares two runs.
func NewDiffFeed(link *cluster.Link) *feed.Feed[DiffAsk, *RunDiff] {
	return feed.New(link.Wake, func(ctx context.Context, ask DiffAsk, publish func(*RunDiff)) {
		readDiff(ctx, link, ask, publish)
	})
}

// readDiff reads both runs and compares them.
func readDiff(ctx context.Context, link *cluster.Link, ask DiffAsk, publish func(*RunDiff)) {
	r := RunDiff{A: ask.A, B: ask.B, AllFields: ask.AllFields, Reading: true}
	show := func() { c := r; publish(&c) }
	show()
	working, progress, end := link.StartWork(ctx, "comparing two runs")
	defer end()
	var mu sync.Mutex
	var shown time.Time
	count := func(at *int) func(int) {
		return func(n int) {
			mu.Lock()
			defer mu.Unlock()
			if *at = n; time.Since(shown) > progressEvery {
				shown = time.Now()
				progress(int64(r.ReadA+r.ReadB), 0)
				show()
			}
		}
	}
	began := time.Now()
	// With the same workflow id, the runs may belong to one chain.
	alone := ask.A.WorkflowID == ask.B.WorkflowID && ask.A.RunID != ask.B.RunID
	var sides [2]compare.Side
	var failed [2]string
	var wg sync.WaitGroup
	for i, ref := range []DiffRef{ask.A, ask.B} {
		read := count([]*int{&r.ReadA, &r.ReadB}[i])
		wg.Go(func() {
			chain, err := link.ReadChain(working, ref.WorkflowID, ref.RunID, alone, read)
			sides[i] = DiffSide(working, chain, link.Artifact)
			failed[i] = cluster.PlainError(err)
			if err != nil && working.Err() != nil && ctx.Err() == nil {
				failed[i] = "reading was canceled"
			}
		})
	}
	wg.Wait()
	r.Reading, r.Updated = false, link.Now()
	r.ErrA, r.ErrB = failed[0], failed[1]
	if r.ErrA == "" && r.ErrB == "" {
		r.Diff = compare.Of(sides[0], sides[1], compare.Options{AllFields: ask.AllFields})
		r.Duration = time.Since(began)
	}
	end() // before the result is published
	show()
}
