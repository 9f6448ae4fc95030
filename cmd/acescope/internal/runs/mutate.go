package runs

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	enumspb "go.temporal.io/api/enums/v1"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine"
	"acescope/engine/ace"
	"acescope/engine/temporal/fork"
	"acescope/views/console"
)

// DoneLine says that something was done to a run.
type DoneLine struct {
	Type       string `json:"type"` // terminate, signal or reset
	WorkflowID string `json:"workflow_id"`
	RunID      string `json:"run_id"`
	// Of a reset: the run that goes on, and the last event that it keeps.
	NewRunID string `json:"new_run_id,omitempty"`
	Kept     int64  `json:"kept_event,omitempty"`
	Signal   string `json:"signal,omitempty"`
	Reason   string `json:"reason,omitempty"`
}

// frozen is the run that a command names, as it was when the command began.
type frozen struct {
	console.Target
	status enumspb.WorkflowExecutionStatus
}

func (f frozen) mustBeOpen() error {
	if f.status != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING {
		return fmt.Errorf("%s is closed already (%s)", f.WorkflowID, f.status)
	}
	return nil
}

// mutate resolves the run, prepares what is to be done to it, asks, and does it.
func mutate(a *cli.App, ctx context.Context, name string, yes bool, line *DoneLine,
	prepare func(*engine.Engine, frozen) (console.Prepared, error)) error {
	e, done, err := a.OpenReadOnly(ctx)
	if err != nil {
		return err
	}
	defer done()
	run, err := cli.ResolveRun(ctx, e.Client, name)
	if err != nil {
		return err
	}
	info := run.GetWorkflowExecutionInfo()
	f := frozen{console.Target{WorkflowID: info.GetExecution().GetWorkflowId(), RunID: info.GetExecution().GetRunId()}, info.GetStatus()}
	p, err := prepare(e, f)
	if err != nil {
		return err
	}
	if err := a.Confirm(ctx, p, yes); err != nil {
		return err
	}
	said, anew, err := p.Do(ctx)
	if err != nil {
		return err
	}
	if a.JSON {
		line.WorkflowID, line.RunID, line.NewRunID = f.WorkflowID, f.RunID, anew.RunID
		return cli.NewLines(a.Out).Write(line)
	}
	was := "run"
	if anew.RunID != "" {
		was = "it was run"
	}
	_, err = fmt.Fprintf(a.Out, "%s (%s %s)\n", said, was, f.RunID)
	return err
}

func TerminateCommand(a *cli.App) *cobra.Command {
	var reason string
	var yes bool
	cmd := &cobra.Command{
		Use:   "terminate TASK --reason TEXT",
		Short: "End a run at once, without asking it; cancel asks it to end",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return mutate(a, cmd.Context(), args[0], yes, &DoneLine{Type: "terminate", Reason: reason},
				func(e *engine.Engine, f frozen) (console.Prepared, error) {
					return PreparedTerminate(e, f.Target, reason), f.mustBeOpen()
				})
		},
	}
	reasonFlags(cmd, &reason, &yes)
	return cmd
}

// reasonFlags are those of commands that must say why: the history keeps it.
func reasonFlags(cmd *cobra.Command, reason *string, yes *bool) {
	cmd.Flags().StringVar(reason, "reason", "", "why; the history keeps it")
	cmd.Flags().BoolVar(yes, "yes", false, "do not ask")
	_ = cmd.MarkFlagRequired("reason") // fails only for a flag that is not there
}

func ResetCommand(a *cli.App) *cobra.Command {
	var reason, phase string
	var at int64
	var yes bool
	cmd := &cobra.Command{
		Use:   "reset TASK --at N|--phase P --reason TEXT",
		Short: "Let a run begin again at a point, under the same id and with the same input; fork changes the input",
		Long: "Temporal resets a run at the end of a workflow task: the first one behind the event, or the one that began the\n" +
			"phase. Everything before it stays; what was decided there is decided again. An open run is ended for it.",
		Example: "acescope reset finance-1-e1-0042 --phase curator --reason 'the curator was mended'",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("at") == cmd.Flags().Changed("phase") {
				return cli.UsageError("where? give --at EVENT or --phase PHASE")
			}
			ctx, line := cmd.Context(), &DoneLine{Type: "reset", Reason: reason}
			return mutate(a, ctx, args[0], yes, line, func(e *engine.Engine, f frozen) (console.Prepared, error) {
				events, err := HistoryOf(ctx, e.Client, f.WorkflowID, f.RunID)
				if err != nil {
					return console.Prepared{}, err
				}
				to, err := fork.ResetAt(events, fork.Point{Event: at, Phase: ace.Phase(phase)})
				if err != nil {
					return console.Prepared{}, cli.UsageError("%s: %w", f.WorkflowID, err)
				}
				line.Kept = to.Kept
				return PreparedReset(ctx, e, f.Target, to, reason)
			})
		},
	}
	cmd.Flags().Int64Var(&at, "at", 0, "keep everything up to this event")
	cmd.Flags().StringVar(&phase, "phase", "", "begin again with this phase")
	reasonFlags(cmd, &reason, &yes)
	return cmd
}

// maxSignal is the largest argument that the server takes, in bytes.
const maxSignal = 2 << 20

func SignalCommand(a *cli.App) *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:     "signal TASK NAME [JSON|-]",
		Short:   "Send a run a signal, with an argument as JSON; - reads it from standard input",
		Example: "acescope signal demo-1 record_tool_event '[{\"event_id\":\"x1\",\"kind\":\"tool_use\",\"name\":\"my_tool\"}]' --yes",
		Args:    cobra.RangeArgs(2, 3),
		RunE: func(cmd *cobra.Command, args []string) error {
			arg, err := signalArgument(args[2:])
			if err != nil {
				return err
			}
			return mutate(a, cmd.Context(), args[0], yes, &DoneLine{Type: "signal", Signal: args[1]},
				func(e *engine.Engine, f frozen) (console.Prepared, error) {
					return PreparedSignal(e, f.Target, args[1], arg), f.mustBeOpen()
				})
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}

func signalArgument(args []string) ([]byte, error) {
	if len(args) == 0 {
		return nil, nil
	}
	data := []byte(args[0])
	if args[0] == "-" {
		var err error
		if data, err = cli.ReadFile("-", maxSignal); err != nil {
			return nil, err
		}
	}
	return data, cli.CheckJSON(data)
}
