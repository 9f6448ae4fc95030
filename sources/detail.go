package sources

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/client"

	"acescope/engine/ace"
	"acescope/engine/history"
)

// Rhythm of the detail watcher.
const (
	publishEvery  = 30 * time.Millisecond
	describeEvery = time.Second
	queryTimeout  = 2 * time.Second
	cursorRest    = 50 * time.Millisecond
)

// watchDetail follows the selected run until another is selected.
func (s *Store) watchDetail(ctx context.Context, c client.Client) {
	for {
		s.mu.Lock()
		sel := s.selected
		s.mu.Unlock()
		watch, cancel := context.WithCancel(ctx)
		done := make(chan struct{})
		if sel.workflowID == "" {
			close(done)
			s.update(func(snap *Snapshot) { snap.Detail = nil })
		} else {
			go func() { defer close(done); s.watchRun(watch, c, sel) }()
		}
		select {
		case <-ctx.Done():
			cancel()
			<-done
			return
		case <-s.selectCh:
			cancel()
			<-done
			s.settle(ctx)
		}
	}
}

// settle waits until the cursor rests: whoever scrolls passes runs that need no watching.
func (s *Store) settle(ctx context.Context) {
	for {
		rest := time.NewTimer(cursorRest)
		select {
		case <-s.selectCh:
			rest.Stop()
		case <-ctx.Done():
			rest.Stop()
			return
		case <-rest.C:
			return
		}
	}
}

// watcher knows one run while it is selected.
type watcher struct {
	store *Store
	c     client.Client
	sel   selection

	mu      sync.Mutex
	folder  *Folder
	detail  Detail
	dirty   bool
	fresh   bool // events came since the last queries
	outcome *ace.ExperimentProgress
	tasks   *experimentFolder // in place of folder for an experiment, else nil
}

func newWatcher(s *Store, c client.Client, sel selection) *watcher {
	return &watcher{store: s, c: c, sel: sel, folder: NewFolder(sel.workflowID, sel.runID),
		detail: Detail{WorkflowID: sel.workflowID, RunID: sel.runID, From: FromHistory}}
}

func (s *Store) watchRun(ctx context.Context, c client.Client, sel selection) {
	w := newWatcher(s, c, sel)
	var wg sync.WaitGroup
	wg.Add(2)
	go func() { defer wg.Done(); w.follow(ctx) }()
	go func() { defer wg.Done(); w.refresh(ctx) }()
	wg.Wait()
}

func (w *watcher) follow(ctx context.Context) {
	away := func(err error) {
		if err == nil {
			w.store.reached()
		} else {
			w.store.failed(err)
		}
	}
	err := Follow(ctx, w.c, w.store.namespace, w.sel.workflowID, w.sel.runID, away, w.take)
	if err != nil && ctx.Err() == nil {
		w.mu.Lock()
		w.detail.Err, w.dirty = plainError(err), true
		w.mu.Unlock()
	}
}

func (w *watcher) take(e *historypb.HistoryEvent) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	d := &w.detail
	d.Events = e.GetEventId()
	at := e.GetEventTime().AsTime()
	switch e.GetEventType() {
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED:
		d.Start = at
		d.Type = e.GetWorkflowExecutionStartedEventAttributes().GetWorkflowType().GetName()
		if d.Type == ace.ExperimentWorkflow {
			w.tasks = newExperimentFolder(func(_ ace.ExperimentInput, f Finished) { w.line(taskLine(f)) })
			// Its input has the same names for what a task's has too.
			_ = json.Unmarshal(history.JSONOf(nil, first(e.GetWorkflowExecutionStartedEventAttributes().GetInput().GetPayloads())), &d.Input)
		}
	}
	if closing(e.GetEventType()) {
		d.Close, d.Pending = at, nil
	}
	w.fold(e)
	w.dirty, w.fresh = true, true
	return nil
}

// fold applies the event to what it is an event of.
func (w *watcher) fold(e *historypb.HistoryEvent) {
	if w.tasks != nil {
		w.tasks.apply(e)
		return
	}
	for _, c := range w.folder.Apply(e) {
		w.log(c)
	}
}

func first[T any](list []*T) *T {
	if len(list) == 0 {
		return nil
	}
	return list[0]
}

func closing(t enumspb.EventType) bool {
	switch t {
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED, enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_FAILED,
		enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_TIMED_OUT, enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED,
		enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED, enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW:
		return true
	}
	return false
}

func (w *watcher) log(c Change) {
	w.line(LogLine{Event: c.Event, At: c.At, Kind: c.kind(), Text: c.Text()})
}

// line adds to the bounded log. The slice is replaced when it is published, so it may be
// written to here.
func (w *watcher) line(l LogLine) {
	d := &w.detail
	d.Log = append(d.Log, l)
	if over := len(d.Log) - MaxLog; over > 0 {
		d.Log = d.Log[over:]
		d.LogDropped += over
	}
}

// refresh publishes what is new, asks a live run's worker, and looks at its activities.
func (w *watcher) refresh(ctx context.Context) {
	tick := time.NewTicker(publishEvery)
	defer tick.Stop()
	var described time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if open := w.open(); open && time.Since(described) >= describeEvery {
			described = time.Now()
			w.describe(ctx)
		}
		if w.takeFresh() {
			w.ask(ctx)
		}
		if d := w.takeDirty(); d != nil && ctx.Err() == nil {
			w.store.update(func(snap *Snapshot) { snap.Detail = d })
		}
	}
}

