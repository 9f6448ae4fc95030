// Package runners reads runners, queues and blueprint runs from the dispatcher.
package runners

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"go.temporal.io/api/serviceerror"

	"acescope/engine/ace"
	"acescope/engine/tasks/run"
	"acescope/engine/tasks/runner"
	"acescope/sources/cluster"
	runspkg "acescope/sources/runs"
)

// BlueprintRun returns the blueprint run with an id, before anything else is known of it.
func BlueprintRun(id string) runspkg.Run {
	return runspkg.Run{WorkflowID: run.WorkflowID(id), Type: run.Workflow, TaskID: id}
}

// Interval and bounds of reading.
const (
	RunnersEvery  = time.Second
	MaxRunnerRuns = 100 // listed runs of a runner, the newest
	maxWaiting    = 500 // waiting runs in the dispatcher's answer
)

// Runners is the dispatcher's newest answer and the runs of one runner.
type Runners struct {
	View     runner.View
	Answered time.Time // when it answered; zero before the first answer
	Absent   bool      // there is no dispatcher yet: no runner has registered and no run was started
	NoWorker bool      // no worker serves the dispatcher, so View is outdated
	Err      string    // why there is no newer answer

	Wanted  string        // the runner whose runs are listed, or ""
	Runs    []runspkg.Run // its current runs, then its newest
	More    bool          // it has more runs
	RunsErr string        // why the runs cannot be listed
	Updated time.Time
}

// queryDispatcher queries the dispatcher, which needs a worker.
func queryDispatcher(ctx context.Context, d cluster.Deps) (v runner.View, err error) {
	ctx, cancel := context.WithTimeout(ctx, cluster.QueryTimeout)
	defer cancel()
	id := runner.DispatcherID(cmp.Or(d.TaskQueue, ace.TaskQueue))
	answer, err := d.Client.QueryWorkflow(ctx, id, "", runner.QueryDispatcher,
		runner.ViewOptions{Pending: maxWaiting})
	if err != nil {
		return v, err
	}
	return v, answer.Get(&v)
}

// noWorker reports whether a query failed because no worker answered, although the server did.
func noWorker(err error) bool {
	var early *serviceerror.FailedPrecondition
	return errors.As(err, &early) || err != nil && cluster.TimedOut(err)
}

// currentRuns returns the ids of a runner's current runs.
func (r *Runners) currentRuns(id string) []string {
	for _, v := range r.View.Runners {
		if v.ID == id {
			return v.Runs
		}
	}
	return nil
}

// withCurrent returns the runs of a runner with its current runs first, even if the list does not have them
// yet.
func withCurrent(runs []runspkg.Run, held []string) []runspkg.Run {
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

// ServedBy returns the blueprint run that served a step; ok is false for other steps.
func ServedBy(st ace.StepState) (r runspkg.Run, ok bool) {
	if st.Served == nil || st.Served.RunID == "" {
		return r, false
	}
	return BlueprintRun(st.Served.RunID), true
}

// StepProvider returns the provider of a step, or "" if it is the provider of all steps of the run.
func StepProvider(in ace.TaskInput, st ace.StepState) string {
	switch {
	case st.Served != nil:
		return st.Served.Provider
	case len(in.Steps) == 0 || st.Phase == ace.PhasePersist || !st.Began():
		return ""
	}
	return in.ProviderOf(st.Phase)
}

// StepProviders lists the steps of a run with a provider of their own, such as "curator by cheap", or returns
// "".
func StepProviders(in ace.TaskInput) string {
	var steps []string
	for _, step := range ace.Steps() {
		if by := in.Steps[string(step)]; by != "" {
			steps = append(steps, string(step)+" by "+by)
		}
	}
	return strings.Join(steps, ", ")
}
