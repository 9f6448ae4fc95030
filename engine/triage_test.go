package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"acescope/engine"
	"acescope/engine/ace"
	"acescope/engine/learning/playbook"
	"acescope/engine/temporal/history"
	"acescope/sources"
	"acescope/sources/cluster"
	"acescope/sources/runs"
	"acescope/sources/system"
	"acescope/sources/triage"
)

// unreachableProvider fails at every attempt.
type unreachableProvider struct{ *scripted }

func (unreachableProvider) Name() string { return "stuck" }

func (unreachableProvider) Generate(context.Context, ace.GeneratorInput,
	*playbook.Playbook) (ace.GeneratorResult, error) {
	return ace.GeneratorResult{}, errors.New("dial tcp 10.0.0.1:443: connect: connection refused")
}

// broken is a workflow whose code fails.
func broken(workflow.Context) error { panic("step 3 failed") }

// newEngineWithFailures is an engine with runs that failed, answered wrong, or are being retried.
func newEngineWithFailures(t *testing.T) (*engine.Engine, *cluster.Meter) {
	t.Helper()
	meter := cluster.NewMeter()
	s := newScripted()
	e := openWith(t, engine.Options{DataDir: t.TempDir(), Intercept: meter.Intercept}, s,
		unreachableProvider{s})
	for i := range 3 {
		_, err := result(t, e, task(fmt.Sprintf("bad-%d", i), "fail-for-good", "42"))
		if err == nil {
			t.Fatal("the task did not fail")
		}
		if _, err := result(t, e, task(fmt.Sprintf("wrong-%d", i), "hello", "43")); err != nil {
			t.Fatal(err)
		}
	}
	in := task("again", "hello", "42")
	in.Provider = "stuck"
	if _, err := e.StartTask(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	w := worker.New(e.Client, "orders", worker.Options{})
	w.RegisterWorkflow(broken)
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
	for _, queue := range []string{"orders", "unserved"} {
		if _, err := e.Client.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: queue + "-1",
			TaskQueue: queue}, broken); err != nil {
			t.Fatal(err)
		}
	}
	return e, meter
}

func TestTriageAndHealth(t *testing.T) {
	t.Parallel()
	e, meter := newEngineWithFailures(t)
	s := sources.NewFeeds()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	deps := cluster.Deps{Client: e.Client, Namespace: e.Namespace(), Meter: meter,
		Host: func() cluster.Host { return cluster.Host{PID: 1, DataDir: t.TempDir(), Free: 1 << 40} }}
	go func() { defer close(done); s.Run(ctx, deps) }()
	t.Cleanup(func() { cancel(); <-done })
	s.Triage.Look(true)
	s.System.Look(true)

	snap := until(t, s, func(snap *snapshot) error {
		return scanned(s, snap, func(got *triage.Result) bool {
			return got.Ended >= 6 && len(got.Retrying) >= 2
		})
	})
	checkTriage(t, snap.Triage)
	t.Run("query", func(t *testing.T) {
		for _, g := range snap.Triage.Groups {
			n, err := runs.Count(t.Context(), e.Client, g.Query())
			if err != nil || n != int64(g.Count) {
				t.Errorf("%s finds %d runs of %d, %v", g.Query(), n, g.Count, err)
			}
			g.Runs = slices.Repeat(g.Runs[:1], 200) // as of the largest group
			if _, err := runs.Count(t.Context(), e.Client, g.Query()); err != nil {
				t.Errorf("%s: %v", g.Query(), err)
			}
		}
	})
	t.Run("once", func(t *testing.T) {
		got, err := triage.Read(t.Context(), e.Client, triage.Options{Namespace: e.Namespace(), Window: 2},
			nil)
		if err != nil || got.Ended != 2 || !got.More {
			t.Errorf("%+v, %v", got, err)
		}
		if _, err = triage.Read(t.Context(), e.Client, triage.Options{Query: "a = = b"}, nil); err == nil {
			t.Error("a bad query is no error")
		}
	})
	t.Run("new runs only", func(t *testing.T) {
		if _, err := result(t, e, task("late", "fail-for-good", "42")); err == nil {
			t.Fatal("the task did not fail")
		}
		until(t, s, func(snap *snapshot) error {
			return scanned(s, snap, func(got *triage.Result) bool {
				return got.Ended >= 7 && got.Groups[0].Last.Run.TaskID == "late"
			})
		})
	})
	t.Run("health", func(t *testing.T) { checkHealth(t, e, s) })
}

