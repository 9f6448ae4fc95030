package sources

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"acescope/engine/ace"
	"acescope/engine/run"
	"acescope/engine/runner"
)

// PartRunners is the runners, and the runs that wait for one.
const PartRunners Part = "runners"

// Types of what is known of runners, so that screens need no other package.
type (
	RunnersView  = runner.View
	RunnerView   = runner.RunnerView
	RunnerStatus = runner.Status
	RunQueue     = runner.QueueView
	WaitingRun   = runner.PendingView
	RunDemands   = runner.Demands
)

// Statuses of runners.
const (
	RunnerOnline   = runner.Online
	RunnerStale    = runner.StaleNow
	RunnerDraining = runner.Draining
	RunnerGone     = runner.Gone
)

// RunWorkflow is the type of the workflow of a run of a blueprint.
const RunWorkflow = run.Workflow

// BlueprintRun is a run of a blueprint by its run id, before more is known of it.
func BlueprintRun(id string) Run {
	return Run{WorkflowID: run.WorkflowID(id), Type: run.Workflow, TaskID: id}
}

// BlueprintRunID is the id of a run of a blueprint, "" for other runs.
func BlueprintRunID(workflowID string) string { return run.IDOf(workflowID) }

// Rhythm and bounds of what is read of runners.
const (
	runnersEvery = time.Second
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

	Wanted  string // the runner whose runs are listed, "" for none
	Runs    []Run  // of it, those that it has first, then the newest
	More    bool   // it had more
	RunsErr string // why they cannot be listed
	Updated time.Time
}

// ReadRunner wants the runs of a runner; "" wants none. It is called for each row that the
// cursor passes.
func (s *Store) ReadRunner(id string) {
	s.mu.Lock()
	changed := s.runner != id
	s.runner = id
	s.mu.Unlock()
	if changed {
		s.again(PartRunners)
	}
}

// readRunners asks the dispatcher, again and again until ctx ends.
func (s *Store) readRunners(ctx context.Context, d Deps) {
	if s.Snapshot().Connection.Mode == ModeFile {
		return
	}
	for ctx.Err() == nil {
		var wg sync.WaitGroup
		wg.Go(func() { s.askDispatcher(ctx, d) })
		wg.Go(func() { s.listRunnerRuns(ctx, d) })
		wg.Wait()
		for s.rest(ctx, runnersEvery) == nil && s.Snapshot().Runs.Paused {
		}
	}
}

// updateRunners publishes what fn changes, unless ctx has ended: it is about another wish
// then.
func (s *Store) updateRunners(ctx context.Context, fn func(*Runners)) {
	if ctx.Err() != nil {
		return
	}
	s.update(func(snap *Snapshot) {
		var next Runners
		if snap.Runners != nil {
			next = *snap.Runners
		}
		fn(&next)
		next.Updated = s.now()
		snap.Runners = &next
	})
}

func (s *Store) askDispatcher(ctx context.Context, d Deps) {
	view, err := AskDispatcher(ctx, d.Client)
	var none *serviceerror.NotFound
	s.updateRunners(ctx, func(r *Runners) {
		r.Absent, r.Deaf, r.Err = errors.As(err, &none), deaf(err), ""
		switch {
		case err == nil:
			r.View, r.Answered = view, s.now()
		case r.Absent:
			r.View, r.Answered = RunnersView{}, time.Time{}
		default:
			r.Err = plainError(err)
		}
	})
}

// AskDispatcher asks the dispatcher what it knows; a worker must serve it.
func AskDispatcher(ctx context.Context, c client.Client) (v RunnersView, err error) {
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	answer, err := c.QueryWorkflow(ctx, runner.DispatcherID, "", runner.QueryDispatcher, runner.ViewOptions{Pending: maxWaiting})
	if err != nil {
		return v, err
	}
	return v, answer.Get(&v)
}

// deaf tells whether a query failed because no worker answers, though the server does.
func deaf(err error) bool {
	var early *serviceerror.FailedPrecondition
	return errors.As(err, &early) || err != nil && tookTooLong(err)
}

// listRunnerRuns reads the runs of the runner that is wanted.
func (s *Store) listRunnerRuns(ctx context.Context, d Deps) {
	s.mu.Lock()
	id := s.runner
	s.mu.Unlock()
	var runs []Run
	var err error
	if id != "" {
		ctx, cancel := context.WithTimeout(ctx, callTimeout)
		err = List(ctx, d.Client, runnerRunsQuery(id), MaxRunnerRuns+1, func(r Run) error {
			runs = append(runs, r)
			return nil
		})
		cancel()
	}
	s.updateRunners(ctx, func(r *Runners) {
		if err == nil {
			r.Runs, r.More, r.RunsErr = runs[:min(len(runs), MaxRunnerRuns)], len(runs) > MaxRunnerRuns, ""
		} else if r.RunsErr = plainError(err); r.Wanted != id {
			r.Runs, r.More = nil, false
		}
		r.Wanted, r.Runs = id, withHeld(r.Runs, r.held(id))
	})
}

func runnerRunsQuery(id string) string {
	return "WorkflowType = " + strconv.Quote(run.Workflow) + " AND " + ace.AttrRunner + " = " + Quote(id)
}

// held are the ids of the runs that a runner has now.
func (r *Runners) held(id string) []string {
	for _, one := range r.View.Runners {
		if one.ID == id {
			return one.Runs
		}
	}
	return nil
}

// withHeld is a runner's runs with those in front that it has now, also where the list does
// not know them yet.
func withHeld(runs []Run, held []string) []Run {
	var now, others []Run
	for _, id := range held {
		at := slices.IndexFunc(runs, func(r Run) bool { return r.WorkflowID == run.WorkflowID(id) })
		if at >= 0 {
			now = append(now, runs[at])
			continue
		}
		now = append(now, BlueprintRun(id))
	}
	for _, r := range runs {
		if !slices.ContainsFunc(now, func(n Run) bool { return n.WorkflowID == r.WorkflowID }) {
			others = append(others, r)
		}
	}
	return append(now, others...)
}
