package histories

import (
	"context"
	"reflect"
	"sync"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/workflowservice/v1"

	"acescope/sources/cluster"
	"acescope/sources/feed"
	"acescope/sources/runs"
)

// restFor limits the reader's share of time: after a publication it rests restFor times as long as that took.
const restFor = 8

// pendingOf returns the pending activities of an open run.
func pendingOf(d *workflowservice.DescribeWorkflowExecutionResponse) []PendingActivity {
	pending := []PendingActivity{}
	if d.GetWorkflowExecutionInfo().GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING {
		for _, a := range d.GetPendingActivities() {
			pending = append(pending, PendingOf(a))
		}
	}
	return pending
}

// EventFeed reads the events of the selected run while they are shown: the newest page first, then all events
// from the run's shared history. It keeps the summaries of the last run when reading stops.
type EventFeed struct {
	*feed.Feed[runs.ID, *EventLog]
	link    *cluster.Link
	changed chan struct{} // one slot: the filter or the opened event
	kept    *eventReader  // of the run that was read last; only the reader uses it

	mu     sync.Mutex
	filter EventFilter
	open   int64
}

// NewEventFeed returns a feed that reads the run that it is asked for.
func NewEventFeed(link *cluster.Link) *EventFeed {
	f := &EventFeed{link: link, changed: make(chan struct{}, 1)}
	f.Feed = feed.New(link.Wake, f.read)
	return f
}

// Filter shows only events that match. An invalid filter matches all.
func (f *EventFeed) Filter(filter EventFilter) {
	f.mu.Lock()
	f.filter = filter
	f.mu.Unlock()
	cluster.Signal(f.changed)
}

// Open decodes one event completely; 0 closes it.
func (f *EventFeed) Open(id int64) {
	f.mu.Lock()
	f.open = id
	f.mu.Unlock()
	cluster.Signal(f.changed)
}

// wanted returns the filter and the event to open.
func (f *EventFeed) wanted() (EventFilter, int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.filter, f.open
}

// eventReader reads the history of one run. It keeps its events when reading stops, and belongs to one
// goroutine.
type eventReader struct {
	link    *cluster.Link
	id      runs.ID
	history *cluster.History

	index   *EventIndex
	tail    *EventIndex // the newest page; nil until it is read
	pending []PendingActivity
	ended   bool // nothing more is read
	err     string
	fresh   bool // any of these has changed since the last publication

	// As published:
	opened         *OpenedEvent
	spans          []Span
	clockBack      int
	matched        []int64
	filter         EventFilter
	filterDuration time.Duration
}

// read reads the history of a run until ctx ends. It publishes after changes, with rests in between, but at
// once for another filter, because the user waits for its matches.
func (f *EventFeed) read(ctx context.Context, id runs.ID, publish func(*EventLog)) {
	if id.WorkflowID == "" {
		publish(nil)
		return
	}
	h := f.link.History(id.WorkflowID, id.RunID)
	r := f.kept
	if r == nil || r.history != h {
		r = &eventReader{link: f.link, id: id, history: h, index: NewEventIndex(id.WorkflowID, id.RunID, h)}
	}
	f.kept = r
	r.tail, r.ended, r.err, r.fresh = nil, false, "", true
	var wg sync.WaitGroup
	defer wg.Wait()
	pages := followPages(ctx, &wg, h, r.index.last())
	newest := make(chan *EventIndex, 1)
	wg.Go(func() { r.readNewest(ctx, newest) })
	pending := make(chan []PendingActivity)
	wg.Go(func() { r.describe(ctx, pending) })
	due := time.After(0)
	var rested time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case page := <-pages:
			r.take(page)
		case r.tail = <-newest:
			r.fresh = true
		case work := <-pending:
			r.fresh = r.fresh || !reflect.DeepEqual(r.pending, work)
			r.pending = work
		case <-f.changed:
			if filter, _ := f.wanted(); filter != r.filter {
				due, rested = nil, time.Time{}
			}
		case <-due:
			due = nil
			began := time.Now()
			r.publish(f, publish)
			rested = time.Now().Add(max(cluster.PublishEvery, restFor*time.Since(began)))
			continue
		}
		if due == nil {
			due = time.After(time.Until(rested))
		}
	}
}

