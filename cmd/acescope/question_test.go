//go:build unix

package main

import (
	"bytes"
	"context"
	"errors"
	"os/exec"
	"strings"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"acescope/cmd/acescope/internal/admin"
	"acescope/cmd/acescope/internal/cli"
	"acescope/cmd/acescope/internal/runs"
	"acescope/engine"
	"acescope/engine/ace"
	"acescope/engine/temporal/fork"
	"acescope/sources/cluster"
	sourceruns "acescope/sources/runs"
	"acescope/views/console"
)

// asked hosts a server in the test's own process, with a worker where runs are to end.
func asked(t *testing.T, worker bool) (*engine.Engine, string) {
	t.Helper()
	dir := t.TempDir()
	e, err := engine.Open(t.Context(), engine.Options{DataDir: dir, Version: "test", Worker: worker, Takeover: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, stop := context.WithTimeout(context.Background(), 10*time.Second)
		defer stop()
		if err := e.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return e, dir
}

// exits waits for the end of a command in a terminal, and gives its exit code.
func (t *terminal) exits() int {
	t.t.Helper()
	select {
	case err := <-t.ended:
		t.ended <- err
		<-t.drained
		var failed *exec.ExitError
		if err != nil && !errors.As(err, &failed) {
			t.t.Fatal(err)
		}
		if failed != nil {
			return failed.ExitCode()
		}
		return 0
	case <-time.After(time.Minute):
		t.t.Fatalf("it did not end:\n%s", t.screen.String())
	}
	return 0
}

// TestQuestion asks on a terminal before it forks: only yes is a yes. Nothing but text is
// written to the terminal, so that nothing comes back from it as if somebody had typed.
func TestQuestion(t *testing.T) {
	e, dir := asked(t, true)
	label := "42"
	in := ace.TaskInput{TaskID: "q", Prompt: "Compute 6 times 7.", Label: &label, Adapter: ace.Offline, Provider: "builtin", Model: "builtin-recipes-1", ExperimentID: "q", DatasetID: "none"}
	runID, err := e.StartTask(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Client.GetWorkflow(t.Context(), "ace/q", runID).Get(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	_, _, err = e.Newest(t.Context(), "ace/q~f1")
	if !cluster.NotFound(err) {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, keys string
		code       int
		says       string
	}{
		{"no", "n\r", cli.ExitFailed, "nothing was done"},
		{"nothing", "\r", cli.ExitFailed, "nothing was done"},
		{"another word", "yesterday\r", cli.ExitFailed, "nothing was done"},
		{"end of input", "\x04", cli.ExitFailed, "nothing was done"},
		{"ctrl+c", "\x03", cli.ExitInterrupted, "interrupted"},
		{"yes", "yes\r", cli.ExitFine, "q~f1 is forked from q"},
	} {
		t.Run(c.name, func(t *testing.T) {
			term := openTerminal(t, dir, 100, 40, "fork", "q", "--phase", "reflector", "--model", "other")
			term.await("Fork q?", "run         "+runID, "model: builtin-recipes-1 → other", "costs       nothing", "leave it")
			term.press(c.keys)
			if code := term.exits(); code != c.code {
				t.Errorf("exits %d, want %d", code, c.code)
			}
			if !strings.Contains(term.screen.String(), c.says) {
				t.Errorf("does not say %q:\n%s", c.says, term.screen.String())
			}
			if bytes.ContainsRune(term.bytes, '\x1b') {
				t.Errorf("it sent the terminal more than text: %q", term.bytes)
			}
			if _, _, err := e.Newest(t.Context(), "ace/q~f1"); cluster.NotFound(err) == (c.name == "yes") {
				t.Errorf("the fork: %v", err)
			}
		})
	}
	t.Run("help", func(t *testing.T) {
		term := openTerminal(t, dir, 100, 60, "fork", "--help")
		if code := term.exits(); code != cli.ExitFine || bytes.Contains(term.bytes, []byte("\x1b]")) || bytes.Contains(term.bytes, []byte("\x1b[c")) {
			t.Errorf("exits %d, and wrote %q", code, term.bytes)
		}
	})
}

// replaced starts a run, and gives what makes another of its id take its place.
func replaced(t *testing.T, e *engine.Engine, id string) (old console.Target, replace func() (anew string)) {
	t.Helper()
	start := func() string {
		run, err := e.Client.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: id, TaskQueue: "nobody",
			WorkflowIDReusePolicy: enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE}, ace.TaskWorkflow, ace.TaskInput{TaskID: ace.TaskIDOf(id)})
		if err != nil {
			t.Fatal(err)
		}
		return run.GetRunID()
	}
	old = console.Target{WorkflowID: id, RunID: start()}
	return old, func() string {
		if err := e.Terminate(t.Context(), id, old.RunID, "it makes room"); err != nil {
			t.Fatal(err)
		}
		return start()
	}
}

// untouched demands that nothing has happened to a run since it was started.
func untouched(t *testing.T, e *engine.Engine, id, runID string) {
	t.Helper()
	r, err := e.Client.DescribeWorkflowExecution(t.Context(), id, "")
	if err != nil {
		t.Fatal(err)
	}
	info := r.GetWorkflowExecutionInfo()
	if info.GetExecution().GetRunId() != runID || info.GetStatus() != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING || info.GetHistoryLength() != 2 {
		t.Errorf("the newer run %s is not as it was: %v", runID, info)
	}
}

// TestReplacedRun replaces a run between the question and the answer: what was asked of the
// old one is done to nobody, from the console and from the command line.
func TestReplacedRun(t *testing.T) {
	e, dir := asked(t, false)
	l := &admin.Link{Engine: e}
	ctx := t.Context()
	for name, prepare := range map[string]func(of console.Target) (console.Prepared, error){
		"terminate": func(of console.Target) (console.Prepared, error) { return l.PrepareTerminate(of, "why") },
		"signal":    func(of console.Target) (console.Prepared, error) { return l.PrepareSignal(of, "any", "1") },
		"reset": func(of console.Target) (console.Prepared, error) {
			return runs.PreparedReset(ctx, e, of, fork.Reset{Event: 4, Kept: 3, Lost: 1}, "why")
		},
		"cancel": func(of console.Target) (console.Prepared, error) {
			return console.Prepared{Lines: []string{of.WorkflowID, of.RunID}, Do: func(ctx context.Context) (string, sourceruns.Run, error) {
				return "", sourceruns.Run{}, l.Cancel(ctx, of.WorkflowID, of.RunID)
			}}, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			old, replace := replaced(t, e, "ace/console-"+name)
			p, err := prepare(old)
			if err != nil || !strings.Contains(strings.Join(p.Lines, "\n"), old.RunID) {
				t.Fatalf("%v, %v", p.Lines, err)
			}
			anew := replace()
			if _, _, err := p.Do(ctx); err == nil {
				t.Error("it says that it was done")
			}
			untouched(t, e, old.WorkflowID, anew)
		})
	}
	for name, args := range map[string][]string{"cancel": nil, "terminate": {"--reason", "why"}, "signal": {"any", "1"}} {
		t.Run("command "+name, func(t *testing.T) {
			old, replace := replaced(t, e, "ace/cli-"+name)
			term := openTerminal(t, dir, 100, 40, append([]string{name, "cli-" + name}, args...)...)
			term.await("workflow  "+old.WorkflowID, "run       "+old.RunID, "leave it")
			anew := replace()
			term.press("y\r")
			if code := term.exits(); code == cli.ExitFine || !strings.Contains(term.screen.String(), "acescope: ") {
				t.Errorf("exits %d:\n%s", code, term.screen.String())
			}
			untouched(t, e, old.WorkflowID, anew)
		})
	}
}
