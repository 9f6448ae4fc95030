// Package sessions lists agent sessions and folds their histories and logs into conversations.
package sessions

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"

	"acescope/engine/ace"
	"acescope/engine/agents/session"
	"acescope/engine/temporal/history"
	"acescope/sources/cluster"
	"acescope/sources/runs"
)

// Bounds of what is known of sessions on the engine.
const (
	// MaxEngineSessions are listed; the oldest are left out.
	MaxEngineSessions = 500
	// MaxAsked are the open ones that are asked in a round, the newest.
	MaxAsked = 50
	// maxRead are the closed ones that are read in a round; the rest comes with the next.
	maxRead = 16
)

// Types of what is known of a session on the engine, so that screens need no other package.
type (
	TalkState    = session.State
	TalkInput    = session.Input
	TalkStatus   = session.Status
	ToolRequest  = session.ToolRequest
	ToolAnswer   = session.ToolAnswer
	TurnRecord   = session.TurnRecord
	ToolRule     = session.Rule
	ToolAction   = session.Action
	SessionNote  = session.Note
	QueueMessage = session.Message
)

// SessionWorkflow is the type of the workflow of a session.
const SessionWorkflow = session.Workflow

// SessionWorkflowID is the workflow id of a session on the engine.
func SessionWorkflowID(id string) string { return session.WorkflowID(id) }

// Statuses of sessions on the engine.
const (
	TalkStarting = session.Starting
	TalkIdle     = session.Idle
	TalkWorking  = session.Working
	TalkWaiting  = session.Waiting
	TalkStopping = session.Stopping
	TalkOver     = session.Ended
)

// ParseToolRule reads a rule as "Bash(git *)=allow".
func ParseToolRule(said string) (ToolRule, error) {
	at := strings.LastIndexByte(said, '=')
	if at < 0 {
		return ToolRule{}, fmt.Errorf("tool rule %q: write it as PATTERN=allow, =deny or =ask", said)
	}
	r := ToolRule{Tool: strings.TrimSpace(said[:at]), Action: ToolAction(strings.TrimSpace(said[at+1:]))}
	return r, r.Check()
}

// EngineSession is a session on the engine as the list knows it. It is never changed once
// it was handed out. Texts are untrusted.
type EngineSession struct {
	WorkflowID, RunID, ID string
	Status                session.Status
	Exit                  ace.ExitStatus
	Start, Close          time.Time      // of this run of its workflow; Close is zero while it is open
	State                 *session.State // nil while no more than the above is known
	From                  runs.Origin    // where State is from
	Last                  time.Time      // when something was recorded last, as far as it is known
	Err                   string         // why State is not known, or no newer one
}

// Open tells whether its workflow runs.
func (e *EngineSession) Open() bool { return e.Close.IsZero() }

// Sessions is the sessions on the engine, and the one that is looked at.
type Sessions struct {
	Rows    []*EngineSession // the newest first
	More    bool             // there are older ones
	Err     string           // why they cannot be listed
	Loaded  time.Time
	Talk    *Talk  // that was asked for, nil before anything is known of it
	Wanted  string // workflow id of what was asked for
	Updated time.Time
	Runs    map[string][]runs.Run // of blueprints, by session
}

// SessionsQuery lists sessions: of each chain of runs the newest.
var SessionsQuery = "WorkflowType = " + strconv.Quote(session.Workflow) + ` AND ExecutionStatus != "ContinuedAsNew"`

// SessionIndex keeps what is known of each session between two rounds. Only one goroutine
// reads with it at a time.
type SessionIndex struct {
	c         client.Client
	namespace string
	known     map[string]*EngineSession // by workflow id
	read      map[string]int64          // events that the fold of an open one has taken
	deaf      time.Time                 // no worker answered then
}

func NewSessionIndex(c client.Client, namespace string) *SessionIndex {
	return &SessionIndex{c: c, namespace: namespace, known: map[string]*EngineSession{}, read: map[string]int64{}}
}

