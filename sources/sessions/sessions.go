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
	"acescope/engine/tasks/run"
	"acescope/engine/temporal/history"
	"acescope/sources/cluster"
	"acescope/sources/runs"
)

// Bounds of listing the sessions on the engine.
const (
	MaxEngineSessions = 500 // the newest sessions
	MaxQueried        = 50  // open sessions that are queried in a round, the newest
	maxRead           = 16  // closed sessions that are read in a round
)

// Types of sessions on the engine, so that screens need no other package.
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

// SessionWorkflow is the workflow type of a session.
const SessionWorkflow = session.Workflow

// SessionWorkflowID returns the workflow id of a session.
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

// ParseToolRule parses a rule such as "Bash(git *)=allow".
func ParseToolRule(text string) (ToolRule, error) {
	at := strings.LastIndexByte(text, '=')
	if at < 0 {
		return ToolRule{}, fmt.Errorf("tool rule %q: write PATTERN=allow, PATTERN=deny or PATTERN=ask", text)
	}
	r := ToolRule{Tool: strings.TrimSpace(text[:at]), Action: ToolAction(strings.TrimSpace(text[at+1:]))}
	return r, r.Check()
}

// EngineSession is a session on the engine in a list. It is immutable once it was returned. Texts are untrusted.
type EngineSession struct {
	WorkflowID, RunID, ID string
	Status                session.Status
	Exit                  ace.ExitStatus
	Start, Close          time.Time      // of its newest workflow run; Close is zero while it is open
	State                 *session.State // nil while it is unknown
	From                  runs.Origin    // of State
	Last                  time.Time      // of its newest known event
	Err                   string         // why State is unknown or outdated
}

// Open reports whether its workflow is running.
func (e *EngineSession) Open() bool { return e.Close.IsZero() }

// Sessions holds the sessions on the engine and the details of one.
type Sessions struct {
	Rows    []*EngineSession // the newest first
	More    bool             // there are older ones
	Err     string           // why they cannot be listed
	Loaded  time.Time
	Talk    *Talk  // the wanted session, nil before it is read
	Wanted  string // its workflow id
	Updated time.Time
	Runs    map[string][]runs.Run // blueprint runs by session
}

// SessionsQuery lists the newest workflow run of each session.
var SessionsQuery = "WorkflowType = " + strconv.Quote(session.Workflow) + ` AND ExecutionStatus != "ContinuedAsNew"`

// SessionIndex keeps the sessions between two rounds of reading. It is for one goroutine at a time.
type SessionIndex struct {
	c         client.Client
	namespace string
	known     map[string]*EngineSession // by workflow id
	read      map[string]int64          // folded events of open sessions, by run id
	deaf      time.Time                 // when no worker answered
}

// NewSessionIndex returns an empty index.
func NewSessionIndex(c client.Client, namespace string) *SessionIndex {
	return &SessionIndex{c: c, namespace: namespace, known: map[string]*EngineSession{}, read: map[string]int64{}}
}

// List returns at most limit sessions that match a query, with their states, and reports whether there are more.
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

// row returns a session with the state that was known before.
func (x *SessionIndex) row(r runs.Run) *EngineSession {
	e := &EngineSession{WorkflowID: r.WorkflowID, RunID: r.RunID, ID: cmp.Or(session.IDOf(r.WorkflowID), r.WorkflowID),
		Status: session.Status(r.Phase), Exit: r.Exit, Start: r.Start, Close: r.Close, Last: r.Start}
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
		e.From = "" // it has closed since: read it again
	}
	return e
}

// maxConcurrent bounds how many sessions are read at a time.
const maxConcurrent = 4

// fill reads the states of sessions: of open ones from their workers, of closed ones once from their histories.
func (x *SessionIndex) fill(ctx context.Context, rows []*EngineSession) {
	var wg sync.WaitGroup
	var mu sync.Mutex
	slots := make(chan struct{}, maxConcurrent)
	asked, read := 0, 0
	for _, e := range rows {
		switch {
		case e.Open() && asked < MaxQueried:
			asked++
		case !e.Open() && read < maxRead && (e.State == nil || e.From == ""):
			read++
		default:
			continue
		}
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			x.readState(ctx, &mu, e)
		})
	}
	wg.Wait()
	clear(x.known)
	for _, e := range rows {
		x.known[e.WorkflowID] = e
	}
}

// deafFor is how long no session is queried after no worker has answered.
const deafFor = 10 * time.Second

