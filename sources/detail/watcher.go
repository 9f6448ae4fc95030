// Package detail follows the selected run: it folds the run's history as it grows and asks its worker.
package detail

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"

	"acescope/engine/ace"
	"acescope/engine/agents/session"
	"acescope/engine/tasks/run"
	"acescope/engine/temporal/history"
	"acescope/sources/cluster"
	"acescope/sources/experiments"
	"acescope/sources/feed"
	"acescope/sources/histories"
	"acescope/sources/runs"
	"acescope/sources/sessions"
)

// NewFeed returns a feed that follows the run that it is asked for, whether or not it is shown: other screens need it
// too. The old run's detail stays until there is one of the new run.
func NewFeed(link *cluster.Link) *feed.Feed[runs.ID, *histories.Detail] {
	f := feed.New(link.Wake, func(ctx context.Context, id runs.ID, publish func(*histories.Detail)) {
		if id.WorkflowID == "" {
			publish(nil)
			return
		}
		w := newWatcher(link, id, publish)
		var wg sync.WaitGroup
		for _, part := range []func(context.Context){w.follow, w.refresh, w.question, w.look, w.followOutput} {
			wg.Go(func() { part(ctx) })
		}
		wg.Wait()
	})
	f.Rest = cluster.CursorRest
	f.Look(true)
	return f
}

func (w *watcher) follow(ctx context.Context) {
	err := cluster.Follow(ctx, w.c, w.link.Namespace, w.id.WorkflowID, w.id.RunID, w.link.Away, w.take)
	if err != nil && ctx.Err() == nil {
		w.mu.Lock()
		w.detail.Err = cluster.PlainError(err)
		w.touch()
		w.mu.Unlock()
	}
}

func (w *watcher) take(e *historypb.HistoryEvent) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	d := &w.detail
	d.Events = e.GetEventId()
	at := e.GetEventTime().AsTime()
	w.last = at
	switch e.GetEventType() {
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED:
		d.Start = at
		d.Type = e.GetWorkflowExecutionStartedEventAttributes().GetWorkflowType().GetName()
		if d.Type == ace.ExperimentWorkflow {
			w.tasks = experiments.NewExperimentFolder(func(_ ace.ExperimentInput, f experiments.Finished) { w.ended(f) })
			// Its input has the same names for what a task's has too.
			_ = json.Unmarshal(history.PayloadJSON(cluster.First(e.GetWorkflowExecutionStartedEventAttributes().GetInput().GetPayloads())), &d.Input)
		}
	}
	if d.Type == session.Workflow && w.talk == nil {
		w.talk = sessions.NewSessionFolder()
	}
	if d.Type == run.Workflow && w.course == nil {
		w.course = &histories.CourseFolder{RunID: e.GetWorkflowExecutionStartedEventAttributes().GetOriginalExecutionRunId()}
		close(w.program)
	}
	if cluster.Closing(e.GetEventType()) {
		d.Close, d.CloseEvent, d.Pending = at, e.GetEventId(), nil
		d.ContinuedAs = e.GetWorkflowExecutionContinuedAsNewEventAttributes().GetNewExecutionRunId()
	}
	w.trace.Event(e)
	w.fold(e)
	w.changed, w.fresh = true, true
	w.touch()
	cluster.Signal(w.asks)
	return nil
}

// fold applies the event to what it is an event of.
func (w *watcher) fold(e *historypb.HistoryEvent) {
	if w.tasks != nil {
		w.tasks.Apply(e)
		return
	}
	if w.talk != nil {
		w.tell(e)
		return
	}
	if w.course != nil {
		w.foldCourse(e)
		return
	}
	for _, c := range w.folder.Apply(e) {
		w.log(c)
	}
}

// ended takes over the end of one task of an experiment.
func (w *watcher) ended(f experiments.Finished) {
	w.line(histories.TaskLine(f))
	if f.Failure == nil {
		return
	}
	d := &w.detail
	if len(d.FailedTasks) == histories.MaxFailedTasks {
		d.FailedTasks = d.FailedTasks[1:]
		d.FailedDropped++
	}
	d.FailedTasks = append(d.FailedTasks, f)
}

func (w *watcher) log(c histories.Change) {
	w.line(runs.LogLine{Event: c.Event, At: c.At, Kind: c.Kind(), Text: c.Text()})
}

// line adds to the bounded log. What was published of it ends before the line, so it is
// never written to.
func (w *watcher) line(l runs.LogLine) {
	d := &w.detail
	d.Log = append(d.Log, l)
	if over := len(d.Log) - histories.MaxLog; over > 0 {
		d.Log = d.Log[over:]
		d.LogDropped += over
	}
}

