package sources

import (
	"context"
	"sync"
	"time"

	"acescope/engine/temporal/compare"
	"acescope/sources/cluster"
	"acescope/sources/histories"
)

// DiffRuns compares two runs. With all, it also compares fields that differ between any two runs.
func (s *Store) DiffRuns(a, b histories.DiffRef, all bool) { s.diff.Want(diffAsk{a, b, all}) }

// diffAsk names the two runs to compare.
type diffAsk struct {
	a, b histories.DiffRef
	all  bool
}

// readDiff reads both runs and compares them.
func (s *Store) readDiff(ctx context.Context, ask diffAsk, publish func(*histories.RunDiff)) {
	d := s.deps
	r := histories.RunDiff{A: ask.a, B: ask.b, AllFields: ask.all, Reading: true}
	show := func() { c := r; publish(&c) }
	show()
	working, progress, end := s.StartWork(ctx, "comparing two runs")
	defer end()
	var mu sync.Mutex
	var said time.Time
	count := func(at *int) func(int) {
		return func(n int) {
			mu.Lock()
			defer mu.Unlock()
			if *at = n; time.Since(said) > histories.ProgressEvery {
				said = time.Now()
				progress(int64(r.ReadA+r.ReadB), 0)
				show()
			}
		}
	}
	began := time.Now()
	// Two runs under one workflow id may be of one chain.
	alone := ask.a.WorkflowID == ask.b.WorkflowID && ask.a.RunID != ask.b.RunID
	sides := make([]compare.Side, 2)
	errs := make([]error, 2)
	var wg sync.WaitGroup
	for i, side := range []struct {
		ref  histories.DiffRef
		read *int
	}{{ask.a, &r.ReadA}, {ask.b, &r.ReadB}} {
		wg.Go(func() {
			var chain cluster.Chain
			chain, errs[i] = cluster.ReadChain(working, d.Client, d.Namespace, side.ref.WorkflowID, side.ref.RunID, alone, count(side.read))
			sides[i] = histories.DiffSide(chain, d.Artifact)
		})
	}
	wg.Wait()
	r.Reading, r.Updated = false, s.now()
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
		r.Diff = compare.Of(sides[0], sides[1], compare.Options{AllFields: ask.all})
		r.Took = time.Since(began)
	}
	show()
}
