package sources

import (
	"context"
	"sync"
	"time"

	"acescope/sources/cluster"
	"acescope/sources/sessions"
)

// ReadSession wants the conversation of a session on the engine; "" wants none. It is
// called for each row that the cursor passes.
func (s *Store) ReadSession(workflowID string) {
	s.mu.Lock()
	changed := s.session.workflowID != workflowID
	s.session.workflowID = workflowID
	s.mu.Unlock()
	if changed {
		cluster.Signal(s.session.wake)
	}
}

// watchSessions reads the sessions on the engine while somebody looks.
func (s *Store) watchSessions(ctx context.Context, d cluster.Deps) {
	x := sessions.NewSessionIndex(d.Client, d.Namespace)
	s.watchPart(ctx, PartSessions, func(ctx context.Context) {
		var wg sync.WaitGroup
		wg.Go(func() { s.watchTalk(ctx, d) })
		wg.Go(func() { s.readSessionRuns(ctx, d) })
		s.listSessions(ctx, x)
		wg.Wait()
	})
}

func (s *Store) listSessions(ctx context.Context, x *sessions.SessionIndex) {
	tick := time.NewTicker(sessions.SessionsEvery)
	defer tick.Stop()
	for ctx.Err() == nil {
		rows, more, err := x.List(ctx, sessions.SessionsQuery, sessions.MaxEngineSessions)
		if ctx.Err() != nil {
			return
		}
		s.updateSessions(func(now *sessions.Sessions) {
			if err != nil {
				now.Err = cluster.PlainError(err)
				return
			}
			now.Rows, now.More, now.Err, now.Loaded = rows, more, "", s.now()
		})
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}

// updateSessions publishes what fn changes.
func (s *Store) updateSessions(fn func(*sessions.Sessions)) {
	s.update(func(snap *Snapshot) {
		var next sessions.Sessions
		if snap.Sessions != nil {
			next = *snap.Sessions
		}
		fn(&next)
		next.Updated = s.now()
		snap.Sessions = &next
	})
}

// sessionWish is which session somebody looks at. Only the store's lock guards it.
type sessionWish struct {
	workflowID string
	wake       chan struct{}
}
