// Package sessions lists agent sessions and folds their histories and logs into conversations.
package sessions

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"go.temporal.io/sdk/client"
	"golang.org/x/sync/errgroup"

	"acescope/engine/ace"
	"acescope/engine/agents/session"
	"acescope/engine/tasks/run"
	"acescope/sources/cluster"
	"acescope/sources/runs"
)

// Bounds of listing the sessions on the engine.
const (
	MaxEngineSessions = 500 // the newest sessions
	maxQueried        = 50  // open sessions that are queried in a round, the newest
	maxRead           = 16  // closed sessions that are read in a round
	maxConcurrent     = 4   // sessions that are read at a time
	maxBlueprintRuns  = 500 // the newest blueprint runs
)

// ParseRule parses a rule such as "Bash(git *)=allow".
func ParseRule(text string) (session.Rule, error) {
	at := strings.LastIndexByte(text, '=')
	if at < 0 {
		return session.Rule{}, fmt.Errorf("tool rule %q: write PATTERN=allow, PATTERN=deny or PATTERN=ask",
			text)
	}
	tool, action := strings.TrimSpace(text[:at]), strings.TrimSpace(text[at+1:])
	r := session.Rule{Tool: tool, Action: session.Action(action)}
	return r, r.Check()
}

// EngineSession is a session on the engine in a list. It is immutable once it was returned. Texts are
// untrusted.
type EngineSession struct {
	WorkflowID string         `json:"workflow_id"`
	RunID      string         `json:"run_id"`
	ID         string         `json:"-"`
	Status     session.Status `json:"status"`
	Exit       ace.Status     `json:"workflow_status"`
	Start      time.Time      `json:"start"`           // of its newest workflow run
	Close      time.Time      `json:"close,omitzero"`  // zero while it is open
	State      *session.State `json:"state,omitempty"` // nil while it is unknown
	From       runs.Origin    `json:"from,omitempty"`  // of State
	Last       time.Time      `json:"-"`               // of its newest known event
	Err        string         `json:"error,omitempty"` // why State is unknown or outdated

	events int64 // length of the history that was folded
}

// Open reports whether its workflow is running.
func (e *EngineSession) Open() bool { return e.Close.IsZero() }

// Query lists the newest workflow run of each session.
var Query = "WorkflowType = " + strconv.Quote(session.Workflow) + ` AND ExecutionStatus != "ContinuedAsNew"`

// Index keeps the sessions between two rounds of reading. It is for one goroutine at a time.
type Index struct {
	c         client.Client
	namespace string
	closed    int                       // closed sessions that are read in a round
	known     map[string]*EngineSession // by workflow ID
	silent    atomic.Int64              // Unix time of the last query that no worker answered
}

// NewIndex returns an empty index.
func NewIndex(c client.Client, namespace string) *Index {
	return &Index{c: c, namespace: namespace, closed: maxRead, known: map[string]*EngineSession{}}
}

// List returns at most limit sessions on the engine with their states, the newest first, and reports whether
// there are more.
func List(ctx context.Context, c client.Client, namespace string, limit int) ([]*EngineSession, bool, error) {
	x := NewIndex(c, namespace)
	x.closed = limit
	rows, more, err := x.List(ctx, Query, limit)
	return rows, more, cmp.Or(err, ctx.Err())
}

