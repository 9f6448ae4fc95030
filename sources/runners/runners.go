// Package runners reads runners, queues and blueprint runs from the dispatcher.
package runners

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"acescope/engine/ace"
	"acescope/engine/tasks/run"
	"acescope/engine/tasks/runner"
	"acescope/sources/cluster"
	runspkg "acescope/sources/runs"
)

// Types of what is known of runners, so that screens need no other package.
type (
	RunnersView  = runner.View
	RunnerView   = runner.RunnerView
	RunnerStatus = runner.Status
	RunQueue     = runner.QueueView
	WaitingRun   = runner.PendingView
	RunDemands   = runner.Requirements
)

// Statuses of runners.
const (
	RunnerOnline   = runner.Online
	RunnerStale    = runner.Stale
	RunnerDraining = runner.Draining
	RunnerGone     = runner.Gone
)

// RunWorkflow is the type of the workflow of a run of a blueprint.
const RunWorkflow = run.Workflow

// BlueprintRun is a run of a blueprint by its run id, before more is known of it.
func BlueprintRun(id string) runspkg.Run {
	return runspkg.Run{WorkflowID: run.WorkflowID(id), Type: run.Workflow, TaskID: id}
}

// BlueprintRunID is the id of a run of a blueprint, "" for other runs.
func BlueprintRunID(workflowID string) string { return run.IDOf(workflowID) }

// Rhythm and bounds of what is read of runners.
const (
	RunnersEvery = time.Second
	// MaxRunnerRuns are the newest runs of a runner that are listed.
	MaxRunnerRuns = 100
	maxWaiting    = 500 // pending runs that the dispatcher is asked for
)

// Runners is what the dispatcher last said, and the runs of one runner.
type Runners struct {
	View     RunnersView
	Answered time.Time // when it said so, zero before the first answer
	Absent   bool      // there is no dispatcher yet: nobody registered, and nothing was started
	Deaf     bool      // nobody serves it, so that View is not what is now
	Err      string    // why there is no newer answer

	Wanted  string        // the runner whose runs are listed, "" for none
	Runs    []runspkg.Run // of it, those that it has first, then the newest
	More    bool          // it had more
	RunsErr string        // why they cannot be listed
	Updated time.Time
}

// AskDispatcher asks the dispatcher what it knows; a worker must serve it.
func AskDispatcher(ctx context.Context, c client.Client) (v RunnersView, err error) {
	ctx, cancel := context.WithTimeout(ctx, cluster.QueryTimeout)
	defer cancel()
	answer, err := c.QueryWorkflow(ctx, runner.DispatcherID, "", runner.QueryDispatcher, runner.ViewOptions{Pending: maxWaiting})
	if err != nil {
		return v, err
	}
	return v, answer.Get(&v)
}

// Deaf tells whether a query failed because no worker answers, though the server does.
func Deaf(err error) bool {
	var early *serviceerror.FailedPrecondition
	return errors.As(err, &early) || err != nil && cluster.TookTooLong(err)
}

func RunnerRunsQuery(id string) string {
	return "WorkflowType = " + strconv.Quote(run.Workflow) + " AND " + ace.AttrRunner + " = " + runspkg.Quote(id)
}

// Held are the ids of the runs that a runner has now.
func (r *Runners) Held(id string) []string {
	for _, one := range r.View.Runners {
		if one.ID == id {
			return one.Runs
		}
	}
	return nil
}

// WithHeld is a runner's runs with those in front that it has now, also where the list does
// not know them yet.
func WithHeld(runs []runspkg.Run, held []string) []runspkg.Run {
	var now, others []runspkg.Run
	for _, id := range held {
		at := slices.IndexFunc(runs, func(r runspkg.Run) bool { return r.WorkflowID == run.WorkflowID(id) })
		if at >= 0 {
			now = append(now, runs[at])
			continue
		}
		now = append(now, BlueprintRun(id))
	}
	for _, r := range runs {
		if !slices.ContainsFunc(now, func(n runspkg.Run) bool { return n.WorkflowID == r.WorkflowID }) {
			others = append(others, r)
		}
	}
	return append(now, others...)
}
