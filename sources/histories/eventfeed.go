package histories

import (
	"context"
	"slices"
	"sync"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	workflowpb "go.temporal.io/api/workflow/v1"

	"acescope/sources/cluster"
	"acescope/sources/feed"
	"acescope/sources/runs"
)

// restFor limits the reader's share of time: after a publication it rests restFor times as long as that took.
const restFor = 8

func PendingWorkOf(a *workflowpb.PendingActivityInfo) PendingWork {
	w := PendingWork{ActivityID: a.GetActivityId(), Type: a.GetActivityType().GetName(), State: SpanScheduled, Attempt: a.GetAttempt()}
	if t := a.GetScheduledTime(); t != nil {
		w.Scheduled = t.AsTime()
	}
	if t := a.GetLastStartedTime(); t != nil {
		w.Started = t.AsTime()
	}
	if t := a.GetLastAttemptCompleteTime(); t != nil {
		w.Ended = t.AsTime()
	}
	if t := a.GetNextAttemptScheduleTime(); t != nil {
		w.Next = t.AsTime()
	}
	w.Error = failureText(a.GetLastFailure())
	switch {
	case a.GetState() == enumspb.PENDING_ACTIVITY_STATE_STARTED || a.GetState() == enumspb.PENDING_ACTIVITY_STATE_CANCEL_REQUESTED:
		w.State = SpanRunning
	case a.GetAttempt() > 1:
		w.State = SpanRetrying
	}
	return w
}

// EventFeed reads the events of the selected run while they are shown: the newest page first, then all events from the
// run's shared history. It keeps the summaries of the last run when reading stops.
type EventFeed struct {
	*feed.Feed[runs.ID, *EventLog]
	link *cluster.Link

	mu     sync.Mutex
	filter EventFilter
	open   int64
	kept   *eventReader // of the run that was read last
}

// NewEventFeed returns a feed that reads the run that it is asked for.
func NewEventFeed(link *cluster.Link) *EventFeed {
	f := &EventFeed{link: link}
	f.Feed = feed.New(link.Wake, f.readRun)
	return f
}

// Filter shows only events that match. An invalid filter matches all.
func (f *EventFeed) Filter(filter EventFilter) {
	f.change(func() { f.filter = filter })
}

// Open decodes one event completely; 0 closes it.
func (f *EventFeed) Open(id int64) {
	f.change(func() { f.open = id })
}

func (f *EventFeed) change(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
	if f.kept != nil {
		cluster.Signal(f.kept.changed)
	}
}

// readRun reads the history of a run until ctx ends.
func (f *EventFeed) readRun(ctx context.Context, id runs.ID, publish func(*EventLog)) {
	if id.WorkflowID == "" {
		publish(nil)
		return
	}
	h := f.link.History(id.WorkflowID, id.RunID)
	f.mu.Lock()
	r := &eventReader{feed: f, id: id, history: h, index: NewEventIndex(id.WorkflowID, id.RunID, h)}
	if f.kept != nil && f.kept.history == h {
		r = f.kept
	}
	r.show = publish
	r.changed = make(chan struct{}, 1)
	r.published = -1
	r.tail = nil
	r.ended = false
	r.err = ""
	f.kept = r
	f.mu.Unlock()
	var wg sync.WaitGroup
	for _, part := range []func(context.Context){r.newest, r.follow, r.describeLoop, r.publishLoop} {
		wg.Go(func() { part(ctx) })
	}
	wg.Wait()
}

// set changes the reader's state under the lock and wakes the publisher.
func (r *eventReader) set(fn func()) {
	r.mu.Lock()
	fn()
	r.version++
	r.mu.Unlock()
	cluster.Signal(r.changed)
}

func (r *eventReader) hasClosed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.index.closed
}

// newest reads the newest page, which is shown until all events before it are read. Old servers cannot
// read backward.
func (r *eventReader) newest(ctx context.Context) {
	p := cluster.Pages{r.feed.link.Client, r.feed.link.Namespace, r.id.WorkflowID, r.id.RunID}
	for !r.history.Closed() {
		page, _, err := p.Backward(ctx, cluster.NewestBatches, nil)
		if err != nil && cluster.Temporary(err) && cluster.Sleep(ctx, cluster.RetryDelay) == nil {
			continue
		}
		r.set(func() {
			r.tail = NewEventIndex(r.id.WorkflowID, r.id.RunID, nil)
			r.tail.Append(page)
		})
		return
	}
}

// follow appends events until the run closes.
func (r *eventReader) follow(ctx context.Context) {
	r.mu.Lock()
	after := r.index.Last()
	r.mu.Unlock()
	err := r.history.Follow(ctx, after, r.away, func(events []*historypb.HistoryEvent) error {
		r.set(func() { r.index.Append(events) })
		return nil
	})
	if ctx.Err() != nil {
		return
	}
	r.set(func() {
		r.ended = true
		r.err = cluster.PlainError(err)
		r.pending = nil
	})
}

