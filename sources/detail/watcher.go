// Package detail follows the selected run: it folds the growing history and queries the worker.
package detail

import (
	"cmp"
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
	"acescope/sources/flows"
	"acescope/sources/histories"
	"acescope/sources/runs"
	"acescope/sources/sessions"
)

// NewFeed returns a feed of the details of a run, whether or not it is shown, because other screens need it
// too. The old run's detail stays until the new run's first one.
func NewFeed(link *cluster.Link) *feed.Feed[runs.ID, *histories.Detail] {
	f := feed.New(link.Wake, func(ctx context.Context, id runs.ID, publish func(*histories.Detail)) {
		if id.WorkflowID == "" {
			publish(nil)
			return
		}
		w := newWatcher(link, id, publish)
		var wg sync.WaitGroup
		for _, part := range []func(context.Context){w.follow, w.refresh, w.queryLoop, w.look, w.followOutput} {
			wg.Go(func() { part(ctx) })
		}
		wg.Wait()
	})
	f.Rest = cluster.CursorRest
	f.Look(true)
	return f
}

func (w *watcher) follow(ctx context.Context) {
	err := w.link.History(w.id.WorkflowID, w.id.RunID).Each(ctx, w.link.Away, w.take)
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
	w.identify(e)
	if cluster.ClosesRun(e.GetEventType()) {
		d.Close, d.CloseEvent, d.Pending = at, e.GetEventId(), nil
		fact, _ := history.Closing(e)
		w.closed = fact.Status
		d.ContinuedAs = e.GetWorkflowExecutionContinuedAsNewEventAttributes().GetNewExecutionRunId()
		w.result, _ = history.Values(e.GetWorkflowExecutionCompletedEventAttributes().GetResult())
	}
	w.trace.Event(e)
	w.fold(e)
	w.changed, w.fresh = true, true
	w.touch()
	cluster.Signal(w.asks)
	return nil
}

// identify learns the type of the workflow from its first event.
func (w *watcher) identify(e *historypb.HistoryEvent) {
	if e.GetEventType() != enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED || w.detail.Type != "" {
		return
	}
	d, a := &w.detail, e.GetWorkflowExecutionStartedEventAttributes()
	d.Start, d.Type = e.GetEventTime().AsTime(), a.GetWorkflowType().GetName()
	w.input, _ = history.Values(a.GetInput())
	switch d.Type {
	case ace.ExperimentWorkflow:
		w.tasks = experiments.NewFolder(func(_ ace.ExperimentInput, f experiments.Finished) { w.ended(f) })
		// Only an experiment's input: those of other workflow types share field names with ace.TaskInput.
		_ = json.Unmarshal(history.JSON(a.GetInput()), &d.Input)
	case session.Workflow:
		w.session = sessions.NewFolder()
	case run.Workflow:
		w.blueprint = &histories.BlueprintRunFolder{RunID: a.GetOriginalExecutionRunId()}
		close(w.program)
	case flows.Workflow:
		w.flow = flows.NewFolder()
	}
}

// fold folds an event according to the workflow type.
func (w *watcher) fold(e *historypb.HistoryEvent) {
	if w.tasks != nil {
		w.tasks.Apply(e)
		return
	}
	if w.session != nil {
		w.foldSession(e)
		return
	}
	if w.blueprint != nil {
		w.foldBlueprintRun(e)
		return
	}
	if w.flow != nil {
		for _, c := range w.foldFlow(e) {
			w.log(c)
		}
		return
	}
	for _, c := range w.folder.Apply(e) {
		w.log(c)
	}
}

// ended logs the end of a task of an experiment.
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

// line appends to the bounded log. Published logs end before the new line.
func (w *watcher) line(l runs.LogLine) {
	d := &w.detail
	d.Log = append(d.Log, l)
	if over := len(d.Log) - histories.MaxLog; over > 0 {
		d.Log = d.Log[over:]
		d.LogDropped += over
	}
}

// refresh publishes changes.
func (w *watcher) refresh(ctx context.Context) {
	repeat(ctx, w.news, func() {
		w.settleOld(ctx)
		if d := w.takeDirty(); d != nil && ctx.Err() == nil {
			w.show(d)
		}
		if w.waits() {
			cluster.Signal(w.news)
		}
	})
}

