package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"acescope/engine"
	"acescope/engine/ace"
	"acescope/engine/learning/playbook"
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

// TestRootsOutsideHistories checks that what only a heartbeat, a failure, a memo, a schedule, or a directory
// of interrupted evaluations or of cached results refers to is not deleted.
func TestRootsOutsideHistories(t *testing.T) {
	newCluster(t)
	store := t.TempDir()
	e := openWith(t, engine.Options{DataDir: t.TempDir(), Worker: true, Remote: &engine.Remote{},
		Store: "file://" + store}, newScripted())
	needed := map[string]ace.Ref{}
	ref := func(name string) ace.Ref {
		t.Helper()
		r, err := e.Artifacts.PutBytes(t.Context(), []byte(name), "text/plain")
		if err != nil {
			t.Fatal(err)
		}
		needed[name] = r
		return r
	}
	w := worker.New(e.Client, "interrupted", worker.Options{})
	w.RegisterActivityWithOptions(func(ctx context.Context) error {
		activity.RecordHeartbeat(ctx, []ace.Ref{needed["of a heartbeat"]})
		return temporal.NewApplicationError("failed", "of the test", needed["of a failure"])
	}, activity.RegisterOptions{Name: "fail"})
	w.RegisterWorkflowWithOptions(func(ctx workflow.Context) error {
		return workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
			StartToCloseTimeout: time.Hour, RetryPolicy: &temporal.RetryPolicy{InitialInterval: time.Hour},
		}), "fail").Get(ctx, nil)
	}, workflow.RegisterOptions{Name: "interrupted"})
	ref("of a heartbeat")
	ref("of a failure")
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
	run, err := e.Client.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: "interrupted",
		TaskQueue: "interrupted", Memo: map[string]any{"ref": ref("of a memo")}}, "interrupted")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Client.ScheduleClient().Create(t.Context(), client.ScheduleOptions{ID: "monthly",
		Paused: true, Action: &client.ScheduleWorkflowAction{ID: "monthly", Workflow: "w", TaskQueue: "none",
			Args: []any{ref("of a schedule")}}}); err != nil {
		t.Fatal(err)
	}
	for name, of := range map[string]string{"evaluations/e.jsonl": "of an item",
		"cache/operations/ab/c.json": "of a result"} {
		text, err := json.Marshal(map[string]any{"model_calls": ref(of)})
		if err == nil {
			err = os.MkdirAll(filepath.Dir(filepath.Join(e.DataDir(), name)), 0o700)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(e.DataDir(), name), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	service := e.Client.WorkflowService()
	eventually(t, func() error {
		d, err := e.Client.DescribeWorkflowExecution(t.Context(), run.GetID(), run.GetRunID())
		if err != nil {
			return err
		}
		if p := d.GetPendingActivities(); len(p) == 0 || p[0].GetLastFailure() == nil {
			return fmt.Errorf("the step has not failed yet: %v", p)
		}
		list, err := service.ListSchedules(t.Context(), &workflowservice.ListSchedulesRequest{
			Namespace: e.Namespace(), MaximumPageSize: 10})
		if err == nil && len(list.GetSchedules()) == 0 {
			err = errors.New("the schedule is not listed yet")
		}
		return err
	})
	age(t, store)
	r, err := engine.CollectGarbage(t.Context(), e, garbage.Options{OlderThan: 48 * time.Hour}, nil)
	if err != nil || r.Deleted.Objects != 0 {
		t.Errorf("%+v, %v", r, err)
	}
	other := openEngine(t, engine.Options{DataDir: t.TempDir(), Remote: &engine.Remote{}})
	for name, ref := range needed {
		if has, err := other.Artifacts.Has(t.Context(), ref); err != nil || !has {
			t.Errorf("%s: %t, %v", name, has, err)
		}
	}
}

// TestStartRenews checks that the start of a run renews the artifacts and the playbook in its input, which
// may be old and in no history.
func TestStartRenews(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	e := openEngine(t, engine.Options{DataDir: dir, Takeover: true})
	text, err := e.Artifacts.PutBytes(t.Context(), []byte("a text of a prompt"), "text/plain")
	if err != nil {
		t.Fatal(err)
	}
	content := fmt.Sprintf(`{"text":{"sha256":%q,"size":%d}}`, text.SHA256, text.Size)
	prompt, err := e.Artifacts.PutBytes(t.Context(), []byte(content), "text/plain")
	if err != nil {
		t.Fatal(err)
	}
	hash, err := e.Books.Put(t.Context(), &playbook.Playbook{})
	if err != nil {
		t.Fatal(err)
	}
	age(t, filepath.Join(dir, "artifacts"))
	age(t, filepath.Join(dir, "playbooks"))
	_, err = e.StartTask(t.Context(), ace.TaskInput{TaskID: "t", PlaybookHash: hash, PromptRef: &prompt})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"artifacts/" + text.SHA256[:2] + "/" + text.SHA256,
		"artifacts/" + prompt.SHA256[:2] + "/" + prompt.SHA256,
		"playbooks/books/" + hash[:2] + "/" + hash + ".json"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil ||
			time.Since(info.ModTime()) > time.Hour {
			t.Errorf("%s was not renewed: %v", name, err)
		}
	}
}
