package engine_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"acescope/engine"
	"acescope/engine/ace"
	"acescope/sources"
	"acescope/sources/cluster"
	"acescope/sources/experiments"
	"acescope/sources/histories"
	"acescope/sources/runs"
	"acescope/sources/system"
	"acescope/sources/triage"
)

// snapshot is what the feeds of a console hold at one moment.
type snapshot struct {
	At          time.Time
	Connection  cluster.Connection
	Runs        runs.RunList
	Detail      *histories.Detail
	Experiments *experiments.Experiments
	Triage      *triage.Result
	System      *system.System
}

func snapshotOf(s *sources.Feeds) *snapshot {
	return &snapshot{At: time.Now(), Connection: s.Connection(), Runs: s.Runs.Value(),
		Detail:      s.Detail.Value(),
		Experiments: s.Experiments.Value(), Triage: s.Triage.Value(), System: s.System.Value()}
}

// until reads snapshots until ok accepts one.
func until(t *testing.T, s *sources.Feeds, ok func(*snapshot) error) *snapshot {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		snap := snapshotOf(s)
		err := ok(snap)
		if err == nil {
			return snap
		}
		select {
		case <-s.Link.Changed():
		case <-ctx.Done():
			t.Fatalf("%v; connection %+v, list error %q", err, snap.Connection, snap.Runs.Err)
		}
	}
}

// watch runs a store on an engine like the console.
func watch(t *testing.T, e *engine.Engine) *sources.Feeds {
	t.Helper()
	s := sources.NewFeeds()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); s.Run(ctx, cluster.Deps{Client: e.Client, Namespace: e.Namespace()}) }()
	t.Cleanup(func() { cancel(); <-done })
	s.Link.SetConnection(cluster.Connection{State: cluster.ConnReady, Mode: string(e.Mode())})
	return s
}

func TestStoreStreamsARun(t *testing.T) {
	t.Parallel()
	script := newScripted()
	e := open(t, t.TempDir(), script)
	s := watch(t, e)
	runID, err := e.StartTask(t.Context(), task("streamed", "slow", "42"))
	if err != nil {
		t.Fatal(err)
	}
	s.Select(runs.ID{WorkflowID: ace.WorkflowID("streamed"), RunID: runID})
	<-script.reached
	until(t, s, func(snap *snapshot) error {
		d := snap.Detail
		if d == nil || d.Phase.Phase != ace.PhaseSkills || d.Skills.Total != 4 || d.From != runs.FromQuery ||
			len(d.Pending) != 1 {
			return fmt.Errorf("not in its skills session: %+v", d)
		}
		return nil
	})
	s.Refresh()
	until(t, s, func(snap *snapshot) error {
		if len(snap.Runs.Rows) != 1 || snap.Runs.Rows[0].Phase != ace.PhaseSkills ||
			snap.Runs.Counts.Status[ace.Running] != 1 {
			return fmt.Errorf("list %+v", snap.Runs)
		}
		return nil
	})
	script.release <- struct{}{}
	snap := until(t, s, func(snap *snapshot) error {
		if d := snap.Detail; d.Close.IsZero() || d.Phase.Phase != ace.PhaseDone ||
			d.From != runs.FromHistory {
			return fmt.Errorf("not closed: %+v", d)
		}
		return nil
	})
	if d := snap.Detail; len(d.Delta.Operations) != 2 || len(d.Log) < 8 || d.Phase.Answer != "42" {
		t.Errorf("detail %+v", d)
	}
	s.SetQuery(`ExitStatus = = "x"`)
	until(t, s, func(snap *snapshot) error {
		if snap.Runs.Err == "" || snap.Runs.ErrAt != 13 {
			return fmt.Errorf("query error at %d: %q", snap.Runs.ErrAt, snap.Runs.Err)
		}
		return nil
	})
}

// TestStoreReconnects closes the host under a console that takes over only if no other process does.
func TestStoreReconnects(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	host := open(t, dir, newScripted())
	if _, err := result(t, host, task("before", "hello", "42")); err != nil {
		t.Fatal(err)
	}
	console := openEngine(t, engine.Options{DataDir: dir})
	if console.Mode() != engine.Attached {
		t.Fatalf("mode %s", console.Mode())
	}
	s := watch(t, console)
	connection := func(want cluster.ConnState) {
		until(t, s, func(snap *snapshot) error {
			if snap.Connection.State != want || len(snap.Runs.Rows) != 1 {
				return fmt.Errorf("want %s, have %+v with %d rows", want, snap.Connection,
					len(snap.Runs.Rows))
			}
			return nil
		})
	}
	connection(cluster.ConnReady)
	if err := host.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() error {
		if console.Mode() != engine.Embedded {
			return errors.New("the console has not taken over")
		}
		return nil
	})
	s.Refresh()
	connection(cluster.ConnReady)
}
