package runs

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"

	"github.com/spf13/cobra"
	historypb "go.temporal.io/api/history/v1"
	workflowpb "go.temporal.io/api/workflow/v1"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine"
	"acescope/engine/ace"
	"acescope/engine/tasks/run"
	"acescope/engine/temporal/history"
	"acescope/sources/cluster"
	"acescope/sources/detail"
	"acescope/sources/experiments"
	"acescope/sources/runs"
)

func TailCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:     "tail TASK",
		Short:   "Follow a run until it closes: phases, steps of a flow, tool calls, deltas and statuses",
		Example: "acescope tail finance-e1-0042 --json | jq -c 'select(.type == \"skill\")'",
		Long:    "Follow a run until it closes: phases, steps of a flow, tool calls, deltas and statuses.\n\n" + exitHelp,
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

// tailRun writes what happens in a run and the runs that continue it.
func tailRun(a *cli.App, ctx context.Context, e *engine.Engine, workflowID, runID string) error {
	out := NewOutput(a)
	return followChain(a, ctx, e, workflowID, runID, func(runID string) func(*historypb.HistoryEvent) error {
		run := detail.NewTail(workflowID, runID)
		return func(ev *historypb.HistoryEvent) error {
			for _, c := range run.Apply(ev) {
				at := c.At.Local().Format(clockTime)
				out.Line(c, "%s  %-7s  %s", at, c.Type, c.Text())
			}
			return out.Flush()
		}
	})
}

// followChain follows a run and the runs that continue it until the last one closes. reader returns the function that
// reads the events of a run. The error says why the last run did not complete, or why it cannot be followed.
func followChain(
	a *cli.App, ctx context.Context, e *engine.Engine, workflowID, runID string,
	reader func(runID string) func(*historypb.HistoryEvent) error,
) error {
	var failed error
	for next := runID; next != ""; {
		runID, next = next, ""
		read := reader(runID)
		put := func(ev *historypb.HistoryEvent) error {
			next = history.NextRun(ev)
			failed = cmp.Or(endOf(workflowID, ev), failed)
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

// endOf returns why a run did not complete, given its last event; nil for other events. The workflow of a blueprint
// run completes with the failure of the program as its result.
func endOf(workflowID string, e *historypb.HistoryEvent) error {
	fact, _ := history.Closing(e)
	var r struct {
		Status ace.Status `json:"status"`
		Error  string     `json:"error"`
	}
	if strings.HasPrefix(workflowID, run.IDPrefix) &&
		json.Unmarshal(history.JSON(e.GetWorkflowExecutionCompletedEventAttributes().GetResult()), &r) == nil {
		return closedError(workflowID, r.Status, &ace.Failure{Message: r.Error})
	}
	return closedError(workflowID, fact.Status, fact.Failure)
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
