package engine_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"os"
	"testing"
	"time"

	sdkactivity "go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/worker"

	"acescope/engine"
	"acescope/engine/ace"
	"acescope/engine/activities"
	"acescope/engine/tasks/run"
	"acescope/engine/tasks/runner"
	"acescope/engine/workflows"
)

// dyingWorkerProgram is a worker of a data directory that dies after it received the dispatcher's
// answer to a run.
func dyingWorkerProgram(config []byte) error {
	var dir string
	if err := json.Unmarshal(config, &dir); err != nil {
		return err
	}
	e, err := engine.Open(context.Background(), engine.Options{DataDir: dir, Version: "test"})
	if err != nil {
		return err
	}
	err = serveAnswers(e, func(*runner.Answer) {
		for { // until the dispatcher considers the answer delivered
			v, err := e.Client.QueryWorkflow(context.Background(), runner.DispatcherID(ace.TaskQueue), "",
				runner.QueryDispatcher, runner.ViewOptions{})
			var view runner.View
			if err == nil && v.Get(&view) == nil && view.Running == 1 {
				killSelf()
			}
			time.Sleep(10 * time.Millisecond)
		}
	}).Start()
	if err == nil {
		_, _ = io.Copy(io.Discard, os.Stdin)
	}
	return err
}

// answerRecorder is a worker registry that passes each answer to a run to a function.
type answerRecorder struct {
	worker.Worker
	answered func(*runner.Answer)
}

func (w answerRecorder) RegisterActivityWithOptions(fn any, o sdkactivity.RegisterOptions) {
	if tell, ok := fn.(func(context.Context, runner.Notices) (*runner.Answer, error)); ok {
		fn = func(ctx context.Context, n runner.Notices) (*runner.Answer, error) {
			a, err := tell(ctx, n)
			if a != nil {
				w.answered(a)
			}
			return a, err
		}
	}
	w.Worker.RegisterActivityWithOptions(fn, o)
}

// serveAnswers is a worker for runs, runners and the dispatcher.
func serveAnswers(e *engine.Engine, answered func(*runner.Answer)) worker.Worker {
	w := worker.New(e.Client, ace.TaskQueue, worker.Options{WorkerStopTimeout: time.Second})
	workflows.Register(w)
	(&activities.Dispatch{Workflows: e.Client, TaskQueue: ace.TaskQueue,
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil))}).Register(answerRecorder{w, answered})
	return w
}

// TestAnswerLost kills the process that executes a run and the dispatcher after the answer and
// before the run recorded it. The run asks again and gets the same runner and claim.
func TestAnswerLost(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	e := openEngine(t, engine.Options{DataDir: dir, Takeover: true})
	p := startProgram(t, nil, "dying worker", dir)
	env := &dispatchEnv{e, t}
	env.startRunner("r", func(r *runner.Registration) { r.HeartbeatMS = 60_000 })
	runs := e.Runs(blueprintMap{"noop": {Name: "noop", Type: run.Deterministic, Argv: []string{"true"}}})
	started, err := runs.Start(t.Context(), run.Request{AgentName: "noop", Parameters: noParameters})
	if err != nil {
		t.Fatal(err)
	}
	p.await()
	if p.ProcessState.Exited() {
		t.Fatalf("the process was not killed: %v", p.ProcessState)
	}
	answers := make(chan runner.Answer, 10)
	w := serveAnswers(e, func(a *runner.Answer) { answers <- *a })
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
	var st run.State
	waitUntil(t, "claimed", func() bool {
		st, err = runs.State(t.Context(), started.RunID)
		return err == nil && st.Claim != nil
	})
	if st.Claim.RunnerID != "r" || st.Try != 1 {
		t.Errorf("%+v", st.Claim)
	}
	// the runner executes nothing, so the run may have ended
	if v := env.view(); v.Matched != 1 || v.Waiting != 0 {
		t.Errorf("the dispatcher has %+v", v)
	}
	select {
	case a := <-answers:
		if a.Claimed == nil || a.Claimed.Number != st.Claim.Number {
			t.Errorf("%+v", a)
		}
	default: // delivered by a signal
	}
}
