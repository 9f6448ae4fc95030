package engine_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"acescope/engine"
	"acescope/engine/ace"
	"acescope/engine/learning/problems"
	"acescope/engine/temporal/codec"
	"acescope/engine/temporal/codec/codectest"
)

// TestEncodedStore runs an experiment with a codec server that also encodes the objects of the shared store. It
// checks that another machine reads the playbook, and that the store contains nothing of it as plain text.
func TestEncodedStore(t *testing.T) {
	newCluster(t)
	web := codectest.New(codectest.Cipher{Key: "k"}, "")
	t.Cleanup(web.Close)
	dir := filepath.Join(t.TempDir(), "store")
	machine := func(o engine.Options) engine.Options {
		o.DataDir, o.Remote, o.Version = t.TempDir(), &engine.Remote{}, "test"
		o.Codec = codec.Config{Endpoint: web.URL}
		return o
	}
	first := openEngine(t, machine(engine.Options{Worker: true, Store: "file://" + dir + "?codec=true"}))
	const tasks = 4
	var lines []byte
	plain := [][]byte{[]byte("bullet"), []byte("sha256"), []byte(`"context"`)} // of playbooks, references, tasks
	for _, p := range problems.Finance(1, tasks) {
		line, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(append(lines, line...), '\n')
		plain = append(plain, line)
	}
	ref, err := first.Artifacts.PutBytes(t.Context(), lines, "application/jsonl")
	if err != nil {
		t.Fatal(err)
	}
	runID, err := first.StartExperiment(t.Context(), ace.ExperimentInput{ExperimentID: "encoded",
		DatasetID: "finance", Dataset: ref, Tasks: tasks, Adapter: ace.Offline, Epochs: 1, Parallel: 1,
		Provider: "builtin", Model: "rules"})
	if err != nil {
		t.Fatal(err)
	}
	var p ace.ExperimentProgress
	err = first.Client.GetWorkflow(t.Context(), ace.ExperimentWorkflowID("encoded"), runID).Get(t.Context(), &p)
	if err != nil || p.Epochs[0].Tasks != tasks || p.Epochs[0].Failed != 0 || p.Bullets == 0 {
		t.Fatalf("%+v, %v", p, err)
	}

	second := openEngine(t, machine(engine.Options{LookOnly: true}))
	if err := second.Books.Sync(t.Context(), "encoded"); err != nil {
		t.Fatal(err)
	}
	b, err := second.Books.Branch("encoded")
	if err != nil || b.Head != p.After {
		t.Errorf("%+v, %v; the experiment ended with %s", b, err, p.After)
	}
	book, err := second.Books.Get(t.Context(), b.Head)
	if err != nil || len(book.Bullets) != p.Bullets {
		t.Fatalf("%+v, %v", book, err)
	}
	for _, bullet := range book.Bullets {
		plain = append(plain, []byte(bullet.Content))
	}
	if got, err := second.Artifacts.Get(t.Context(), ref, 1<<20); err != nil || !bytes.Equal(got, lines) {
		t.Errorf("the data set: %.200q, %v", got, err)
	}
	checkNotIn(t, dir, plain)

	blind := machine(engine.Options{Worker: true})
	blind.Codec = codec.Config{}
	if e, err := engine.Open(t.Context(), blind); !errors.Is(err, engine.ErrStore) {
		t.Errorf("a machine without the codec server: %v, %v", e, err)
	}
}

// checkNotIn checks that no file of a store contains one of the texts, and that there are files.
func checkNotIn(t *testing.T, dir string, texts [][]byte) {
	t.Helper()
	files := 0
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		files++
		content, err := os.ReadFile(path)
		for _, text := range texts {
			if bytes.Contains(content, text) {
				t.Errorf("%s contains %q", path, text)
			}
		}
		return err
	})
	if err != nil || files < 4 {
		t.Errorf("the store has %d objects, %v", files, err)
	}
}
