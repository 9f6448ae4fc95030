package sources

import (
	"context"

	"acescope/sources/cluster"
	"acescope/sources/sessions"
)

// readSessionRuns lists which runs belong to which session, again and again.
func (s *Store) readSessionRuns(ctx context.Context, d cluster.Deps) {
	for ctx.Err() == nil {
		if runs, err := sessions.SessionRuns(ctx, d.Client); err == nil && ctx.Err() == nil {
			s.updateSessions(func(now *sessions.Sessions) { now.Runs = runs })
		} // a server that is away is told of with the sessions
		_ = s.rest(ctx, sessions.SessionRunsEvery)
	}
}
