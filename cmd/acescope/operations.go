package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"

	"acescope/engine/historyfile"
	"acescope/engine/operation"
	"acescope/sources"
	"acescope/tui/text"
)

func (a *app) operationsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "operations TASK|FILE",
		Short: "Show what a run did at its boundary: operations, times, random values, variables, version decisions",
		Long: "Reads a run's history, or the histories in a file (- for standard input), as operation events. An id goes before a\n" +
			"file of the same name that is not given as a path (./NAME).",
		Example: "acescope operations finance-1-e1-0042\n" +
			"temporal workflow show -w refund-17 -o json | acescope operations - --json | jq 'select(.type == \"operation_failed\")'",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.operations(cmd.Context(), cmd.InOrStdin(), args[0])
		},
	}
}

func (a *app) operations(ctx context.Context, in io.Reader, of string) error {
	if isHistoryPath(of) {
		return a.operationsOfFile(in, of)
	}
	events, err := a.historyOf(ctx, of)
	if err != nil {
		var missing *sources.MissingError
		if info, statErr := os.Stat(of); errors.As(err, &missing) && statErr == nil && info.Mode().IsRegular() {
			return a.operationsOfFile(in, of)
		}
		return err
	}
	return a.putOperations(events)
}

// isHistoryPath tells whether an argument can only be a file.
func isHistoryPath(of string) bool {
	if of == "-" || strings.HasPrefix(of, "./") || strings.HasPrefix(of, "../") || strings.HasPrefix(of, "/") {
		return true
	}
	for _, end := range []string{".json", ".json.gz", ".jsonl", ".jsonl.gz"} {
		if strings.HasSuffix(of, end) {
			return true
		}
	}
	return false
}

func (a *app) historyOf(ctx context.Context, id string) ([]*historypb.HistoryEvent, error) {
	e, done, err := a.look(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	run, err := sources.Resolve(ctx, e.Client, id)
	if err != nil {
		return nil, err
	}
	exec := run.GetWorkflowExecutionInfo().GetExecution()
	pages := e.Client.GetWorkflowHistory(ctx, exec.GetWorkflowId(), exec.GetRunId(), false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	var events []*historypb.HistoryEvent
	for pages.HasNext() {
		event, err := pages.Next()
		if err != nil {
			return nil, err
		}
		events = append(events, event)
	}
	return events, nil
}

// operationsOfFile shows what can be read of a file, and then what was wrong with it.
func (a *app) operationsOfFile(in io.Reader, path string) error {
	if path != "-" {
		f, err := os.Open(path)
		if errors.Is(err, fs.ErrNotExist) {
			return &coded{exitNotFound, err}
		}
		if err != nil {
			return err
		}
		defer f.Close()
		in = f
	}
	histories, wrong := historyfile.Read(in)
	for _, h := range histories {
		if err := a.putOperations(h.Events); err != nil {
			return err
		}
	}
	if wrong != nil {
		return fmt.Errorf("%s: %w", path, wrong)
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
