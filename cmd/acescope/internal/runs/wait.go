package runs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	historypb "go.temporal.io/api/history/v1"
	"google.golang.org/protobuf/types/known/timestamppb"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine/temporal/history"
	"acescope/sources/runs"
)

func WaitCommand(a *cli.App) *cobra.Command {
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "wait RUN|EXPERIMENT...",
		Short: "Wait until runs and experiments have closed",
		Long: "Wait until runs and experiments have closed, and write a line for each, in the order of the\n" +
			"arguments. The name of a group (acescope run --repeats) stands for its experiments.\n\n" +
			exitHelp,
		Example: "acescope run --dataset train.jsonl --experiment night --detach && acescope wait night --timeout 8h",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, ids []string) error {
			if timeout < 0 {
				return cli.UsageError("--timeout %s: must not be negative", timeout)
			}
			return wait(a, cmd.Context(), ids, timeout)
		},
	}
	cmd.Flags().DurationVar(&timeout, "timeout", 0,
		"fail if they have not closed after this time (default: wait)")
	return cmd
}

func wait(a *cli.App, ctx context.Context, ids []string, timeout time.Duration) error {
	e, err := a.OpenFollowing(ctx)
	if err != nil {
		return err
	}
	waiting := ctx
	if timeout > 0 {
		var stop context.CancelFunc
		waiting, stop = context.WithTimeout(ctx, timeout)
		defer stop()
	}
	out := cli.NewLines(a)
	var awaited []named
	for i, id := range ids {
		found, err := findAll(ctx, e.Client, ids[i:i+1])
		task := func(experiment string) bool { return strings.HasPrefix(id, experiment+"-e") }
		if err != nil && slices.ContainsFunc(ids[:i], task) { // the experiment before it may start it
			found, err = []named{{name: id}}, nil
		}
		if err != nil {
			return err
		}
		awaited = append(awaited, found...)
	}
	var failed []error
	for _, r := range awaited {
		if r.info == nil {
			found, err := runs.Resolve(ctx, e.Client, r.name)
			if err != nil {
				return err
			}
			r.info = found.GetWorkflowExecutionInfo()
		}
		var task history.WorkflowTask
		watch := func(string) func(*historypb.HistoryEvent) error {
			task = history.WorkflowTask{}
			return func(ev *historypb.HistoryEvent) error {
				if task.Apply(ev) {
					cli.Warn(a, "%s: its workflow task fails and is retried: %s", r.name,
						history.FailureOf(task.Failure).Message)
				}
				return nil
			}
		}
		exec := r.info.GetExecution()
		stop := reportReviews(a, waiting, e, exec.GetWorkflowId())
		ended := followChain(a, waiting, e, exec.GetWorkflowId(), exec.GetRunId(), watch)
		stop()
		if waiting.Err() != nil && ctx.Err() == nil {
			return fmt.Errorf("%s is still running after %s%s", r.name, timeout,
				task.Trouble(timestamppb.Now()))
		}
		found, err := runs.Resolve(ctx, e.Client, r.name)
		if err != nil {
			return err
		}
		l := cli.ListLine(runs.Of(found.GetWorkflowExecutionInfo()))
		out.Line(l, "%s  %s  %s", r.name, l.Status, l.Verdict)
		if err := out.Flush(); err != nil {
			return err
		}
		failed = append(failed, ended)
	}
	return errors.Join(failed...)
}
