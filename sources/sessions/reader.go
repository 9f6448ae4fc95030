package sessions

import (
	"context"
	"slices"
	"sync"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"

	"acescope/engine/agents/session"
	"acescope/engine/temporal/history"
	"acescope/sources/cluster"
	"acescope/sources/runs"
	"acescope/sources/transcripts"
)

// maxRunsRead bounds the earlier workflow runs of a session that are read for its conversation.
const maxRunsRead = 8

// Intervals of reading a session.
const (
	queryInterval = 2 * time.Second        // of querying its worker
	logInterval   = 100 * time.Millisecond // of checking whether a turn's log has grown
)

// Detail is a session on the engine with its conversation. It is immutable once it was returned.
type Detail struct {
	WorkflowID, RunID string
	State             *session.State // nil while it is unknown
	From              runs.Origin
	Conversation      *transcripts.Conversation
	Turns             []*Turn // the newest [maxTurns]
	// Log is the file with the log of the current turn, or "" if there is no turn or the file is on another
	// machine.
	Log    string
	Events int64 // of the newest run
	Closed bool
	Err    string
}

// TurnOf returns the turn with a message, or nil.
func (d *Detail) TurnOf(messageID string) *Turn {
	for _, turn := range slices.Backward(d.Turns) {
		if slices.ContainsFunc(turn.Messages, func(m session.Message) bool { return m.ID == messageID }) {
			return turn
		}
	}
	return nil
}

// run reads until ctx ends and shows each change.
func (t *reader) run(ctx context.Context, show func(*Detail)) {
	var wg sync.WaitGroup
	for _, part := range []func(context.Context){t.read, t.query, t.followLogs, t.mirrorLogs} {
		wg.Go(func() { part(ctx) })
	}
	cluster.Signal(t.queries)
	pause := time.NewTicker(cluster.PublishEvery)
	defer pause.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-t.news:
			if out := t.publish(); ctx.Err() == nil {
				show(out)
			}
		}
		select {
		case <-ctx.Done():
		case <-pause.C:
		}
	}
	wg.Wait()
}

// publish returns the current state of the session.
func (t *reader) publish() *Detail {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := t.out
	state := t.fold.State
	out.State, out.From = &state, runs.FromHistory
	if t.answer != nil && !out.Closed && (t.asked == t.fresh || !t.started) {
		out.State, out.From = t.answer, runs.FromQuery
	}
	if !t.started && t.answer == nil {
		out.State = nil
	}
	out.RunID = t.fold.RunID
	out.Conversation = t.fold.Conversation()
	out.Conversation.Path = t.id
	out.Turns = t.fold.newestTurns()
	if last := t.fold.last(); last != nil && last.log != nil && last.log.file != nil {
		out.Log = last.log.file.Name()
	}
	return &out
}

// read reads the workflow runs of the session, the oldest first, and follows the newest one and its
// successors.
func (t *reader) read(ctx context.Context) {
	run, err := t.earlier(ctx)
	for err == nil && run != "" {
		next := ""
		err = t.link.History(t.id, run).Each(ctx, nil, func(e *historypb.HistoryEvent) error {
			t.take(e)
			next = history.NextRun(e)
			return nil
		})
		run = next
	}
	if err != nil && ctx.Err() == nil {
		t.mu.Lock()
		t.out.Err = cluster.PlainError(err)
		t.mu.Unlock()
		cluster.Signal(t.news)
	}
}

