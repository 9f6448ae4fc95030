package sources

import (
	"context"
	"time"

	"go.temporal.io/sdk/client"

	"acescope/engine/run"
)

// MaxSessionRuns are the newest runs of blueprints among which those of sessions are looked
// for, and sessionRunsEvery how often.
const (
	MaxSessionRuns   = 500
	sessionRunsEvery = 3 * time.Second
)

// RunsOf are the runs of blueprints that a session started, or was given, the newest first.
func (s *Sessions) RunsOf(id string) []Run { return s.runs[id] }

// readSessionRuns lists which runs belong to which session, again and again.
func (s *Store) readSessionRuns(ctx context.Context, d Deps) {
	for ctx.Err() == nil {
		if runs, err := SessionRuns(ctx, d.Client); err == nil && ctx.Err() == nil {
			s.updateSessions(func(now *Sessions) { now.runs = runs })
		} // a server that is away is told of with the sessions
		_ = s.rest(ctx, sessionRunsEvery)
	}
}

// SessionRuns lists the newest runs of blueprints by the sessions that they belong to.
func SessionRuns(ctx context.Context, c client.Client) (map[string][]Run, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	runs := map[string][]Run{}
	err := List(ctx, c, "WorkflowType = "+Quote(run.Workflow), MaxSessionRuns, func(r Run) error {
		if r.Parent != "" {
			runs[r.Parent] = append(runs[r.Parent], r)
		}
		if r.Session != "" && r.Session != r.Parent {
			runs[r.Session] = append(runs[r.Session], r)
		}
		return nil
	})
	return runs, err
}

// WithRuns is the sessions together with their runs.
func (s Sessions) WithRuns(runs map[string][]Run) *Sessions {
	s.runs = runs
	return &s
}
