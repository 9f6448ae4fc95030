package runs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	enumspb "go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/client"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine"
	"acescope/engine/ace"
	"acescope/engine/tasks/run"
	"acescope/engine/temporal/fork"
	"acescope/engine/temporal/history"
	"acescope/sources/cluster"
	"acescope/sources/experiments"
	"acescope/sources/runs"
	"acescope/theme"
)

// ActionLine reports a change of a run.
type ActionLine struct {
	Action     string `json:"action"` // cancel, terminate, signal or reset
	WorkflowID string `json:"workflow_id"`
	RunID      string `json:"run_id"`
	NewRunID   string `json:"new_run_id,omitempty"` // of a reset: the run that continues
	Kept       int64  `json:"kept_event,omitempty"` // of a reset: the last event that is kept
	Signal     string `json:"signal,omitempty"`
	Reason     string `json:"reason,omitempty"`
}

// action is a command that changes runs.
type action struct {
	runs.Change
	closed  bool // it also applies to closed runs
	reason  bool // it needs a reason
	confirm func(*cli.App, context.Context, runs.Prepared, bool) error
}

// do finds all runs first. It then confirms, makes and reports the change of each run, and stops
// at the first error. Runs that have closed already are an error at the end. A change applies to the run
// that was found, never to a newer run of its ID.
func (x *action) do(a *cli.App, cmd *cobra.Command, names []string) error {
	ctx := cmd.Context()
	yes, err := cmd.Flags().GetBool("yes")
	if err != nil {
		return err
	}
	e, err := a.OpenReadOnly(ctx)
	if err != nil {
		return err
	}
	found, err := findAll(ctx, e.Client, names)
	if err != nil && len(names) > 1 {
		return fmt.Errorf("%w; nothing was changed", err)
	} else if err != nil {
		return err
	}
	var closed []error
	for _, r := range found {
		id := runs.ID{WorkflowID: r.info.GetExecution().GetWorkflowId(),
			RunID: r.info.GetExecution().GetRunId()}
		status := r.info.GetStatus()
		if !x.closed && status != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING {
			word := theme.Styles{}.Status(string(history.StatusOf(status))).Word
			closed = append(closed, fmt.Errorf("%s is closed already: %s", id.WorkflowID, word))
			continue
		}
		p, kept, err := Prepare(ctx, e, id, x.Change)
		if err != nil {
			return err
		}
		if err := x.confirm(a, ctx, p, yes); err != nil {
			return err
		}
		message, successor, err := p.Do(ctx)
		if err != nil {
			return err
		}
		of := "run"
		if successor.RunID != "" {
			of = "from run"
		}
		line := ActionLine{x.Verb, id.WorkflowID, id.RunID, successor.RunID, kept, x.Signal, x.Reason}
		if err := cli.Report(a, line, "%s (%s %s)", message, of, id.RunID); err != nil {
			return err
		}
	}
	return errors.Join(closed...)
}

// named is a run, and the name by which it was found.
type named struct {
	name string
	info *workflowpb.WorkflowExecutionInfo
}

// findAll finds the newest runs of names. The name of a group stands for the experiments that repeat it.
func findAll(ctx context.Context, c client.Client, names []string) (found []named, err error) {
	for _, name := range names {
		r, err := runs.Resolve(ctx, c, name)
		if err == nil {
			found = append(found, named{name, r.GetWorkflowExecutionInfo()})
			continue
		}
		repeats := repeatsIn(ctx, c, name, err)
		if len(repeats) == 0 {
			return nil, err
		}
		members, err := findAll(ctx, c, repeats)
		if err != nil {
			return nil, err
		}
		found = append(found, members...)
	}
	return found, nil
}

// repeatsIn returns the IDs of the experiments of a group, after looking for a run of its name failed.
func repeatsIn(ctx context.Context, c client.Client, name string, failed error) (ids []string) {
	if !errors.Is(failed, runs.ErrNotFound) {
		return nil
	}
	_, group, err := experiments.ReadGroup(ctx, c, name)
	if err != nil || group == nil {
		return nil
	}
	for _, s := range group.Repeats {
		ids = append(ids, s.Input.ExperimentID)
	}
	return ids
}

// actionCommand completes a command that makes a change. By default its arguments are runs.
func actionCommand(a *cli.App, x *action, cmd *cobra.Command) *cobra.Command {
	cmd.Flags().Bool("yes", false, "do not ask for confirmation")
	if x.reason {
		cmd.Flags().StringVar(&x.Reason, "reason", "", "reason, which the history keeps")
		_ = cmd.MarkFlagRequired("reason") // fails only for an unknown flag
	}
	if cmd.RunE == nil {
		cmd.Args = cobra.MinimumNArgs(1)
		cmd.RunE = func(cmd *cobra.Command, args []string) error { return x.do(a, cmd, args) }
	}
	return cmd
}

