package offline_test

import (
	"context"
	"sync"
	"testing"

	"acescope/engine/ace"
	"acescope/engine/temporal/replay"
	"acescope/engine/temporal/replayer"
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
	s := sources.NewFeeds()
	s.Link.SetConnection(cluster.Connection{State: cluster.ConnReady, Mode: cluster.ModeFile,
		Address: "bug.json"})
	for _, look := range []func(bool){s.Events.Look, s.Playbooks.Look, s.Experiments.Look, s.Logs.Look,
		s.Triage.Look, s.System.Look,
		s.Facets.Look, s.Replay.Look, s.Diff.Look} {
		look(true)
	}
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop()
	wg.Go(func() {
		s.Run(ctx, cluster.Deps{Client: c, TaskQueue: ace.TaskQueue, NoPlaybooks: func() string {
			return "none here"
		},
			NewVerifier: func(ctx context.Context, strict bool) cluster.Verifier {
				return replayer.New(ctx, &replay.Verifier{Register: workflows.Register, Strict: strict}, nil)
			}})
	})
	s.Select(runs.ID{WorkflowID: "ace/right"})
	s.Experiments.Show([]string{"ace-experiment/exp"})
	s.Compare(histories.DiffAsk{A: histories.DiffRef{WorkflowID: "ace/right"},
		B: histories.DiffRef{WorkflowID: "ace/wrong"}})
	s.VerifyRun(true)
	for {
		<-s.Link.Changed()
		list, facets, found, machine, books := s.Runs.Value(), s.Facets.Value(), s.Triage.Value(),
			s.System.Value(), s.Playbooks.Value()
		d, e, x, r, diff := s.Detail.Value(), s.Events.Value(), s.Experiments.Value(), s.Replay.Value(),
			s.Diff.Value()
		if len(list.Rows) != 8 || list.Total != 8 || facets == nil || d == nil || d.Events != 38 ||
			d.Phase.Status != ace.Completed ||
			e == nil || e.Len() != 38 || x == nil || len(x.Series) != 1 || len(x.Series[0].Tasks) != 7 ||
			found == nil || found.Scan.Running || found.Ended != 7 || machine == nil || machine.Loading ||
			diff == nil || diff.Diff == nil || books == nil || r == nil || r.Verdict == nil {
			continue
		}
		if s.Connection().State != cluster.ConnReady || d.From != runs.FromHistory {
			t.Errorf("%+v, %s", s.Connection(), d.From)
		}
		if r.Verdict.Outcome == replay.Unverified || !diff.Diff.Differs() {
			t.Errorf("verdict %+v", r.Verdict)
		}
		if machine.TotalRuns != 8 || machine.OpenRuns != 1 || system.CountErrors(machine.Checks()) != 0 {
			t.Errorf("health: %+v", machine.Checks())
		}
		return
	}
}
