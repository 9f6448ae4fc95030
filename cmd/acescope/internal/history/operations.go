package history

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"acescope/cmd/acescope/internal/cli"
	"acescope/cmd/acescope/internal/runs"
	"acescope/engine/temporal/operation"
	"acescope/tui/text"
)

func OperationsCommand(a *cli.App) *cobra.Command {
	var runID string
	cmd := &cobra.Command{
		Use:   "operations TASK|FILE",
		Short: "Show a run's operations, times, random values, variables and version decisions",
		Long: "Reads the history of a run with those of the runs that it continues and that continue it, or the\n" +
			"histories in a file (- is standard input), and writes them as operation events. --run shows one run alone.",
		Example: "acescope operations finance-1-e1-0042\n" +
			"temporal workflow show -w refund-17 -o json | acescope operations - --json | " +
			"jq 'select(.type == \"operation_failed\")'",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return operations(a, cmd.Context(), args[0], runID) },
	}
	cmd.Flags().StringVar(&runID, "run", "", "only the run with this run ID")
	return cmd
}

// OperationLine is an operation event with its run.
type OperationLine struct {
	operation.Event
	RunID string `json:"run_id,omitempty"`
}

func operations(a *cli.App, ctx context.Context, name, runID string) error {
	list, err := readHistories(a, ctx, name, runID)
	if err != nil {
		return err
	}
	var start time.Time
	for i, h := range list {
		if len(h.Events) > 0 {
			if h.Chain == nil || i == 0 {
				start = h.Events[0].GetEventTime().AsTime()
			}
			if err := putOperations(a, h, start); err != nil {
				return err
			}
		}
		if h.ReadErr != nil {
			return h.ReadErr
		}
	}
	return nil
}

// readHistories reads the histories of a file or of a chain, or with a run ID one of them.
func readHistories(a *cli.App, ctx context.Context, name, runID string) ([]cli.RunHistory, error) {
	if runID != "" {
		h, err := a.HistoryOf(ctx, name, runID)
		return []cli.RunHistory{h}, err
	}
	if cli.IsHistoryFile(name) {
		return a.ReadHistories(ctx, name), nil
	}
	e, done, err := a.OpenReadOnly(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	return cli.ReadChain(ctx, e, name, "")
}

// operationWidth is the maximum width of an event's text, in cells.
const operationWidth = 120

func putOperations(a *cli.App, h cli.RunHistory, start time.Time) error {
	out := runs.NewOutput(a)
	runID := cli.RunIDOf(h.Events)
	if h.Chain != nil && !a.JSON {
		out.Printf("%s: %s", h.Chain, runID)
	}
	for _, e := range operation.Project(h.Events) {
		details := ""
		if !a.JSON { // values can be large
			details = text.Fit(cli.SafeText(operationText(e)), operationWidth, "~")
		}
		out.Line(OperationLine{e, runID}, "%7d  %10.3fs %s %-20s %s", e.EventID, max(e.At.Sub(start), 0).Seconds(),
			errorMark(e.Type == operation.OperationFailed), e.Type, details)
	}
	return out.Flush()
}

// operationText formats the details of an operation event.
func operationText(e operation.Event) string {
	value := string(e.Data)
	if e.Digest != "" {
		value = fmt.Sprintf("%d bytes, %.8s", e.Bytes, e.Digest)
	}
	attempt := ""
	if e.Attempt > 1 {
		attempt = fmt.Sprintf("attempt %d, ", e.Attempt)
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
		return e.OperationID + "  " + attempt + result
	case operation.OperationFailed:
		return e.OperationID + "  " + attempt + strings.TrimPrefix(e.Error.Type+": ", ": ") + e.Error.Message
	case operation.TimeAccessed:
		return e.Key + "  " + e.Time.Format("2006-01-02T15:04:05.000Z07:00")
	case operation.VariableSet:
		return e.Variable + " = " + value
	case operation.VersionDecision:
		if e.Version == nil {
			return "unreadable version marker"
		}
		s := fmt.Sprintf("%s: version %d", e.ChangeID, *e.Version)
		if e.MinVersion != nil && e.MaxVersion != nil {
			s += fmt.Sprintf(" of %d to %d", *e.MinVersion, *e.MaxVersion)
		}
		return s
	}
	return strings.TrimSpace(e.Key + "  " + value)
}