// List returns at most limit sessions that match a query, with their states, and reports whether there are
// more.
func (x *Index) List(ctx context.Context, query string, limit int) ([]*EngineSession, bool, error) {
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
func (x *Index) row(r runs.Run) *EngineSession {
	e := &EngineSession{WorkflowID: r.WorkflowID, RunID: r.RunID,
		ID:     cmp.Or(session.IDOf(r.WorkflowID), r.WorkflowID),
		Status: session.Status(r.Phase), Exit: r.Status, Start: r.Start, Close: r.Close, Last: r.Start}
	if !e.Open() {
		e.Status, e.Last = session.Ended, r.Close
	}
	old := x.known[r.WorkflowID]
	if old == nil || old.RunID != r.RunID && (old.State == nil || !e.Open()) {
		return e
	}
	e.State, e.From, e.Err = old.State, old.From, old.Err
	if old.RunID == r.RunID {
		e.events = old.events
	}
	if old.Last.After(e.Last) {
		e.Last = old.Last
	}
	if e.Open() != old.Open() && e.State != nil {
		e.From = "" // it has closed since: read it again
	}
	return e
}

// fill reads the states of sessions: of open ones from their workers, of closed ones once from their
// histories.
func (x *Index) fill(ctx context.Context, rows []*EngineSession) {
	var reading errgroup.Group
	reading.SetLimit(maxConcurrent)
	asked, read := 0, 0
	for _, e := range rows {
		switch {
		case e.Open() && asked < maxQueried:
			asked++
		case !e.Open() && read < x.closed && (e.State == nil || e.From == ""):
			read++
		default:
			continue
		}
		reading.Go(func() error {
			x.readState(ctx, e)
			return nil
		})
	}
	_ = reading.Wait() // readState keeps its errors in the rows
	clear(x.known)
	for _, e := range rows {
		x.known[e.WorkflowID] = e
	}
}

// silentFor is how long no session is queried after a query that no worker answered.
const silentFor = 10 * time.Second

func (x *Index) readState(ctx context.Context, e *EngineSession) {
	if e.Open() && time.Since(time.Unix(x.silent.Load(), 0)) >= silentFor {
		s, err := queryState(ctx, x.c, e.WorkflowID)
		if err == nil {
			e.setState(s, runs.FromQuery)
			return
		}
		if ctx.Err() != nil {
			return
		}
		x.silent.Store(time.Now().Unix())
	}
	read := x.closedState
	if e.Open() {
		read = x.openState
	}
	s, err := read(ctx, e)
	if err != nil {
		e.Err = cluster.PlainError(err)
		if e.Open() {
			e.From = runs.FromHistory
		}
		return
	}
	e.setState(s, runs.FromHistory)
}

func (e *EngineSession) setState(s *session.State, from runs.Origin) {
	if e.State != nil && (e.State.Cursor != s.Cursor || e.State.Status != s.Status) {
		e.Last = time.Now()
	}
	e.State, e.From, e.Err = s, from, ""
	if e.Open() {
		e.Status = s.Status
	}
}

// queryState queries an open session, which needs a worker.
func queryState(ctx context.Context, c client.Client, workflowID string) (*session.State, error) {
	ctx, cancel := context.WithTimeout(ctx, cluster.QueryTimeout)
	defer cancel()
	v, err := c.QueryWorkflow(ctx, workflowID, "", session.QuerySession)
	if err != nil {
		return nil, err
	}
	var s session.State
	return &s, v.Get(&s)
}

// openState folds the history of an open session if it has grown.
func (x *Index) openState(ctx context.Context, e *EngineSession) (*session.State, error) {
	short, cancel := context.WithTimeout(ctx, cluster.CallTimeout)
	defer cancel()
	d, err := x.c.DescribeWorkflowExecution(short, e.WorkflowID, e.RunID)
	length := d.GetWorkflowExecutionInfo().GetHistoryLength()
	if err != nil || e.State != nil && e.events == length {
		return e.State, err
	}
	s, err := x.foldedState(ctx, e)
	if err == nil {
		e.events = length
	}
	return s, err
}

// closedState returns the final state of a session: the result of its workflow, otherwise the fold of its
// history.
func (x *Index) closedState(ctx context.Context, e *EngineSession) (*session.State, error) {
	short, cancel := context.WithTimeout(ctx, cluster.CallTimeout)
	defer cancel()
	var s session.State
	err := x.c.GetWorkflow(short, e.WorkflowID, e.RunID).Get(short, &s)
	if err == nil && s.Status != "" {
		return &s, nil
	}
	return x.foldedState(ctx, e)
}

// foldedState folds the history of one workflow run of a session.
func (x *Index) foldedState(ctx context.Context, e *EngineSession) (*session.State, error) {
	events, err := cluster.ReadHistory(ctx, x.c, x.namespace, e.WorkflowID, e.RunID)
	if err != nil {
		return nil, err
	}
	f := NewFolder()
	for _, event := range events {
		f.Apply(event)
		if at := event.GetEventTime().AsTime(); at.After(e.Last) {
			e.Last = at
		}
	}
	return &f.State, f.Foreign
}

// BlueprintRuns lists the newest blueprint runs by the sessions that started them or that they belong to.
func BlueprintRuns(ctx context.Context, c client.Client) (map[string][]runs.Run, error) {
	ctx, cancel := context.WithTimeout(ctx, cluster.CallTimeout)
	defer cancel()
	bySession := map[string][]runs.Run{}
	query := "WorkflowType = " + runs.Quote(run.Workflow)
	err := runs.List(ctx, c, query, maxBlueprintRuns, func(r runs.Run) error {
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
