package engine_test

import (
	"database/sql"
	"os"
	"path/filepath"
	"testing"

	"acescope/engine"
	"acescope/engine/ace"
)

// TestLostServerData restores an older state of the server's database during an experiment, as after a disk
// that died. The experiment starts the tasks since then again, with other run IDs, and each is merged once.
// When a user resets the experiment, all are merged again.
func TestLostServerData(t *testing.T) {
	t.Parallel()
	parent, script := t.TempDir(), newScripted()
	dir := filepath.Join(parent, "before")
	e := open(t, dir, script)
	ref, err := e.Artifacts.PutBytes(t.Context(), []byte(`{"context":"hello 1","target":"42"}
{"context":"slow","target":"42"}
{"context":"hello 3","target":"42"}
{"context":"hello 4","target":"42"}
{"context":"slow","target":"42"}
`), "application/jsonl")
	if err != nil {
		t.Fatal(err)
	}
	const tasks = 5
	id := ace.ExperimentWorkflowID("lost")
	runID, err := e.StartExperiment(t.Context(), ace.ExperimentInput{ExperimentID: "lost", DatasetID: "five",
		Dataset: ref, Tasks: tasks, Adapter: ace.Offline, Epochs: 1, Parallel: 1, Provider: "scripted",
		Model: "script"})
	if err != nil {
		t.Fatal(err)
	}
	reach := func(task string) {
		t.Helper()
		if got := <-script.reached; got != task {
			t.Fatalf("reached %s, not %s", got, task)
		}
	}
	versions := func(e *engine.Engine, want int) {
		t.Helper()
		if b, err := e.Books.Branch("lost"); err != nil || b.Versions != want {
			t.Errorf("%d versions of the playbook, want %d; %v", b.Versions, want, err)
		}
	}

	reach("lost-e1-0002")
	copyDatabase(t, filepath.Join(dir, "temporal.db"), filepath.Join(dir, "copy.db"))
	script.release <- struct{}{}
	reach("lost-e1-0005")
	versions(e, 4)
	if err := e.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	// The connections of a process to a path stay open, so the directory gets another path.
	after := filepath.Join(parent, "after")
	if err := os.Rename(dir, after); err != nil {
		t.Fatal(err)
	}
	database := filepath.Join(after, "temporal.db")
	_, _ = os.Remove(database+"-wal"), os.Remove(database+"-shm")
	if err := os.Rename(filepath.Join(after, "copy.db"), database); err != nil {
		t.Fatal(err)
	}
	script = newScripted()
	e = open(t, after, script)
	end := func(runID string) {
		t.Helper()
		for _, task := range []string{"lost-e1-0002", "lost-e1-0005"} {
			reach(task)
			script.release <- struct{}{}
		}
		var p ace.ExperimentProgress
		err := e.Client.GetWorkflow(t.Context(), id, runID).Get(t.Context(), &p)
		if err != nil || p.Epochs[0].Tasks != tasks || p.Epochs[0].Failed != 0 {
			t.Errorf("%+v, %v", p, err)
		}
	}
	end(runID)
	versions(e, tasks)
	again, err := e.Reset(t.Context(), id, runID, 4, runID, "test")
	if err != nil {
		t.Fatal(err)
	}
	end(again)
	versions(e, 2*tasks)
}

// copyDatabase copies a database that is in use.
func copyDatabase(t *testing.T, from, to string) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+from)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec("VACUUM INTO ?", to); err != nil {
		t.Fatal(err)
	}
}
