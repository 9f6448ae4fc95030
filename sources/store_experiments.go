package sources

import (
	"context"
	"slices"
	"sync"
	"time"

	"go.temporal.io/sdk/client"

	"acescope/sources/cluster"
	"acescope/sources/experiments"
)

// ShowExperiments asks for the series of these experiments, by workflow id, at most
// MaxSeries of them.
func (s *Store) ShowExperiments(workflowIDs []string) {
	s.mu.Lock()
	w := s.wishesLocked()
	same := slices.Equal(w.series, workflowIDs)
	w.series = slices.Clone(workflowIDs[:min(len(workflowIDs), experiments.MaxSeries)])
	s.mu.Unlock()
	if !same {
		cluster.Signal(w.wake)
	}
}

func (s *Store) wishesLocked() *wishes {
	if s.wishes == nil {
		s.wishes = &wishes{wake: make(chan struct{}, 1)}
	}
	return s.wishes
}

// updateExperiments replaces the piece by a changed copy.
func (s *Store) updateExperiments(fn func(*experiments.Experiments)) {
	s.update(func(snap *Snapshot) {
		next := experiments.Experiments{}
		if snap.Experiments != nil {
			next = *snap.Experiments
		}
		fn(&next)
		snap.Experiments = &next
	})
}

// readExperiments keeps the list and the series that were asked for fresh until ctx ends.
func (s *Store) readExperiments(ctx context.Context, d cluster.Deps) {
	var wg sync.WaitGroup
	wg.Go(func() { s.listExperiments(ctx, d.Client) })
	wg.Go(func() { (&seriesReader{store: s, c: d.Client, followed: map[string]*seriesFollower{}}).run(ctx) })
	wg.Wait()
}

// listExperiments reads the list at the store's interval, at once the first time.
func (s *Store) listExperiments(ctx context.Context, c client.Client) {
	for {
		snap := s.Snapshot()
		if !snap.Runs.Paused || snap.Experiments == nil {
			s.listExperimentsOnce(ctx, c)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(snap.Runs.Interval):
		}
	}
}

func (s *Store) listExperimentsOnce(ctx context.Context, c client.Client) {
	rows, more, err := experiments.ListExperiments(ctx, c)
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		s.updateExperiments(func(e *experiments.Experiments) { e.Err, e.Reading = cluster.PlainError(err), false })
		return
	}
	settled := s.fillProgress(rows)
	s.updateExperiments(func(e *experiments.Experiments) {
		e.Rows, e.More, e.Loaded, e.Err, e.Reading = slices.Clone(rows), more, s.now(), "", len(settled) < len(rows)
	})
	for i := range rows {
		if ctx.Err() != nil {
			return
		}
		if !settled[rows[i].RunID] {
			rows[i].Read(ctx, c)
		}
	}
	s.keepProgress(rows)
	s.updateExperiments(func(e *experiments.Experiments) { e.Rows, e.Reading = rows, false })
}

// fillProgress gives the rows what is known of them from earlier readings, and says of
// which runs, which have closed, there is nothing more to know.
func (s *Store) fillProgress(rows []experiments.Experiment) (settled map[string]bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	settled, before := map[string]bool{}, map[string]experiments.Experiment{}
	if e := s.snap.Experiments; e != nil {
		for _, r := range e.Rows {
			before[r.RunID] = r
		}
	}
	for i, r := range rows {
		known, ok := s.wishesLocked().closed[r.RunID]
		if ok {
			settled[r.RunID] = true
		} else {
			known = before[r.RunID]
		}
		if known.Progress != nil {
			rows[i].Progress, rows[i].Start = known.Progress, known.Start
		}
	}
	return settled
}

// keepProgress keeps what closed experiments on the list have come to, and no more.
func (s *Store) keepProgress(rows []experiments.Experiment) {
	s.mu.Lock()
	defer s.mu.Unlock()
	keep := map[string]experiments.Experiment{}
	for _, r := range rows {
		if !r.Open() && r.Progress != nil {
			keep[r.RunID] = r
		}
	}
	s.wishesLocked().closed = keep
}

// wishes is what is wanted of the experiments' reader, and what it keeps between
// readings. Its lock is the store's.
type wishes struct {
	series []string // workflow ids
	wake   chan struct{}
	closed map[string]experiments.Experiment // with their progress, by run id
	kept   []*experiments.Series             // of closed ones; the last used is the last
}
