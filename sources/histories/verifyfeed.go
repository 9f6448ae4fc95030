package histories

import (
	"acescope/engine/temporal/replay"
	"acescope/sources/cluster"
	"acescope/sources/feed"
	"acescope/sources/runs"
	"context"
	"errors"
	"runtime"
	"sync"
	"time"
)

// VerifyFeed replays many runs with the current workflow code, whether or not the result is shown. It is work that can
// be canceled; a new request cancels the one before.
type VerifyFeed struct {
	*feed.Feed[*VerifyWish, *Verified]
	link *cluster.Link
}

// NewVerifyFeed returns a feed that has verified nothing.
func NewVerifyFeed(link *cluster.Link) *VerifyFeed {
	f := &VerifyFeed{link: link}
	f.Feed = feed.New(link.Wake, f.read)
	f.Look(true)
	return f
}

// Verify starts verifying runs.
func (f *VerifyFeed) Verify(w VerifyWish) { f.Refine(&w) }

func (f *VerifyFeed) read(ctx context.Context, w *VerifyWish, publish func(*Verified)) {
	if f.link.Verify != nil {
		f.verifyMany(ctx, *w, publish)
	}
}

// Outcomes of verifying, and the kind of a drift, as views know them.
const (
	VerifyChanged    = replay.KindChanged
	VerifySame       = replay.Same
	VerifyDiverged   = replay.Diverged
	VerifyDrifted    = replay.Drifted
	VerifyUnverified = replay.Unverified
)

// Verified is what verifying many runs has found so far. It is immutable.
//
// Bounds: of the runs that are not the same the first [MaxVerified] are held, of the same
// ones the first [MaxSame]; the rest is counted.
type Verified struct {
	Of     VerifyWish
	Began  time.Time
	Ended  time.Time // zero while it goes on
	Broken bool      // it was stopped, or broke off, before the end
	Done   int64
	Total  int64 // 0 while it is not known

	Same, Diverged, Drifted, Unverified int64

	Events int64
	Rows   []VerifiedRun // that are not the same, then the same ones, each in the order in which they ended
	Err    string        // why the runs could not be listed to the end
}

// Bounds of what is held.
const (
	MaxVerified = 5000
	MaxSame     = 1000
)

// VerifiedRun is a run and its verdict.
type VerifiedRun struct {
	Run     runs.Run
	Verdict ReplayVerdict
	At      time.Time
	Took    time.Duration
}

// Dropped is how many runs are counted and not held.
func (v *Verified) Dropped() int64 { return v.Done - int64(len(v.Rows)) }

// of is the verdict of a run, nil where it has none.
func (v *Verified) of(id runs.ID) (verdict *ReplayVerdict, strict bool, at time.Time) {
	if v == nil {
		return nil, false, time.Time{}
	}
	for i := range v.Rows {
		if r := &v.Rows[i]; r.Run.WorkflowID == id.WorkflowID && r.Run.RunID == id.RunID {
			return &r.Verdict, v.Of.Strict, r.At
		}
	}
	return nil, false, time.Time{}
}

// VerifyWish is which runs are to be verified: those given, else all that match the query.
type VerifyWish struct {
	Runs   []runs.Run
	Query  string
	Strict bool
}

// verifiedEvery bounds how often the list is shown while it grows.
const verifiedEvery = 100 * time.Millisecond

// countTimeout bounds the counting of what is to be verified, which can do without.
const countTimeout = 5 * time.Second

func (f *VerifyFeed) verifyMany(ctx context.Context, w VerifyWish, publish func(*Verified)) {
	m := &manyVerifier{link: f.link, publish: publish, out: Verified{Of: w, Began: f.link.Now(), Total: int64(len(w.Runs))}}
	working, progress, end := f.link.StartWork(ctx, "verifying runs")
	defer end()
	m.show(true)
	if len(w.Runs) == 0 {
		counting, stop := context.WithTimeout(working, countTimeout)
		if n, err := runs.Count(counting, f.link.Client, w.Query); err == nil {
			m.out.Total = n
		}
		stop()
	}
	next := make(chan runs.Run)
	var wg sync.WaitGroup
	for range max(runtime.GOMAXPROCS(0)-1, 1) { // one processor is the screen's
		wg.Go(func() {
			for r := range next {
				m.one(working, r)
				m.mu.Lock()
				done, total := m.out.Done, m.out.Total
				m.mu.Unlock()
				progress(done, total)
			}
		})
	}
	err := m.list(working, func(r runs.Run) error {
		select {
		case next <- r:
			return nil
		case <-working.Done():
			return working.Err()
		}
	})
	close(next)
	wg.Wait()
	m.mu.Lock()
	m.out.Ended, m.out.Broken = f.link.Now(), err != nil
	if err != nil && !errors.Is(err, context.Canceled) {
		m.out.Err = cluster.PlainError(err)
	}
	m.mu.Unlock()
	end() // before it is shown as ended
	m.show(true)
}

func (m *manyVerifier) list(ctx context.Context, fn func(runs.Run) error) error {
	if len(m.out.Of.Runs) == 0 {
		return runs.List(ctx, m.link.Client, m.out.Of.Query, 0, fn)
	}
	for _, r := range m.out.Of.Runs {
		if err := fn(r); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// one verifies a run.
func (m *manyVerifier) one(ctx context.Context, r runs.Run) {
	begin := time.Now()
	events, err := cluster.ReadHistory(ctx, m.link.Client, m.link.Namespace, r.WorkflowID, r.RunID)
	verdict := ReplayVerdict{Outcome: VerifyUnverified, WorkflowType: r.Type, WorkflowID: r.WorkflowID, RunID: r.RunID}
	if err == nil {
		verdict = m.link.Verify(ctx, events, m.out.Of.Strict)
	} else {
		verdict.Why = cluster.PlainError(err)
	}
	if ctx.Err() != nil {
		return
	}
	m.add(VerifiedRun{Run: r, Verdict: verdict, At: m.link.Now(), Took: time.Since(begin)})
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
	m.publish(&next)
}

// manyVerifier verifies the runs of one wish.
type manyVerifier struct {
	link    *cluster.Link
	publish func(*Verified)

	mu     sync.Mutex
	out    Verified
	others []VerifiedRun // not the same
	same   []VerifiedRun
	shown  time.Time
}