// earlier folds the earlier runs and returns the newest one.
func (t *reader) earlier(ctx context.Context) (newest string, err error) {
	short, cancel := context.WithTimeout(ctx, cluster.CallTimeout)
	d, err := t.link.Client.DescribeWorkflowExecution(short, t.id, "")
	cancel()
	if err != nil {
		return "", err
	}
	newest = d.GetWorkflowExecutionInfo().GetExecution().GetRunId()
	p := cluster.Pages{t.link.Client, t.link.Namespace, t.id, newest}
	started, err := p.FirstEvent(ctx)
	if err != nil {
		return "", err
	}
	before := started.GetWorkflowExecutionStartedEventAttributes().GetContinuedExecutionRunId()
	var runs [][]*historypb.HistoryEvent
	events := 0
	for before != "" && len(runs) < maxRunsRead && events < cluster.MaxEvents/4 {
		list, err := cluster.ReadHistory(ctx, t.link.Client, t.link.Namespace, t.id, before)
		if cluster.NotFound(err) {
			break // the server has deleted it
		}
		if err != nil || len(list) == 0 {
			return newest, err
		}
		runs, events = append(runs, list), events+len(list)
		before = list[0].GetWorkflowExecutionStartedEventAttributes().GetContinuedExecutionRunId()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, events := range slices.Backward(runs) {
		for _, e := range events {
			t.fold.Apply(e)
		}
	}
	return newest, nil
}

func (t *reader) take(e *historypb.HistoryEvent) {
	t.mu.Lock()
	if e.GetEventType() == enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED {
		t.out.Closed, t.started = false, true
	}
	t.out.Events = e.GetEventId()
	if cluster.ClosesRun(e.GetEventType()) && history.NextRun(e) == "" {
		t.out.Closed = true
	}
	applied := t.fold.Apply(e)
	if applied {
		t.fresh++
	}
	if t.fold.Foreign != nil {
		t.out.Err = "the input of this session does not match the contract: " + t.fold.Foreign.Error()
	}
	live := t.answer != nil
	closed := t.out.Closed
	t.mu.Unlock()
	switch {
	case !applied && !closed:
	case live && !closed: // the worker's answer shows it, or the timer if it does not answer
		cluster.Signal(t.queries)
		time.AfterFunc(cluster.QueryPatience, func() { cluster.Signal(t.news) })
	default:
		cluster.Signal(t.news)
	}
}

// query queries the session's worker after each change, and at an interval to see whether it still answers.
func (t *reader) query(ctx context.Context) {
	tick := time.NewTicker(queryInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.queries:
		case <-tick.C:
		}
		t.mu.Lock()
		closed, fresh := t.out.Closed, t.fresh
		t.mu.Unlock()
		if closed {
			continue
		}
		s, err := queryState(ctx, t.link.Client, t.id)
		if ctx.Err() != nil {
			return
		}
		t.mu.Lock()
		t.asked = fresh
		if t.answer = s; err != nil {
			t.answer = nil
		}
		t.mu.Unlock()
		cluster.Signal(t.news)
	}
}

// followLogs reads the log of the current turn as it is written.
func (t *reader) followLogs(ctx context.Context) {
	if t.link.TurnLog == nil {
		return
	}
	tick := time.NewTicker(logInterval)
	defer tick.Stop()
	defer func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.fold.closeLogs(nil)
	}()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		t.mu.Lock()
		changed := t.started && t.fold.followLog(t.id, t.link.TurnLog)
		t.mu.Unlock()
		if changed {
			cluster.Signal(t.news)
		}
	}
}

// mirrorLogs copies the log of the current turn to this machine if another one writes it.
func (t *reader) mirrorLogs(ctx context.Context) {
	t.link.Mirror.Keep(ctx, func() (workflowID, runID string) {
		t.mu.Lock()
		defer t.mu.Unlock()
		if turn := t.fold.last(); t.started && turn != nil && turn.Ended.IsZero() {
			runID = turn.RunID
		}
		return t.id, runID
	}, t.link.Report)
}

// reader reads one session while it is shown.
type reader struct {
	link *cluster.Link
	id   string

	mu      sync.Mutex
	fold    *Folder
	answer  *session.State // the worker's, nil if it did not answer the last query
	fresh   int            // counts folded events
	asked   int            // fresh at the last query
	out     Detail
	news    chan struct{}
	queries chan struct{}
	started bool // the newest run is being read
}

func newReader(link *cluster.Link, id string) *reader {
	return &reader{link: link, id: id, fold: NewFolder(),
		out: Detail{WorkflowID: id, From: runs.FromHistory}, news: make(chan struct{}, 1),
		queries: make(chan struct{}, 1)}
}

// Show reads a session with its conversation once. The worker of an open session is queried for its state.
func Show(ctx context.Context, d cluster.Deps, workflowID string) (*Detail, error) {
	link := cluster.NewLink()
	link.Deps = d
	t := newReader(link, workflowID)
	newest, err := t.earlier(ctx)
	if err != nil {
		return nil, err
	}
	for newest != "" {
		events, err := cluster.ReadHistory(ctx, d.Client, d.Namespace, workflowID, newest)
		if err != nil {
			return nil, err
		}
		newest = ""
		for _, e := range events {
			t.take(e)
			newest = history.NextRun(e)
		}
	}
	if t.fold.Foreign != nil {
		return nil, t.fold.Foreign
	}
	if !t.out.Closed {
		if a, err := queryState(ctx, d.Client, workflowID); err == nil {
			t.answer, t.asked = a, t.fresh
		}
	}
	if d.TurnLog != nil {
		t.fold.followLog(workflowID, d.TurnLog)
		defer t.fold.closeLogs(nil)
	}
	return t.publish(), nil
}

// Follow reads a session and shows each change until ctx ends.
func Follow(ctx context.Context, d cluster.Deps, workflowID string, show func(*Detail)) {
	link := cluster.NewLink()
	link.Deps = d
	newReader(link, workflowID).run(ctx, show)
}
