package runs

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	historypb "go.temporal.io/api/history/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/client"
	"golang.org/x/sync/errgroup"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine"
	"acescope/engine/ace"
	"acescope/engine/tasks/run"
	"acescope/engine/temporal/history"
	"acescope/sources/cluster"
	"acescope/sources/detail"
	"acescope/sources/experiments"
	"acescope/sources/histories"
	"acescope/sources/runs"
)

func TailCommand(a *cli.App) *cobra.Command {
	var query string
	var exitStatus bool
	cmd := &cobra.Command{
		Use:   "tail TASK | -q QUERY",
		Short: "Follow runs: phases, steps, calls of models and tools, deltas and statuses",
		Example: "acescope tail finance-e1-0042 --json | jq -c 'select(.type == \"skill\")'\n" +
			"acescope tail -q experiment=finance --exit-status",
		Long: "Follow a run until it closes: phases, steps of a flow, tool calls, deltas and statuses. Of a workflow of any\n" +
			"other type: activities, child workflows, timers, signals, updates, requests of agents to models and their calls\n" +
			"of tools, with tokens and cost, and text as a model streams it.\n\n" +
			exitHelp + "\n\nWith --query follow every matching run that is open or starts later, until ctrl+c.\n" +
			"With --exit-status end when at least one run matches and all of them have closed; the exit code\n" +
			"is 1 unless all completed.",
		Args: func(cmd *cobra.Command, args []string) error {
			if query != "" {
				return cobra.NoArgs(cmd, args)
			}
			return cobra.ExactArgs(1)(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case query != "":
				filter, err := cli.FilterOf(query)
				if err != nil {
					return err
				}
				return tailQuery(a, cmd.Context(), filter, exitStatus)
			case exitStatus:
				return cli.UsageError("--exit-status needs --query; \"tail TASK\" always has that exit code")
			}
			return Tail(a, cmd.Context(), args[0])
		},
	}
	cmd.Flags().StringVarP(&query, "query", "q", "", "follow the runs that match: "+cli.FilterHelp)
	cmd.Flags().BoolVar(&exitStatus, "exit-status", false,
		"with --query: end when all matching runs have closed")
	return cmd
}

// Tail follows a run or an experiment until it closes.
func Tail(a *cli.App, ctx context.Context, id string) error {
	e, err := a.OpenFollowing(ctx)
	if err != nil {
		return err
	}
	found, err := runs.Resolve(ctx, e.Client, id)
	if err != nil {
		return err
	}
	info := found.GetWorkflowExecutionInfo()
	if info.GetType().GetName() == ace.ExperimentWorkflow {
		return tailExperiment(a, ctx, e, info)
	}
	return tailRun(a, ctx, e, info.GetExecution().GetWorkflowId(), info.GetExecution().GetRunId())
}

// runTail writes what happens in a run and the runs that continue it.
type runTail struct {
	mu  sync.Mutex // guards the fields below
	out *cli.Lines
	run *detail.Tail
	id  runs.ID // of run
}

func tailRun(a *cli.App, ctx context.Context, e *engine.Engine, workflowID, runID string) error {
	t := &runTail{out: cli.NewLines(a)}
	ctx, stop := context.WithCancel(ctx)
	var attempts sync.WaitGroup
	defer attempts.Wait()
	defer stop()
	attempts.Go(func() { t.followAttempts(ctx, e.Client) })
	return followChain(a, ctx, e, workflowID, runID, func(runID string) func(*historypb.HistoryEvent) error {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.id = runs.ID{WorkflowID: workflowID, RunID: runID}
		t.run = detail.NewTail(workflowID, runID)
		return func(ev *historypb.HistoryEvent) error {
			t.mu.Lock()
			defer t.mu.Unlock()
			return t.write(t.run.Apply(ev))
		}
	})
}

// write writes changes. The lock must be held.
func (t *runTail) write(changes []histories.Change) error {
	for _, c := range changes {
		t.out.Line(c, "%s  %-7s  %s", c.At.Local().Format(clockTime), c.Type, c.Text())
	}
	return t.out.Flush()
}

