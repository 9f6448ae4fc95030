package sources

import (
	"context"
	"slices"
	"sync"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"

	"acescope/engine/history"
	"acescope/engine/session"
)

// maxSessionRuns bounds the runs of a session that are read for its conversation: a session
// continues as a new run from time to time.
const maxSessionRuns = 8

// Talk is one session on the engine: what is known of it, and what was said in it. It is
// never changed once it was handed out.
type Talk struct {
	WorkflowID, RunID string
	State             *session.State // nil before anything is known
	From              Origin
	Conversation      *Conversation
	Turns             []*SessionTurn // the newest [MaxTurns]
	Host              string         // who serves it, "" where that is not known
	Runs              int            // that were read
	Earlier           bool           // there are runs before those
	// Log is the file that the turn under way is read from as it is written, "" where it is
	// not on this machine, or no turn is under way.
	Log     string
	Events  int64 // of the newest run
	Closed  bool
	Updated time.Time
	Err     string
}

// Rhythm of reading a session.
const (
	talkAgain = 2 * time.Second        // between two questions whether its worker lives
	logPoll   = 100 * time.Millisecond // between two looks whether a turn's log has grown
)

// talker reads one session while somebody looks at it.
type talker struct {
	store *Store
	deps  Deps
	id    string

	mu      sync.Mutex
	fold    *SessionFolder
	answer  *session.State // the worker's, nil where it did not answer the last time
	fresh   int            // counts what was folded
	asked   int            // of fresh, when answer was asked for
	logs    turnLogs
	out     Talk
	news    chan struct{}
	asks    chan struct{}
	started bool // the newest run is being read
}

// watchTalk reads the session that is wanted until another is.
func (s *Store) watchTalk(ctx context.Context, d Deps) {
	for {
		s.mu.Lock()
		id := s.session.workflowID
		s.mu.Unlock()
		reading, stop := context.WithCancel(ctx)
		done := make(chan struct{})
		if id == "" {
			close(done)
			s.updateSessions(func(now *Sessions) { now.Talk, now.Wanted = nil, "" })
		} else {
			go func() { defer close(done); s.readSession(reading, d, id) }()
		}
		select {
		case <-ctx.Done():
		case <-s.session.wake:
		}
		stop()
		<-done
		if ctx.Err() != nil {
			return
		}
		s.settled(ctx, s.session.wake)
	}
}

// settled waits until a cursor rests: whoever scrolls passes rows that need no reading.
func (s *Store) settled(ctx context.Context, wake <-chan struct{}) {
	for {
		timer := time.NewTimer(talkRest)
		select {
		case <-wake:
			timer.Stop()
			continue
		case <-ctx.Done():
		case <-timer.C:
		}
		timer.Stop()
		return
	}
}

func newTalker(s *Store, d Deps, id string) *talker {
	return &talker{store: s, deps: d, id: id, fold: NewSessionFolder(), logs: turnLogs{path: d.TurnLog}, out: Talk{WorkflowID: id, From: FromHistory},
		news: make(chan struct{}, 1), asks: make(chan struct{}, 1)}
}

func (s *Store) readSession(ctx context.Context, d Deps, id string) {
	t := newTalker(s, d, id)
	show := func(out *Talk) {
		s.updateSessions(func(now *Sessions) { now.Talk, now.Wanted = out, id })
	}
	t.run(ctx, show)
}

