package runs

import (
	"acescope/engine/ace"
	"acescope/engine/temporal/history"
	"acescope/sources/cluster"
	"acescope/sources/feed"
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"go.temporal.io/sdk/client"

	"go.temporal.io/api/workflowservice/v1"
)

// ListFeed reads the list of runs again and again, whether or not it is shown: the other screens need it too. It holds
// the part of the list that was scrolled through.
type ListFeed struct {
	link *cluster.Link
	cell *feed.Cell[RunList]
	wake chan struct{} // one slot: read now

	mu       sync.Mutex
	query    string
	wanted   wanted
	endRound func() // cancels the reading under way; nil before the first
}

// wanted is what the reader does besides reading the newest runs again.
type wanted struct {
	older, newer bool // one part more
	first, last  bool // go there
	stop         bool // stop walking to the last run
}

func (w wanted) moves() bool { return w.older || w.newer || w.first || w.last }

// NewListFeed returns a list of all runs that has read nothing yet.
func NewListFeed(link *cluster.Link) *ListFeed {
	f := &ListFeed{
		link: link,
		cell: feed.NewCell(link.Wake, RunList{Total: -1, ErrAt: -1}),
		wake: make(chan struct{}, 1),
	}
	link.OnLost = f.Refresh
	return f
}

// Value returns the part of the list that is held.
func (f *ListFeed) Value() RunList {
	list, status := f.cell.Value(), f.link.Status()
	list.Paused = status.Paused
	list.Interval = status.Interval
	return list
}

// SetQuery lists other runs and cancels what is being read for the old query. The old rows stay until the new ones
// are read.
func (f *ListFeed) SetQuery(query string) {
	f.mu.Lock()
	f.query = query
	f.wanted = wanted{}
	if f.endRound != nil {
		f.endRound()
	}
	f.mu.Unlock()
	f.cell.Update(func(l *RunList) {
		*l = RunList{Query: query, Rows: l.Rows, First: l.First, Total: -1, Missing: l.Missing, Loading: true, ErrAt: -1}
	})
	f.Refresh()
}

// Refresh reads the list now.
func (f *ListFeed) Refresh() { cluster.Signal(f.wake) }

// SetPaused stops all readers from refreshing by themselves, or lets them refresh again.
func (f *ListFeed) SetPaused(paused bool) {
	f.link.SetPaused(paused)
	f.Refresh()
}

// LoadMore holds more of the older runs.
func (f *ListFeed) LoadMore() {
	f.want(func(w *wanted) {
		w.older = true
		w.newer = false
	})
}

// LoadNewer holds more of the newer runs.
func (f *ListFeed) LoadNewer() {
	f.want(func(w *wanted) {
		w.newer = true
		w.older = false
	})
}

// LoadFirst goes back to the newest runs.
func (f *ListFeed) LoadFirst() { f.want(func(w *wanted) { *w = wanted{first: true, stop: true} }) }

// LoadLast walks to the oldest run. RunList.Walking counts the runs passed so far.
func (f *ListFeed) LoadLast() { f.want(func(w *wanted) { *w = wanted{last: true} }) }

// StopWalk ends the walk to the oldest run.
func (f *ListFeed) StopWalk() { f.want(func(w *wanted) { *w = wanted{stop: true} }) }

func (f *ListFeed) want(change func(*wanted)) {
	f.mu.Lock()
	change(&f.wanted)
	f.mu.Unlock()
	f.Refresh()
}

// Run reads the list at the link's interval, at once after Refresh, and more often while the server is unreachable,
// until ctx ends.
func (f *ListFeed) Run(ctx context.Context) {
	r := &runsReader{feed: f, c: f.link.Client, namespace: f.link.Namespace}
	for {
		r.round(ctx)
		if f.sleep(ctx) != nil {
			return
		}
	}
}

func (f *ListFeed) sleep(ctx context.Context) error {
	for {
		status := f.link.Status()
		wait := status.Interval
		if status.Connection.State == cluster.ConnLost {
			wait = LostRetry
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case <-f.wake:
			timer.Stop()
			return nil
		case <-timer.C:
			if !f.link.Paused() {
				return nil
			}
		}
	}
}

// takeWanted returns what to do now. cancel is called when the query changes.
func (f *ListFeed) takeWanted(cancel func()) (string, wanted) {
	f.mu.Lock()
	defer f.mu.Unlock()
	w := f.wanted
	f.wanted = wanted{}
	f.endRound = cancel
	return f.query, w
}

// stopped reports, once, whether the walk to the oldest run should stop.
func (f *ListFeed) stopped() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	stop := f.wanted.stop
	f.wanted.stop = false
	return stop
}

