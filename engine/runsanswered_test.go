package engine_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
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

// mortalDir makes the test binary a worker of a data directory that dies after it received the
// dispatcher's answer to a run.
const mortalDir = "ACESCOPE_TEST_MORTAL"

func mortalMain() {
	dir := os.Getenv(mortalDir)
	if dir == "" {
		return
	}
	e, err := engine.Open(context.Background(), engine.Options{DataDir: dir, Version: "test"})
	if err == nil {
		err = serveAnswers(e, func(*runner.Answer) {
			for { // until the dispatcher believes that the run has heard it
				v, err := e.Client.QueryWorkflow(context.Background(), runner.DispatcherID, "", runner.QueryDispatcher, runner.ViewOptions{})
				var view runner.View
				if err == nil && v.Get(&view) == nil && view.Running == 1 {
					break
				}
				time.Sleep(10 * time.Millisecond)
			}
			self, _ := os.FindProcess(os.Getpid())
			_ = self.Kill()
			select {}
		}).Start()
	}
	if err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(1)
}

// tellWith is a worker registry that passes each answer to a run to a function.
type tellWith struct {
	worker.Worker
	answered func(*runner.Answer)
}

func (w tellWith) RegisterActivityWithOptions(fn any, o sdkactivity.RegisterOptions) {
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
	(&activities.Dispatch{Workflows: e.Client, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))}).Register(tellWith{w, answered})
	return w
}

// TestAnswerLost kills the process that executes a run and the dispatcher after the answer and
// before the run recorded it. The run asks again and gets the same runner and claim.
func TestAnswerLost(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	e, err := engine.Open(t.Context(), engine.Options{DataDir: dir, Version: "test", Takeover: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close(context.Background()) })
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dying, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(dying, self)
	cmd.Env = append(os.Environ(), mortalDir+"="+dir)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close(); _ = cmd.Process.Kill() })

	y := &yard{e, t}
	y.runner("r", func(r *runner.Registration) { r.HeartbeatMS = 60_000 })
	runs := e.Runs(shelf{"noop": {Name: "noop", Type: run.Deterministic, Argv: []string{"true"}}})
	started, err := runs.Start(t.Context(), run.Request{AgentName: "noop", Parameters: none})
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil || cmd.ProcessState.Exited() || dying.Err() != nil {
		t.Fatalf("the process was not killed: %v", cmd.ProcessState)
	}
	answers := make(chan runner.Answer, 10)
	w := serveAnswers(e, func(a *runner.Answer) { answers <- *a })
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
	var st run.State
	comes(t, "claimed", func() bool {
		st, err = runs.State(t.Context(), started.RunID)
		return err == nil && st.Claim != nil
	})
	if st.Claim.RunnerID != "r" || st.Try != 1 {
		t.Errorf("%+v", st.Claim)
	}
	if v := y.view(); v.Matched != 1 || v.Waiting != 0 { // the runner executes nothing, so that the run may be over
		t.Errorf("the dispatcher knows %+v", v)
	}
	select {
	case a := <-answers:
		if a.Claimed == nil || a.Claimed.Number != st.Claim.Number {
			t.Errorf("%+v", a)
		}
	default: // by a signal
	}
}
