package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"acescope/engine/operation"
	"acescope/tui/text"
)

type operationsFlags struct{ run string }

func (a *app) operationsCommand() *cobra.Command {
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
			return a.operations(cmd.Context(), args[0], f)
		},
	}
	cmd.Flags().StringVar(&f.run, "run", "", "only the run with this run id")
	return cmd
}

// operationLine is an operation event and the run that it is of.
type operationLine struct {
	operation.Event
	RunID string `json:"run_id,omitempty"`
}

func (a *app) operations(ctx context.Context, of string, f operationsFlags) error {
	list, err := a.operationHistories(ctx, of, f.run)
	if err != nil {
		return err
	}
	var began time.Time
	for i, h := range list {
		if len(h.Events) > 0 {
			if h.chain == nil || i == 0 {
				began = h.Events[0].GetEventTime().AsTime()
			}
			if err := a.putOperations(h, began); err != nil {
				return err
			}
		}
		if h.err != nil { // what could be read was shown
			return h.err
		}
	}
	return nil
}

// operationHistories are those of a file, of a chain, or of one run of either.
func (a *app) operationHistories(ctx context.Context, of, runID string) ([]oneHistory, error) {
	switch {
	case isHistoryFile(of) && runID == "":
		return a.readHistories(ctx, of), nil
	case runID != "":
		h, err := a.historyOf(ctx, of, 0, runID)
		return []oneHistory{h}, err
	}
	e, done, err := a.look(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	return a.readChain(ctx, e, of, "")
}

func (a *app) putOperations(h oneHistory, began time.Time) error {
	out := newLines(a.out)
	run := runIDOf(h.Events)
	if h.chain != nil && !a.json {
		fmt.Fprintf(out.buf, "%s: %s\n", h.chain, safe(run))
	}
	for _, e := range operation.Project(h.Events, nil) {
		if err := a.putOperation(out, operationLine{e, run}, began); err != nil {
			return err
		}
	}
	return out.flush()
}

func (a *app) putOperation(out *lines, e operationLine, began time.Time) error {
	if a.json {
		return out.put(e)
	}
	mark, at := " ", max(e.At.Sub(began), 0)
	if e.Type == operation.OperationFailed {
		mark = "!"
	}
	_, err := fmt.Fprintf(out.buf, "%7d  %10.3fs %s %-20s %s\n", e.EventID, at.Seconds(), mark, e.Type, strings.TrimRight(text.Fit(safe(operationText(e.Event)), operationWidth, "~"), " "))
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
