package flows

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine"
	"acescope/engine/ace"
	"acescope/engine/flow"
	"acescope/sources/runs"
)

type DecisionLine struct {
	WorkflowID string `json:"workflow_id"`
	flow.Decision
}

func approveCommand(a *cli.App, name string, approved bool) *cobra.Command {
	d := flow.Decision{Approved: approved}
	short := "Approve the step of a run that waits for it"
	if !approved {
		short = "Reject the step of a run that waits for approval"
	}
	cmd := &cobra.Command{
		Use:     name + " RUN",
		Short:   short,
		Example: "acescope flow " + name + " code-review-1 --comment 'read it'",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return decide(a, cmd.Context(), args[0], d)
		},
	}
	cmd.Flags().StringVar(&d.Step, "step", "", "path of the step, if several wait")
	cmd.Flags().StringVar(&d.Comment, "comment", "",
		"comment, which the history keeps and later steps can read")
	return cmd
}

func decide(a *cli.App, ctx context.Context, name string, d flow.Decision) error {
	e, err := a.Open(ctx, false)
	if err != nil {
		return err
	}
	r, err := runs.Resolve(ctx, e.Client, name)
	if err != nil {
		return err
	}
	d.By = ace.User()
	id := r.GetWorkflowExecutionInfo().GetExecution().GetWorkflowId()
	if d, err = engine.DecideFlow(ctx, e, id, "", d); errors.Is(err, flow.ErrNotWaiting) {
		return cli.NotFound("%w", err)
	} else if err != nil {
		return err
	}
	verb := "rejected"
	if d.Approved {
		verb = "approved"
	}
	return cli.Report(a, DecisionLine{id, d}, "%s %s of %s", verb, d.Step, name)
}
