package sources

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.temporal.io/api/serviceerror"

	"acescope/sources/cluster"
	"acescope/sources/runners"
	runspkg "acescope/sources/runs"
)

// ReadRunner wants the runs of a runner; "" wants none. It is called for each row that the
// cursor passes.
func (s *Store) ReadRunner(id string) {
	s.mu.Lock()
	changed := s.runner != id
	s.runner = id
	s.mu.Unlock()
	if changed {
		s.again(PartRunners)
	}
}

// readRunners asks the dispatcher, again and again until ctx ends.
func (s *Store) readRunners(ctx context.Context, d cluster.Deps) {
	if s.Snapshot().Connection.Mode == cluster.ModeFile {
		return
	}
	for ctx.Err() == nil {
		var wg sync.WaitGroup
		wg.Go(func() { s.askDispatcher(ctx, d) })
		wg.Go(func() { s.listRunnerRuns(ctx, d) })
		wg.Wait()
		for s.rest(ctx, runners.RunnersEvery) == nil && s.Snapshot().Runs.Paused {
		}
	}
}

// updateRunners publishes what fn changes, unless ctx has ended: it is about another wish
// then.
func (s *Store) updateRunners(ctx context.Context, fn func(*runners.Runners)) {
	if ctx.Err() != nil {
		return
	}
	s.update(func(snap *Snapshot) {
		var next runners.Runners
		if snap.Runners != nil {
			next = *snap.Runners
		}
		fn(&next)
		next.Updated = s.now()
		snap.Runners = &next
	})
}

func (s *Store) askDispatcher(ctx context.Context, d cluster.Deps) {
	view, err := runners.AskDispatcher(ctx, d.Client)
	var none *serviceerror.NotFound
	s.updateRunners(ctx, func(r *runners.Runners) {
		r.Absent, r.Deaf, r.Err = errors.As(err, &none), runners.Deaf(err), ""
		switch {
		case err == nil:
			r.View, r.Answered = view, s.now()
		case r.Absent:
			r.View, r.Answered = runners.RunnersView{}, time.Time{}
		default:
			r.Err = cluster.PlainError(err)
		}
	})
}

// listRunnerRuns reads the runs of the runner that is wanted.
func (s *Store) listRunnerRuns(ctx context.Context, d cluster.Deps) {
	s.mu.Lock()
	id := s.runner
	s.mu.Unlock()
	var runs []runspkg.Run
	var err error
	if id != "" {
		ctx, cancel := context.WithTimeout(ctx, cluster.CallTimeout)
		err = runspkg.List(ctx, d.Client, runners.RunnerRunsQuery(id), runners.MaxRunnerRuns+1, func(r runspkg.Run) error {
			runs = append(runs, r)
			return nil
		})
		cancel()
	}
	s.updateRunners(ctx, func(r *runners.Runners) {
		if err == nil {
			r.Runs, r.More, r.RunsErr = runs[:min(len(runs), runners.MaxRunnerRuns)], len(runs) > runners.MaxRunnerRuns, ""
		} else if r.RunsErr = cluster.PlainError(err); r.Wanted != id {
			r.Runs, r.More = nil, false
		}
		r.Wanted, r.Runs = id, runners.WithHeld(r.Runs, r.Held(id))
	})
}
