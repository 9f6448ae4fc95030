package histories

import (
	"context"

	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"

	"acescope/engine/temporal/codec"
	"acescope/engine/temporal/replay"
	"acescope/engine/temporal/replayer"
	"acescope/sources/cluster"
	"acescope/sources/runs"
)

// VerifyRun reads and verifies a run. It reads only the first events of a run that nothing can verify. The error
// says why the history could not be read; the verdict has it too.
func VerifyRun(
	ctx context.Context, c client.Client, namespace string, v cluster.Verifier, r runs.Run,
) (replay.Verdict, error) {
	verdict := replay.Verdict{Outcome: replay.Unverified, WorkflowType: r.Type, WorkflowID: r.WorkflowID,
		RunID: r.RunID}
	failed := func(err error) (replay.Verdict, error) {
		verdict.Why = cluster.PlainError(err)
		return verdict, err
	}
	foreign := r.Type != "" && v.Unknown(r.Type) != ""
	if foreign {
		ctx = codec.AsStored(ctx) // for a replayer, which has the codec of its worker
		pages := cluster.Pages{C: c, Namespace: namespace, WorkflowID: r.WorkflowID, RunID: r.RunID}
		events, err := pages.Start(ctx)
		if err != nil {
			return failed(err)
		}
		if start, ok := v.Start(events); ok {
			start.WorkflowType, start.WorkflowID, start.RunID = r.Type, r.WorkflowID, r.RunID
			return start, nil
		}
	}
	events, err := cluster.ReadHistory(ctx, c, namespace, r.WorkflowID, r.RunID)
	if err != nil {
		return failed(err)
	}
	if foreign {
		return v.Verify(ctx, events, nil), nil
	}
	return v.Verify(ctx, events, Stored(c, namespace, r.WorkflowID, r.RunID)), nil
}

// Stored reads the events of a run with the payloads as the server has them.
func Stored(c client.Client, namespace, workflowID, runID string) replayer.Stored {
	return func(ctx context.Context) ([]*historypb.HistoryEvent, error) {
		return cluster.ReadHistory(codec.AsStored(ctx), c, namespace, workflowID, runID)
	}
}
