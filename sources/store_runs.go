package sources

import (
	"context"
	"fmt"
	"time"

	"go.temporal.io/sdk/client"

	"acescope/sources/cluster"
	runspkg "acescope/sources/runs"
)

// watchRuns reads the list at the store's interval, at once when woken, and sooner
// while the server is away.
func (s *Store) watchRuns(ctx context.Context, d cluster.Deps) {
	r := &runsReader{s: s, c: d.Client, namespace: d.Namespace}
	for {
		r.round(ctx)
		if s.sleep(ctx) != nil {
			return
		}
	}
}

func (s *Store) sleep(ctx context.Context) error {
	for {
		snap := s.Snapshot()
		wait := snap.Runs.Interval
		if snap.Connection.State == cluster.ConnLost {
			wait = runspkg.LostRetry
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case <-s.wake:
			timer.Stop()
			return nil
		case <-timer.C:
			if !s.Snapshot().Runs.Paused {
				return nil
			}
		}
	}
}

// takeWishes gives what is to be done, and notes how to end it when the query changes.
func (s *Store) takeWishes(cancel func()) (string, listWishes) {
	s.mu.Lock()
	defer s.mu.Unlock()
	want := s.wanted
	s.wanted, s.endRound = listWishes{}, cancel
	return s.query, want
}

func (s *Store) stopped() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	stop := s.wanted.stop
	s.wanted.stop = false
	return stop
}

// newest is [Newest], but of files, which need not hold the newest run.
func (s *Store) newest(query string) string {
	if s.Snapshot().Connection.Mode == cluster.ModeFile {
		return query
	}
	return runspkg.Newest(query)
}

// round does what is wished, or reads the newest again and all that goes with it. A new
// query ends it early.
func (r *runsReader) round(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	query, want := r.s.takeWishes(cancel)
	if query != r.query || r.live == nil {
		r.query, r.list, r.live, r.counts, r.slow = query, runspkg.Window{}, map[string]runspkg.Asked{}, runspkg.Counting{}, 0
	}
	var err error
	if want.moves() {
		err = r.move(ctx, want)
	} else {
		err = r.list.Refresh(ctx, r.page)
	}
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		r.failed(ctx, err)
		return
	}
	r.slow, r.readAt = 0, r.s.now()
	r.s.reached()
	if !r.publish() || want.moves() {
		return
	}
	r.count(ctx)
	r.describe(ctx)
	r.askOpen(ctx)
	if r.retries.Open > 0 {
		r.publish()
	}
	r.checkAttributes(ctx)
}

func (r *runsReader) move(ctx context.Context, want listWishes) error {
	switch {
	case want.last:
		return r.walk(ctx)
	case want.first:
		return r.list.Top(ctx, r.page)
	case want.newer:
		return r.list.Up(ctx, r.page)
	}
	return r.list.Down(ctx, r.page, runspkg.ListPage)
}

// walk goes to the oldest run, page by page, until it is stopped, and says how far it
// has come.
func (r *runsReader) walk(ctx context.Context) error {
	r.list.Bottom()
	passed := func() { r.walking(r.list.First() + int64(r.list.Held())) }
	defer r.walking(0)
	for passed(); len(r.list.Next) > 0 && !r.s.stopped(); passed() {
		if err := r.list.Down(ctx, r.page, runspkg.WalkPage); err != nil {
			return err
		}
	}
	for r.list.Lo > 0 && r.list.Held() < 2*runspkg.ListPage {
		if err := r.list.Up(ctx, r.page); err != nil {
			return err
		}
	}
	r.list.Upwards = false
	return nil
}

func (r *runsReader) walking(n int64) {
	r.s.update(func(snap *Snapshot) {
		if r.s.query == r.query {
			snap.Runs.Walking = n
		}
	})
}

// page reads one page. A query that timed out before is given longer.
func (r *runsReader) page(ctx context.Context, size int, token []byte) (runs []runspkg.Run, next []byte, err error) {
	err = runspkg.OfNewest(r.query, r.s.newest(r.query), func(query string) error {
		runs, next, err = runspkg.ListPageOf(ctx, r.c, query, size, token, r.patience())
		return err
	})
	return runs, next, err
}

func (r *runsReader) patience() time.Duration {
	return min(cluster.CallTimeout<<min(r.slow, 8), runspkg.MaxTimeout)
}

// publish shows what is held, unless another query was asked for meanwhile.
func (r *runsReader) publish() bool {
	rows := r.list.Rows()
	r.fill(rows)
	current := true
	r.s.update(func(snap *Snapshot) {
		if r.s.query != r.query {
			current = false
			return
		}
		l := &snap.Runs
		l.Rows, l.First, l.More = rows, r.list.First(), r.list.More()
		l.Loaded, l.Loading = r.readAt, false
		l.Err, l.ErrAt = "", -1
		l.Retries = r.retries.State()
		if l.First == 0 {
			l.Recent = runspkg.RecentOf(rows, runspkg.RecentRuns)
		}
	})
	return current
}

// failed shows why the list could not be read. A query that takes too long on a server
// that answers is the query's trouble and not the connection's.
func (r *runsReader) failed(ctx context.Context, err error) {
	text, at := cluster.PlainError(err), cluster.QueryErrorAt(r.query, err)
	switch {
	case cluster.TookTooLong(err) && r.answers(ctx):
		text, at = fmt.Sprintf("the server did not answer the query within %s; asking again, with more time", r.patience()), -1
		r.slow++
	case cluster.Away(err):
		r.s.failed(err)
		return
	}
	r.s.reached()
	r.s.update(func(snap *Snapshot) {
		if r.s.query == r.query {
			snap.Runs.Err, snap.Runs.Loading, snap.Runs.ErrAt = text, false, at
		}
	})
	r.checkAttributes(ctx)
}

// answers tells whether the server is there at all.
func (r *runsReader) answers(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, cluster.CallTimeout)
	defer cancel()
	_, err := r.c.CheckHealth(ctx, &client.CheckHealthRequest{})
	return err == nil
}

// runsReader is what the list reader holds between readings. It belongs to one goroutine.
type runsReader struct {
	s         *Store
	c         client.Client
	namespace string

	query   string
	list    runspkg.Window
	live    map[string]runspkg.Asked // open runs by run id
	retries runspkg.Retries
	counts  runspkg.Counting
	slow    int       // readings in a row that timed out
	readAt  time.Time // when the list was last read
	checked time.Time
}

func (w listWishes) moves() bool { return w.older || w.newer || w.first || w.last }

// listWishes are what the list reader is to do besides reading the newest runs again.
type listWishes struct {
	older, newer bool // one part more
	first, last  bool // go there
	stop         bool // the walk
}
