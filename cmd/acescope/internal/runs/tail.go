package runs

import (
	"cmp"
	"context"

	"github.com/spf13/cobra"
	historypb "go.temporal.io/api/history/v1"
	workflowpb "go.temporal.io/api/workflow/v1"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine"
	"acescope/engine/ace"
	"acescope/engine/temporal/history"
	"acescope/sources/cluster"
	"acescope/sources/detail"
	"acescope/sources/experiments"
	"acescope/sources/runs"
)

func TailCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:     "tail TASK",
		Short:   "Follow a run until it closes: phases, tool calls, deltas and statuses",
		Example: "acescope tail finance-e1-0042 --json | jq -c 'select(.type == \"skill\")'",
		Args:    cobra.ExactArgs(1),
		RunE:    func(cmd *cobra.Command, args []string) error { return Tail(a, cmd.Context(), args[0]) },

		ValidArgsFunction: a.CompleteIDs(false),
	}
}

// Tail follows a run or an experiment until it closes.
func Tail(a *cli.App, ctx context.Context, id string) error {
	e, done, err := a.OpenFollowing(ctx)
	if err != nil {
		return err
	}
	defer done()
	run, err := runs.Resolve(ctx, e.Client, id)
	if err != nil {
		return err
	}
	info := run.GetWorkflowExecutionInfo()
	if info.GetType().GetName() == ace.ExperimentWorkflow {
		return tailExperiment(a, ctx, e, info)
	}
	return tailRun(a, ctx, e, info.GetExecution().GetWorkflowId(), info.GetExecution().GetRunId())
}

// tailRun follows a run and the runs that continue it.
func tailRun(a *cli.App, ctx context.Context, e *engine.Engine, workflowID, runID string) error {
	out := NewOutput(a)
	for next := runID; next != ""; {
		runID, next = next, ""
		run := detail.NewTail(workflowID, runID)
		put := func(ev *historypb.HistoryEvent) error {
			for _, c := range run.Apply(ev) {
				at := c.At.Local().Format(clockTime)
				out.Line(c, "%s  %-7s  %s", at, c.Type, c.Text())
			}
			next = history.NextRun(ev)
			return out.Flush()
		}
		err := cluster.Follow(ctx, e.Client, e.Namespace(), workflowID, runID, reportConnection(a), put)
		if err != nil {
			return err
		}
	}
	return nil
}

// clockTime is the layout of the time of day in text output.
const clockTime = "15:04:05.000"

// tailExperiment writes each task that ends, from the first run of the experiment on, and the summary.
func tailExperiment(
	a *cli.App, ctx context.Context, e *engine.Engine, run *workflowpb.WorkflowExecutionInfo,
) error {
	out := NewOutput(a)
	var writeErr error
	put := func(in ace.ExperimentInput, f experiments.Finished) {
		out.Line(cli.FinishedLine(f, in), "%s  %-24s  %-9s  answer %s",
			f.At.Local().Format(clockTime), f.Result.TaskID, f.Result.ExitStatus, f.Result.Answer)
		writeErr = out.Flush()
	}
	state, runID, err := experiments.FollowWhole(ctx, e.Client, e.Namespace(), run, reportConnection(a), put)
	if err := cmp.Or(err, writeErr); err != nil {
		return err
	}
	return printSummary(a, state, run.GetExecution().GetWorkflowId(), runID, 0)
}

// reportConnection returns a function that writes to standard error when the server becomes unreachable,
// and, called with nil, when it is reachable again.
func reportConnection(a *cli.App) func(error) {
	return func(err error) {
		if err == nil {
			Warn(a, "the server is reachable again")
			return
		}
		Warn(a, "the server is unreachable, retrying: %s", cli.OneLine(err))
	}
}