// followAttempts writes the failed attempts of open activities, which the history does not have, until ctx
// ends.
func (t *runTail) followAttempts(ctx context.Context, c client.Client) {
	for cluster.Sleep(ctx, histories.DescribeEvery) == nil {
		t.mu.Lock()
		run, id := t.run, t.id
		open := run != nil && run.Open()
		t.mu.Unlock()
		if !open {
			continue
		}
		r, err := c.DescribeWorkflowExecution(ctx, id.WorkflowID, id.RunID)
		if err != nil {
			continue // the follower reports an unreachable server
		}
		t.mu.Lock()
		_ = t.write(run.Pending(r)) // the next event returns the error
		t.mu.Unlock()
	}
}

// maxTails bounds the runs that are followed at the same time. Others wait.
const maxTails = 64

// queryTail writes what happens in the runs that match a query.
type queryTail struct {
	*engine.Engine
	out   *cli.Lines
	tails *errgroup.Group
	slots chan struct{}

	mu       sync.Mutex          // guards the fields below and out
	followed map[string]bool     // by run ID
	ends     map[string]runs.Run // the closed runs, by run ID
}

// tailQuery writes what happens in the runs that match a query until it is interrupted. With exitStatus it
// ends when they have closed, and returns which of them did not complete.
func tailQuery(a *cli.App, interrupted context.Context, query string, exitStatus bool) error {
	e, err := a.OpenFollowing(interrupted)
	if err != nil {
		return err
	}
	tails, ctx := errgroup.WithContext(interrupted)
	t := &queryTail{Engine: e, out: cli.NewLines(a), tails: tails, slots: make(chan struct{}, maxTails),
		followed: map[string]bool{}, ends: map[string]runs.Run{}}
	var failed error
	var waits bool
	ended := func(open int) (end bool, err error) {
		t.mu.Lock()
		defer t.mu.Unlock()
		if exitStatus && open == 0 && len(t.ends) == len(t.followed) {
			end, failed, err = exitStatusOf(ctx, e.Client, query, t.ends)
		}
		if !end && err == nil && len(t.followed) == 0 && !waits {
			waits = true
			cli.Warn(a, "no open run matches now; waiting for one that does")
		}
		return end, err
	}
	err = watchRuns(a, ctx, e, query, func(r runs.Run) error { t.add(ctx, r); return nil }, ended)
	if err != nil {
		tails.Go(func() error { return err })
	}
	err = tails.Wait()
	switch {
	case interrupted.Err() == nil:
		return cmp.Or(err, failed)
	case exitStatus:
		return interrupted.Err()
	}
	return nil
}

// add follows a run, unless it is followed already.
func (t *queryTail) add(ctx context.Context, r runs.Run) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.followed[r.RunID] {
		t.followed[r.RunID] = true
		t.tails.Go(func() error { return t.follow(ctx, r) })
	}
}

func (t *queryTail) follow(ctx context.Context, r runs.Run) error {
	select {
	case t.slots <- struct{}{}:
	case <-ctx.Done():
		return nil
	}
	defer func() { <-t.slots }()
	run := detail.NewTail(r.WorkflowID, r.RunID)
	err := cluster.Follow(ctx, t.Client, t.Namespace(), r.WorkflowID, r.RunID, nil,
		func(ev *historypb.HistoryEvent) error {
			t.mu.Lock()
			defer t.mu.Unlock()
			for _, c := range run.Apply(ev) {
				if c.Type == histories.ChangeStatus {
					r.Status = c.Status
				}
				t.out.Line(c, "%s  %-24s  %-7s  %s", c.At.Local().Format(clockTime),
					cmp.Or(c.TaskID, c.WorkflowID), c.Type, c.Text())
			}
			return t.out.Flush()
		})
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ends[r.RunID] = r
	return err
}

// exitStatusOf reports whether at least one run matches a query or has been followed, and all have closed.
// failed names those that did not complete. followed holds the closed runs by run ID; they no longer need
// to match.
func exitStatusOf(
	ctx context.Context, c client.Client, query string, followed map[string]runs.Run,
) (ended bool, failed, err error) {
	var count exitCounter
	for _, r := range followed {
		count.add(r)
	}
	ended = len(followed) > 0
	err = runs.ListNewest(ctx, c, query, 0, func(r runs.Run) error {
		if _, known := followed[r.RunID]; known {
			return nil
		}
		if ended = !r.Open(); !ended {
			return errStopped
		}
		count.add(r)
		return nil
	})
	if errors.Is(err, errStopped) {
		err = nil
	}
	return ended, count.err(), err
}

