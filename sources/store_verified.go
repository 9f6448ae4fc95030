package sources

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"time"

	"acescope/sources/cluster"
	"acescope/sources/histories"
	runspkg "acescope/sources/runs"
)

// VerifyRuns verifies many runs behind everything else; it is work that can be cancelled.
// What was being verified before is given up.
func (s *Store) VerifyRuns(w VerifyWish) {
	s.mu.Lock()
	s.verify.wish = &w
	if s.verify.stop != nil {
		s.verify.stop()
	}
	s.mu.Unlock()
	cluster.Signal(s.verify.wake)
}

// watchVerify fulfils wishes until ctx ends.
func (s *Store) watchVerify(ctx context.Context, d cluster.Deps) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.verify.wake:
		}
		s.mu.Lock()
		wish := s.verify.wish
		s.verify.wish = nil
		wishing, stop := context.WithCancel(ctx)
		s.verify.stop = stop
		s.mu.Unlock()
		if wish != nil && d.Verify != nil {
			s.verifyMany(wishing, d, *wish)
		}
		stop()
	}
}

func (s *Store) verifyMany(ctx context.Context, d cluster.Deps, w VerifyWish) {
	m := &manyVerifier{store: s, deps: d, out: Verified{Of: w, Began: s.now(), Total: int64(len(w.Runs))}}
	working, progress, end := s.StartWork(ctx, "verifying runs")
	defer end()
	m.show(true)
	if len(w.Runs) == 0 {
		counting, stop := context.WithTimeout(working, countTimeout)
		if n, err := runspkg.Count(counting, d.Client, w.Query); err == nil {
			m.out.Total = n
		}
		stop()
	}
	runs := make(chan runspkg.Run)
	var wg sync.WaitGroup
	for range max(runtime.GOMAXPROCS(0)-1, 1) { // one processor is the screen's
		wg.Go(func() {
			for r := range runs {
				m.one(working, r)
				m.mu.Lock()
				done, total := m.out.Done, m.out.Total
				m.mu.Unlock()
				progress(done, total)
			}
		})
	}
	err := m.list(working, func(r runspkg.Run) error {
		select {
		case runs <- r:
			return nil
		case <-working.Done():
			return working.Err()
		}
	})
	close(runs)
	wg.Wait()
	m.mu.Lock()
	m.out.Ended, m.out.Broken = s.now(), err != nil
	if err != nil && !errors.Is(err, context.Canceled) {
		m.out.Err = cluster.PlainError(err)
	}
	m.mu.Unlock()
	end() // before it is shown as ended
	m.show(true)
}

func (m *manyVerifier) list(ctx context.Context, fn func(runspkg.Run) error) error {
	if len(m.out.Of.Runs) == 0 {
		return runspkg.List(ctx, m.deps.Client, m.out.Of.Query, 0, fn)
	}
	for _, r := range m.out.Of.Runs {
		if err := fn(r); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// one verifies a run.
func (m *manyVerifier) one(ctx context.Context, r runspkg.Run) {
	begin := time.Now()
	events, err := cluster.ReadHistory(ctx, m.deps.Client, m.store.namespace, r.WorkflowID, r.RunID)
	verdict := histories.ReplayVerdict{Outcome: VerifyUnverified, WorkflowType: r.Type, WorkflowID: r.WorkflowID, RunID: r.RunID}
	if err == nil {
		verdict = m.deps.Verify(ctx, events, m.out.Of.Strict)
	} else {
		verdict.Why = cluster.PlainError(err)
	}
	if ctx.Err() != nil {
		return
	}
	m.add(VerifiedRun{Run: r, Verdict: verdict, At: m.store.now(), Took: time.Since(begin)})
	m.show(false)
}

func (m *manyVerifier) add(r VerifiedRun) {
	m.mu.Lock()
	defer m.mu.Unlock()
	o := &m.out
	o.Done++
	o.Events += int64(r.Verdict.Events)
	list, room := &m.others, MaxVerified
	switch r.Verdict.Outcome {
	case VerifySame:
		o.Same++
		list, room = &m.same, MaxSame
	case VerifyDiverged:
		o.Diverged++
	case VerifyDrifted:
		o.Drifted++
	default:
		o.Unverified++
	}
	if len(*list) < room {
		*list = append(*list, r)
	}
}

// show publishes what is known, not too often before the end.
func (m *manyVerifier) show(now bool) {
	m.mu.Lock()
	if !now && time.Since(m.shown) < verifiedEvery {
		m.mu.Unlock()
		return
	}
	m.shown = time.Now()
	next := m.out
	next.Rows = append(append(make([]VerifiedRun, 0, len(m.others)+len(m.same)), m.others...), m.same...)
	m.mu.Unlock()
	m.store.update(func(snap *Snapshot) { snap.Verified = &next })
}

// manyVerifier verifies the runs of one wish.
type manyVerifier struct {
	store *Store
	deps  cluster.Deps

	mu     sync.Mutex
	out    Verified
	others []VerifiedRun // not the same
	same   []VerifiedRun
	shown  time.Time
}

// verifyWishes keeps the newest wish. Its lock is the store's.
type verifyWishes struct {
	wish *VerifyWish
	wake chan struct{}
	stop context.CancelFunc
}