// log returns the events read so far: the newest page until all before it are read. The lock is held.
func (r *eventReader) log(now time.Time) *EventLog {
	l := r.index.Log(now)
	l.Reading = !r.ended && r.tail == nil
	if r.tail != nil && r.tail.Last() > r.index.Last() {
		l = r.tail.Log(now)
		l.Reading = !r.ended
	}
	l.Err = r.err
	return l
}

// away records that the server is unreachable, or with nil that it answers.
func (r *eventReader) away(err error) {
	r.set(func() { r.err = cluster.PlainError(err) })
}

// describeLoop reads pending activities, because the history does not record their attempts.
func (r *eventReader) describeLoop(ctx context.Context) {
	tick := time.NewTicker(DescribeEvery)
	defer tick.Stop()
	for !r.hasClosed() && !r.history.Closed() {
		asking, cancel := context.WithTimeout(ctx, cluster.CallTimeout)
		d, err := r.feed.link.Client.DescribeWorkflowExecution(asking, r.id.WorkflowID, r.id.RunID)
		cancel()
		if err == nil {
			r.describe(d.GetPendingActivities(), d.GetWorkflowExecutionInfo().GetStatus())
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (r *eventReader) describe(list []*workflowpb.PendingActivityInfo, status enumspb.WorkflowExecutionStatus) {
	pending := make([]PendingWork, 0, len(list))
	if status == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING {
		for _, a := range list {
			pending = append(pending, PendingWorkOf(a))
		}
	}
	r.mu.Lock()
	same := slices.Equal(r.pending, pending)
	r.mu.Unlock()
	if !same {
		r.set(func() { r.pending = pending })
	}
}

// publishLoop publishes after each change, with rests in between.
func (r *eventReader) publishLoop(ctx context.Context) {
	for {
		began := time.Now()
		r.publish(ctx)
		rest := time.NewTimer(max(cluster.PublishEvery, restFor*time.Since(began)))
		select {
		case <-ctx.Done():
			rest.Stop()
			return
		case <-r.changed:
		}
		for resting := !r.otherFilter(); resting; {
			select {
			case <-ctx.Done():
				rest.Stop()
				return
			case <-r.changed:
				resting = !r.otherFilter()
			case <-rest.C:
				resting = false
			}
		}
		rest.Stop()
	}
}

// otherFilter reports whether the filter has changed. The user waits for the matches, so publishLoop does not
// rest.
func (r *eventReader) otherFilter() bool {
	r.feed.mu.Lock()
	defer r.feed.mu.Unlock()
	return r.feed.filter != r.filter
}

// publish builds and publishes the log, unless another run was selected meanwhile.
func (r *eventReader) publish(ctx context.Context) {
	r.feed.mu.Lock()
	filter, open := r.feed.filter, r.feed.open
	r.feed.mu.Unlock()
	file := r.feed.link.Connection().Mode == cluster.ModeFile
	r.mu.Lock()
	l := r.log(r.feed.link.Now())
	unknown := l.Len() == 0 && !r.ended // every run has a first event
	pending, version := r.pending, r.version
	r.mu.Unlock()
	if unknown && l.Err == "" {
		return // the newest page comes first
	}
	if file && !l.Closed && l.Len() > 0 {
		l.Until = time.Unix(0, l.Row(l.Len()-1).Nanos)
	}
	if version != r.published {
		r.spans, r.clockBack = Timeline(l, pending), countClockBack(l)
	}
	l.Spans, l.ClockBack = r.spans, r.clockBack
	if version != r.published || filter != r.filter {
		r.match(l, filter)
	}
	l.Filter, l.Matches, l.FilterDuration = r.filter, r.matched, r.filterDuration
	if open != 0 && (r.opened == nil || r.opened.ID != open || r.opened.Err != "") {
		r.opened = l.Open(open)
	}
	l.Opened = r.opened
	r.published = version
	if ctx.Err() == nil {
		r.show(l)
	}
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

// eventReader reads the history of one run. It keeps its events when reading stops.
type eventReader struct {
	feed    *EventFeed
	id      runs.ID
	history *cluster.History
	show    func(*EventLog)

	mu      sync.Mutex
	index   *EventIndex
	tail    *EventIndex // the newest page; nil until it is read
	pending []PendingWork
	ended   bool // nothing more is read
	err     string
	version int // of everything above
	changed chan struct{}

	opened         *OpenedEvent
	spans          []Span  // as published
	clockBack      int     // of the same log
	matched        []int64 // by filter, as published
	filter         EventFilter
	filterDuration time.Duration
	published      int
}
