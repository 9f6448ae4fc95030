package runs

import (
	"fmt"

	"github.com/spf13/cobra"
	enumspb "go.temporal.io/api/enums/v1"

	"acescope/cmd/acescope/internal/cli"
)

// CancelLine says that a cancellation was asked for.
type CancelLine struct {
	Type       string `json:"type"` // cancel
	WorkflowID string `json:"workflow_id"`
	RunID      string `json:"run_id"`
}

func CancelCommand(a *cli.App) *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "cancel TASK",
		Short: "Ask a run or an experiment to end; what it has learnt stays",
		Long: "Asks the run to end; a step under way is told within a second. On a terminal it asks whether this is meant; scripts need\n" +
			"no --yes, since a run that was asked by mistake has lost no more than its time.",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.CompleteIDs(false),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			e, done, err := a.OpenReadOnly(ctx)
			if err != nil {
				return err
			}
			defer done()
			run, err := cli.ResolveRun(ctx, e.Client, args[0])
			if err != nil {
				return err
			}
			info := run.GetWorkflowExecutionInfo()
			id, runID := info.GetExecution().GetWorkflowId(), info.GetExecution().GetRunId()
			if info.GetStatus() != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING {
				return fmt.Errorf("%s is closed already (%s)", id, info.GetStatus())
			}
			if err := a.ConfirmOnTerminal(ctx, preparedCancel(id, runID), yes); err != nil {
				return err
			}
			if err := e.Cancel(ctx, id, runID); err != nil {
				return err
			}
			if a.JSON {
				return cli.NewLines(a.Out).Write(CancelLine{"cancel", id, runID})
			}
			_, err = fmt.Fprintf(a.Out, "cancellation of %s requested\n", id)
			return err
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}
