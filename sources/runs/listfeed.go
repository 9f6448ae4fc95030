package runs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"acescope/engine/ace"
	"acescope/engine/temporal/history"
	"acescope/engine/temporal/searchattr"
	"acescope/sources/cluster"
	"acescope/sources/feed"
)

// RunList holds the runs that match the query, newest first, as far as they are loaded.
type RunList struct {
	Query    string // visibility query, "" for all
	Rows     []Run
	First    int64 // number of newer runs before Rows[0]
	Walking  int64 // number of runs passed on the way to the oldest run, 0 if no walk is running
	Total    int64 // the server's count; -1 while unknown
	Counts   Counts
	More     bool      // older rows are not loaded
	Loaded   time.Time // time of the last reading, zero before the first
	Interval time.Duration
	Paused   bool
	Loading  bool
	Err      string // why the last reading failed
	ErrAt    int    // byte offset of a syntax error in Query, or -1
	Recent   *Recent
	Retries  RetryState
	Missing  []string // search attributes of the contract that the server lacks
	Searched int64    // runs that were searched for a text or a cost, 0 if the query has no such condition
	Bounded  bool     // older runs are not searched
	Traces   TraceProgress
}

// ListFeed reads the list of runs repeatedly, whether or not it is shown, because other screens need it. It
// holds the part of the list that the user has scrolled through.
type ListFeed struct {
	// Traces reads the histories that a row needs; nil reads none. Set it before Run.
	Traces Traces

	link   *cluster.Link
	cell   *feed.Cell[RunList]
	wake   chan struct{} // one slot: read now
	unread chan struct{} // one slot: histories may have to be read

	mu       sync.Mutex
	query    string
	wanted   wanted
	endRound func()   // cancels the reading under way; nil before the first
	shown    []string // run IDs of the rows on the screen
}

// Load is a part of the list that the reader is asked to load.
type Load uint8

// Parts to load. LoadFirst goes back to the newest runs. LoadLast walks to the oldest run; RunList.Walking
// counts the runs passed so far. StopWalk ends the walk.
const (
	noLoad Load = iota
	LoadOlder
	LoadNewer
	LoadFirst
	LoadLast
	StopWalk
)

// wanted holds the requests to the reader.
type wanted struct {
	load Load // none, older, newer, first or last
	stop bool // stop walking to the last run
}

// NewListFeed returns a list of all runs that has read nothing yet.
func NewListFeed(link *cluster.Link) *ListFeed {
	f := &ListFeed{
		link:   link,
		cell:   feed.NewCell(link.Wake, RunList{Total: -1, ErrAt: -1}),
		wake:   make(chan struct{}, 1),
		unread: make(chan struct{}, 1),
	}
	link.OnLost = f.Refresh
	return f
}

// Value returns the part of the list that is held.
func (f *ListFeed) Value() RunList {
	list, status := f.cell.Value(), f.link.Status()
	list.Paused = status.Paused
	list.Interval = f.interval()
	return list
}