// update changes the list and reports true, unless it is now of another query than the reader's.
func (r *runsReader) update(change func(*RunList)) bool {
	r.feed.mu.Lock()
	defer r.feed.mu.Unlock()
	if r.feed.query != r.query {
		return false
	}
	r.feed.cell.Update(change)
	return true
}

// newestOnly is [Newest], except for histories from files, which need not include the newest run.
func newestOnly(link *cluster.Link, query string) string {
	if link.Connection().Mode == cluster.ModeFile {
		return query
	}
	return Newest(query)
}

// round does what is wished, or reads the newest again and all that goes with it. A new
// query ends it early.
func (r *runsReader) round(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	query, want := r.feed.takeWanted(cancel)
	if query != r.query || r.live == nil {
		r.query, r.list, r.live, r.counts, r.slow = query, Window{}, map[string]Asked{}, Counting{}, 0
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
	r.slow, r.readAt = 0, r.feed.link.Now()
	r.feed.link.Away(nil)
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

func (r *runsReader) move(ctx context.Context, want wanted) error {
	switch {
	case want.last:
		return r.walk(ctx)
	case want.first:
		return r.list.Top(ctx, r.page)
	case want.newer:
		return r.list.Up(ctx, r.page)
	}
	return r.list.Down(ctx, r.page, ListPage)
}

// walk goes to the oldest run, page by page, until it is stopped, and says how far it
// has come.
func (r *runsReader) walk(ctx context.Context) error {
	r.list.Bottom()
	passed := func() { r.walking(r.list.First() + int64(r.list.Held())) }
	defer r.walking(0)
	for passed(); len(r.list.Next) > 0 && !r.feed.stopped(); passed() {
		if err := r.list.Down(ctx, r.page, WalkPage); err != nil {
			return err
		}
	}
	for r.list.Lo > 0 && r.list.Held() < 2*ListPage {
		if err := r.list.Up(ctx, r.page); err != nil {
			return err
		}
	}
	r.list.Upwards = false
	return nil
}

func (r *runsReader) walking(n int64) {
	r.update(func(l *RunList) { l.Walking = n })
}

// page reads one page. A query that timed out before is given longer.
func (r *runsReader) page(ctx context.Context, size int, token []byte) (runs []Run, next []byte, err error) {
	err = OfNewest(r.query, newestOnly(r.feed.link, r.query), func(query string) error {
		runs, next, err = ListPageOf(ctx, r.c, query, size, token, r.patience())
		return err
	})
	return runs, next, err
}

func (r *runsReader) patience() time.Duration {
	return min(cluster.CallTimeout<<min(r.slow, 8), MaxTimeout)
}

// publish shows what is held, unless another query was asked for meanwhile.
func (r *runsReader) publish() bool {
	rows := r.list.Rows()
	r.fill(rows)
	return r.update(func(l *RunList) {
		l.Rows, l.First, l.More = rows, r.list.First(), r.list.More()
		l.Loaded, l.Loading = r.readAt, false
		l.Err, l.ErrAt = "", -1
		l.Retries = r.retries.State()
		if l.First == 0 {
			l.Recent = RecentOf(rows, RecentRuns)
		}
	})
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
		r.feed.link.Away(err)
		return
	}
	r.feed.link.Away(nil)
	r.update(func(l *RunList) {
		l.Err = text
		l.ErrAt = at
		l.Loading = false
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
	feed      *ListFeed
	c         client.Client
	namespace string

	query   string
	list    Window
	live    map[string]Asked // open runs by run id
	retries Retries
	counts  Counting
	slow    int       // readings in a row that timed out
	readAt  time.Time // when the list was last read
	checked time.Time
}

// count asks how many runs there are by outcome, when the list has changed or the last
// counts are old.
func (r *runsReader) count(ctx context.Context) {
	newest := Fingerprint(r.list.Rows())
	if r.counts.Newest == newest && r.feed.link.Now().Sub(r.counts.At) < CountEvery {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, r.patience())
	defer cancel()
	total, counts, err := CountOutcomes(ctx, r.c, newestOnly(r.feed.link, r.query))
	if err != nil {
		return // the list itself was read: the counts keep their age
	}
	r.counts = Counting{At: r.feed.link.Now(), Newest: newest}
	r.update(func(l *RunList) {
		l.Total = total
		l.Counts = counts
	})
}

// askOpen asks the newest open runs how far they are, since only a run that has ended
// leaves a summary. The first that does not answer ends the round.
func (r *runsReader) askOpen(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, cluster.AskTimeout)
	defer cancel()
	fresh := map[string]Asked{}
	for _, row := range r.list.Rows() {
		if len(fresh) >= AskAtMost {
			break
		}
		if !row.Open() || row.Type != ace.TaskWorkflow && row.Type != ace.ExperimentWorkflow {
			continue
		}
		a, err := r.askOne(ctx, row)
		if err != nil {
			break
		}
		fresh[row.RunID] = a
	}
	r.live = fresh
}

func (r *runsReader) askOne(ctx context.Context, row Run) (Asked, error) {
	if row.Type == ace.ExperimentWorkflow {
		var p ace.ExperimentProgress
		err := r.query1(ctx, row, ace.QueryExperiment, &p)
		p.Summary.Usage = p.Usage
		return Asked{&p.Summary, ace.Phase(p.Stage)}, err
	}
	var answer ace.SkillAnswer
	err := r.query1(ctx, row, ace.QuerySkills, &answer)
	sum := &ace.Summary{}
	for _, u := range answer.Skills {
		sum.Skills += u.Calls
		sum.SkillsOK += u.OK
	}
	return Asked{Sum: sum}, err
}

func (r *runsReader) query1(ctx context.Context, row Run, name string, answer any) error {
	v, err := r.c.QueryWorkflow(ctx, row.WorkflowID, row.RunID, name)
	if err != nil {
		return err
	}
	return v.Get(answer)
}

// fill adds to rows what was found out besides visibility. The rows are not published yet.
func (r *runsReader) fill(rows []Run) {
	for i := range rows {
		row := &rows[i]
		if !row.Open() {
			continue
		}
		if a, ok := r.live[row.RunID]; ok && row.Summary == nil {
			row.Summary = a.Sum
			if row.Phase == "" {
				row.Phase = a.Phase
			}
		}
		if t, ok := r.retries.Known[row.RunID]; ok {
			row.Attempt, row.LastError = t.Attempt, t.LastError
		}
	}
}

// describe looks at some of the open runs: those that were being retried and those that
// were not looked at for longest.
func (r *runsReader) describe(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, DescribeTimeout)
	defer cancel()
	for _, row := range r.retries.Next(r.list.Rows()) {
		answer, err := r.c.DescribeWorkflowExecution(ctx, row.WorkflowID, row.RunID)
		if err != nil {
			if !cluster.NotFound(err) {
				return // out of time, or away: the rest has its turn next time
			}
			continue
		}
		r.retries.Known[row.RunID] = tryingOf(answer, r.feed.link.Now())
	}
}

// tryingOf is the pending activity that was tried most often.
func tryingOf(d *workflowservice.DescribeWorkflowExecutionResponse, at time.Time) Trying {
	t := Trying{At: at}
	for _, a := range d.GetPendingActivities() {
		attempt, reason := a.GetAttempt(), ""
		if f := a.GetLastFailure(); f != nil {
			reason = history.FailureOf(f).Message
		}
		if attempt > 1 && cmp.Or(cmp.Compare(attempt, t.Attempt), cmp.Compare(reason, t.LastError)) > 0 {
			t.Attempt, t.LastError = attempt, reason
		}
	}
	return t
}

// ListRetrying is [List] for the open runs that have an activity which is being tried
// again. Each open run is a call, as visibility does not tell; at most 10,000 are looked
// at.
func ListRetrying(ctx context.Context, c client.Client, query string, limit int, fn func(Run) error) error {
	given := 0
	err := List(ctx, c, And(query, `ExecutionStatus = "Running"`), DescribeAll, func(r Run) error {
		d, err := c.DescribeWorkflowExecution(ctx, r.WorkflowID, r.RunID)
		if cluster.NotFound(err) {
			return nil
		}
		if err != nil {
			return err
		}
		t := tryingOf(d, r.Start)
		if t.Attempt <= 1 {
			return nil
		}
		r.Attempt, r.LastError = t.Attempt, t.LastError
		if err := fn(r); err != nil {
			return err
		}
		if given++; limit > 0 && given >= limit {
			return ErrEnough
		}
		return nil
	})
	if errors.Is(err, ErrEnough) {
		return nil
	}
	return err
}

// checkAttributes says lastingly which search attributes the server lacks. A server that
// does not let us ask is taken to have them.
func (r *runsReader) checkAttributes(ctx context.Context) {
	missing := r.feed.cell.Value().Missing
	every := CheckEvery
	if len(missing) > 0 {
		every = RecheckEvery
	}
	if !r.checked.IsZero() && r.feed.link.Now().Sub(r.checked) < every {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, cluster.CallTimeout)
	defer cancel()
	fresh, err := MissingAttributes(ctx, r.c, r.namespace)
	if err != nil {
		return
	}
	r.checked = r.feed.link.Now()
	if len(fresh) > 0 {
		r.feed.link.SetHealth(AttributesHealth, false, "the server lacks "+strings.Join(fresh, ", ")+": "+ace.SearchAttributesCommand(r.namespace, fresh))
	} else {
		r.feed.link.SetHealth(AttributesHealth, true, "all there")
	}
	r.feed.cell.Update(func(l *RunList) { l.Missing = fresh })
}
