package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	historypb "go.temporal.io/api/history/v1"
	workflowpb "go.temporal.io/api/workflow/v1"

	"acescope/engine"
	"acescope/engine/ace"
	"acescope/engine/history"
	"acescope/sources"
)

func (a *app) tailCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "tail TASK",
		Short:   "Follow a run: every phase, skill, delta and status change, until it closes",
		Example: "acescope tail finance-e1-0042 --json | jq -c 'select(.type == \"skill\")'",
		Args:    cobra.ExactArgs(1),
		RunE:    func(cmd *cobra.Command, args []string) error { return a.tail(cmd.Context(), args[0]) },

		ValidArgsFunction: a.completeIDs(false),
	}
}

// observeCommand holds the hooks' commands, and the names that the design documents use.
func (a *app) observeCommand() *cobra.Command {
	observe := &cobra.Command{Use: "observe", Short: "Observe agents and runs that happen elsewhere",
		Long: "Claude Code tells acescope what it does through hooks, which install adds to its settings. They leave it in a spool on\n" +
			"this machine, from which any acescope process that serves takes it to a run for each session (docs/observe.md)."}
	temporal := &cobra.Command{Use: "temporal", Short: "Observe runs that Temporal holds"}
	var task string
	tail := &cobra.Command{
		Use:   "tail --task-id TASK",
		Short: "The same as acescope tail TASK",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return a.tail(cmd.Context(), task) },
	}
	tail.Flags().StringVar(&task, "task-id", "", "task to follow")
	_ = tail.MarkFlagRequired("task-id")
	temporal.AddCommand(tail, a.observeReplay())
	observe.AddCommand(a.observeInstall(), a.observeUninstall(), a.observeStatus(), temporal)
	return observe
}

// observeReplay is verify by the name that the design documents use.
func (a *app) observeReplay() *cobra.Command {
	cmd := a.verifyCommand("replay")
	cmd.Use, cmd.Short, cmd.Args = "replay --task-id TASK", "The same as acescope replay verify TASK", cobra.NoArgs
	var task string
	cmd.Flags().StringVar(&task, "task-id", "", "task to verify")
	_ = cmd.MarkFlagRequired("task-id")
	verify := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return verify(cmd, []string{task}) }
	return cmd
}

func (a *app) tail(ctx context.Context, id string) error {
	e, done, err := a.watch(ctx)
	if err != nil {
		return err
	}
	defer done()
	run, err := sources.Resolve(ctx, e.Client, id)
	if err != nil {
		return err
	}
	info := run.GetWorkflowExecutionInfo()
	workflowID, runID := info.GetExecution().GetWorkflowId(), info.GetExecution().GetRunId()
	if info.GetType().GetName() == ace.ExperimentWorkflow {
		return a.tailExperiment(ctx, e, info)
	}
	return a.tailTask(ctx, e, workflowID, runID)
}

func (a *app) tailTask(ctx context.Context, e *engine.Engine, workflowID, runID string) error {
	out := newLines(a.out)
	for next := runID; next != ""; {
		runID, next = next, ""
		folder := sources.NewFolder(workflowID, runID)
		err := sources.Follow(ctx, e.Client, e.Namespace(), workflowID, runID, a.away, func(ev *historypb.HistoryEvent) error {
			for _, c := range folder.Apply(ev) {
				if err := a.putChange(out, c); err != nil {
					return err
				}
			}
			next = history.NextRun(ev) // an observed run that is long goes on under another id
			return out.flush()
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (a *app) putChange(out *lines, c sources.Change) error {
	if a.json {
		return out.put(c)
	}
	_, err := fmt.Fprintf(out.buf, "%s  %-6s  %s\n", c.At.Local().Format("15:04:05.000"), c.Type, safe(c.Text()))
	return err
}

// tailExperiment tells each task that ends, from the first of the experiment's runs on, and
// at last the outcome.
func (a *app) tailExperiment(ctx context.Context, e *engine.Engine, run *workflowpb.WorkflowExecutionInfo) error {
	out := newLines(a.out)
	var writeErr error
	state, runID, err := sources.FollowWhole(ctx, e.Client, e.Namespace(), run, a.away, func(in ace.ExperimentInput, f sources.Finished) {
		if a.json {
			writeErr = out.write(finishedLine(f, in))
			return
		}
		_, writeErr = fmt.Fprintf(a.out, "%s  %-24s  %-9s  answer %s\n", f.At.Local().Format("15:04:05.000"),
			safe(f.Result.TaskID), f.Result.ExitStatus, safe(f.Result.Answer))
	})
	if err == nil {
		err = writeErr
	}
	if err != nil {
		return err
	}
	sum := summaryOf(state)
	sum.WorkflowID, sum.RunID = run.GetExecution().GetWorkflowId(), runID
	return a.printSummary(sum)
}

// away tells on standard error when the server goes and comes back.
func (a *app) away(err error) {
	if err == nil {
		fmt.Fprintln(a.err, "acescope: the server is back")
		return
	}
	fmt.Fprintln(a.err, "acescope: the server is away, trying again: "+oneLine(err))
}