// run reads until ctx ends, and shows what is new.
func (t *talker) run(ctx context.Context, show func(*Talk)) {
	var wg sync.WaitGroup
	for _, part := range []func(context.Context){t.read, t.question, t.followLogs} {
		wg.Go(func() { part(ctx) })
	}
	signal(t.asks)
	pause := time.NewTicker(publishEvery)
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

// publish is what is known now.
func (t *talker) publish() *Talk {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := t.out
	state := t.fold.State
	out.State, out.From = &state, FromHistory
	if t.answer != nil && !out.Closed && (t.asked == t.fresh || !t.started) {
		out.State, out.From = t.answer, FromQuery
	}
	if !t.started && t.answer == nil {
		out.State = nil
	}
	out.RunID = t.fold.RunID
	out.Conversation = t.fold.Conversation(t.logs.spoken())
	out.Conversation.Path, out.Conversation.Updated = t.id, t.store.now()
	out.Turns = t.fold.turns()
	out.Log = t.logs.current()
	out.Updated = t.store.now()
	return &out
}

// read reads the runs of the session, the oldest first, and goes on with the newest as it
// grows and continues.
func (t *talker) read(ctx context.Context) {
	run, err := t.earlier(ctx)
	for err == nil && run != "" {
		next := ""
		err = Follow(ctx, t.deps.Client, t.store.namespace, t.id, run, nil, func(e *historypb.HistoryEvent) error {
			t.take(e)
			next = history.NextRun(e)
			return nil
		})
		run = next
	}
	if err != nil && ctx.Err() == nil {
		t.fail(plainError(err))
	}
}

func (t *talker) fail(said string) {
	t.mu.Lock()
	t.out.Err = said
	t.mu.Unlock()
	signal(t.news)
}

// earlier folds the runs before the newest, and gives the newest.
func (t *talker) earlier(ctx context.Context) (newest string, err error) {
	short, cancel := context.WithTimeout(ctx, callTimeout)
	d, err := t.deps.Client.DescribeWorkflowExecution(short, t.id, "")
	cancel()
	if err != nil {
		return "", err
	}
	newest = d.GetWorkflowExecutionInfo().GetExecution().GetRunId()
	before, err := t.before(ctx, newest)
	if err != nil {
		return "", err
	}
	var runs [][]*historypb.HistoryEvent
	events := 0
	for before != "" && len(runs) < maxSessionRuns && events < MaxEvents/4 {
		list, err := ReadHistory(ctx, t.deps.Client, t.store.namespace, t.id, before)
		if NotFound(err) {
			break // the server keeps it no longer
		}
		if err != nil || len(list) == 0 {
			return newest, err
		}
		runs, events = append(runs, list), events+len(list)
		before = list[0].GetWorkflowExecutionStartedEventAttributes().GetContinuedExecutionRunId()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.out.Runs, t.out.Earlier = len(runs), before != ""
	for i := len(runs) - 1; i >= 0; i-- {
		for _, e := range runs[i] {
			t.fold.Apply(e)
		}
	}
	return newest, nil
}

// before is the run that another continues, "" for none.
func (t *talker) before(ctx context.Context, run string) (string, error) {
	p := pages{t.deps.Client, t.store.namespace, t.id, run}
	events, _, err := p.forward(ctx, nil, false)
	if err != nil || len(events) == 0 {
		return "", err
	}
	return events[0].GetWorkflowExecutionStartedEventAttributes().GetContinuedExecutionRunId(), nil
}

func (t *talker) take(e *historypb.HistoryEvent) {
	t.mu.Lock()
	if e.GetEventType() == enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED {
		t.out.Runs++
		t.out.Closed, t.started = false, true
	}
	t.out.Events = e.GetEventId()
	if closing(e.GetEventType()) && history.NextRun(e) == "" {
		t.out.Closed = true
	}
	told := t.fold.Apply(e)
	if told {
		t.fresh++
	}
	if t.fold.Foreign != nil {
		t.out.Err = "the input of this session is not the contract's: " + t.fold.Foreign.Error()
	}
	if h := t.fold.State.Host; h != nil {
		t.out.Host = h.Name
	}
	live := t.answer != nil
	closed := t.out.Closed
	t.mu.Unlock()
	switch {
	case !told && !closed:
	case live && !closed: // the worker's answer shows it, or its silence does
		signal(t.asks)
		time.AfterFunc(queryPatience, func() { signal(t.news) })
	default:
		signal(t.news)
	}
}

// question asks the session's worker when something has happened, and now and then whether
// it lives.
func (t *talker) question(ctx context.Context) {
	tick := time.NewTicker(talkAgain)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.asks:
		case <-tick.C:
		}
		t.mu.Lock()
		closed, fresh := t.out.Closed, t.fresh
		t.mu.Unlock()
		if closed {
			continue
		}
		s, err := AskSession(ctx, t.deps.Client, t.id, "")
		if ctx.Err() != nil {
			return
		}
		t.mu.Lock()
		t.asked = fresh
		if t.answer = s; err != nil {
			t.answer = nil
		}
		t.mu.Unlock()
		signal(t.news)
	}
}

// followLogs reads the log of the turn under way as it is written.
func (t *talker) followLogs(ctx context.Context) {
	if t.deps.TurnLog == nil {
		return
	}
	tick := time.NewTicker(logPoll)
	defer tick.Stop()
	defer func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.logs.close()
	}()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		t.mu.Lock()
		changed := t.started && t.logs.follow(t.id, t.fold)
		t.mu.Unlock()
		if changed {
			signal(t.news)
		}
	}
}

// ShowSession reads a session once: what is known of it, and what was said. An open one is
// asked of its worker first.
func ShowSession(ctx context.Context, d Deps, workflowID string) (*Talk, error) {
	s := NewStore()
	s.namespace = d.Namespace
	t := newTalker(s, d, workflowID)
	newest, err := t.earlier(ctx)
	if err != nil {
		return nil, err
	}
	for newest != "" {
		events, err := ReadHistory(ctx, d.Client, d.Namespace, workflowID, newest)
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
		if a, err := AskSession(ctx, d.Client, workflowID, ""); err == nil {
			t.answer, t.asked = a, t.fresh
		}
	}
	if d.TurnLog != nil {
		t.logs.follow(workflowID, t.fold)
		defer t.logs.close()
	}
	return t.publish(), nil
}

// FollowSession reads a session and shows what is new in it, until ctx ends.
func FollowSession(ctx context.Context, d Deps, workflowID string, show func(*Talk)) {
	s := NewStore()
	s.namespace = d.Namespace
	newTalker(s, d, workflowID).run(ctx, show)
}

// TurnOf is the turn that has a message, nil before there is one.
func (t *Talk) TurnOf(messageID string) *SessionTurn {
	for _, turn := range slices.Backward(t.Turns) {
		if slices.ContainsFunc(turn.Messages, func(m session.Message) bool { return m.ID == messageID }) {
			return turn
		}
	}
	return nil
}

// Outcome is how the turn ended, as a record of it.
func (t *SessionTurn) Outcome() TurnRecord { return t.record() }
