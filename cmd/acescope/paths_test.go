//go:build unix

package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"

	"acescope/engine"
	"acescope/engine/ace"
	"acescope/engine/flow"
)

// troubleQueue is served by a worker of this test, whose generator never succeeds.
const troubleQueue = "trouble"

// place is a data directory that a process hosts, with an experiment that has ended, a
// run that failed and one that is tried again and again.
type place struct {
	dir  string
	host *proc
}

func startPlace(t *testing.T) place {
	t.Helper()
	p := place{dir: t.TempDir()}
	p.host = startProc(t, p.dir, "serve", "--json")
	p.host.next(t, "serve", nil)
	startTrouble(t, p.dir)
	runs := map[string]int{}
	startProc(t, p.dir, "run", "--dataset", problemSet(t, 12), "--experiment", "walk", "--json").next(t, "summary", runs)
	checkRuns(t, runs, 12)
	return p
}

// startTrouble serves and starts two tasks whose model cannot be reached.
func startTrouble(t *testing.T, dir string) {
	t.Helper()
	e, err := engine.Open(t.Context(), engine.Options{DataDir: dir, Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	w := worker.New(e.Client, troubleQueue, worker.Options{})
	flow.Register(w)
	w.RegisterActivityWithOptions(unreachable, activity.RegisterOptions{Name: ace.ActivityGenerator})
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		w.Stop()
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		_ = e.Close(ctx)
	})
	for _, id := range []string{"broken-1", "again-1"} {
		in := ace.TaskInput{TaskID: id, Prompt: "a question", Adapter: ace.Offline, Provider: "none", Model: "far-away", ExperimentID: "trouble", DatasetID: "none"}
		run, err := e.Client.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: ace.WorkflowID(id), TaskQueue: troubleQueue,
			TypedSearchAttributes: flow.TaskAttributes(in)}, ace.TaskWorkflow, in)
		if err != nil {
			t.Fatal(err)
		}
		if id == "broken-1" && run.Get(t.Context(), nil) == nil {
			t.Fatal("the task did not fail")
		}
	}
}

// unreachable fails: for good where the task is called broken.
func unreachable(_ context.Context, in ace.GeneratorInput) (ace.GeneratorResult, error) {
	if strings.HasPrefix(in.Task.TaskID, "broken") {
		return ace.GeneratorResult{}, temporal.NewNonRetryableApplicationError("model far-away: 401 no such key", "ModelError", nil)
	}
	return ace.GeneratorResult{}, errors.New("dial tcp 10.0.0.1:443: connection refused")
}

func TestPaths(t *testing.T) {
	p := startPlace(t)
	t.Run("dump", func(t *testing.T) { dump(t, p) })
}

func dump(t *testing.T, p place) {
	term := openTerminal(t, p.dir, 160, 45)
	term.await("again-1")
	for _, k := range strings.Split(os.Getenv("KEYS"), " ") {
		k = strings.NewReplacer("ENTER", "\r", "ESC", "\x1b", "TAB", "\t", "_", " ", "UP", "\x1b[A", "DOWN","\x1b[B").Replace(k)
		term.press(k)
		time.Sleep(1500 * time.Millisecond)
		t.Logf("=== %q\n%s", k, term.screen.String())
	}
	_ = filepath.Join
	_ = sync.Mutex{}
}
