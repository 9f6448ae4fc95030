package engine_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"acescope/engine"
	"acescope/engine/ace"
	"acescope/engine/store/garbage"
	"acescope/sources/experiments"
)

// TestCollectGarbage deletes from a shared store, all of whose objects are old, what nothing refers to, and
// checks that another machine still finds everything that the runs and the branch need.
func TestCollectGarbage(t *testing.T) {
	newCluster(t)
	store := t.TempDir()
	o := engine.Options{DataDir: t.TempDir(), Worker: true, Remote: &engine.Remote{}, Store: "file://" +
		store}
	e := openWith(t, o, newScripted())
	put := func(text string) ace.Ref {
		t.Helper()
		ref, err := e.Artifacts.PutBytes(t.Context(), []byte(text), "application/jsonl")
		if err != nil {
			t.Fatal(err)
		}
		return ref
	}
	dataset := put(`{"context":"large 1","target":"42"}` + "\n" + `{"context":"large 2","target":"42"}` +
		"\n")
	unused := put("nothing refers to this")
	runID, err := e.StartExperiment(t.Context(), ace.ExperimentInput{ExperimentID: "kept", DatasetID: "two",
		Dataset: dataset, Tasks: 2, Adapter: ace.Offline, Epochs: 1, Parallel: 1, Provider: "scripted",
		Model: "script"})
	if err != nil {
		t.Fatal(err)
	}
	state, err := experiments.Follow(t.Context(), e.Client, e.Namespace(), ace.ExperimentWorkflowID("kept"),
		runID, nil,
		func(ace.ExperimentInput, experiments.Finished) {})
	if err != nil || state.Status() != ace.Completed {
		t.Fatal(err, state)
	}
	age(t, store)
	for _, dryRun := range []bool{true, false} {
		r, err := engine.CollectGarbage(t.Context(), e,
			garbage.Options{OlderThan: 48 * time.Hour, DryRun: dryRun}, nil)
		if err != nil || r.Deleted.Objects != 1 || r.Deleted.Bytes != unused.Size || r.Recent.Objects != 0 {
			t.Errorf("dry run %t: %+v, %v", dryRun, r, err)
		}
	}
	other := openEngine(t, engine.Options{DataDir: t.TempDir(), Remote: &engine.Remote{}})
	for ref, want := range map[ace.Ref]bool{dataset: true, unused: false} {
		if has, err := other.Artifacts.Has(t.Context(), ref); err != nil || has != want {
			t.Errorf("%+v: %t, %v", ref, has, err)
		}
	}
	if err := other.Books.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	for seq := range 3 {
		hash, err := other.Books.At("kept", seq)
		if err == nil {
			_, err = other.Books.Get(t.Context(), hash)
		}
		if err != nil {
			t.Errorf("version %d: %v", seq, err)
		}
	}
}

// age sets the time of all files in a directory back by ten days.
func age(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		return os.Chtimes(path, time.Time{}, time.Now().Add(-10*24*time.Hour))
	})
	if err != nil {
		t.Fatal(err)
	}
}
