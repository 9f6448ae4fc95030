package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	historypb "go.temporal.io/api/history/v1"

	"acescope/engine/operation"
	"acescope/tui/text"
)

func (a *app) operationsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "operations TASK|FILE",
		Short: "Show what a run did at its boundary: operations, times, random values, variables, version decisions",
		Long:  "Reads a run's history, or the histories in a file (- for standard input), as operation events.",
		Example: "acescope operations finance-1-e1-0042\n" +
			"temporal workflow show -w refund-17 -o json | acescope operations - --json | jq 'select(.type == \"operation_failed\")'",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.operations(cmd.Context(), args[0])
		},
	}
}

func (a *app) operations(ctx context.Context, of string) error {
	if !isHistoryFile(of) {
		h, err := a.historyOf(ctx, of, 0, "")
		if err != nil {
			return err
		}
		return a.putOperations(h.Events)
	}
	for _, h := range a.readHistories(ctx, of) {
		if len(h.Events) > 0 {
			if err := a.putOperations(h.Events); err != nil {
				return err
			}
		}
		if h.err != nil { // what could be read was shown
			return h.err
		}
	}
	return nil
}

func (a *app) putOperations(events []*historypb.HistoryEvent) error {
	out := newLines(a.out)
	for _, e := range operation.Project(events, nil) {
		if err := a.putOperation(out, e, events[0]); err != nil {
			return err
		}
	}
	return out.flush()
}

func (a *app) putOperation(out *lines, e operation.Event, first *historypb.HistoryEvent) error {
	if a.json {
		return out.put(e)
	}
	mark, at := " ", e.At.Sub(first.GetEventTime().AsTime())
	if e.Type == operation.OperationFailed {
		mark = "!"
	}
	_, err := fmt.Fprintf(out.buf, "%7d  %10.3fs %s %-20s %s\n", e.EventID, at.Seconds(), mark, e.Type, strings.TrimRight(text.Fit(safe(operationText(e)), operationWidth, "~"), " "))
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