func (w *watcher) open() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.detail.Close.IsZero()
}

func (w *watcher) takeFresh() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	fresh := w.fresh
	w.fresh = false
	return fresh
}

// takeDirty is a copy of the detail if it has changed.
func (w *watcher) takeDirty() *Detail {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.dirty {
		return nil
	}
	w.dirty = false
	d := w.detail
	d.Log = append([]LogLine(nil), d.Log...)
	d.Updated = time.Now()
	return &d
}

// describe reads the activities that are pending, which no history shows.
func (w *watcher) describe(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	r, err := w.c.DescribeWorkflowExecution(ctx, w.sel.workflowID, w.sel.runID)
	if err != nil {
		return // the follower reports a server that is away
	}
	pending := make([]PendingActivity, 0, len(r.GetPendingActivities()))
	for _, a := range r.GetPendingActivities() {
		pending = append(pending, pendingOf(a))
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.detail.Close.IsZero() {
		w.detail.Pending, w.dirty = pending, true
	}
}

func pendingOf(a *workflowpb.PendingActivityInfo) PendingActivity {
	p := PendingActivity{Type: a.GetActivityType().GetName(), Attempt: a.GetAttempt(), State: activityStates[a.GetState()]}
	if f := a.GetLastFailure(); f != nil {
		p.LastError = history.FailureOf(f).Message
	}
	switch {
	case a.GetLastStartedTime() != nil:
		p.Since = a.GetLastStartedTime().AsTime()
	case a.GetScheduledTime() != nil:
		p.Since = a.GetScheduledTime().AsTime()
	}
	return p
}

var activityStates = map[enumspb.PendingActivityState]string{
	enumspb.PENDING_ACTIVITY_STATE_SCHEDULED:        "scheduled",
	enumspb.PENDING_ACTIVITY_STATE_STARTED:          "started",
	enumspb.PENDING_ACTIVITY_STATE_CANCEL_REQUESTED: "cancel requested",
	enumspb.PENDING_ACTIVITY_STATE_PAUSED:           "paused",
}

// ask brings the answers up to date: from the run's worker while the run is open, from
// the fold where it is closed or nobody answers in time.
func (w *watcher) ask(ctx context.Context) {
	w.mu.Lock()
	kind, open := w.detail.Type, w.detail.Close.IsZero()
	tasks := w.tasks
	w.mu.Unlock()
	if tasks != nil {
		w.askExperiment(ctx, open)
		return
	}
	if open && w.askTask(ctx) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.folder.Foreign() != nil {
		w.detail.Err = fmt.Sprintf("a %s whose input is not the contract's: %v", kind, w.folder.Foreign())
	}
	s := &w.folder.State
	w.detail.Phase, w.detail.Skills, w.detail.Delta = s.CurrentPhase(), s.SkillUsage(), s.PlaybookDelta()
	w.detail.Phase.ExitStatus = s.ExitStatus()
	w.detail.Input, w.detail.From, w.dirty = s.Input, FromHistory, true
}

// askTask queries a live run; false where none of the contract's queries was answered.
func (w *watcher) askTask(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	var phase ace.PhaseAnswer
	var skills ace.SkillAnswer
	var delta ace.DeltaAnswer
	missing := []string{}
	for _, q := range []struct {
		name   string
		answer any
	}{{ace.QueryPhase, &phase}, {ace.QuerySkills, &skills}, {ace.QueryDelta, &delta}} {
		if err := w.query(ctx, q.name, q.answer); err != nil {
			if Away(err) || ctx.Err() != nil {
				return false
			}
			missing = append(missing, q.name)
		}
	}
	if len(missing) == 3 {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.detail.Phase, w.detail.Skills, w.detail.Delta = phase, skills, delta
	w.detail.Missing, w.detail.From, w.dirty = missing, FromQuery, true
	w.detail.Input = w.folder.State.Input
	return true
}

// query asks one question. A phase may come as a bare string.
func (w *watcher) query(ctx context.Context, name string, answer any) error {
	v, err := w.c.QueryWorkflow(ctx, w.sel.workflowID, w.sel.runID, name)
	if err != nil {
		return err
	}
	if p, ok := answer.(*ace.PhaseAnswer); ok {
		var bare string
		if v.Get(&bare) == nil {
			*p = ace.PhaseAnswer{Phase: ace.Phase(bare)}
			return nil
		}
	}
	return v.Get(answer)
}

// askExperiment shows how far an experiment has come: as its worker says while it is
// open, as its history says where it is closed or nobody answers.
func (w *watcher) askExperiment(ctx context.Context, open bool) {
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	var live ace.ExperimentProgress
	answered := open && w.query(ctx, ace.QueryExperiment, &live) == nil
	w.mu.Lock()
	defer w.mu.Unlock()
	d := &w.detail
	state := &w.tasks.state
	if w.tasks.foreign != nil {
		d.Err = fmt.Sprintf("an experiment whose input is not the contract's: %v", w.tasks.foreign)
	}
	p, from := state.Progress, FromHistory
	if answered {
		p, from = live, FromQuery
	}
	p.ExitStatus = state.ExitStatus()
	d.Experiment, d.From, w.dirty = &p, from, true
	d.Phase.ExitStatus, d.Phase.Failure = p.ExitStatus, state.Failure
}