// scanned waits for a scan with the expected result and rescans otherwise.
func scanned(s *sources.Feeds, snap *snapshot, found func(*triage.Result) bool) error {
	got := snap.Triage
	switch {
	case got == nil || got.Scan.Running:
		return errors.New("scanning")
	case !found(got):
		s.Triage.Again()
		return fmt.Errorf("%+v", got)
	}
	return nil
}

func checkTriage(t *testing.T, got *triage.Result) {
	t.Helper()
	for _, want := range []struct {
		status  ace.Status
		verdict ace.Verdict
		phase   ace.Phase
		pattern string
	}{{ace.Failed, "", ace.PhaseGenerator, "this prompt cannot be answered"},
		{ace.Completed, ace.Wrong, "", "compared"}} {
		found := false
		for _, g := range got.Groups {
			if g.Status == want.status && g.Verdict == want.verdict && g.Phase == want.phase &&
				g.Count == 3 && strings.Contains(g.Pattern, want.pattern) {
				found = true
				if g.Verdict == ace.Wrong && !strings.HasSuffix(g.Last.Reason.Example(), "42 → 43") {
					t.Errorf("the example says %q", g.Last.Reason.Example())
				}
			}
		}
		if !found {
			t.Errorf("no group %+v in %+v", want, got.Groups)
		}
	}
	seen := map[string]string{}
	for _, r := range got.Retrying {
		seen[r.Activity] = r.LastError.Message
		if r.Attempt < 2 || r.Since.IsZero() {
			t.Errorf("%+v", r)
		}
	}
	if seen[ace.ActivityGenerator] == "" || !strings.Contains(seen[history.TaskType], "step 3 failed") {
		t.Errorf("retrying: %v", seen)
	}
	if got.PhaseRuns != 3 || got.PhaseUnknown != 0 || len(got.Phases) != 5 || len(got.Slowest) != 6 {
		t.Errorf("%d runs, %d unknown, phases %+v", got.PhaseRuns, got.PhaseUnknown, got.Phases)
	}
}

func checkHealth(t *testing.T, e *engine.Engine, s *sources.Feeds) {
	snap := until(t, s, func(snap *snapshot) error {
		if got := snap.System; got == nil || got.Loading || len(got.Queues) != 6 || got.OpenRuns < 2 {
			return fmt.Errorf("%+v", got)
		}
		return nil
	})
	sys := snap.System
	states := map[string]system.CheckState{}
	for _, c := range sys.Checks() {
		states[c.Name] = c.State
	}
	for row, want := range map[string]system.CheckState{"server": system.CheckOK,
		"attributes": system.CheckOK, "ace activity": system.CheckOK,
		"orders workflow": system.CheckOK, "unserved workflow": system.CheckError,
		"list of runs": system.CheckOK} {
		if states[row] != want {
			t.Errorf("%s is %q, want %q", row, states[row], want)
		}
	}
	if sys.Server.Version == "" || len(sys.Calls) == 0 || sys.Process.Goroutines == 0 {
		t.Errorf("%+v", sys)
	}
	away := system.Read(canceled(), cluster.Deps{Client: e.Client, Namespace: "ace-dev"},
		cluster.Connection{})
	if away.Err == "" || system.CountErrors(away.Checks()) != 1 {
		t.Errorf("%+v", away)
	}
}

func canceled() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}
