package runs

import (
	"context"
	"fmt"
	"strings"
	"time"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine/ace"
	"acescope/engine/temporal/operation"
	"acescope/tui/text"
)

type OperationLine struct {
	operation.Event
	RunID string `json:"run_id,omitempty"`
}

// showOperations writes the operation events of a run and of the runs that it continues and that continue it,
// or of the histories in a file. With a run ID it writes those of one run alone.
func showOperations(a *cli.App, ctx context.Context, name, runID string) error {
	list, err := cli.HistoriesOf(a, ctx, name, runID)
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

// operationWidth is the maximum width of an event's text, in cells.
const operationWidth = 120

func putOperations(a *cli.App, h cli.RunHistory, start time.Time) error {
	out := cli.NewLines(a)
	runID := cli.RunIDOf(h.Events)
	if h.Chain != nil && !a.JSON {
		out.Printf("%s: %s", h.Chain, runID)
	}
	for _, e := range operation.Project(h.Events) {
		details := ""
		if !a.JSON { // values can be large
			details = text.Fit(cli.SafeText(operationText(e)), operationWidth, "~")
		}
		mark := " "
		if e.Type == operation.OperationFailed {
			mark = "!"
		}
		out.Line(OperationLine{e, runID}, "%7d  %10.3fs %s %-20s %s", e.EventID,
			max(e.At.Sub(start), 0).Seconds(), mark, e.Type, details)
	}
	return out.Flush()
}

// operationText formats the details of an operation event.
func operationText(e operation.Event) string {
	value := string(e.Data)
	if e.Digest != "" {
		value = fmt.Sprintf("%s, %.8s", ace.Count(e.Bytes, "byte"), e.Digest)
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
			result = fmt.Sprintf("artifact %.8s, %s", e.ResultRef.SHA256, ace.Count(e.ResultRef.Size, "byte"))
		}
		if e.Cached {
			result = "(cached) " + result
		}
		return e.OperationID + "  " + attempt + result
	case operation.OperationFailed:
		failure := strings.TrimPrefix(e.Error.Type+": ", ": ") + e.Error.Message
		return e.OperationID + "  " + attempt + failure + " (" + e.Step + ")"
	case operation.TimeAccessed:
		return e.Key + "  " + e.Time.Format("2006-01-02T15:04:05.000Z07:00")
	case operation.VariableSet:
		return e.Variable + " = " + value
	case operation.VersionDecision:
		switch {
		case e.Unread:
			return "unreadable version marker"
		case e.Version == nil:
			return e.ChangeID + ": patched"
		}
		s := fmt.Sprintf("%s: version %d", e.ChangeID, *e.Version)
		if e.MinVersion != nil && e.MaxVersion != nil {
			s += fmt.Sprintf(" of %d to %d", *e.MinVersion, *e.MaxVersion)
		}
		return s
	}
	return strings.TrimSpace(e.Key + "  " + value)
}
