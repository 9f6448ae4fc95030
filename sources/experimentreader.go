package sources

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"
)

// seriesReader follows the experiments whose series are asked for, and publishes what
// they have come to.
type seriesReader struct {
	store     *Store
	c         client.Client
	followed  map[string]*follower
	published []string // workflow ids of the series in the snapshot
}

// follower reads one series in a goroutine of its own.
type follower struct {
	stop context.CancelFunc
	done chan struct{}

	mu     sync.Mutex
	folder *seriesFolder // nil until its first event
	closed *Series       // once it has closed, or was kept from before
	err    error
	told   bool // closed or err was published
}

func (r *seriesReader) run(ctx context.Context) {
	defer r.stopAll()
	for {
		wanted, wake := r.wanted()
		r.follow(ctx, wanted)
		tasks := r.publish(wanted)
		rest := time.NewTimer(seriesEvery + time.Duration(tasks)*seriesRest)
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
			f := &follower{stop: stop, done: make(chan struct{})}
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
	series := make([]*Series, 0, len(wanted))
	for _, id := range wanted {
		if s := r.followed[id].value(id); s != nil {
			series = append(series, s)
			tasks += s.Tasks.Len()
		}
	}
	r.store.updateExperiments(func(e *Experiments) { e.Series = series })
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

func (f *follower) changed() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed != nil || f.err != nil {
		return !f.told
	}
	return f.folder != nil && f.folder.changed()
}

// value is the series as far as it is read, nil before anything of it is.
func (f *follower) value(workflowID string) *Series {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.told = f.closed != nil || f.err != nil
	switch {
	case f.closed != nil:
		return f.closed
	case f.err != nil && f.folder == nil:
		return &Series{WorkflowID: workflowID, Err: plainError(f.err)}
	case f.folder == nil:
		return nil
	}
	s := f.folder.value()
	if f.err != nil {
		s.Err = plainError(f.err)
	}
	return s
}

// read folds the experiment until it closes, or takes what was kept of it.
func (f *follower) read(ctx context.Context, s *Store, c client.Client, workflowID string) {
	runs, err := f.chain(ctx, s, c, workflowID)
	if err != nil {
		f.end(nil, err)
		return
	}
	if kept := s.keptSeries(workflowID, runs.newest); kept != nil {
		f.end(kept, nil)
		return
	}
	folder := newSeriesFolder(workflowID, runs.newest)
	folder.series.Reading = !runs.open
	f.mu.Lock()
	f.folder = folder
	f.mu.Unlock()
	err = folder.read(ctx, runs.first, func(runID string, take func(*historypb.HistoryEvent) error) error {
		return Follow(ctx, c, workflowID, runID, s.away, take)
	})
	if err != nil || ctx.Err() != nil {
		f.end(nil, errors.Join(err, ctx.Err()))
		return
	}
	done := folder.whole()
	s.keepSeries(done)
	f.end(done, nil)
}

// chain asks until the server answers.
func (f *follower) chain(ctx context.Context, s *Store, c client.Client, workflowID string) (runChain, error) {
	for {
		runs, err := chain(ctx, c, workflowID)
		if err == nil || ctx.Err() != nil || !Away(err) {
			return runs, err
		}
		s.away(err)
		select {
		case <-ctx.Done():
		case <-time.After(lostRetry):
		}
	}
}

func (f *follower) end(s *Series, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed, f.err = s, err
}

// away notes whether the server can be reached.
func (s *Store) away(err error) {
	if err == nil {
		s.reached()
	} else {
		s.failed(err)
	}
}

// keptSeries is a closed series from an earlier reading, nil if it is not kept.
func (s *Store) keptSeries(workflowID, runID string) *Series {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.wishesLocked()
	at := slices.IndexFunc(w.kept, func(k *Series) bool { return k.WorkflowID == workflowID && k.RunID == runID })
	if at < 0 {
		return nil
	}
	kept := w.kept[at]
	w.kept = append(slices.Delete(w.kept, at, at+1), kept)
	return kept
}

// keepSeries keeps a closed series in place of the one that was used longest ago.
func (s *Store) keepSeries(done *Series) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.wishesLocked()
	w.kept = append(w.kept, done)
	if over := len(w.kept) - keptSeries; over > 0 {
		w.kept = slices.Delete(w.kept, 0, over)
	}
}