// List reads the sessions that a query lists, what is known of each, and whether there are
// older ones.
func (x *SessionIndex) List(ctx context.Context, query string, limit int) ([]*EngineSession, bool, error) {
	var rows []*EngineSession
	seen := map[string]bool{}
	err := runs.List(ctx, x.c, query, limit+1, func(r runs.Run) error {
		if !seen[r.WorkflowID] {
			seen[r.WorkflowID] = true
			rows = append(rows, x.row(r))
		}
		return nil
	})
	if err != nil {
		return nil, false, err
	}
	more := len(rows) > limit
	rows = rows[:min(len(rows), limit)]
	x.fill(ctx, rows)
	return rows, more, nil
}

// row is a session with what was known of it before.
func (x *SessionIndex) row(r runs.Run) *EngineSession {
	e := &EngineSession{WorkflowID: r.WorkflowID, RunID: r.RunID, ID: cmp.Or(session.IDOf(r.WorkflowID), r.WorkflowID), Status: session.Status(r.Phase),
		Exit: r.Exit, Start: r.Start, Close: r.Close, Last: r.Start}
	if !e.Open() {
		e.Status, e.Last = session.Ended, r.Close
	}
	if old := x.known[r.WorkflowID]; old != nil && (old.RunID == r.RunID || old.State != nil && e.Open()) {
		e.State, e.From, e.Err = old.State, old.From, old.Err
		if old.Last.After(e.Last) {
			e.Last = old.Last
		}
		if e.Open() == old.Open() || e.State == nil {
			return e
		}
		e.From = "" // it has closed since: read it anew
	}
	return e
}

// atOnce is how many sessions are asked at a time.
const atOnce = 4

// fill reads what is known of the sessions: of the open ones from their workers, of the
// closed ones once, from their histories.
func (x *SessionIndex) fill(ctx context.Context, rows []*EngineSession) {
	var wg sync.WaitGroup
	var mu sync.Mutex
	slots := make(chan struct{}, atOnce)
	asked, read := 0, 0
	for _, e := range rows {
		switch {
		case e.Open() && asked < MaxAsked:
			asked++
		case !e.Open() && read < maxRead && (e.State == nil || e.From == ""):
			read++
		default:
			continue
		}
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			x.ask(ctx, &mu, e)
		})
	}
	wg.Wait()
	clear(x.known)
	for _, e := range rows {
		x.known[e.WorkflowID] = e
	}
}

// deafFor is how long nobody is asked after no worker has answered.
const deafFor = 10 * time.Second

func (x *SessionIndex) ask(ctx context.Context, mu *sync.Mutex, e *EngineSession) {
	mu.Lock()
	deaf := time.Since(x.deaf) < deafFor
	mu.Unlock()
	if e.Open() && !deaf {
		s, err := AskSession(ctx, x.c, e.WorkflowID, "")
		if err == nil {
			e.take(s, runs.FromQuery)
			return
		}
		if ctx.Err() != nil {
			return
		}
		mu.Lock()
		x.deaf = time.Now()
		mu.Unlock()
	}
	if e.Open() {
		x.foldOpen(ctx, mu, e)
		return
	}
	s, last, err := ClosedSession(ctx, x.c, x.namespace, e.WorkflowID, e.RunID)
	if err != nil {
		e.Err = cluster.PlainError(err)
		return
	}
	e.take(s, runs.FromHistory)
	if last.After(e.Last) {
		e.Last = last
	}
}

// foldOpen folds the history of an open session, where it has become longer.
func (x *SessionIndex) foldOpen(ctx context.Context, mu *sync.Mutex, e *EngineSession) {
	short, cancel := context.WithTimeout(ctx, cluster.CallTimeout)
	d, err := x.c.DescribeWorkflowExecution(short, e.WorkflowID, e.RunID)
	cancel()
	length := d.GetWorkflowExecutionInfo().GetHistoryLength()
	mu.Lock()
	same := x.read[e.RunID] == length && e.State != nil
	mu.Unlock()
	if err != nil || same {
		if e.From = runs.FromHistory; err != nil {
			e.Err = cluster.PlainError(err)
		}
		return
	}
	s, last, err := FoldSession(ctx, x.c, x.namespace, e.WorkflowID, e.RunID)
	if err != nil {
		e.Err = cluster.PlainError(err)
		return
	}
	e.take(s, runs.FromHistory)
	e.Last = last
	mu.Lock()
	x.read[e.RunID] = length
	mu.Unlock()
}