// exitCounter counts the runs of a list that did not complete.
type exitCounter struct {
	all, bad int
	named    []string
}

const maxNamed = 5 // runs that an error names

func (n *exitCounter) add(r runs.Run) {
	n.all++
	if err := ClosedError(r.WorkflowID, r.Status, nil); err != nil {
		if n.bad++; n.bad <= maxNamed {
			n.named = append(n.named, err.Error())
		}
	}
}

// err returns nil if all runs completed.
func (n *exitCounter) err() error {
	switch {
	case n.bad == 0:
		return nil
	case n.bad > maxNamed:
		n.named = append(n.named, "…")
	}
	all := ace.Count(n.all, "run")
	return fmt.Errorf("%s of %s did not complete: %s", ace.Number(n.bad), all, strings.Join(n.named, "; "))
}

// followChain follows a run and the runs that continue it until the last one closes. reader returns the
// function that reads the events of a run. The error says why the last run did not complete, or why it cannot
// be followed.
func followChain(
	a *cli.App, ctx context.Context, e *engine.Engine, workflowID, runID string,
	reader func(runID string) func(*historypb.HistoryEvent) error,
) error {
	var failed error
	for next := runID; next != ""; {
		runID, next = next, ""
		read := reader(runID)
		var task history.WorkflowTask
		put := func(ev *historypb.HistoryEvent) error {
			next = history.NextRun(ev)
			failed = cmp.Or(endOf(workflowID, ev, &task), failed)
			return read(ev)
		}
		err := cluster.Follow(ctx, e.Client, e.Namespace(), workflowID, runID, ReportConnection(a), put)
		if err != nil {
			return err
		}
	}
	return failed
}

// exitHelp describes the exit code of commands that wait for a run.
const exitHelp = "The command exits with 1 if the run fails, times out or is canceled or terminated, and with 0 if it\n" +
	"completes. A wrong answer is not a failure."

// endOf returns why a run did not complete, given its events in order; nil before the last event. The
// workflow of a blueprint run completes with the failure of the program as its result.
func endOf(workflowID string, e *historypb.HistoryEvent, task *history.WorkflowTask) error {
	fact, _ := task.Closing(e)
	var r struct {
		Status ace.Status `json:"status"`
		Error  string     `json:"error"`
	}
	if strings.HasPrefix(workflowID, run.IDPrefix) &&
		json.Unmarshal(history.JSON(e.GetWorkflowExecutionCompletedEventAttributes().GetResult()),
			&r) == nil {
		return ClosedError(workflowID, r.Status, &ace.Failure{Message: r.Error})
	}
	return ClosedError(workflowID, fact.Status, fact.Failure)
}

// clockTime is the layout of the time of day in text output.
const clockTime = "15:04:05.000"

// tailExperiment writes each task that ends, from the first run of the experiment on, and the summary.
func tailExperiment(
	a *cli.App, ctx context.Context, e *engine.Engine, run *workflowpb.WorkflowExecutionInfo,
) error {
	defer reportReviews(a, ctx, e, run.GetExecution().GetWorkflowId())()
	out := cli.NewLines(a)
	var writeErr error
	put := func(in ace.ExperimentInput, f experiments.Finished) {
		out.Line(cli.FinishedLine(f, in), "%s  %-24s  %-9s  %-9s  answer %s",
			f.At.Local().Format(clockTime), f.Result.TaskID, f.Status, f.Verdict, f.Result.Answer)
		writeErr = out.Flush()
	}
	state, runID, err := experiments.FollowWhole(ctx, e.Client, e.Namespace(), run, ReportConnection(a), put)
	if err := cmp.Or(err, writeErr); err != nil {
		return err
	}
	return printSummary(a, state, run.GetExecution().GetWorkflowId(), runID, 0)
}

// ReportConnection returns a function that writes to standard error when the server becomes unreachable,
// and, called with nil, when it is reachable again.
func ReportConnection(a *cli.App) func(error) {
	return func(err error) {
		if err == nil {
			cli.Warn(a, "the server is reachable again")
			return
		}
		cli.Warn(a, "the server is unreachable, retrying: %s", cli.OneLine(err))
	}
}
