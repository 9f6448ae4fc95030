package histories

import (
	"acescope/engine/temporal/compare"
	"acescope/sources/cluster"
	"acescope/sources/feed"
	"context"
	"sync"
	"time"
)

// DiffAsk names the two runs to compare. With AllFields, fields that differ between any two runs are compared too.
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
	var said time.Time
	count := func(at *int) func(int) {
		return func(n int) {
			mu.Lock()
			defer mu.Unlock()
			if *at = n; time.Since(said) > ProgressEvery {
				said = time.Now()
				progress(int64(r.ReadA+r.ReadB), 0)
				show()
			}
		}
	}
	began := time.Now()
	// Two runs under one workflow id may be of one chain.
	alone := ask.A.WorkflowID == ask.B.WorkflowID && ask.A.RunID != ask.B.RunID
	sides := make([]compare.Side, 2)
	errs := make([]error, 2)
	var wg sync.WaitGroup
	for i, side := range []struct {
		ref  DiffRef
		read *int
	}{{ask.A, &r.ReadA}, {ask.B, &r.ReadB}} {
		wg.Go(func() {
			var chain cluster.Chain
			chain, errs[i] = cluster.ReadChain(working, link.Client, link.Namespace, side.ref.WorkflowID, side.ref.RunID, alone, count(side.read))
			sides[i] = DiffSide(chain, link.Artifact)
		})
	}
	wg.Wait()
	r.Reading, r.Updated = false, link.Now()
	for i, err := range errs {
		if err == nil {
			continue
		}
		reason := cluster.PlainError(err)
		if working.Err() != nil && ctx.Err() == nil {
			reason = "reading was stopped"
		}
		*[]*string{&r.ErrA, &r.ErrB}[i] = reason
	}
	if r.ErrA == "" && r.ErrB == "" {
		r.Diff = compare.Of(sides[0], sides[1], compare.Options{AllFields: ask.AllFields})
		r.Took = time.Since(began)
	}
	show()
}