func CancelCommand(a *cli.App) *cobra.Command {
	x := &action{Change: runs.Change{Verb: "cancel"}, confirm: (*cli.App).ConfirmOnTerminal}
	cmd := actionCommand(a, x, &cobra.Command{
		Use:   "cancel RUN...",
		Short: "Request the cancellation of runs or experiments; what they have learned is kept",
		Long: "Requests the cancellation of runs or experiments. A phase that is running is notified within a second. The\n" +
			"program of a blueprint run gets TERM and is killed after five seconds together with its child processes, an\n" +
			"agent's turn is interrupted, and a run that waits for a runner is withdrawn. acescope wait waits for the end.\n" +
			"On a terminal it asks for confirmation; scripts do not need --yes. With --force, Temporal terminates\n" +
			"the runs: they end at once, without cleanup.",
		Example: "acescope cancel finance-1\nacescope cancel run_9c5daa987909 --reason 'the wrong site'\n" +
			"acescope cancel finance-1-e1-0042 --force --reason 'does not react' --yes",
	})
	force := cmd.Flags().Bool("force", false, "terminate the runs; needs --reason and a confirmation")
	cmd.Flags().StringVar(&x.Reason, "reason", "",
		"reason, which the history keeps; with --force, or of a blueprint run")
	cmd.PreRunE = func(*cobra.Command, []string) error {
		if *force && x.Reason == "" {
			return cli.UsageError("--force needs --reason")
		}
		if *force {
			x.Verb = "terminate"
			x.confirm = (*cli.App).Confirm
		}
		return nil
	}
	return cmd
}

func ResetCommand(a *cli.App) *cobra.Command {
	x := &action{Change: runs.Change{Verb: "reset"}, closed: true, reason: true, confirm: (*cli.App).Confirm}
	cmd := &cobra.Command{
		Use:   "reset TASK... --at N|--phase P --reason TEXT",
		Short: "Run again from a point, with the same ID and input; fork can change the input",
		Long: "Temporal resets a run at the end of a workflow task: the first one after the event, or the one that\n" +
			"started the phase. It keeps the history up to there, and the workflow decides again. An open run is\n" +
			"terminated.",
		Example: "acescope reset finance-1-e1-0042 --phase curator --reason 'curator fixed'",
	}
	PointFlags(cmd, (*fork.Point)(&x.At), "last event that is kept", "first phase to run again")
	return actionCommand(a, x, cmd)
}

func SignalCommand(a *cli.App) *cobra.Command {
	x := &action{Change: runs.Change{Verb: "signal"}, confirm: (*cli.App).Confirm}
	return actionCommand(a, x, &cobra.Command{
		Use:   "signal TASK NAME [JSON|-]",
		Short: "Send a signal to a run, with a JSON argument; - reads it from standard input",
		Example: "acescope signal demo-1 record_tool_event " +
			"'[{\"event_id\":\"x1\",\"kind\":\"tool_use\",\"name\":\"my_tool\"}]' --yes",
		Args: cobra.RangeArgs(2, 3),
		RunE: func(cmd *cobra.Command, args []string) error {
			x.Signal = args[1]
			var err error
			if x.Argument, err = jsonArgument(cmd, args[2:]); err != nil { // before connecting
				return err
			}
			return x.do(a, cmd, args[:1])
		},
	})
}

// maxArgument is the largest argument that the server accepts, in bytes.
const maxArgument = 2 << 20

// jsonArgument returns the argument of a signal or a query that the command line gives, or "".
func jsonArgument(cmd *cobra.Command, args []string) (string, error) {
	argument := strings.Join(args, "")
	if argument == "-" {
		data, err := cli.ReadFile(cmd.Context(), "-", maxArgument)
		if err != nil {
			return "", err
		}
		argument = string(data)
	}
	return argument, cli.CheckJSON([]byte(argument))
}

// PointFlags adds the flags that name a point of a history; one of them must be set.
func PointFlags(cmd *cobra.Command, at *fork.Point, event, phase string) {
	cmd.Flags().Int64Var(&at.Event, "at", 0, event)
	phase += ": generator, skills, reflector, curator or persist"
	cmd.Flags().StringVar((*string)(&at.Phase), "phase", "", phase)
	cmd.MarkFlagsMutuallyExclusive("at", "phase")
	cmd.PreRunE = func(*cobra.Command, []string) error {
		if at.Event == 0 && at.Phase == "" {
			return cli.UsageError("set the point with either --at EVENT or --phase PHASE")
		}
		return nil
	}
}

