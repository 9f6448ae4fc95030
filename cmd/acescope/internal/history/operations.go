package history

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine/temporal/operation"
	"acescope/tui/text"
)

type operationsFlags struct{ run string }

func OperationsCommand(a *cli.App) *cobra.Command {
	var f operationsFlags
	cmd := &cobra.Command{
		Use:   "operations TASK|FILE",
		Short: "Show what a run did at its boundary: operations, times, random values, variables, version decisions",
		Long: "Reads a run's history, with those of the runs that it continues and is continued as, or the histories in a file\n" +
			"(- for standard input), as operation events. --run shows one run alone.",
		Example: "acescope operations finance-1-e1-0042\n" +
			"temporal workflow show -w refund-17 -o json | acescope operations - --json | jq 'select(.type == \"operation_failed\")'",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return operations(a, cmd.Context(), args[0], f)
		},
	}
	cmd.Flags().StringVar(&f.run, "run", "", "only the run with this run id")
	return cmd
}

// OperationLine is an operation event and the run that it is of.
type OperationLine struct {
	operation.Event
	RunID string `json:"run_id,omitempty"`
}

func operations(a *cli.App, ctx context.Context, of string, f operationsFlags) error {
	list, err := operationHistories(a, ctx, of, f.run)
	if err != nil {
		return err
	}
	var began time.Time
	for i, h := range list {
		if len(h.Events) > 0 {
			if h.Chain == nil || i == 0 {
				began = h.Events[0].GetEventTime().AsTime()
			}
			if err := putOperations(a, h, began); err != nil {
				return err
			}
		}
		if h.ReadErr != nil { // what could be read was shown
			return h.ReadErr
		}
	}
	return nil
}

// operationHistories are those of a file, of a chain, or of one run of either.
func operationHistories(a *cli.App, ctx context.Context, of, runID string) ([]cli.RunHistory, error) {
	switch {
	case cli.IsHistoryFile(of) && runID == "":
		return a.ReadHistories(ctx, of), nil
	case runID != "":
		h, err := a.HistoryOf(ctx, of, 0, runID)
		return []cli.RunHistory{h}, err
	}
	e, done, err := a.OpenReadOnly(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	return a.ReadChain(ctx, e, of, "")
}

func putOperations(a *cli.App, h cli.RunHistory, began time.Time) error {
	out := cli.NewLines(a.Out)
	run := cli.RunIDOf(h.Events)
	if h.Chain != nil && !a.JSON {
		fmt.Fprintf(out.Buf, "%s: %s\n", h.Chain, cli.SafeText(run))
	}
	for _, e := range operation.Project(h.Events, nil) {
		if err := putOperation(a, out, OperationLine{e, run}, began); err != nil {
			return err
		}
	}
	return out.Flush()
}

func putOperation(a *cli.App, out *cli.Lines, e OperationLine, began time.Time) error {
	if a.JSON {
		return out.Put(e)
	}
	mark, at := " ", max(e.At.Sub(began), 0)
	if e.Type == operation.OperationFailed {
		mark = "!"
	}
	_, err := fmt.Fprintf(out.Buf, "%7d  %10.3fs %s %-20s %s\n", e.EventID, at.Seconds(), mark, e.Type, strings.TrimRight(text.Fit(cli.SafeText(operationText(e.Event)), operationWidth, "~"), " "))
	return err
}

// operationWidth bounds what is said of an operation event without --json, in cells.
const operationWidth = 120

// operationText is what there is to say of an operation event in a line.
func operationText(e operation.Event) string {
	value := string(e.Value)
	if e.ValueDigest != "" {
		value = fmt.Sprintf("%d bytes, %.8s", e.ValueBytes, e.ValueDigest)
	}
	switch e.Type {
	case operation.OperationStarted:
		return fmt.Sprintf("%s  %s %s", e.OperationID, e.OperationType, e.Parameters)
	case operation.OperationCompleted:
		result := string(e.Result)
		if e.ResultRef != nil {
			result = fmt.Sprintf("artifact %.8s, %d bytes", e.ResultRef.SHA256, e.ResultRef.Size)
		}
		if e.Cached {
			result = "(cached) " + result
		}
		return e.OperationID + "  " + attemptText(e) + result
	case operation.OperationFailed:
		return e.OperationID + "  " + attemptText(e) + strings.TrimPrefix(e.Error.Type+": ", ": ") + e.Error.Message
	case operation.TimeAccessed:
		return e.Key + "  " + e.Time.Format("2006-01-02T15:04:05.000Z07:00")
	case operation.VariableSet:
		return e.Variable + " = " + value
	case operation.VersionDecision:
		if e.Version == nil {
			return "a marker that cannot be read"
		}
		said := fmt.Sprintf("%s: version %d", e.ChangeID, *e.Version)
		if e.MinVersion != nil && e.MaxVersion != nil {
			said += fmt.Sprintf(" of %d to %d", *e.MinVersion, *e.MaxVersion)
		}
		return said
	}
	return strings.TrimSpace(e.Key + "  " + value)
}

func attemptText(e operation.Event) string {
	if e.Attempt > 1 {
		return fmt.Sprintf("attempt %d, ", e.Attempt)
	}
	return ""
}