// take takes a state over.
func (e *EngineSession) take(s *session.State, from runs.Origin) {
	if e.State != nil && e.State.Cursor != s.Cursor || e.State != nil && e.State.Status != s.Status {
		e.Last = time.Now()
	}
	e.State, e.From, e.Err = s, from, ""
	if e.Open() {
		e.Status = s.Status
	}
	if s.Exit != "" && s.Exit != ace.Running {
		e.Exit = s.Exit
	}
}

// AskSession asks an open session's worker what is known of it.
func AskSession(ctx context.Context, c client.Client, workflowID, runID string) (*session.State, error) {
	ctx, cancel := context.WithTimeout(ctx, cluster.QueryTimeout)
	defer cancel()
	v, err := c.QueryWorkflow(ctx, workflowID, runID, session.QuerySession)
	if err != nil {
		return nil, err
	}
	var s session.State
	return &s, v.Get(&s)
}

// FoldSession folds the history of one run of a session; last is when its last event was.
func FoldSession(ctx context.Context, c client.Client, namespace, workflowID, runID string) (s *session.State, last time.Time, err error) {
	events, err := cluster.ReadHistory(ctx, c, namespace, workflowID, runID)
	if err != nil {
		return nil, last, err
	}
	f := NewSessionFolder()
	for _, e := range events {
		f.Apply(e)
	}
	if len(events) > 0 {
		last = events[len(events)-1].GetEventTime().AsTime()
	}
	if f.Foreign != nil {
		return nil, last, f.Foreign
	}
	return &f.State, last, nil
}

// ClosedSession is the end state of a run of a session: what its workflow returned, else
// what its history folds to.
func ClosedSession(ctx context.Context, c client.Client, namespace, workflowID, runID string) (s *session.State, last time.Time, err error) {
	short, cancel := context.WithTimeout(ctx, cluster.CallTimeout)
	iter := c.GetWorkflowHistory(short, workflowID, runID, false, enumspb.HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT)
	var end *historypb.HistoryEvent
	if iter.HasNext() {
		end, err = iter.Next()
	}
	cancel()
	if err != nil {
		return nil, last, err
	}
	var state session.State
	if done := end.GetWorkflowExecutionCompletedEventAttributes(); done != nil &&
		json.Unmarshal(history.PayloadJSON(cluster.First(done.GetResult().GetPayloads())), &state) == nil && state.Status != "" {
		return &state, end.GetEventTime().AsTime(), nil
	}
	return FoldSession(ctx, c, namespace, workflowID, runID)
}

// ListSessions is the sessions on the engine, the newest first, at most limit, with what is
// known of each.
func ListSessions(ctx context.Context, c client.Client, namespace string, limit int) ([]*EngineSession, bool, error) {
	if limit <= 0 {
		limit = MaxEngineSessions
	}
	x := NewSessionIndex(c, namespace)
	rows, more, err := x.List(ctx, SessionsQuery, limit)
	for err == nil && slices.ContainsFunc(rows, func(e *EngineSession) bool { return !e.Open() && e.State == nil && e.Err == "" }) {
		before := unread(rows)
		if x.fill(ctx, rows); unread(rows) == before {
			break
		}
	}
	return rows, more, cmp.Or(err, ctx.Err())
}

func unread(rows []*EngineSession) (n int) {
	for _, e := range rows {
		if e.State == nil {
			n++
		}
	}
	return n
}

// How often sessions are listed while somebody looks.
const SessionsEvery = time.Second