// Prepare describes a cancellation, a termination, a signal or a reset, which waits for confirmation. kept is
// the last event that a reset keeps.
func Prepare(
	ctx context.Context, e *engine.Engine, of runs.ID, c runs.Change,
) (p runs.Prepared, kept int64, err error) {
	switch c.Verb {
	case "cancel":
		if c.Reason != "" && run.IDOf(of.WorkflowID) == "" {
			return p, 0, cli.UsageError(
				"%s is not a blueprint run, which alone keeps the --reason of a cancellation; "+
					"leave it out, or terminate the run with --force", of.WorkflowID)
		}
		message := "cancellation of " + of.WorkflowID + " requested"
		p = prepared("Cancel", of, nil, message, func(ctx context.Context) (string, error) {
			return "", requestCancel(ctx, e, of, c.Reason)
		})
	case "terminate":
		lines := []string{"effect    ends at once, without cleanup; cancel lets it clean up", "reason    " +
			c.Reason}
		p = prepared("Terminate", of, lines, "terminated "+of.WorkflowID,
			func(ctx context.Context) (string, error) {
				return "", e.Terminate(ctx, of.WorkflowID, of.RunID, c.Reason)
			})
	case "signal":
		argument := []byte(c.Argument)
		lines := []string{"signal    " + c.Signal, "argument  " + cmp.Or(ace.Cut(c.Argument, 60), "none")}
		message := "sent " + c.Signal + " to " + of.WorkflowID
		p = prepared("Signal", of, lines, message, func(ctx context.Context) (string, error) {
			return "", e.Signal(ctx, of.WorkflowID, of.RunID, c.Signal, argument)
		})
		err = cli.CheckJSON(argument)
	case "reset":
		events, err := cluster.ReadHistory(ctx, e.Client, e.Namespace(), of.WorkflowID, of.RunID)
		if err != nil {
			return p, 0, err
		}
		to, err := fork.ResetAt(events, fork.Point(c.At))
		if err != nil {
			return p, 0, cli.UsageError("%s: %w", of.WorkflowID, err)
		}
		p, err = PreparedReset(ctx, e, of, to, c.Reason)
		return p, to.Kept, err
	}
	return p, 0, err
}

// requestCancel asks a run to end. A blueprint run keeps who asked and why, for which a worker must execute
// it.
func requestCancel(ctx context.Context, e *engine.Engine, of runs.ID, reason string) error {
	id := run.IDOf(of.WorkflowID)
	if noWorker := e.Mode() == engine.Embedded && !e.Serves(); id == "" || noWorker {
		return e.Cancel(ctx, of.WorkflowID, of.RunID)
	}
	_, err := e.Runs(nil).Stop(ctx, id, run.StopRequest{Reason: reason, By: ace.User()})
	return err
}

// prepared returns a change of a run that waits for confirmation. change returns the ID of the run that
// continues the run, if any, which follows the message.
func prepared(
	verb string, t runs.ID, lines []string, message string, change func(context.Context) (string, error),
) runs.Prepared {
	return runs.Prepared{
		Title: verb + " " + ace.TaskIDOf(t.WorkflowID) + "?", Yes: strings.ToLower(verb) + " the run",
		Lines: append([]string{"workflow  " + t.WorkflowID, "run       " + t.RunID}, lines...),
		Do: func(ctx context.Context) (string, runs.Run, error) {
			runID, err := change(ctx)
			if runID == "" {
				return message, runs.Run{}, err
			}
			successor := runs.Run{WorkflowID: t.WorkflowID, RunID: runID, TaskID: ace.TaskIDOf(t.WorkflowID)}
			return message + runID, successor, err
		},
	}
}

// PreparedReset prepares a reset. The server terminates the open run of the workflow ID, which may
// be a later run, so the confirmation names that run.
func PreparedReset(
	ctx context.Context, e *engine.Engine, of runs.ID, at fork.Reset, reason string,
) (runs.Prepared, error) {
	newest, open, err := e.Newest(ctx, of.WorkflowID)
	if err != nil {
		return runs.Prepared{}, err
	}
	effect := "starts a new run with the same ID; this run is closed"
	switch {
	case open && newest == of.RunID:
		effect = "terminates this run and starts a new run with the same ID"
	case open:
		effect = "also terminates run " + newest + ", which is open and newer"
	}
	lines := []string{
		fmt.Sprintf("keeps     events 1 to %d and the input", at.Kept),
		fmt.Sprintf("drops     %s; the steps in them run and cost again", ace.Count(at.Lost, "event")),
		"effect    " + effect,
		"reason    " + reason,
	}
	message := "reset " + of.WorkflowID + "; continues as run "
	return prepared("Reset", of, lines, message, func(ctx context.Context) (string, error) {
		return e.Reset(ctx, of.WorkflowID, of.RunID, at.Event, newest, reason)
	}), nil
}
