package experiments

import (
	"context"
	"slices"
	"sync"
	"time"

	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"

	"acescope/engine/ace"
	"acescope/sources/cluster"
	"acescope/sources/feed"
	"acescope/sources/runs"
)

// Feed reads the list of experiments and the learning curves of some of them while they are shown.
type Feed struct {
	*feed.Feed[struct{}, *Experiments]
	link *cluster.Link
	wake chan struct{} // one slot: the requested series have changed

	mu     sync.Mutex
	series []string        // workflow ids of the requested series
	closed map[string]bool // closed experiments of the list whose progress is known, by run id
	kept   []*Series       // of closed experiments, least recently used first
}

// NewFeed returns a feed of all experiments.
func NewFeed(link *cluster.Link) *Feed {
	f := &Feed{link: link, wake: make(chan struct{}, 1)}
	f.Feed = feed.New(link.Wake, f.read)
	f.Want(struct{}{})
	return f
}

// Show reads the learning curves of these experiments, by workflow id, at most [MaxSeries].
func (f *Feed) Show(workflowIDs []string) {
	f.mu.Lock()
	same := slices.Equal(f.series, workflowIDs)
	f.series = slices.Clone(workflowIDs[:min(len(workflowIDs), MaxSeries)])
	f.mu.Unlock()
	if !same {
		cluster.Signal(f.wake)
	}
}

// Reread reads everything again, including closed experiments.
func (f *Feed) Reread() {
	f.mu.Lock()
	f.closed = nil
	f.kept = nil
	f.mu.Unlock()
	f.Again()
}

// read updates the list and the requested series until ctx ends.
func (f *Feed) read(ctx context.Context, _ struct{}, publish func(*Experiments)) {
	r := &reader{feed: f, c: f.link.Client, update: feed.Updater(f.Value(), publish),
		followed: map[string]*seriesFollower{}, counting: make(chan struct{}, 1)}
	if last := f.Value(); last != nil {
		for _, series := range last.Series {
			r.published = append(r.published, series.WorkflowID)
		}
	}
	var wg sync.WaitGroup
	wg.Go(func() { r.list(ctx) })
	wg.Go(func() { r.run(ctx) })
	wg.Go(func() { r.sync(ctx) })
	wg.Wait()
}

// reader reads the list and follows the requested experiments.
type reader struct {
	feed      *Feed
	c         client.Client
	update    func(func(*Experiments))
	followed  map[string]*seriesFollower
	published []string      // workflow ids of the published series
	counting  chan struct{} // one slot: the list takes numbers of bullets from branches
}

// list reads the list at the link's interval, the first time even if the console is paused.
func (r *reader) list(ctx context.Context) {
	for {
		if !r.feed.link.Paused() || r.feed.Value() == nil {
			r.listOnce(ctx)
		}
		if link := r.feed.link; link.Rest(ctx, link.Status().Interval) != nil {
			return
		}
	}
}

func (r *reader) listOnce(ctx context.Context) {
	rows, more, err := List(ctx, r.c)
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		r.update(func(e *Experiments) { e.Err = cluster.PlainError(err) })
		return
	}
	settled := r.feed.fillProgress(rows)
	r.countBullets(rows)
	r.update(func(e *Experiments) {
		e.Rows, e.More, e.Loaded, e.Err = slices.Clone(rows), more, r.feed.link.Now(), ""
	})
	for i := range rows {
		if ctx.Err() != nil {
			return
		}
		if rows[i].unread() && !settled[rows[i].key()] {
			rows[i].Read(ctx, r.c)
		}
	}
	r.countBullets(rows)
	r.feed.keepProgress(rows)
	r.update(func(e *Experiments) { e.Rows = rows })
}

// countBullets counts in the branches that this machine has; sync gets those of others.
func (r *reader) countBullets(rows []Experiment) {
	if books := r.feed.link.Playbooks; books != nil {
		CountBullets(books, rows, func() error { cluster.Signal(r.counting); return nil })
	}
}

// sync gets the branches of other machines while the list needs them. A slow store does not delay the list.
func (r *reader) sync(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.counting:
		}
		_ = r.feed.link.Playbooks.Sync(ctx) // without it, the numbers stay unknown or old
		if cluster.Sleep(ctx, syncEvery) != nil {
			return
		}
	}
}

// fillProgress adds the results of the last reading to the rows. settled holds the closed experiments that
// need no further reading.
func (f *Feed) fillProgress(rows []Experiment) (settled map[string]bool) {
	f.mu.Lock()
	settled = f.closed
	f.mu.Unlock()
	before := map[string]Experiment{}
	if e := f.Value(); e != nil {
		for _, r := range e.Rows {
			before[r.key()] = r
		}
	}
	for i, r := range rows {
		if known := before[r.key()]; known.Progress != nil && r.Progress == nil {
			rows[i].Progress, rows[i].Start = known.Progress, known.Start
		}
	}
	return settled
}

// keepProgress remembers which experiments of the list are closed and read.
func (f *Feed) keepProgress(rows []Experiment) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = map[string]bool{}
	for _, r := range rows {
		if !r.Open() && r.Progress != nil {
			f.closed[r.key()] = true
		}
	}
}

