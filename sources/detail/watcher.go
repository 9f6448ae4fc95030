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
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"acescope/engine/ace"
	"acescope/engine/agents/session"
	"acescope/engine/flow"
	"acescope/engine/kind"
	"acescope/engine/kind/kinds"
	"acescope/engine/tasks/run"
	"acescope/engine/temporal/history"
	"acescope/engine/trace"
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
		for _, part := range []func(context.Context){w.follow, w.refresh, w.queryLoop, w.look,
			w.followOutput} {
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
	closing, closes := w.task.Closing(e)
	if closes {
		d.Close, d.CloseEvent, d.Pending = at, e.GetEventId(), nil
		d.closed = closing
		d.ContinuedAs = e.GetWorkflowExecutionContinuedAsNewEventAttributes().GetNewExecutionRunId()
		d.result, _ = history.Values(e.GetWorkflowExecutionCompletedEventAttributes().GetResult())
	}
	w.trace.Event(e)
	if w.state != nil {
		w.state.Apply(e)
	}
	for _, c := range w.of.fold(d, e) {
		w.line(runs.LogLine{Event: c.Event, At: c.At, Kind: c.Kind(), Text: c.Text()})
	}
	w.worker.changed, w.worker.fresh = true, true
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
	d.input, _ = history.Values(a.GetInput())
	w.state = kinds.Of(d.Type).New()
	if runs.TypeOf(d.Type) != runs.OtherType { // the contract's queries and the detail describe it
		w.state = nil
	}
	switch d.Type {
	case ace.ExperimentWorkflow:
		x := &experimentRun{}
		x.Folder = experiments.NewFolder(func(_ ace.ExperimentInput, f experiments.Finished) {
			x.ended = append(x.ended, f)
		})
		w.of = x
		// Only an experiment's input: those of other workflow types share field names with ace.TaskInput.
		_ = json.Unmarshal(history.JSON(a.GetInput()), &d.Input)
	case session.Workflow:
		w.of = sessionRun{sessions.NewFolder()}
	case run.Workflow:
		w.of = blueprintRun{&histories.BlueprintRunFolder{}}
		w.program <- a.GetOriginalExecutionRunId()
	case flow.Workflow:
		w.of = flowRun{flows.NewFolder(), w.iterations}
	}
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
	return w.worker.changed
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
	d := w.detail.Detail
	d.Phase.Status = w.detail.status()
	d.Phase.Failure = cmp.Or(d.Phase.Failure, w.detail.closed.Failure)
	d.Log = d.Log[:len(d.Log):len(d.Log)]
	if len(w.output.lines) > 0 {
		d.Log, d.LogDropped = histories.WithOutput(d.Log, w.output.lines), d.LogDropped+w.output.dropped
	}
	d.FailedTasks = d.FailedTasks[:len(d.FailedTasks):len(d.FailedTasks)]
	d.Trace = w.trace.Trace()
	if w.state != nil && len(d.Phase.Steps) == 0 && d.Calls.Len() == 0 {
		d.Sections = w.state.Sections(kind.Books{}, nil)
		d.Agents = agentsOf(w.state)
		if d.Close.IsZero() {
			d.Sections = append(d.Sections, w.offers.sections()...)
		}
	}
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

// agentsOf returns what the agents of a run did, or nil.
func agentsOf(state kind.Fold) *trace.Summary {
	t, ok := state.(kind.Tracer)
	if !ok {
		return nil
	}
	if of := t.Trace(); !of.Empty() {
		return &of.Summary
	}
	return nil
}

// describe reads what the history lacks: pending activities, a workflow task that fails, and the newest reset
// of this run.
func (w *watcher) describe(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, cluster.CallTimeout)
	defer cancel()
	r, err := w.c.DescribeWorkflowExecution(ctx, w.id.WorkflowID, w.id.RunID)
	if err != nil {
		return // the follower reports an unreachable server
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if as := r.GetWorkflowExtendedInfo().GetResetRunId(); as != w.resetAs {
		w.resetAs = as
		w.touch()
	}
	w.takePending(r)
}

// takePending sets the pending activities of an open run. The lock must be held.
func (w *watcher) takePending(r *workflowservice.DescribeWorkflowExecutionResponse) {
	if !w.detail.Close.IsZero() {
		return
	}
	w.detail.Pending = nil
	for _, a := range w.task.Pending(r, time.Now()) {
		w.detail.Pending = append(w.detail.Pending, histories.PendingOf(a))
	}
	w.touch()
}

// watcher follows one selected run. It publishes the fold at once and queries the worker in parallel, so that
// a worker that does not answer delays nothing.
type watcher struct {
	link *cluster.Link
	c    client.Client
	id   runs.ID
	show func(*histories.Detail)

	mu           sync.Mutex
	of           subject
	state        kind.Fold // of a run that only its history describes, otherwise nil
	trace        histories.TraceFolder
	task         history.WorkflowTask
	detail       draft
	offers       *Offers       // of an open run whose worker answers, otherwise nil
	news         chan struct{} // one slot: detail has changed
	asks         chan struct{} // one slot: worker.fresh is set
	dirty        bool
	worker       worker
	oldBulletsOf string      // the delta that detail.Old belongs to
	resetAs      string      // the newest run that resets this one, or ""
	iterations   int         // of a loop of a flow that are listed, 0 for all
	program      chan string // gets the first run ID once the run is known to be a blueprint run
	output       output
	file         bool      // the history comes from a file and does not grow
	last         time.Time // time of the last event
}

// worker is what is known about the answers of the run's worker.
type worker struct {
	changed bool      // there were events since the fold's answers were taken
	fresh   bool      // there were events since the last queries
	live    bool      // the worker answered the last queries
	asking  time.Time // start of the queries under way, or zero
}

// output is the newest lines of a blueprint run's program.
type output struct {
	lines   []runs.LogLine
	dropped int // earlier lines
}

// subject folds the history of a run; each workflow type has its own.
type subject interface {
	// fold folds an event and returns what it changes.
	fold(d *draft, e *historypb.HistoryEvent) []histories.Change
	// query asks the worker of an open run. It returns a function that sets the detail from the answers, nil
	// if the worker does not answer or has nothing to add.
	query(ctx context.Context, ask query) func(*draft)
	// take sets the detail from the fold.
	take(d *draft)
}

// query calls one query of a run.
type query func(ctx context.Context, name string, answer any) error

// draft is the detail of a run under construction.
type draft struct {
	histories.Detail
	closed        ace.Fact        // about the end, zero while the run is open
	input, result json.RawMessage // of the workflow, nil if they cannot be read
}

// status returns the run's status as the server records it, whatever the worker answers.
func (d *draft) status() ace.Status { return cmp.Or(d.closed.Status, ace.Running) }

func newWatcher(link *cluster.Link, id runs.ID, show func(*histories.Detail)) *watcher {
	w := &watcher{
		link:    link,
		c:       link.Client,
		id:      id,
		show:    show,
		news:    make(chan struct{}, 1),
		asks:    make(chan struct{}, 1),
		program: make(chan string, 1),

		iterations: flows.ShownIterations,
		detail: draft{Detail: histories.Detail{WorkflowID: id.WorkflowID, RunID: id.RunID,
			From: runs.FromHistory}},
		file: link.Connection().Mode == cluster.ModeFile,
	}
	w.state = kinds.Of("").New()
	folder := histories.NewFolder(id.WorkflowID, id.RunID)
	folder.Each = w.trace.Fact
	w.of = taskRun{folder}
	return w
}
