package filed_test

import (
	"context"
	"sync"
	"testing"

	historypb "go.temporal.io/api/history/v1"

	"acescope/engine/ace"
	"acescope/engine/temporal/replay"
	"acescope/engine/workflows"
	"acescope/sources"
	"acescope/sources/cluster"
	"acescope/sources/histories"
	"acescope/sources/runs"
	"acescope/sources/system"
)

// TestParts reads all parts of a console at once from the same histories, which must not
// change.
func TestParts(t *testing.T) {
	_, c := load(t, all(t)...)
	s := sources.NewStore()
	s.SetConnection(cluster.Connection{State: cluster.ConnReady, Mode: cluster.ModeFile, Address: "bug.json"})
	parts := []sources.Part{sources.PartEvents, sources.PartBooks, sources.PartExperiments, sources.PartLogs, sources.PartTriage,
		sources.PartSystem, sources.PartFacets, sources.PartReplay, sources.PartDiff}
	for _, p := range parts {
		s.Look(p, true)
	}
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop()
	wg.Go(func() {
		s.Run(ctx, cluster.Deps{Client: c, TaskQueue: ace.TaskQueue, NoBooks: func() string { return "none here" },
			Verify: func(ctx context.Context, events []*historypb.HistoryEvent, strict bool) histories.ReplayVerdict {
				return (&replay.Verifier{Register: workflows.Register, Strict: strict}).Verify(ctx, events)
			}})
	})
	s.Select("ace/right", "")
	s.ShowExperiments([]string{"ace-experiment/exp"})
	s.DiffRuns(histories.DiffRef{WorkflowID: "ace/right"}, histories.DiffRef{WorkflowID: "ace/wrong"}, false)
	s.VerifyRun(true)
	for {
		<-s.Changed()
		snap := s.Snapshot()
		d, e, x, r := snap.Detail, snap.Events, snap.Experiments, snap.Replay
		if len(snap.Runs.Rows) != 8 || snap.Runs.Total != 8 || snap.Facets == nil || d == nil || d.Events != 38 || d.Phase.ExitStatus != ace.Success ||
			e == nil || e.Len() != 38 || x == nil || len(x.Series) != 1 || x.Series[0].Tasks.Len() != 7 ||
			snap.Triage == nil || snap.Triage.Scan.Running || snap.Triage.Ended != 7 || snap.System == nil || snap.System.Loading ||
			snap.RunDiff == nil || snap.RunDiff.Diff == nil || snap.Books == nil || r == nil || r.Verdict == nil {
			continue
		}
		if snap.Connection.State != cluster.ConnReady || d.From != runs.FromHistory {
			t.Errorf("%+v, %s", snap.Connection, d.From)
		}
		if r.Verdict.Outcome == replay.Unverified || !snap.RunDiff.Diff.Differs() {
			t.Errorf("verdict %+v", r.Verdict)
		}
		if snap.System.TotalRuns != 8 || snap.System.OpenRuns != 1 || system.Wrong(snap.System.Checks(snap.At)) != 0 {
			t.Errorf("health: %+v", snap.System.Checks(snap.At))
		}
		return
	}
}