// SetQuery lists other runs and cancels what is being read for the old query. The old rows stay until the new
// ones are read.
func (f *ListFeed) SetQuery(query string) {
	f.mu.Lock()
	f.query = query
	f.wanted = wanted{}
	if f.endRound != nil {
		f.endRound()
	}
	f.mu.Unlock()
	f.cell.Update(func(l *RunList) {
		*l = RunList{Query: query, Rows: l.Rows, First: l.First, Total: -1, Missing: l.Missing, Loading: true,
			ErrAt: -1}
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

// Load loads a part of the list. Going to an end of the list outranks loading one more page.
func (f *ListFeed) Load(part Load) {
	f.mu.Lock()
	switch part {
	case LoadFirst:
		f.wanted = wanted{load: LoadFirst, stop: true}
	case LoadLast:
		f.wanted = wanted{load: LoadLast}
	case StopWalk:
		f.wanted = wanted{stop: true}
	default:
		if f.wanted.load < LoadFirst {
			f.wanted.load = part
		}
	}
	f.mu.Unlock()
	f.Refresh()
}

// Run reads the list at the link's interval, at once after Refresh, and more often while the server is
// unreachable, until ctx ends.
func (f *ListFeed) Run(ctx context.Context) {
	if f.Traces != nil {
		var wg sync.WaitGroup
		defer wg.Wait()
		wg.Go(func() { f.readTraces(ctx) })
	}
	r := &runsReader{feed: f, c: f.link.Client, namespace: f.link.Namespace}
	for {
		r.round(ctx)
		woken, err := f.sleep(ctx)
		if err != nil {
			return
		}
		if woken {
			r.newest = nil
		}
	}
}

// interval returns the time between two readings.
func (f *ListFeed) interval() time.Duration { return f.link.ListEvery(f.link.Status().Interval) }

// sleep waits until the next reading. It reports whether one was requested.
func (f *ListFeed) sleep(ctx context.Context) (woken bool, err error) {
	began := time.Now()
	for {
		stirred := f.link.Stirred()
		wait := f.interval()
		if f.link.Status().Connection.State == cluster.ConnLost {
			wait = LostRetry
		}
		timer := time.NewTimer(wait - time.Since(began))
		select {
		case <-ctx.Done():
			timer.Stop()
			return false, ctx.Err()
		case <-f.wake:
			timer.Stop()
			return true, nil
		case <-stirred: // the interval is shorter now
			timer.Stop()
		case <-timer.C:
			if !f.link.Paused() {
				return false, nil
			}
			began = time.Now()
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

// again restores what the server could not be asked for, unless something else was wanted since then.
func (f *ListFeed) again(query string, want wanted) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.query == query && f.wanted == (wanted{}) {
		f.wanted = want
	}
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
func (r *runsReader) update(change func(*RunList)) bool { return r.change(r.feed.cell.Update, change) }

func (r *runsReader) change(how func(func(*RunList)), change func(*RunList)) bool {
	r.feed.mu.Lock()
	defer r.feed.mu.Unlock()
	if r.feed.query != r.query {
		return false
	}
	how(change)
	return true
}

// newestOnly is [Newest], except for histories from files, which need not include the newest run.
func newestOnly(link *cluster.Link, query string) string {
	if link.Connection().Mode == cluster.ModeFile {
		return query
	}
	return Newest(query)
}

// round handles requests, or reads the newest runs with all their details. A new query ends it early.
func (r *runsReader) round(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	query, want := r.feed.takeWanted(cancel)
	if query != r.query || r.live == nil {
		r.turn(query)
	}
	err := r.read(ctx, want)
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		if cluster.Unreachable(err) {
			r.feed.again(query, want)
		}
		r.failed(ctx, err)
		return
	}
	r.slow, r.readAt = 0, r.feed.link.Now()
	r.feed.link.Away(nil)
	if r.still {
		r.change(r.feed.cell.Amend, func(l *RunList) { l.Loaded = r.readAt })
		return
	}
	r.complete = r.readAt
	if !r.publish() {
		return
	}
	if !r.searching() && r.list.more() && len(r.list.rows) < glance {
		r.feed.Load(LoadOlder) // the rows that were selected from many do not fill a screen
	}
	if want.load != noLoad && !r.searching() {
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

// read moves in the list, or reads its newest runs again unless it is still. A search holds all that there
// is.
func (r *runsReader) read(ctx context.Context, want wanted) error {
	if want.load != noLoad && !r.searching() {
		r.still = false
		return r.move(ctx, want)
	}
	still, err := r.watch(ctx)
	r.feed.link.SetStill(still)
	switch {
	case r.still || err != nil:
		return err
	case r.searching():
		return cmp.Or(r.search(ctx), r.readTraces(ctx))
	}
	return r.list.refresh(ctx, r.page)
}

// watch reads the newest run of all while the user does nothing, and reports whether that is the closed run
// that it was. Then no other has changed since, because open runs come first and closed ones in the order of
// closing.
func (r *runsReader) watch(ctx context.Context) (still bool, err error) {
	r.still = false
	if !r.feed.link.Unused() || r.feed.link.Connection().Mode == cluster.ModeFile {
		r.newest = nil
		return false, nil
	}
	rows, _, err := listPage(ctx, r.c, "", 1, nil, r.patience())
	if err != nil {
		return false, err
	}
	closed := !slices.ContainsFunc(rows, Run.Open)
	still = closed && r.newest != nil && reflect.DeepEqual(rows, *r.newest)
	r.newest = &rows
	r.still = still && r.feed.link.Now().Sub(r.complete) < stillFor
	if still && !r.still {
		r.list.glances = maxGlances // an older run may have been deleted
	}
	return still, nil
}

func (r *runsReader) move(ctx context.Context, want wanted) error {
	switch want.load {
	case LoadLast:
		return r.walk(ctx)
	case LoadFirst:
		return r.list.top(ctx, r.page)
	case LoadNewer:
		return r.list.up(ctx, r.page)
	}
	return r.list.down(ctx, r.page, scrollPage)
}

// walk goes to the oldest run, page by page, until it is stopped, and publishes its progress.
func (r *runsReader) walk(ctx context.Context) error {
	r.list.bottom()
	passed := func() { r.walking(r.list.first() + int64(len(r.list.rows))) }
	defer r.walking(0)
	for passed(); r.list.more() && !r.feed.stopped(); passed() {
		if err := r.list.down(ctx, r.page, walkPage); err != nil {
			return err
		}
	}
	for r.list.lo > 0 && len(r.list.rows) < 2*scrollPage {
		if err := r.list.up(ctx, r.page); err != nil {
			return err
		}
	}
	r.list.upwards = false
	return nil
}

func (r *runsReader) walking(n int64) {
	r.update(func(l *RunList) { l.Walking = n })
}

// maxPages bounds the server's pages that are read for one page of a list whose rows are selected here.
const maxPages = 10

// page reads one page. After a timeout it allows more time.
func (r *runsReader) page(ctx context.Context, size int, token []byte) (runs []Run, next []byte, err error) {
	next = token
	base := r.base()
	for pages := 1; ; pages++ {
		var more []Run
		err = tryNewest(base, newestOnly(r.feed.link, base), func(query string) error {
			more, token, err = listPage(ctx, r.c, query, size, next, r.patience())
			return err
		})
		runs, next = append(runs, more...), token
		if err != nil || len(next) == 0 || len(runs) >= size || pages >= maxPages {
			return runs, next, err
		}
	}
}

func (r *runsReader) patience() time.Duration {
	return min(cluster.CallTimeout<<min(r.slow, 8), maxTimeout)
}

// publish publishes the held rows, unless the query has changed.
func (r *runsReader) publish() bool {
	r.rows = r.selected()
	defer cluster.Signal(r.feed.unread)
	return r.update(func(l *RunList) {
		l.Rows, l.First, l.More = r.rows, r.list.first(), r.list.more()
		if r.searched(l); NeedsTraces(r.query) {
			l.Traces = r.traced
		}
		l.Loaded, l.Loading = r.readAt, false
		l.Err, l.ErrAt = "", -1
		l.Retries = r.retries.state()
		if l.First == 0 {
			l.Recent = RecentOf(r.rows)
		}
	})
}

// failed publishes why the list could not be read. If the server answers other calls, a timeout is caused by
// the query and not by the connection.
func (r *runsReader) failed(ctx context.Context, err error) {
	text, at := cluster.PlainError(err), cluster.QueryErrorAt(r.query, err)
	switch {
	case cluster.TimedOut(err) && r.answers(ctx):
		text, at = fmt.Sprintf("the server did not answer the query within %s; asking again, with more time",
			r.patience()), -1
		r.slow++
	case cluster.Unreachable(err):
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

// answers reports whether the server responds.
func (r *runsReader) answers(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, cluster.CallTimeout)
	defer cancel()
	_, err := r.c.CheckHealth(ctx, &client.CheckHealthRequest{})
	return err == nil
}

// runsReader is the state of the list reader. It belongs to one goroutine.
type runsReader struct {
	feed      *ListFeed
	c         client.Client
	namespace string

	query    string
	list     window
	rows     []Run // published
	past     pastSearch
	parts    selection           // of the query
	live     map[string]progress // open runs, by run id
	retries  retries
	counts   countKey
	slow     int       // consecutive timeouts
	readAt   time.Time // time of the last reading
	still    bool      // the list was not read again, because nothing has changed
	newest   *[]Run    // of all runs, at most one; nil while the user does something
	complete time.Time // time of the last reading of the list itself
	checked  time.Time
	traced   TraceProgress // of a query that needs histories
}

// count counts the runs if the list has changed or the counts are old.
func (r *runsReader) count(ctx context.Context) {
	newest := fingerprint(r.rows)
	if r.counts.newest == newest && r.feed.link.Now().Sub(r.counts.at) < countEvery {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, r.patience())
	defer cancel()
	counts, err := CountRuns(ctx, r.c, newestOnly(r.feed.link, r.query))
	if err != nil {
		return // the list was read, only the counts are older
	}
	if counts.Total < 0 && r.list.first() == 0 && !r.list.more() {
		counts = countsOf(r.rows)
	}
	r.counts = countKey{at: r.feed.link.Now(), newest: newest}
	r.update(func(l *RunList) {
		l.Total = counts.Total
		l.Counts = counts
	})
}

// askOpen queries the newest open runs for their phase, because only closed runs have a summary. The first
// failure ends the round.
func (r *runsReader) askOpen(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, cluster.AskTimeout)
	defer cancel()
	fresh := map[string]progress{}
	for _, row := range r.rows {
		if len(fresh) >= maxAsked {
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

func (r *runsReader) askOne(ctx context.Context, row Run) (progress, error) {
	if row.Type == ace.ExperimentWorkflow {
		var p ace.ExperimentProgress
		err := r.query1(ctx, row, ace.QueryExperiment, &p)
		p.Summary.Usage = p.Usage
		return progress{&p.Summary, ace.Phase(p.Stage)}, err
	}
	var answer ace.SkillAnswer
	err := r.query1(ctx, row, ace.QuerySkills, &answer)
	sum := &ace.Summary{}
	for _, u := range answer.Skills {
		sum.Skills += u.Calls
		sum.SkillsOK += u.OK
	}
	return progress{summary: sum}, err
}

func (r *runsReader) query1(ctx context.Context, row Run, name string, answer any) error {
	v, err := r.c.QueryWorkflow(ctx, row.WorkflowID, row.RunID, name)
	if err != nil {
		return err
	}
	return v.Get(answer)
}

// fill adds what was read besides visibility to a row that is not published yet.
func (r *runsReader) fill(row *Run) {
	if r.feed.Traces != nil {
		r.feed.Traces.Fill(row)
	}
	if !row.Open() {
		return
	}
	if a, ok := r.live[row.RunID]; ok && row.Summary == nil {
		row.Summary = a.summary
		if row.Phase == "" {
			row.Phase = a.phase
		}
	}
	if t, ok := r.retries.known[row.RunID]; ok {
		row.Retry = t.Retry
	}
}

// describe describes some open runs: those that were retrying, and those described longest ago.
func (r *runsReader) describe(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, describeTimeout)
	defer cancel()
	for _, row := range r.retries.next(r.rows) {
		if row.ReadRetry(ctx, r.c, r.namespace) != nil {
			return // out of time, or unreachable: continue next time
		}
		r.retries.known[row.RunID] = described{r.feed.link.Now(), row.Retry}
	}
}

// ReadRetry sets the retry of a run from the server's description: the workflow task if it fails or waits,
// otherwise the activity with the most attempts. A run that the server does not know retries nothing.
func (r *Run) ReadRetry(ctx context.Context, c client.Client, namespace string) error {
	r.Retry = Retry{}
	d, err := cluster.Pages{C: c, Namespace: namespace, WorkflowID: r.WorkflowID,
		RunID: r.RunID}.Describe(ctx)
	if err != nil && !cluster.NotFound(err) {
		return err
	}
	for _, a := range d.GetPendingActivities() {
		next := Retry{Retried: a.GetActivityType().GetName(), Attempt: a.GetAttempt()}
		if f := a.GetLastFailure(); f != nil {
			next.LastError = history.FailureOf(f).Message
		}
		if next.Retried == WorkflowTask {
			next.Since = a.GetScheduledTime().AsTime()
			r.Retry = next
		} else if next.Attempt > 1 &&
			cmp.Or(cmp.Compare(next.Attempt, r.Attempt), cmp.Compare(next.LastError, r.LastError)) > 0 {
			r.Retry = next
		}
	}
	return nil
}

// ListRetrying is [List] restricted to open runs that retry an activity, or whose workflow task fails or
// waits for a worker. It describes each open run, at most 10,000.
func ListRetrying(ctx context.Context, c client.Client, namespace, query string, limit int,
	fn func(Run) error) error {
	given := 0
	err := List(ctx, c, And(query, `ExecutionStatus = "Running"`), describeAll, func(r Run) error {
		if err := r.ReadRetry(ctx, c, namespace); err != nil || r.Retried == "" {
			return err
		}
		if err := fn(r); err != nil {
			return err
		}
		if given++; limit > 0 && given >= limit {
			return errEnough
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

// checkAttributes reports missing search attributes as a health problem. Without permission to list them, it
// assumes that they exist.
func (r *runsReader) checkAttributes(ctx context.Context) {
	missing := r.feed.cell.Value().Missing
	every := checkEvery
	if len(missing) > 0 {
		every = recheckEvery
	}
	if !r.checked.IsZero() && r.feed.link.Now().Sub(r.checked) < every {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, cluster.CallTimeout)
	defer cancel()
	gap, err := searchattr.ReadGap(ctx, r.c.WorkflowService(), r.namespace)
	setup := ace.SetupCommand(r.feed.link.Connection().Address, r.namespace)
	if _, ok := errors.AsType[*serviceerror.NamespaceNotFound](err); ok {
		r.feed.link.SetHealth(attributesHealth, false,
			fmt.Sprintf("namespace %s does not exist; create it: %s", r.namespace, setup))
	}
	if err != nil {
		return
	}
	fresh := gap.All()
	r.checked = r.feed.link.Now()
	if len(fresh) > 0 {
		r.feed.link.SetHealth(attributesHealth, false,
			fmt.Sprintf("namespace %s lacks %s; create them: %s", r.namespace,
				strings.Join(fresh, ", "), setup))
	} else {
		r.feed.link.SetHealth(attributesHealth, true, "all there")
	}
	r.feed.cell.Update(func(l *RunList) { l.Missing = fresh })
}