func (x *SessionIndex) readState(ctx context.Context, mu *sync.Mutex, e *EngineSession) {
	mu.Lock()
	deaf := time.Since(x.deaf) < deafFor
	mu.Unlock()
	if e.Open() && !deaf {
		s, err := QuerySession(ctx, x.c, e.WorkflowID, "")
		if err == nil {
			e.setState(s, runs.FromQuery)
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
	e.setState(s, runs.FromHistory)
	if last.After(e.Last) {
		e.Last = last
	}
}

// foldOpen folds the history of an open session if it has grown.
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
	e.setState(s, runs.FromHistory)
	e.Last = last
	mu.Lock()
	x.read[e.RunID] = length
	mu.Unlock()
}

func (e *EngineSession) setState(s *session.State, from runs.Origin) {
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

// QuerySession queries an open session, which needs a worker.
func QuerySession(ctx context.Context, c client.Client, workflowID, runID string) (*session.State, error) {
	ctx, cancel := context.WithTimeout(ctx, cluster.QueryTimeout)
	defer cancel()
	v, err := c.QueryWorkflow(ctx, workflowID, runID, session.QuerySession)
	if err != nil {
		return nil, err
	}
	var s session.State
	return &s, v.Get(&s)
}

// FoldSession folds the history of one workflow run of a session; last is the time of its last event.
func FoldSession(ctx context.Context, c client.Client, namespace, workflowID, runID string) (
	s *session.State, last time.Time, err error) {

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

// ClosedSession returns the final state of a workflow run of a session: the result of its workflow, otherwise the fold
// of its history.
func ClosedSession(ctx context.Context, c client.Client, namespace, workflowID, runID string) (
	s *session.State, last time.Time, err error) {

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
	if done := end.GetWorkflowExecutionCompletedEventAttributes(); done != nil {
		var state session.State
		result := history.PayloadJSON(cluster.First(done.GetResult().GetPayloads()))
		if json.Unmarshal(result, &state) == nil && state.Status != "" {
			return &state, end.GetEventTime().AsTime(), nil
		}
	}
	return FoldSession(ctx, c, namespace, workflowID, runID)
}

// ListSessions returns at most limit sessions on the engine with their states, the newest first, and reports whether
// there are more.
func ListSessions(ctx context.Context, c client.Client, namespace string, limit int) ([]*EngineSession, bool, error) {
	if limit <= 0 {
		limit = MaxEngineSessions
	}
	x := NewSessionIndex(c, namespace)
	rows, more, err := x.List(ctx, SessionsQuery, limit)
	unreadClosed := func(e *EngineSession) bool { return !e.Open() && e.State == nil && e.Err == "" }
	for err == nil && slices.ContainsFunc(rows, unreadClosed) {
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

// SessionsEvery is the interval of listing sessions while they are shown.
const SessionsEvery = time.Second

// MaxRunsRead bounds the workflow runs of a session that are read for its conversation.
const MaxRunsRead = 8

// Talk is a session on the engine with its conversation. It is immutable once it was returned.
type Talk struct {
	WorkflowID, RunID string
	State             *session.State // nil while it is unknown
	From              runs.Origin
	Conversation      *Conversation
	Turns             []*SessionTurn // the newest [MaxTurns]
	Host              string         // the machine that serves it, or ""
	Runs              int            // workflow runs that were read
	Earlier           bool           // there are earlier runs
	// Log is the file with the log of the current turn, or "" if there is no turn or the file is on another machine.
	Log     string
	Events  int64 // of the newest run
	Closed  bool
	Updated time.Time
	Err     string
}

// Intervals of reading a session.
const (
	QueryInterval = 2 * time.Second        // of querying its worker
	LogPoll       = 100 * time.Millisecond // of checking whether a turn's log has grown
)

// TurnOf returns the turn with a message, or nil.
func (t *Talk) TurnOf(messageID string) *SessionTurn {
	for _, turn := range slices.Backward(t.Turns) {
		if slices.ContainsFunc(turn.Messages, func(m session.Message) bool { return m.ID == messageID }) {
			return turn
		}
	}
	return nil
}

// Outcome returns the record of the turn.
func (t *SessionTurn) Outcome() TurnRecord { return t.record() }

// Bound and interval of listing the newest blueprint runs.
const (
	MaxSessionRuns   = 500
	SessionRunsEvery = 3 * time.Second
)

// RunsOf returns the blueprint runs that a session started or belongs to, the newest first.
func (s *Sessions) RunsOf(id string) []runs.Run { return s.Runs[id] }

// SessionRuns lists the newest blueprint runs by session.
func SessionRuns(ctx context.Context, c client.Client) (map[string][]runs.Run, error) {
	ctx, cancel := context.WithTimeout(ctx, cluster.CallTimeout)
	defer cancel()
	bySession := map[string][]runs.Run{}
	query := "WorkflowType = " + runs.Quote(run.Workflow)
	err := runs.List(ctx, c, query, MaxSessionRuns, func(r runs.Run) error {
		if r.Parent != "" {
			bySession[r.Parent] = append(bySession[r.Parent], r)
		}
		if r.Session != "" && r.Session != r.Parent {
			bySession[r.Session] = append(bySession[r.Session], r)
		}
		return nil
	})
	return bySession, err
}

// WithRuns returns a copy of the sessions with their runs.
func (s Sessions) WithRuns(bySession map[string][]runs.Run) *Sessions {
	s.Runs = bySession
	return &s
}