// take adds a page of the history.
func (r *eventReader) take(page eventPage) {
	r.fresh = true
	r.index.Append(page.events)
	r.err = cluster.PlainError(page.err)
	if page.last {
		r.ended, r.pending = true, nil
	}
}

// readNewest reads the newest page, which is shown until all events before it are read. The page is empty if
// it cannot be read: old servers cannot read backward.
func (r *eventReader) readNewest(ctx context.Context, newest chan<- *EventIndex) {
	p := cluster.Pages{r.link.Client, r.link.Namespace, r.id.WorkflowID, r.id.RunID}
	for !r.history.Closed() {
		page, _, err := p.Backward(ctx, cluster.NewestBatches, nil)
		if err != nil && cluster.Temporary(err) && cluster.Sleep(ctx, cluster.RetryDelay) == nil {
			continue
		}
		tail := NewEventIndex(r.id.WorkflowID, r.id.RunID, nil)
		tail.Append(page)
		newest <- tail
		return
	}
}

// describe reads pending activities until the run closes, because the history does not record their attempts.
func (r *eventReader) describe(ctx context.Context, pending chan<- []PendingActivity) {
	for !r.history.Closed() {
		asking, cancel := context.WithTimeout(ctx, cluster.CallTimeout)
		d, err := r.link.Client.DescribeWorkflowExecution(asking, r.id.WorkflowID, r.id.RunID)
		cancel()
		if err == nil {
			select {
			case pending <- pendingOf(d):
			case <-ctx.Done():
			}
		}
		if cluster.Sleep(ctx, DescribeEvery) != nil {
			return
		}
	}
}

// log returns the events read so far: the newest page until all before it are read.
func (r *eventReader) log() *EventLog {
	now := r.link.Now()
	l := r.index.Log(now)
	l.Reading = !r.ended && r.tail == nil
	if r.tail != nil && r.tail.last() > r.index.last() {
		l = r.tail.Log(now)
		l.Reading = !r.ended
	}
	l.Err = r.err
	return l
}

// publish builds and publishes the log.
func (r *eventReader) publish(f *EventFeed, publish func(*EventLog)) {
	filter, open := f.wanted()
	l := r.log()
	if (l.Len() == 0 || r.tail == nil) && !r.ended && l.Err == "" {
		return // every run has a first event, and the newest page is shown first
	}
	if r.link.Connection().Mode == cluster.ModeFile && !l.Closed && l.Len() > 0 {
		l.Until = time.Unix(0, l.Row(l.Len()-1).Nanos)
	}
	if r.fresh {
		r.spans, r.clockBack = Timeline(l, r.pending), countClockBack(l)
	}
	l.Spans, l.ClockBack = r.spans, r.clockBack
	if r.fresh || filter != r.filter {
		r.match(l, filter)
	}
	l.Filter, l.Matches, l.FilterDuration = r.filter, r.matched, r.filterDuration
	if open != 0 && (r.opened == nil || r.opened.ID != open || r.opened.Err != "") {
		r.opened = l.Open(open)
	}
	l.Opened = r.opened
	r.fresh = false
	publish(l)
}

func (r *eventReader) match(l *EventLog, f EventFilter) {
	r.filter, r.matched, r.filterDuration = f, nil, 0
	if f.Empty() {
		return
	}
	m, err := f.Compile()
	if err != nil {
		return
	}
	began := time.Now()
	r.matched = m.Events(l)
	r.filterDuration = time.Since(began)
}

// eventPage holds events of a run that is followed, or the reason why reading pauses.
type eventPage struct {
	events []*historypb.HistoryEvent
	err    error
	last   bool
}

// followPages sends the events after an id, until ctx ends or the run closes, and then a last page.
func followPages(ctx context.Context, wg *sync.WaitGroup, h *cluster.History, after int64) <-chan eventPage {
	pages := make(chan eventPage)
	send := func(page eventPage) error {
		select {
		case pages <- page:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	wg.Go(func() {
		away := func(err error) { _ = send(eventPage{err: err}) }
		err := h.Follow(ctx, after, away, func(events []*historypb.HistoryEvent) error {
			return send(eventPage{events: events})
		})
		_ = send(eventPage{err: err, last: true})
	})
	return pages
}
