package runs

import (
	"cmp"
	"context"
	"strconv"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine"
	"acescope/engine/ace"
	"acescope/engine/temporal/fork"
	"acescope/sources/runs"
	"acescope/views/console"
)

// PreparedReset is a reset that waits for a yes. The server ends whichever run of the id is
// open, so that one is named too.
func PreparedReset(ctx context.Context, e *engine.Engine, of console.Target, at fork.Reset, reason string) (console.Prepared, error) {
	newest, open, err := e.Newest(ctx, of.WorkflowID)
	if err != nil {
		return console.Prepared{}, err
	}
	ends := "the run has ended; a new one of the same id begins"
	switch {
	case open && newest == of.RunID:
		ends = "the run   ends, and a new one of the same id goes on"
	case open:
		ends = "also ends run " + newest + ", which is open and newer, for the new one"
	}
	return console.Prepared{Title: "Reset " + ace.TaskIDOf(of.WorkflowID) + "?", Yes: "reset it",
		Lines: []string{"workflow  " + of.WorkflowID, "run       " + of.RunID,
			"keeps     events 1 to " + strconv.FormatInt(at.Kept, 10) + ", and the same input",
			"decides   anew what " + strconv.FormatInt(at.Lost, 10) + " events told; steps after it cost again",
			ends, "reason    " + reason},
		Do: func(ctx context.Context) (string, runs.Run, error) {
			runID, err := e.Reset(ctx, of.WorkflowID, of.RunID, at.Event, newest, reason)
			return "reset: it goes on as run " + runID, runs.Run{WorkflowID: of.WorkflowID, RunID: runID, TaskID: ace.TaskIDOf(of.WorkflowID)}, err
		}}, nil
}

func PreparedSignal(e *engine.Engine, of console.Target, name string, arg []byte) console.Prepared {
	return console.Prepared{Title: "Signal " + ace.TaskIDOf(of.WorkflowID) + "?", Yes: "send it",
		Lines: []string{"workflow  " + of.WorkflowID, "run       " + of.RunID, "signal    " + name, "argument  " + cmp.Or(cli.Cut(arg, 60), "none")},
		Do: func(ctx context.Context) (string, runs.Run, error) {
			return "sent " + name + " to " + of.WorkflowID, runs.Run{}, e.Signal(ctx, of.WorkflowID, of.RunID, name, arg)
		}}
}

func PreparedTerminate(e *engine.Engine, of console.Target, reason string) console.Prepared {
	return console.Prepared{Title: "Terminate " + ace.TaskIDOf(of.WorkflowID) + "?", Yes: "terminate it",
		Lines: []string{"workflow  " + of.WorkflowID, "run       " + of.RunID, "it ends at once and cannot clean up; cancel asks it to end", "reason    " + reason},
		Do: func(ctx context.Context) (string, runs.Run, error) {
			return "terminated " + of.WorkflowID, runs.Run{}, e.Terminate(ctx, of.WorkflowID, of.RunID, reason)
		}}
}

// preparedCancel is the question on a terminal.
func preparedCancel(id, runID string) console.Prepared {
	return console.Prepared{Title: "Cancel " + ace.TaskIDOf(id) + "?", Lines: []string{"workflow  " + id, "run       " + runID}, Yes: "cancel the run"}
}

// HistoryOf reads a run's history as it is now.
func HistoryOf(ctx context.Context, c client.Client, workflowID, runID string) ([]*historypb.HistoryEvent, error) {
	var events []*historypb.HistoryEvent
	iter := c.GetWorkflowHistory(ctx, workflowID, runID, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for iter.HasNext() {
		e, err := iter.Next()
		if err != nil {
			return nil, err
		}
		events = append(events, e)
	}
	return events, nil
}