// refresh publishes what is new.
func (w *watcher) refresh(ctx context.Context) {
	pause := time.NewTicker(cluster.PublishEvery)
	defer pause.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.news:
		}
		w.settleOld()
		if d := w.takeDirty(); d != nil && ctx.Err() == nil {
			w.show(d)
		}
		select {
		case <-ctx.Done():
			return
		case <-pause.C:
		}
		if w.waits() {
			cluster.Signal(w.news)
		}
	}
}

// touch notes that there is something to publish. The lock must be held.
func (w *watcher) touch() {
	w.dirty = true
	cluster.Signal(w.news)
}

// waits tells whether events are held back until the worker has answered, or had time to.
func (w *watcher) waits() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.changed
}

// look reads what no history shows again and again while the run is open, and once when it
// is closed.
func (w *watcher) look(ctx context.Context) {
	tick := time.NewTicker(histories.DescribeEvery)
	defer tick.Stop()
	for {
		open := w.open()
		w.describe(ctx)
		if !open {
			return // what is left to learn of a closed run was told once
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (w *watcher) open() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.detail.Close.IsZero()
}

// takeDirty is a copy of the detail if it has changed. It shares what is only ever added
// to.
func (w *watcher) takeDirty() *histories.Detail {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.takeFold()
	if !w.dirty {
		return nil
	}
	w.dirty = false
	d := w.detail
	d.Log = d.Log[:len(d.Log):len(d.Log)]
	if len(w.output) > 0 {
		d.Log, d.LogDropped = histories.WithOutput(d.Log, w.output), d.LogDropped+w.outputDropped
	}
	d.FailedTasks = d.FailedTasks[:len(d.FailedTasks):len(d.FailedTasks)]
	w.trace.Publish(&d)
	d.Lineage.ResetAs = w.resetAs
	if w.file && d.Close.IsZero() {
		d.Until = w.last
	}
	d.Updated = time.Now()
	return &d
}

// describe reads what no history shows: the activities that are pending, and the run that
// this one was reset as.
func (w *watcher) describe(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, cluster.CallTimeout)
	defer cancel()
	r, err := w.c.DescribeWorkflowExecution(ctx, w.id.WorkflowID, w.id.RunID)
	if err != nil {
		return // the follower reports a server that is away
	}
	pending := make([]histories.PendingActivity, 0, len(r.GetPendingActivities()))
	for _, a := range r.GetPendingActivities() {
		pending = append(pending, histories.PendingOf(a))
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if as := r.GetWorkflowExtendedInfo().GetResetRunId(); as != w.resetAs {
		w.resetAs = as
		w.touch()
	}
	if w.detail.Close.IsZero() {
		w.detail.Pending = pending
		w.touch()
	}
}

// watcher knows one run while it is selected. Events are folded as they come; what the
// fold says is published at once, and the run's worker is asked beside that, so that one
// which never answers holds nothing up.
type watcher struct {
	link *cluster.Link
	c    client.Client
	id   runs.ID
	show func(*histories.Detail)

	mu            sync.Mutex
	folder        *histories.Folder
	trace         histories.Trace
	detail        histories.Detail
	news          chan struct{} // one slot: something is dirty
	asks          chan struct{} // one slot: something is fresh
	dirty         bool
	changed       bool                          // events came since the fold's answers were taken over
	fresh         bool                          // events came since the last queries
	live          bool                          // the worker answered the last time it was asked
	asked         bool                          // it was asked at least once, or need not be
	asking        time.Time                     // when the queries under way were begun, zero where none are
	oldOf         string                        // the delta that detail.Old belongs to
	resetAs       string                        // the run that this one was reset as, "" for none
	tasks         *experiments.ExperimentFolder // in place of folder for an experiment, else nil
	talk          *sessions.SessionFolder       // the same, for an agent session
	course        *histories.CourseFolder       // the same, for a run of a blueprint
	program       chan struct{}                 // closed once it is known to be one
	output        []runs.LogLine                // of its program, the newest
	outputDropped int                           // lines before those
	file          bool                          // the history comes from a file: it does not go on
	last          time.Time                     // when the last event was
}

func newWatcher(link *cluster.Link, id runs.ID, show func(*histories.Detail)) *watcher {
	w := &watcher{
		link:    link,
		c:       link.Client,
		id:      id,
		show:    show,
		news:    make(chan struct{}, 1),
		asks:    make(chan struct{}, 1),
		program: make(chan struct{}),
		folder:  histories.NewFolder(id.WorkflowID, id.RunID),
		detail:  histories.Detail{WorkflowID: id.WorkflowID, RunID: id.RunID, From: runs.FromHistory},
		file:    link.Connection().Mode == cluster.ModeFile,
	}
	w.folder.Each = w.trace.Fact
	return w
}
