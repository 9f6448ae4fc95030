package sessions

import (
	"context"
	"time"

	"go.temporal.io/sdk/client"

	"acescope/engine/tasks/run"
	"acescope/sources/cluster"
	runspkg "acescope/sources/runs"
)

// MaxSessionRuns are the newest runs of blueprints among which those of sessions are looked
// for, and sessionRunsEvery how often.
const (
	MaxSessionRuns   = 500
	SessionRunsEvery = 3 * time.Second
)

// RunsOf are the runs of blueprints that a session started, or was given, the newest first.
func (s *Sessions) RunsOf(id string) []runspkg.Run { return s.Runs[id] }

// SessionRuns lists the newest runs of blueprints by the sessions that they belong to.
func SessionRuns(ctx context.Context, c client.Client) (map[string][]runspkg.Run, error) {
	ctx, cancel := context.WithTimeout(ctx, cluster.CallTimeout)
	defer cancel()
	runs := map[string][]runspkg.Run{}
	err := runspkg.List(ctx, c, "WorkflowType = "+runspkg.Quote(run.Workflow), MaxSessionRuns, func(r runspkg.Run) error {
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
func (s Sessions) WithRuns(runs map[string][]runspkg.Run) *Sessions {
	s.Runs = runs
	return &s
}
