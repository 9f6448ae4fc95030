package engine_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"acescope/engine"
	"acescope/engine/ace"
	"acescope/engine/agents/agentcli/agentclitest"
	"acescope/engine/agents/session"
	"acescope/engine/learning/playbook"
	"acescope/engine/learning/problems"
	"acescope/engine/store/bucket/buckettest"
	"acescope/engine/tasks/run"
	"acescope/sources/experiments"
)

// skews are the differences between the clock of a machine and that of the server and the store.
var skews = []string{"1h", "-1h"}

func init() { programs["agent machine"] = agentMachine }

func needShiftedClocks(t *testing.T) {
	if _, err := clockFunction(); err != nil {
		t.Skip("the clock of a process cannot be shifted here:", err)
	}
}

// TestClocksDiffer runs an experiment on machines whose clocks differ by two hours, one of which is killed.
// The store denies requests with another time than its own, as S3 does.
func TestClocksDiffer(t *testing.T) {
	needShiftedClocks(t)
	newCluster(t)
	store, denied := buckettest.StartS3(t), make(chan string, 1000)
	store.Fail(func(r *http.Request) (code string) {
		at, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
		if err != nil || time.Since(at).Abs() > 15*time.Minute {
			denied <- r.URL.Path
			return "RequestTimeTooSkewed"
		}
		return ""
	})
	serve := func(skew string) *process {
		t.Setenv(skewEnv, skew)
		defer t.Setenv(skewEnv, "")
		p := startProgram(t, nil, "worker", workerConfig{Dir: t.TempDir(), Store: store.URL()})
		return p.waitLine("serving")
	}
	var serving []*process
	for _, skew := range skews {
		serving = append(serving, serve(skew))
	}
	e := openEngine(t, engine.Options{DataDir: t.TempDir(), Remote: &engine.Remote{}})
	const tasks = 12
	var lines []byte
	for _, p := range problems.Finance(1, tasks) {
		line, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(append(lines, line...), '\n')
	}
	ref, err := e.Artifacts.PutBytes(t.Context(), lines, "application/jsonl")
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	in := ace.ExperimentInput{ExperimentID: "skewed", DatasetID: "sums", Dataset: ref, Tasks: tasks,
		Adapter: ace.Online, Window: 2, Epochs: 1, Parallel: 2, Provider: "builtin", Model: "rules", PaceMS: 50}
	runID, err := e.StartExperiment(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	ended := 0
	state, err := experiments.Follow(t.Context(), e.Client, e.Namespace(), ace.ExperimentWorkflowID("skewed"),
		runID, nil, func(ace.ExperimentInput, experiments.Finished) {
			if ended++; ended == tasks/2 {
				serving[0].end()
				serve(skews[0])
			}
		})
	if err != nil || state.Status() != ace.Completed {
		t.Fatal(err, state)
	}
	if p := state.Progress.Epochs[0]; p.Tasks != tasks || p.Failed != 0 {
		t.Errorf("%+v", p)
	}
	if len(denied) < len(skews) {
		t.Errorf("the store denied %d requests: the clocks did not differ", len(denied))
	}
	if n := len(denied); n > 20*len(skews) {
		t.Errorf("the store denied %d requests: the client does not remember the difference", n)
	}
	if err := e.Books.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	checkMergeTimes(t, e.Books, began)
}

// checkMergeTimes checks that the versions of the branch have the server's times, because they are compared
// with the times of runs.
func checkMergeTimes(t *testing.T, books *playbook.Store, began time.Time) {
	t.Helper()
	versions, err := books.Page("skewed", 0, 100)
	if err != nil || len(versions) == 0 {
		t.Fatal(versions, err)
	}
	for _, v := range versions {
		if v.At.Before(began.Add(-time.Minute)) || v.At.After(time.Now().Add(time.Minute)) {
			t.Errorf("version %d has the time %s, the experiment began at %s", v.Seq, v.At, began)
		}
	}
}

// agentMachine serves sessions of a cluster until its input is closed.
func agentMachine(config []byte) error {
	e, err := engine.Open(context.Background(), engine.Options{DataDir: string(bytes.Trim(config, `"`)),
		Version: "test", Worker: true, Remote: &engine.Remote{}, HostAgents: true})
	if err != nil {
		return err
	}
	fmt.Println("serving")
	_, _ = io.Copy(io.Discard, os.Stdin)
	return e.Close(context.Background())
}

// TestSessionClocksDiffer checks that a session on a machine whose clock differs from the server's ends when
// it is stopped, without a timeout.
func TestSessionClocksDiffer(t *testing.T) {
	needShiftedClocks(t)
	newCluster(t)
	for _, skew := range skews {
		t.Run(skew, func(t *testing.T) {
			t.Setenv(skewEnv, skew)
			id := "skewed" + skew
			h := &sessionEnv{t: t, dir: t.TempDir(), work: t.TempDir(), agent: agentclitest.New(t, "claude"),
				Engine: openEngine(t, engine.Options{DataDir: t.TempDir(), Remote: &engine.Remote{}})}
			startProgram(t, h.agent, "agent machine", h.dir).waitLine("serving")
			h.startSession(id, func(in *session.Input) {
				in.First = &session.Message{ID: "m1", Text: "SCENARIO: say one"}
			})
			h.waitSession(id, turnsEnded(1))
			h.stopSession(id)
			workflow := h.Client.GetWorkflow(t.Context(), session.WorkflowID(id), "")
			if err := workflow.Get(t.Context(), nil); err != nil {
				t.Error(err)
			}
			s := h.waitSession(id, hasEnded)
			if s.Exit != ace.Completed {
				t.Errorf("the session ended as %s", s.Exit)
			}
			if r := s.Recent[0]; r.Status != session.TurnCompleted || r.Text != "one" {
				t.Errorf("%+v", r)
			}
			for _, e := range eventsOf(t, h.Client, session.WorkflowID(id)).Events {
				if strings.Contains(e.GetEventType().String(), "TimedOut") {
					t.Errorf("event %d: %s", e.GetEventId(), e)
				}
			}
		})
	}
}

// TestRunnerClocksDiffer checks that runners whose clocks differ by two hours keep their leases, that a run
// moves when its runner is killed, and that its time limit is shown by the server's clock.
func TestRunnerClocksDiffer(t *testing.T) {
	needShiftedClocks(t)
	s := newRunEnv(t, true)
	s.startWorker(nil)
	t.Setenv(skewEnv, skews[1])
	first := s.startRunnerProcess(member{Runner: "behind", Tags: []string{"x"}})
	in := s.startRun(run.Request{AgentName: "mover", Requirements: requireTags("x")})
	s.pids(in, 1)
	t.Setenv(skewEnv, skews[0])
	s.startRunnerProcess(member{Runner: "ahead", Tags: []string{"x"}})
	first.kill()
	s.pids(in, 2)
	st := s.waitRun(in, hasStatus(run.Running))
	if left := time.Until(st.TimeoutAt) - st.TimeLimit(); left.Abs() > 5*time.Minute {
		t.Errorf("the time limit ends %s too late", left)
	}
	s.release(in)
	if r := s.expectResult(in, run.Completed, ""); r.Runner != "ahead" {
		t.Errorf("%+v", r)
	}
	s.checkSettled()
}
