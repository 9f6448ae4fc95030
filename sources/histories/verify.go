package histories

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"acescope/engine/temporal/replay"
	"acescope/sources/cluster"
	"acescope/sources/feed"
	"acescope/sources/runs"
)

// VerifyFeed replays many runs with the current workflow code, whether or not the result is shown. The user
// can cancel it; a new request cancels the previous one.
type VerifyFeed struct {
	*feed.Feed[*VerifyRequest, *Verified]
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
func (f *VerifyFeed) Verify(w VerifyRequest) { f.Refine(&w) }

// Verified is the result of verifying many runs so far. It is immutable. It holds the first maxVerified runs
// that do not match, the first maxSame that do, and of those that are unverified for the same reason the
// first maxSameReason; the others are counted.
type Verified struct {
	Request    VerifyRequest
	Began      time.Time
	Ended      time.Time // zero while it runs
	Incomplete bool      // canceled or failed before the end
	Done       int64
	Total      int64 // 0 if unknown

	Deterministic, Nondeterministic, Drifted, Unverified int64

	Events int64
	Rows   []VerifiedRun // runs that do not match, then the others, each in the order of completion
	Err    string        // why the list of runs is incomplete
}

// Bounds of the held runs.
const (
	maxVerified   = 5000
	maxSame       = 1000
	maxSameReason = 20
)

// VerifiedRun is a run and its verdict.
type VerifiedRun struct {
	Run     runs.Run
	Verdict replay.Verdict
	At      time.Time
	More    int64 // further runs that are unverified for the same reason and not held
}

// Dropped returns the number of runs that are counted but not held.
func (v *Verified) Dropped() int64 { return v.Done - int64(len(v.Rows)) }

// of returns the verdict of a run, or nil.
func (v *Verified) of(id runs.ID) (verdict *replay.Verdict, strict bool, at time.Time) {
	if v == nil {
		return nil, false, time.Time{}
	}
	for i := range v.Rows {
		if r := &v.Rows[i]; r.Run.WorkflowID == id.WorkflowID && r.Run.RunID == id.RunID {
			return &r.Verdict, v.Request.Strict, r.At
		}
	}
	return nil, false, time.Time{}
}

// VerifyRequest names the runs to verify: Runs, or if it is empty all runs of any workflow type that match
// the query.
type VerifyRequest struct {
	Runs   []runs.Run
	Query  string
	Strict bool
}

// verifiedEvery is the time between two publications.
const verifiedEvery = 100 * time.Millisecond

// countTimeout bounds the optional counting of the runs.
const countTimeout = 5 * time.Second

func (f *VerifyFeed) read(ctx context.Context, w *VerifyRequest, publish func(*Verified)) {
	if f.link.NewVerifier == nil {
		return
	}
	working, progress, end := f.link.StartWork(ctx, "verifying runs")
	defer end()
	verifier := f.link.NewVerifier(working, w.Strict)
	defer verifier.Close()
	m := &manyVerifier{link: f.link, verifier: verifier, publish: publish, progress: progress,
		reasons: map[string]reason{}, out: Verified{Request: *w, Began: f.link.Now(), Total: int64(len(w.Runs))}}
	m.show(true)
	if len(w.Runs) == 0 {
		counting, stop := context.WithTimeout(working, countTimeout)
		if n, err := runs.Count(counting, f.link.Client, runs.OfAnyType(w.Query)); err == nil && n >= 0 {
			m.out.Total = n
		}
		stop()
	}
	var workers errgroup.Group
	workers.SetLimit(max(runtime.GOMAXPROCS(0)-1, 1)) // one processor is left for the screen
	err := m.list(working, func(r runs.Run) error {
		workers.Go(func() error {
			m.one(working, r)
			return nil
		})
		return working.Err()
	})
	_ = workers.Wait() // no worker returns an error: a failure is the verdict on its run
	m.out.Ended, m.out.Incomplete = f.link.Now(), err != nil
	if err != nil && !errors.Is(err, context.Canceled) {
		m.out.Err = cluster.PlainError(err)
	}
	end() // before the end is published
	m.show(true)
}

func (m *manyVerifier) list(ctx context.Context, fn func(runs.Run) error) error {
	if len(m.out.Request.Runs) == 0 {
		return runs.List(ctx, m.link.Client, runs.OfAnyType(m.out.Request.Query), 0, fn)
	}
	for _, r := range m.out.Request.Runs {
		if err := fn(r); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// one verifies a run.
func (m *manyVerifier) one(ctx context.Context, r runs.Run) {
	verdict, _ := VerifyRun(ctx, m.link.Client, m.link.Namespace, m.verifier, r) // it has the error
	if ctx.Err() != nil {
		return
	}
	m.add(VerifiedRun{Run: r, Verdict: verdict, At: m.link.Now()})
	m.show(false)
}

func (m *manyVerifier) add(r VerifiedRun) {
	m.mu.Lock()
	defer m.mu.Unlock()
	o := &m.out
	o.Done++
	o.Events += int64(r.Verdict.Events)
	list, room := &m.others, maxVerified
	switch r.Verdict.Outcome {
	case replay.Deterministic:
		o.Deterministic++
		list, room = &m.same, maxSame
	case replay.Nondeterministic:
		o.Nondeterministic++
	case replay.Drifted:
		o.Drifted++
	default:
		o.Unverified++
		first, known := m.reasons[r.Verdict.Why]
		switch {
		case !known && len(*list) < room:
			m.reasons[r.Verdict.Why] = reason{len(*list), 1}
		case known && first.held == maxSameReason:
			(*list)[first.row].More++
			room = 0
		case known:
			m.reasons[r.Verdict.Why] = reason{first.row, first.held + 1}
		}
	}
	if len(*list) < room {
		*list = append(*list, r)
	}
	m.progress(o.Done, o.Total)
}

// show publishes the result; unless now is set, at most every verifiedEvery.
func (m *manyVerifier) show(now bool) {
	m.mu.Lock()
	if !now && time.Since(m.shown) < verifiedEvery {
		m.mu.Unlock()
		return
	}
	m.shown = time.Now()
	next := m.out
	next.Rows = slices.Concat(m.others, m.same)
	m.mu.Unlock()
	m.publish(&next)
}

// manyVerifier verifies the runs of one request.
type manyVerifier struct {
	link     *cluster.Link
	verifier cluster.Verifier
	publish  func(*Verified)
	progress func(done, total int64)

	mu      sync.Mutex
	out     Verified
	others  []VerifiedRun // runs that do not match
	same    []VerifiedRun
	reasons map[string]reason // why runs are unverified
	shown   time.Time
}

// reason is the row of the first run that is unverified for a reason, and the number of rows with it.
type reason struct{ row, held int }
