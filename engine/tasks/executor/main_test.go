package executor

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"acescope/engine/internal/redact"
	"acescope/engine/store/artifact"
	"acescope/engine/tasks/run"
)

// planted is a secret that must not be stored.
const planted = "planted-Zx81-very-secret-value"

// fixture is an executor with its own directory.
type fixture struct {
	*Executor
	t    *testing.T
	dir  string
	work string
	logs *artifact.Logs
}

func newFixture(t *testing.T, change func(*Options)) *fixture {
	t.Helper()
	h := &fixture{t: t, dir: t.TempDir(), work: t.TempDir()}
	store, err := artifact.Open(filepath.Join(h.dir, "artifacts"))
	if err != nil {
		t.Fatal(err)
	}
	h.logs = artifact.NewLogs(h.dir, store)
	tmp := filepath.Join(h.dir, "tmp")
	if err := os.Mkdir(tmp, 0o700); err != nil {
		t.Fatal(err)
	}
	o := Options{Artifacts: store, Logs: h.logs, TempDir: tmp,
		Redact: redact.New(redact.Secret{Kind: "planted", Value: planted})}
	if change != nil {
		change(&o)
	}
	h.Executor = New(o)
	t.Cleanup(func() {
		left, err := os.ReadDir(tmp)
		if err != nil || len(left) > 0 {
			t.Errorf("files are left: %v, %v", left, err)
		}
	})
	return h
}

// job returns a job that runs a shell script.
func (h *fixture) job(script, parameters string, s run.Strategy) Job {
	return Job{RunID: "r1", SessionID: "ses_1", ProjectDir: h.work, Parameters: json.RawMessage(parameters),
		Blueprint: run.Blueprint{Name: "test", Type: run.Deterministic, Script: script, Strategy: s,
			TimeoutSeconds: 60},
		Log: &artifact.LogName{WorkflowID: "run/r1", RunID: "x", Activity: run.ActivityExecute, Seq: 1,
			Attempt: 1}}
}

func (h *fixture) run(script, parameters string, s run.Strategy) run.Result {
	h.t.Helper()
	return h.Run(context.Background(), h.job(script, parameters, s))
}

// stored returns the content of an artifact.
func (h *fixture) stored(sha string, size int64) string {
	h.t.Helper()
	data, err := os.ReadFile(filepath.Join(h.dir, "artifacts", sha[:2], sha))
	if err != nil || int64(len(data)) != size {
		h.t.Fatalf("%d bytes, not %d: %v", len(data), size, err)
	}
	return string(data)
}
