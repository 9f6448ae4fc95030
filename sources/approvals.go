package sources

import (
	"context"
	"reflect"
	"strconv"
	"time"

	"acescope/engine/ace"
	"acescope/engine/session"
)

// MaxApprovals bounds the tool calls that are listed as waiting for a person; the others
// are counted.
const MaxApprovals = 100

// Approval is a tool call that waits for a person. Texts are untrusted.
type Approval struct {
	WorkflowID string
	ID         string // of the session
	Name       string
	Agent      string
	Dir        string
	Host       string
	Call       ToolRequest
}

// Approvals is the tool calls that wait for a person, those of the newest session first.
type Approvals struct {
	Rows []Approval
	More int // that are not in Rows
}

// Count is how many wait.
func (a *Approvals) Count() int {
	if a == nil {
		return 0
	}
	return len(a.Rows) + a.More
}

// ApprovalsOf lists what waits in a session.
func ApprovalsOf(workflowID string, s *TalkState) (list []Approval) {
	if s == nil {
		return nil
	}
	host := ""
	if s.Host != nil {
		host = s.Host.Name
	}
	for _, r := range s.Pending {
		list = append(list, Approval{WorkflowID: workflowID, ID: s.Input.SessionID, Name: s.Input.Name, Agent: s.Input.Agent, Dir: s.Input.WorkingDir, Host: host, Call: r})
	}
	return list
}

// approvalsEvery is how often is looked, on every screen, whether a tool call waits.
const approvalsEvery = 2 * time.Second

var waitingQuery = SessionsQuery + ` AND ExecutionStatus = "Running" AND ` + ace.AttrPhase + " = " + strconv.Quote(string(session.Waiting))

// watchApprovals looks whether tool calls wait for a person, whatever is on the screen.
// Where the server has no search attributes, nothing is told.
func (s *Store) watchApprovals(ctx context.Context, d Deps) {
	x := newSessionIndex(d.Client, d.Namespace)
	tick := time.NewTicker(approvalsEvery)
	defer tick.Stop()
	for ctx.Err() == nil {
		if s.Snapshot().Connection.State == ConnReady {
			if rows, _, err := x.list(ctx, waitingQuery, MaxAsked); err == nil && ctx.Err() == nil {
				s.showApprovals(rows)
			}
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}

func (s *Store) showApprovals(rows []*EngineSession) {
	var next *Approvals
	var all []Approval
	for _, e := range rows {
		all = append(all, ApprovalsOf(e.WorkflowID, e.State)...)
	}
	if len(all) > 0 {
		n := min(len(all), MaxApprovals)
		next = &Approvals{Rows: all[:n:n], More: len(all) - n}
	}
	s.mu.Lock()
	same := reflect.DeepEqual(s.snap.Approvals, next)
	s.mu.Unlock()
	if !same {
		s.update(func(snap *Snapshot) { snap.Approvals = next })
	}
}