// keptSeries returns the closed series of an earlier reading, or nil.
func (f *Feed) keptSeries(workflowID, runID string) *Series {
	f.mu.Lock()
	defer f.mu.Unlock()
	at := slices.IndexFunc(f.kept, func(k *Series) bool {
		return k.WorkflowID == workflowID && k.RunID == runID
	})
	if at < 0 {
		return nil
	}
	kept := f.kept[at]
	f.kept = append(slices.Delete(f.kept, at, at+1), kept)
	return kept
}

// keepSeries keeps a closed series and drops the least recently used one.
func (f *Feed) keepSeries(done *Series) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.kept = append(f.kept, done)
	if over := len(f.kept) - maxKeptSeries; over > 0 {
		f.kept = slices.Delete(f.kept, 0, over)
	}
}

func (r *reader) run(ctx context.Context) {
	defer r.stopAll()
	for {
		r.feed.mu.Lock()
		wanted := r.feed.series
		r.feed.mu.Unlock()
		r.follow(ctx, wanted)
		complete := r.complete()
		due := time.After(seriesEvery + time.Duration(r.publish(wanted))*seriesRest)
		if complete {
			due = nil
		}
		select {
		case <-ctx.Done():
			return
		case <-due:
		case <-r.feed.wake:
		}
	}
}

// complete reports whether all followers have ended, so that what is published now does not change any more.
func (r *reader) complete() bool {
	for _, f := range r.followed {
		select {
		case <-f.done:
		default:
			return false
		}
	}
	return !r.feed.link.Paused()
}

// follow starts and stops followers to match the requested series.
func (r *reader) follow(ctx context.Context, wanted []string) {
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
			f := &seriesFollower{SeriesFolder: NewSeriesFolder(id, ""), stop: stop, done: make(chan struct{})}
			r.followed[id] = f
			go func() { defer close(f.done); f.read(following, r.feed, id) }()
		}
	}
}

func (r *reader) stopAll() {
	for _, f := range r.followed {
		f.stop()
		<-f.done
	}
}

// publish publishes changes. While the console is paused, it publishes only newly requested experiments. It
// returns the number of published tasks.
func (r *reader) publish(wanted []string) (tasks int) {
	changed := !slices.Equal(wanted, r.published)
	for _, f := range r.followed {
		if !r.feed.link.Paused() && f.changed() {
			changed = true
		}
	}
	if !changed {
		return 0
	}
	r.published = slices.Clone(wanted)
	series := make([]*Series, 0, len(wanted))
	for _, id := range wanted {
		if s := r.followed[id].Value(); s.RunID != "" || s.Err != "" || s.Note != "" {
			series = append(series, s)
			tasks += len(s.Tasks)
		}
	}
	r.update(func(e *Experiments) { e.Series = series })
	return tasks
}

// seriesFollower reads one series in a goroutine.
type seriesFollower struct {
	*SeriesFolder
	stop context.CancelFunc
	done chan struct{}
}

// read folds the experiment until it closes, or uses the kept series.
func (f *seriesFollower) read(ctx context.Context, from *Feed, workflowID string) {
	l := from.link
	chain, err := f.chain(ctx, l, workflowID)
	if cluster.NotFound(err) {
		err = f.readTasks(ctx, l, workflowID)
	} else if err == nil {
		if kept := from.keptSeries(workflowID, chain.Newest); kept != nil {
			f.change(func(*Series) { f.value = kept })
			return
		}
		f.change(func(s *Series) { s.RunID, s.Reading = chain.Newest, !chain.Open })
		err = f.Read(ctx, chain.First, func(runID string, take func(*historypb.HistoryEvent) error) error {
			return cluster.Follow(ctx, l.Client, l.Namespace, workflowID, runID, l.Away, take)
		})
	}
	switch {
	case err == nil && chain.Newest == "": // it has no workflow; its tasks may be run again
	case err == nil: // even if ctx has ended meanwhile
		from.keepSeries(f.Value())
	case ctx.Err() == nil:
		f.change(func(s *Series) { s.Err = cluster.PlainError(err) })
	}
}

// readTasks reads an experiment without a workflow again and again until its tasks have closed.
func (f *seriesFollower) readTasks(ctx context.Context, link *cluster.Link, workflowID string) error {
	known := map[string]Finished{}
	for {
		s, err := readTasks(ctx, link.Client, workflowID, known)
		if err != nil {
			return err
		}
		f.change(func(*Series) { f.value = s })
		if s.Status != ace.Running {
			return nil
		}
		if err := cluster.Sleep(ctx, link.Status().Interval); err != nil {
			return err
		}
	}
}

// chain retries until the server answers.
func (f *seriesFollower) chain(ctx context.Context, link *cluster.Link, workflowID string) (runChain, error) {
	for {
		chain, err := readChain(ctx, link.Client, workflowID)
		if err == nil || ctx.Err() != nil || !cluster.Unreachable(err) {
			return chain, err
		}
		link.Away(err)
		_ = cluster.Sleep(ctx, runs.LostRetry)
	}
}
