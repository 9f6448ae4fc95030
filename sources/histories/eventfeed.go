package histories

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/client"

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

// EventFeed reads the events of the selected run while they are shown: the newest page first, then the older
// pages and new events. It keeps the events of the last run when reading stops.
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
	f.mu.Lock()
	r := &eventReader{feed: f, c: f.link.Client, id: id, index: NewEventIndex(id.WorkflowID, id.RunID)}
	if f.kept != nil && f.kept.id == id {
		r = f.kept
	}
	r.show = publish
	r.changed = make(chan struct{}, 1)
	r.published = -1
	r.reading = true
	r.err = ""
	f.kept = r
	f.mu.Unlock()
	var wg sync.WaitGroup
	wg.Go(func() { r.read(ctx) })
	wg.Go(func() { r.publishLoop(ctx) })
	wg.Wait()
}

// read fills the index and follows the run.
func (r *eventReader) read(ctx context.Context) {
	p := cluster.Pages{r.c, r.feed.link.Namespace, r.id.WorkflowID, r.id.RunID}
	if p.RunID == "" {
		p.RunID = r.newestRun(ctx)
	}
	forward := false
	if err := r.newest(ctx, p); err != nil {
		var unknown *serviceerror.Unimplemented
		if forward = errors.As(err, &unknown); !forward {
			r.fail(ctx, err)
			return
		}
	}
	var wg sync.WaitGroup
	if !r.hasClosed() || forward {
		wg.Go(func() { r.follow(ctx, p) })
		wg.Go(func() { r.describeLoop(ctx, p) })
	}
	if !forward {
		wg.Go(func() { r.fill(ctx, p) })
	}
	wg.Wait()
}

// newestRun returns the newest run id of the workflow, so that all pages belong to one run. It returns "" if it
// is unknown.
func (r *eventReader) newestRun(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, cluster.CallTimeout)
	defer cancel()
	d, err := r.c.DescribeWorkflowExecution(ctx, r.id.WorkflowID, "")
	if err != nil {
		return ""
	}
	return d.GetWorkflowExecutionInfo().GetExecution().GetRunId()
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
	return r.index.Closed
}

func (r *eventReader) fail(ctx context.Context, err error) {
	if ctx.Err() == nil {
		r.set(func() { r.err, r.reading = cluster.PlainError(err), false })
	}
}

// newest reads from the end back to the last known event, or one page if no event is known.
func (r *eventReader) newest(ctx context.Context, p cluster.Pages) error {
	r.mu.Lock()
	known, whole := r.index.Last(), r.index.Closed
	r.mu.Unlock()
	if whole {
		return nil
	}
	var back [][]*historypb.HistoryEvent
	var token []byte
	for {
		events, next, err := r.page(ctx, func(ctx context.Context) ([]*historypb.HistoryEvent, []byte, error) {
			return p.Backward(ctx, cluster.NewestBatches, token)
		})
		if err != nil {
			return err
		}
		back = append(back, events)
		if token = next; known == 0 || len(events) == 0 || events[0].GetEventId() <= known+1 || len(token) == 0 {
			break
		}
	}
	r.set(func() {
		for _, events := range slices.Backward(back) {
			if known == 0 {
				r.index.Prepend(events)
				continue
			}
			r.index.Append(events)
		}
		if known == 0 {
			r.index.Token = token
		}
	})
	return nil
}

// page reads a page. It retries temporary errors.
func (r *eventReader) page(ctx context.Context, read func(context.Context) ([]*historypb.HistoryEvent, []byte, error)) ([]*historypb.HistoryEvent, []byte, error) {
	for {
		events, token, err := read(ctx)
		if err == nil || ctx.Err() != nil || !cluster.Temporary(err) {
			if err == nil {
				r.back(nil)
			}
			return events, token, err
		}
		r.back(err)
		select {
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		case <-time.After(cluster.RetryDelay):
		}
	}
}

// back records that the server is unreachable, or with nil that it answers.
func (r *eventReader) back(err error) {
	reason := ""
	if err != nil {
		reason = cluster.PlainError(err)
	}
	r.mu.Lock()
	same := r.err == reason
	r.mu.Unlock()
	if !same {
		r.set(func() { r.err = reason })
	}
}

// fill reads the pages before the first known event.
func (r *eventReader) fill(ctx context.Context, p cluster.Pages) {
	for {
		r.mu.Lock()
		from, full := r.index.Token, r.index.Len() >= cluster.MaxEvents
		r.mu.Unlock()
		if ctx.Err() != nil {
			return
		}
		if len(from) == 0 || full {
			break
		}
		events, token, err := r.page(ctx, func(ctx context.Context) ([]*historypb.HistoryEvent, []byte, error) {
			return p.Backward(ctx, cluster.OlderBatches, from)
		})
		if err != nil {
			r.fail(ctx, err)
			return
		}
		r.set(func() {
			r.index.Prepend(events)
			r.index.Token = token
		})
	}
	r.set(func() { r.reading = false })
}

// follow appends new events until the run closes. The server cannot start at the end, so known pages are read
// again and skipped.
func (r *eventReader) follow(ctx context.Context, p cluster.Pages) {
	f := cluster.Follower{Pages: p, OnAway: r.back, Fn: func(events []*historypb.HistoryEvent) error {
		r.mu.Lock()
		news := events[len(events)-1].GetEventId() > r.index.Last()
		r.mu.Unlock()
		if news {
			r.set(func() { r.index.Append(events) })
		}
		return nil
	}}
	for {
		more, err := f.Page(ctx)
		if err != nil {
			r.fail(ctx, err)
			return
		}
		if !more {
			r.set(func() { r.pending, r.reading = nil, len(r.index.Token) > 0 })
			return
		}
	}
}

// describeLoop reads pending activities, because the history does not record their attempts.
func (r *eventReader) describeLoop(ctx context.Context, p cluster.Pages) {
	tick := time.NewTicker(DescribeEvery)
	defer tick.Stop()
	for {
		asking, cancel := context.WithTimeout(ctx, cluster.CallTimeout)
		d, err := r.c.DescribeWorkflowExecution(asking, p.WorkflowID, p.RunID)
		cancel()
		if err == nil {
			r.describe(d.GetPendingActivities(), d.GetWorkflowExecutionInfo().GetStatus())
		}
		if r.hasClosed() {
			return
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
	l := r.index.Log(r.feed.link.Now())
	l.Reading, l.Err = r.reading, r.err
	pending, version := r.pending, r.version
	r.mu.Unlock()
	if l.Len() == 0 && l.Reading && l.Err == "" {
		return
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
	feed *EventFeed
	c    client.Client
	id   runs.ID
	show func(*EventLog)

	mu      sync.Mutex
	index   *EventIndex
	pending []PendingWork
	reading bool
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
