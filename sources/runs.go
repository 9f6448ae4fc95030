package sources

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
)

// Rhythm of the list reader.
const (
	callTimeout = 3 * time.Second
	maxTimeout  = 30 * time.Second // that a query which timed out is given in the end
	countEvery  = 10 * time.Second
	lostRetry   = 300 * time.Millisecond
)

// listWishes are what the list reader is to do besides reading the newest runs again.
type listWishes struct {
	older, newer bool // one part more
	first, last  bool // go there
	stop         bool // the walk
}

func (w listWishes) moves() bool { return w.older || w.newer || w.first || w.last }

// runsReader is what the list reader holds between readings. It belongs to one goroutine.
type runsReader struct {
	s         *Store
	c         client.Client
	namespace string

	query   string
	list    window
	live    map[string]asked // open runs by run id
	retries retries
	counts  counting
	slow    int       // readings in a row that timed out
	readAt  time.Time // when the list was last read
	checked time.Time
}

// watchRuns reads the list at the store's interval, at once when woken, and sooner
// while the server is away.
func (s *Store) watchRuns(ctx context.Context, d Deps) {
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
		if snap.Connection.State == ConnLost {
			wait = lostRetry
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

// round does what is wished, or reads the newest again and all that goes with it. A new
// query ends it early.
func (r *runsReader) round(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	query, want := r.s.takeWishes(cancel)
	if query != r.query || r.live == nil {
		r.query, r.list, r.live, r.counts, r.slow = query, window{}, map[string]asked{}, counting{}, 0
	}
	var err error
	if want.moves() {
		err = r.move(ctx, want)
	} else {
		err = r.list.refresh(ctx, r.page)
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
	if r.retries.open > 0 {
		r.publish()
	}
	r.checkAttributes(ctx)
}

// takeWishes gives what is to be done, and notes how to end it when the query changes.
func (s *Store) takeWishes(cancel func()) (string, listWishes) {
	s.mu.Lock()
	defer s.mu.Unlock()
	want := s.wanted
	s.wanted, s.endRound = listWishes{}, cancel
	return s.query, want
}

func (r *runsReader) move(ctx context.Context, want listWishes) error {
	switch {
	case want.last:
		return r.walk(ctx)
	case want.first:
		return r.list.top(ctx, r.page)
	case want.newer:
		return r.list.up(ctx, r.page)
	}
	return r.list.down(ctx, r.page, listPage)
}

// walk goes to the oldest run, page by page, until it is stopped, and says how far it
// has come.
func (r *runsReader) walk(ctx context.Context) error {
	r.list.bottom()
	passed := func() { r.walking(r.list.first() + int64(r.list.held())) }
	defer r.walking(0)
	for passed(); len(r.list.next) > 0 && !r.s.stopped(); passed() {
		if err := r.list.down(ctx, r.page, walkPage); err != nil {
			return err
		}
	}
	for r.list.lo > 0 && r.list.held() < 2*listPage {
		if err := r.list.up(ctx, r.page); err != nil {
			return err
		}
	}
	r.list.upwards = false
	return nil
}

func (r *runsReader) walking(n int64) {
	r.s.update(func(snap *Snapshot) {
		if r.s.query == r.query {
			snap.Runs.Walking = n
		}
	})
}

func (s *Store) stopped() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	stop := s.wanted.stop
	s.wanted.stop = false
	return stop
}

// page reads one page. A query that timed out before is given longer.
func (r *runsReader) page(ctx context.Context, size int, token []byte) (runs []Run, next []byte, err error) {
	err = ofNewest(r.query, r.s.newest(r.query), func(query string) error {
		runs, next, err = listPageOf(ctx, r.c, query, size, token, r.patience())
		return err
	})
	return runs, next, err
}

// listOnce reads one page of the runs that match a query.
func listOnce(ctx context.Context, c client.Client, query string, size int, token []byte) ([]Run, []byte, error) {
	return listPageOf(ctx, c, query, size, token, callTimeout)
}

func listPageOf(ctx context.Context, c client.Client, query string, size int, token []byte, timeout time.Duration) ([]Run, []byte, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	answer, err := c.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{
		Query: work(query), PageSize: int32(size), NextPageToken: token})
	if err != nil {
		return nil, nil, err
	}
	infos := answer.GetExecutions()
	runs := make([]Run, 0, len(infos))
	for _, info := range infos {
		runs = append(runs, runOf(info))
	}
	return runs, answer.GetNextPageToken(), nil
}

func (r *runsReader) patience() time.Duration {
	return min(callTimeout<<min(r.slow, 8), maxTimeout)
}

// publish shows what is held, unless another query was asked for meanwhile.
func (r *runsReader) publish() bool {
	rows := r.list.rows()
	r.fill(rows)
	current := true
	r.s.update(func(snap *Snapshot) {
		if r.s.query != r.query {
			current = false
			return
		}
		l := &snap.Runs
		l.Rows, l.First, l.More = rows, r.list.first(), r.list.more()
		l.Loaded, l.Loading = r.readAt, false
		l.Err, l.ErrAt = "", -1
		l.Retries = r.retries.state()
		if l.First == 0 {
			l.Recent = RecentOf(rows, RecentRuns)
		}
	})
	return current
}

// failed shows why the list could not be read. A query that takes too long on a server
// that answers is the query's trouble and not the connection's.
func (r *runsReader) failed(ctx context.Context, err error) {
	text, at := plainError(err), QueryErrorAt(r.query, err)
	switch {
	case tookTooLong(err) && r.answers(ctx):
		text, at = fmt.Sprintf("the server did not answer the query within %s; asking again, with more time", r.patience()), -1
		r.slow++
	case Away(err):
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

func tookTooLong(err error) bool {
	var deadline *serviceerror.DeadlineExceeded
	return errors.As(err, &deadline) || errors.Is(err, context.DeadlineExceeded)
}

// answers tells whether the server is there at all.
func (r *runsReader) answers(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	_, err := r.c.CheckHealth(ctx, &client.CheckHealthRequest{})
	return err == nil
}

// Newest narrows a visibility query to the newest of the runs that continue one another as
// new, so that what a person started is listed once. One that speaks of runs as the server
// sees them is left as it is.
func Newest(query string) string {
	if asServer.MatchString(query) {
		return query
	}
	return And(query, `ExecutionStatus != "ContinuedAsNew"`)
}

var asServer = regexp.MustCompile(`(?i)\b(ExecutionStatus|RunId)\b`)

// ofNewest asks for the newest runs only. A query that the server does not take so is asked
// as it is: what is wrong with it is then told in the words of whoever wrote it.
func ofNewest(query, newest string, ask func(query string) error) error {
	err := ask(newest)
	if err != nil && badQuery(err) && newest != query {
		err = ask(query)
	}
	return err
}

// newest is [Newest], but of files, which need not hold the newest run.
func (s *Store) newest(query string) string {
	if s.Snapshot().Connection.Mode == ModeFile {
		return query
	}
	return Newest(query)
}

// And narrows a visibility query.
func And(query, more string) string {
	if strings.TrimSpace(query) == "" {
		return more
	}
	return "(" + query + ") AND " + more
}

// plainError is an error's text in one line, without the wrapping that gRPC adds.
func plainError(err error) string {
	text := strings.Join(strings.Fields(err.Error()), " ")
	if _, after, ok := strings.Cut(text, "desc = "); ok {
		text = after
	}
	if text == context.DeadlineExceeded.Error() {
		return "no answer in time"
	}
	return text
}