// repeat calls do for each signal until ctx ends, with pauses in between.
func repeat(ctx context.Context, signal <-chan struct{}, do func()) {
	pause := time.NewTicker(cluster.PublishEvery)
	defer pause.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-signal:
		}
		do()
		select {
		case <-ctx.Done():
			return
		case <-pause.C:
		}
	}
}

// touch marks the detail as changed. The lock must be held.
func (w *watcher) touch() {
	w.dirty = true
	cluster.Signal(w.news)
}

// waits reports whether events are held back until the worker has answered or timed out.
func (w *watcher) waits() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.changed
}

// look reads what the history lacks: repeatedly while the run is open, once when it is closed.
func (w *watcher) look(ctx context.Context) {
	for open := true; open; {
		open = w.open()
		w.describe(ctx)
		if open && cluster.Sleep(ctx, histories.DescribeEvery) != nil {
			return
		}
	}
}

// status returns the server's record of the run, which outranks whatever its worker answers.
func (w *watcher) status() ace.Status { return cmp.Or(w.closed, ace.Running) }

func (w *watcher) open() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.detail.Close.IsZero()
}

// takeDirty returns a copy of the detail if it has changed. The copy shares slices that only grow.
func (w *watcher) takeDirty() *histories.Detail {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.takeFold()
	if !w.dirty {
		return nil
	}
	w.dirty = false
	d := w.detail
	d.Phase.Status = w.status()
	d.Log = d.Log[:len(d.Log):len(d.Log)]
	if len(w.output) > 0 {
		d.Log, d.LogDropped = histories.WithOutput(d.Log, w.output), d.LogDropped+w.outputDropped
	}
	d.FailedTasks = d.FailedTasks[:len(d.FailedTasks):len(d.FailedTasks)]
	d.Trace = w.trace.Trace()
	if d.Phase.Usage == (ace.Usage{}) {
		d.Phase.Usage = d.AgentUsage
	}
	d.Lineage.ResetAs = w.resetAs
	if w.file && d.Close.IsZero() {
		d.Until = w.last
	}
	d.Updated = time.Now()
	return &d
}

// describe reads what the history lacks: pending activities, and the newest reset of this run.
func (w *watcher) describe(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, cluster.CallTimeout)
	defer cancel()
	r, err := w.c.DescribeWorkflowExecution(ctx, w.id.WorkflowID, w.id.RunID)
	if err != nil {
		return // the follower reports an unreachable server
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

// watcher follows one selected run. It publishes the fold at once and queries the worker in parallel, so that a
// worker that does not answer delays nothing.
type watcher struct {
	link *cluster.Link
	c    client.Client
	id   runs.ID
	show func(*histories.Detail)

	mu            sync.Mutex
	folder        *histories.Folder
	trace         histories.TraceFolder
	detail        histories.Detail
	closed        ace.Status    // "" while the run is open
	news          chan struct{} // one slot: detail has changed
	asks          chan struct{} // one slot: fresh is set
	dirty         bool
	changed       bool                          // there were events since the fold's answers were taken
	fresh         bool                          // there were events since the last queries
	live          bool                          // the worker answered the last queries
	asked         bool                          // the worker was queried at least once, or need not be
	asking        time.Time                     // start of the queries under way, or zero
	oldBulletsOf  string                        // the delta that detail.Old belongs to
	resetAs       string                        // the newest run that this one was reset as, or ""
	tasks         *experiments.Folder           // instead of folder for an experiment, otherwise nil
	session       *sessions.Folder              // the same for an agent session
	blueprint     *histories.BlueprintRunFolder // the same for a blueprint run
	flow          *flows.Folder                 // the same for a run of a flow
	iterations    int                           // of a loop of a flow that are listed, 0 for all
	program       chan struct{}                 // closed when the run is known to be a blueprint run
	output        []runs.LogLine                // of its program, the newest lines
	outputDropped int                           // earlier lines
	file          bool                          // the history comes from a file and does not grow
	last          time.Time                     // time of the last event
	input, result json.RawMessage               // of the workflow, nil if they cannot be read
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

		iterations: flows.ShownIterations,
		folder:     histories.NewFolder(id.WorkflowID, id.RunID),
		detail:     histories.Detail{WorkflowID: id.WorkflowID, RunID: id.RunID, From: runs.FromHistory},
		file:       link.Connection().Mode == cluster.ModeFile,
	}
	w.folder.Each = w.trace.Fact
	return w
}
