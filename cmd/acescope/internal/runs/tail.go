package runs

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	historypb "go.temporal.io/api/history/v1"
	workflowpb "go.temporal.io/api/workflow/v1"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine"
	"acescope/engine/ace"
	"acescope/engine/temporal/history"
	"acescope/sources/cluster"
	"acescope/sources/experiments"
	"acescope/sources/histories"
	"acescope/sources/runs"
)

func TailCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:     "tail TASK",
		Short:   "Follow a run: every phase, skill, delta and status change, until it closes",
		Example: "acescope tail finance-e1-0042 --json | jq -c 'select(.type == \"skill\")'",
		Args:    cobra.ExactArgs(1),
		RunE:    func(cmd *cobra.Command, args []string) error { return Tail(a, cmd.Context(), args[0]) },

		ValidArgsFunction: a.CompleteIDs(false),
	}
}

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
	workflowID, runID := info.GetExecution().GetWorkflowId(), info.GetExecution().GetRunId()
	if info.GetType().GetName() == ace.ExperimentWorkflow {
		return tailExperiment(a, ctx, e, info)
	}
	return tailTask(a, ctx, e, workflowID, runID)
}

func tailTask(a *cli.App, ctx context.Context, e *engine.Engine, workflowID, runID string) error {
	out := cli.NewLines(a.Out)
	for next := runID; next != ""; {
		runID, next = next, ""
		folder := histories.NewFolder(workflowID, runID)
		err := cluster.Follow(ctx, e.Client, e.Namespace(), workflowID, runID, func(p0 error) { away(a, p0) }, func(ev *historypb.HistoryEvent) error {
			for _, c := range folder.Apply(ev) {
				if err := putChange(a, out, c); err != nil {
					return err
				}
			}
			next = history.NextRun(ev) // an observed run that is long goes on under another id
			return out.Flush()
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func putChange(a *cli.App, out *cli.Lines, c histories.Change) error {
	if a.JSON {
		return out.Put(c)
	}
	_, err := fmt.Fprintf(out.Buf, "%s  %-6s  %s\n", c.At.Local().Format("15:04:05.000"), c.Type, cli.SafeText(c.Text()))
	return err
}

// tailExperiment tells each task that ends, from the first of the experiment's runs on, and
// at last the outcome.
func tailExperiment(a *cli.App, ctx context.Context, e *engine.Engine, run *workflowpb.WorkflowExecutionInfo) error {
	out := cli.NewLines(a.Out)
	var writeErr error
	state, runID, err := experiments.FollowWhole(ctx, e.Client, e.Namespace(), run, func(p0 error) { away(a, p0) }, func(in ace.ExperimentInput, f experiments.Finished) {
		if a.JSON {
			writeErr = out.Write(cli.FinishedLine(f, in))
			return
		}
		_, writeErr = fmt.Fprintf(a.Out, "%s  %-24s  %-9s  answer %s\n", f.At.Local().Format("15:04:05.000"),
			cli.SafeText(f.Result.TaskID), f.Result.ExitStatus, cli.SafeText(f.Result.Answer))
	})
	if err == nil {
		err = writeErr
	}
	if err != nil {
		return err
	}
	sum := summaryOf(state)
	sum.WorkflowID, sum.RunID = run.GetExecution().GetWorkflowId(), runID
	return printSummary(a, sum)
}

// away tells on standard error when the server goes and comes back.
func away(a *cli.App, err error) {
	if err == nil {
		fmt.Fprintln(a.Err, "acescope: the server is back")
		return
	}
	fmt.Fprintln(a.Err, "acescope: the server is away, trying again: "+cli.OneLine(err))
}
