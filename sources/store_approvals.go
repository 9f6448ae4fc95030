package sources

import (
	"context"
	"reflect"
	"time"

	"acescope/sources/cluster"
	"acescope/sources/sessions"
)

// watchApprovals looks whether tool calls wait for a person, whatever is on the screen.
// Where the server has no search attributes, nothing is told.
func (s *Store) watchApprovals(ctx context.Context, d cluster.Deps) {
	x := sessions.NewSessionIndex(d.Client, d.Namespace)
	tick := time.NewTicker(sessions.ApprovalsEvery)
	defer tick.Stop()
	for ctx.Err() == nil {
		if s.Snapshot().Connection.State == cluster.ConnReady {
			if rows, _, err := x.List(ctx, sessions.WaitingQuery, sessions.MaxAsked); err == nil && ctx.Err() == nil {
				s.showApprovals(rows)
			}
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}

func (s *Store) showApprovals(rows []*sessions.EngineSession) {
	var next *sessions.Approvals
	var all []sessions.Approval
	for _, e := range rows {
		all = append(all, sessions.ApprovalsOf(e.WorkflowID, e.State)...)
	}
	if len(all) > 0 {
		n := min(len(all), sessions.MaxApprovals)
		next = &sessions.Approvals{Rows: all[:n:n], More: len(all) - n}
	}
	s.mu.Lock()
	same := reflect.DeepEqual(s.snap.Approvals, next)
	s.mu.Unlock()
	if !same {
		s.update(func(snap *Snapshot) { snap.Approvals = next })
	}
}
