package sources

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"

	"acescope/sources/cluster"
	"acescope/sources/experiments"
	runspkg "acescope/sources/runs"
)

// away notes whether the server can be reached.
func (s *Store) away(err error) {
	if err == nil {
		s.reached()
	} else {
		s.failed(err)
	}
}

// keptSeries is a closed series from an earlier reading, nil if it is not kept.
func (s *Store) keptSeries(workflowID, runID string) *experiments.Series {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.wishesLocked()
	at := slices.IndexFunc(w.kept, func(k *experiments.Series) bool { return k.WorkflowID == workflowID && k.RunID == runID })
	if at < 0 {
		return nil
	}
	kept := w.kept[at]
	w.kept = append(slices.Delete(w.kept, at, at+1), kept)
	return kept
}

// keepSeries keeps a closed series in place of the one that was used longest ago.
func (s *Store) keepSeries(done *experiments.Series) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.wishesLocked()
	w.kept = append(w.kept, done)
	if over := len(w.kept) - experiments.KeptSeries; over > 0 {
		w.kept = slices.Delete(w.kept, 0, over)
	}
}

func (r *seriesReader) run(ctx context.Context) {
	defer r.stopAll()
	for {
		wanted, wake := r.wanted()
		r.follow(ctx, wanted)
		tasks := r.publish(wanted)
		rest := time.NewTimer(experiments.SeriesEvery + time.Duration(tasks)*experiments.SeriesRest)
		select {
		case <-ctx.Done():
			rest.Stop()
			return
		case <-rest.C:
		case <-wake:
			rest.Stop()
		}
	}
}

func (r *seriesReader) wanted() ([]string, chan struct{}) {
	r.store.mu.Lock()
	defer r.store.mu.Unlock()
	w := r.store.wishesLocked()
	return w.series, w.wake
}

// follow starts what is wanted and not followed, and ends what is no longer wanted.
func (r *seriesReader) follow(ctx context.Context, wanted []string) {
	for id, f := range r.followed {
		if !slices.Contains(wanted, id) {
			f.stop()
			<-f.done
			delete(r.followed, id)
		}
	}
	for _, id := range wanted {
		if r.followed[id] == nil {
			following, stop := context.WithCancel(ctx)
			f := &seriesFollower{stop: stop, done: make(chan struct{})}
			r.followed[id] = f
			go func() { defer close(f.done); f.read(following, r.store, r.c, id) }()
		}
	}
}

func (r *seriesReader) stopAll() {
	for _, f := range r.followed {
		f.stop()
		<-f.done
	}
}

// publish puts what is new into the snapshot, but nothing while the screen is paused,
// unless other experiments are wanted. It gives how many tasks it published.
func (r *seriesReader) publish(wanted []string) (tasks int) {
	fresh := !slices.Equal(wanted, r.published)
	if !fresh && (r.store.Snapshot().Runs.Paused || !r.changed()) {
		return 0
	}
	r.published = slices.Clone(wanted)
	series := make([]*experiments.Series, 0, len(wanted))
	for _, id := range wanted {
		if s := r.followed[id].value(id); s != nil {
			series = append(series, s)
			tasks += s.Tasks.Len()
		}
	}
	r.store.updateExperiments(func(e *experiments.Experiments) { e.Series = series })
	return tasks
}

func (r *seriesReader) changed() bool {
	for _, f := range r.followed {
		if f.changed() {
			return true
		}
	}
	return false
}

// seriesReader follows the experiments whose series are asked for, and publishes what
// they have come to.
type seriesReader struct {
	store     *Store
	c         client.Client
	followed  map[string]*seriesFollower
	published []string // workflow ids of the series in the snapshot
}

func (f *seriesFollower) changed() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed != nil || f.err != nil {
		return !f.told
	}
	return f.folder != nil && f.folder.Changed()
}

// value is the series as far as it is read, nil before anything of it is.
func (f *seriesFollower) value(workflowID string) *experiments.Series {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.told = f.closed != nil || f.err != nil
	switch {
	case f.closed != nil:
		return f.closed
	case f.err != nil && f.folder == nil:
		return &experiments.Series{WorkflowID: workflowID, Err: cluster.PlainError(f.err)}
	case f.folder == nil:
		return nil
	}
	s := f.folder.Value()
	if f.err != nil {
		s.Err = cluster.PlainError(f.err)
	}
	return s
}

// read folds the experiment until it closes, or takes what was kept of it.
func (f *seriesFollower) read(ctx context.Context, s *Store, c client.Client, workflowID string) {
	runs, err := f.chain(ctx, s, c, workflowID)
	if err != nil {
		f.end(nil, err)
		return
	}
	if kept := s.keptSeries(workflowID, runs.Newest); kept != nil {
		f.end(kept, nil)
		return
	}
	folder := experiments.NewSeriesFolder(workflowID, runs.Newest)
	folder.Series.Reading = !runs.Open
	f.mu.Lock()
	f.folder = folder
	f.mu.Unlock()
	err = folder.Read(ctx, runs.First, func(runID string, take func(*historypb.HistoryEvent) error) error {
		return cluster.Follow(ctx, c, s.namespace, workflowID, runID, s.away, take)
	})
	if err != nil || ctx.Err() != nil {
		f.end(nil, errors.Join(err, ctx.Err()))
		return
	}
	done := folder.Whole()
	s.keepSeries(done)
	f.end(done, nil)
}

// chain asks until the server answers.
func (f *seriesFollower) chain(ctx context.Context, s *Store, c client.Client, workflowID string) (experiments.RunChain, error) {
	for {
		runs, err := experiments.Chain(ctx, c, workflowID)
		if err == nil || ctx.Err() != nil || !cluster.Away(err) {
			return runs, err
		}
		s.away(err)
		select {
		case <-ctx.Done():
		case <-time.After(runspkg.LostRetry):
		}
	}
}

func (f *seriesFollower) end(s *experiments.Series, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed, f.err = s, err
}

// seriesFollower reads one series in a goroutine of its own.
type seriesFollower struct {
	stop context.CancelFunc
	done chan struct{}

	mu     sync.Mutex
	folder *experiments.SeriesFolder // nil until its first event
	closed *experiments.Series       // once it has closed, or was kept from before
	err    error
	told   bool // closed or err was published
}
