package engine_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"acescope/engine"
	"acescope/engine/ace"
	"acescope/engine/agents/agentcli/agentclitest"
	"acescope/engine/agents/session"
	"acescope/engine/agents/transcript/copies"
	"acescope/engine/store/bucket/buckettest"
	"acescope/sources/experiments"
	"acescope/sources/sessions"
	"acescope/sources/transcripts"
)

// newCluster starts a server that the environment names for the clients of a cluster.
func newCluster(t *testing.T) {
	t.Helper()
	server := openEngine(t, engine.Options{DataDir: t.TempDir(), Takeover: true})
	for _, v := range server.Node().Env() {
		t.Setenv(v.Name, v.Value)
	}
}

// TestMachinesShareAnExperiment runs an experiment on two machines, each of which is killed, and on one that
// starts when the first is killed. It checks that nothing is lost and that another machine sees all of it.
func TestMachinesShareAnExperiment(t *testing.T) { buckettest.Each(t, testMachinesShareAnExperiment) }

func testMachinesShareAnExperiment(t *testing.T, store string) {
	const tasks = 16
	newCluster(t)
	serve := func() *process {
		return startProgram(t, nil, "worker", workerConfig{Dir: t.TempDir(), Store: store}).waitLine("serving")
	}
	first, second := serve(), serve()

	e := openEngine(t, engine.Options{DataDir: t.TempDir(), Remote: &engine.Remote{}})
	var lines strings.Builder
	for i := range tasks {
		fmt.Fprintf(&lines, "{\"context\":\"How much is %d + 1?\",\"target\":\"%d\"}\n", i, i+1)
	}
	ref, err := e.Artifacts.PutBytes(t.Context(), []byte(lines.String()), "application/jsonl")
	if err != nil {
		t.Fatal(err)
	}
	in := ace.ExperimentInput{ExperimentID: "shared", DatasetID: "sums", Dataset: ref, Tasks: tasks,
		Adapter: ace.Online, Window: 4, Epochs: 1, Parallel: 4, Provider: "builtin", Model: "rules", PaceMS: 100}
	runID, err := e.StartExperiment(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	ended := 0
	state, err := experiments.Follow(t.Context(), e.Client, e.Namespace(), ace.ExperimentWorkflowID("shared"),
		runID, nil, func(_ ace.ExperimentInput, f experiments.Finished) {
			switch ended++; ended {
			case 4:
				first.end()
				serve()
			case 6:
				second.end()
			}
		})
	if err != nil || state.Status() != ace.Completed {
		t.Fatal(err, state)
	}
	if p := state.Progress.Epochs[0]; p.Tasks != tasks || p.Failed != 0 {
		t.Errorf("%+v", p)
	}
	other := openEngine(t, engine.Options{DataDir: t.TempDir(), Remote: &engine.Remote{}})
	if err := other.Books.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	b, err := other.Books.Branch("shared")
	if err != nil || b.Head != state.Progress.After {
		t.Errorf("%+v, %v; the experiment ended with %s", b, err, state.Progress.After)
	}
	if book, err := other.Books.Get(t.Context(), b.Head); err != nil ||
		len(book.Bullets) != state.Progress.Bullets {
		t.Errorf("%v, %v", book, err)
	}
}

// TestStoreRefusal checks that no process serves a namespace with another store, or without the registered
// one.
func TestStoreRefusal(t *testing.T) {
	newCluster(t)
	dir := filepath.Join(t.TempDir(), "store")
	serve := func(store string) error {
		e, err := engine.Open(t.Context(), engine.Options{DataDir: t.TempDir(), Version: "test", Worker: true,
			Remote: &engine.Remote{}, Store: store})
		if err == nil {
			err = e.Close(context.Background())
		}
		return err
	}
	if err := serve("file://" + dir); err != nil {
		t.Fatal(err)
	}
	if err := serve(""); err != nil {
		t.Error(err)
	}
	err := serve("file://" + t.TempDir())
	if err == nil || !strings.Contains(err.Error(), "namespace ace-dev uses the store file://"+dir) {
		t.Errorf("another store: %v", err)
	}
	if err := os.Rename(dir, dir+"-unmounted"); err != nil {
		t.Fatal(err)
	}
	if err := serve(""); !errors.Is(err, engine.ErrStore) {
		t.Errorf("missing store: %v", err)
	}
	look := openEngine(t, engine.Options{DataDir: t.TempDir(), Remote: &engine.Remote{}, LookOnly: true})
	_, err = look.Books.Get(t.Context(), strings.Repeat("0", 64))
	if err == nil || !strings.Contains(err.Error(), " in the store file://"+dir) {
		t.Errorf("a reader: %v", err)
	}
}

// TestTranscriptElsewhere checks that another machine has the transcript of a session after a turn.
func TestTranscriptElsewhere(t *testing.T) {
	newCluster(t)
	agent, store := agentclitest.New(t, "claude"), "file://"+t.TempDir()
	hosting := openEngine(t, engine.Options{DataDir: t.TempDir(), Worker: true, Remote: &engine.Remote{},
		HostAgents: true,
		Agents:     claudeAt(agent.Binary()), Store: store})
	in := session.Input{SessionID: "s", Agent: "claude", WorkingDir: t.TempDir(),
		First: &session.Message{ID: "m1", Text: "SCENARIO: say one"}}
	if _, err := hosting.StartSession(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	other := openEngine(t, engine.Options{DataDir: t.TempDir(), Remote: &engine.Remote{}, LookOnly: true})
	var found *transcripts.Session
	err := poll(func() error {
		s, err := other.Describe(t.Context(), "s")
		if err == nil {
			err = engine.TranscriptMirror(other)(t.Context())
		}
		if err != nil {
			return err
		}
		var roots []transcripts.Root
		for _, r := range copies.Roots(other.DataDir()) {
			roots = append(roots, transcripts.Root{Format: r.Format, Dir: r.Dir})
		}
		x := transcripts.New(transcripts.Options{Roots: roots})
		if err := x.Once(t.Context()); err != nil {
			return err
		}
		list, _ := x.Sessions()
		if len(list) != 1 || s.AgentSessionID == "" || list[0].ID != s.AgentSessionID || list[0].Turns == 0 {
			return errNotYet
		}
		found = list[0]
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	_, cost := transcripts.Costs([]*transcripts.Session{found}, transcripts.ByAgent, transcripts.CostQuery{})
	if found.Machine == "" || cost.Sessions != 0 {
		t.Errorf("of machine %q, counted %d times", found.Machine, cost.Sessions)
	}
	if row := sessions.RowOf(found); row.Name == "" {
		t.Errorf("%+v", row)
	}
}
