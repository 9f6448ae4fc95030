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
)

// hostEngine hosts a server in the process of the test; with worker it also executes runs.
func hostEngine(t *testing.T, worker bool) (*engine.Engine, string) {
	t.Helper()
	dir := t.TempDir()
	e, err := engine.Open(t.Context(), engine.Options{DataDir: dir, Version: "test", Worker: worker,
		Takeover: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, stop := context.WithTimeout(context.Background(), time.Minute)
		defer stop()
		if err := e.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return e, dir
}

// exits waits until the command has exited and returns its exit code.
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
		t.t.Fatalf("the command did not exit:\n%s", t.screen.String())
	}
	return 0
}

// TestConfirmFork answers the question of acescope fork: only yes forks. The command must write only text to
// the terminal, since the terminal answers queries with input.
func TestConfirmFork(t *testing.T) {
	t.Parallel()
	e, dir := hostEngine(t, true)
	label := "42"
	in := ace.TaskInput{
		TaskID: "q", Prompt: "Compute 6 times 7.", Label: &label, Adapter: ace.Offline, Provider: "builtin",
		Model: "builtin-recipes-1", ExperimentID: "q", DatasetID: "none",
	}
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
		output     string
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
			term.await("Fork q?", "run         "+runID, "model: builtin-recipes-1 → other",
				"costs       nothing", "do nothing")
			term.press(c.keys)
			if code := term.exits(); code != c.code {
				t.Errorf("exit code %d, want %d", code, c.code)
			}
			if !strings.Contains(term.screen.String(), c.output) {
				t.Errorf("the output lacks %q:\n%s", c.output, term.screen.String())
			}
			if bytes.ContainsRune(term.bytes, '\x1b') {
				t.Errorf("it wrote control sequences: %q", term.bytes)
			}
			if _, _, err := e.Newest(t.Context(), "ace/q~f1"); cluster.NotFound(err) == (c.name == "yes") {
				t.Errorf("the fork: %v", err)
			}
		})
	}
	t.Run("help", func(t *testing.T) {
		term := openTerminal(t, dir, 100, 60, "fork", "--help")
		if code := term.exits(); code != cli.ExitFine || bytes.Contains(term.bytes, []byte("\x1b]")) ||
			bytes.Contains(term.bytes, []byte("\x1b[c")) {
			t.Errorf("exit code %d, output %q", code, term.bytes)
		}
	})
}

// replaceable starts a run and returns a function that replaces it by another run of the same workflow id.
func replaceable(t *testing.T, e *engine.Engine, id string) (old sourceruns.ID,
	replace func() (runID string)) {
	t.Helper()
	start := func() string {
		run, err := e.Client.ExecuteWorkflow(t.Context(),
			client.StartWorkflowOptions{ID: id, TaskQueue: "unserved",
				WorkflowIDReusePolicy: enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE}, ace.TaskWorkflow,
			ace.TaskInput{TaskID: ace.TaskIDOf(id)})
		if err != nil {
			t.Fatal(err)
		}
		return run.GetRunID()
	}
	old = sourceruns.ID{WorkflowID: id, RunID: start()}
	return old, func() string {
		if err := e.Terminate(t.Context(), id, old.RunID, "replaced"); err != nil {
			t.Fatal(err)
		}
		return start()
	}
}

// untouched checks that a run has only its first two events.
func untouched(t *testing.T, e *engine.Engine, id, runID string) {
	t.Helper()
	r, err := e.Client.DescribeWorkflowExecution(t.Context(), id, "")
	if err != nil {
		t.Fatal(err)
	}
	info := r.GetWorkflowExecutionInfo()
	if info.GetExecution().GetRunId() != runID ||
		info.GetStatus() != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING || info.GetHistoryLength() != 2 {
		t.Errorf("the newer run %s was changed: %v", runID, info)
	}
}

// TestReplacedRun replaces a run between the question and the answer: neither the console nor the command
// acts on the newer run.
func TestReplacedRun(t *testing.T) {
	t.Parallel()
	e, dir := hostEngine(t, false)
	l := &admin.Link{Engine: e}
	ctx := t.Context()
	for name, prepare := range map[string]func(of sourceruns.ID) (sourceruns.Prepared, error){
		"terminate": func(of sourceruns.ID) (sourceruns.Prepared, error) {
			return l.Prepare(ctx, of, sourceruns.Change{Verb: "terminate", Reason: "why"})
		},
		"signal": func(of sourceruns.ID) (sourceruns.Prepared, error) {
			return l.Prepare(ctx, of, sourceruns.Change{Verb: "signal", Signal: "any", Argument: "1"})
		},
		"reset": func(of sourceruns.ID) (sourceruns.Prepared, error) {
			return runs.PreparedReset(ctx, e, of, fork.Reset{Event: 4, Kept: 3, Lost: 1}, "why")
		},
		"cancel": func(of sourceruns.ID) (sourceruns.Prepared, error) {
			return sourceruns.Prepared{Lines: []string{of.WorkflowID, of.RunID},
				Do: func(ctx context.Context) (string, sourceruns.Run, error) {
					return "", sourceruns.Run{}, l.Cancel(ctx, of.WorkflowID, of.RunID)
				}}, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			old, replace := replaceable(t, e, "ace/console-"+name)
			p, err := prepare(old)
			if err != nil || !strings.Contains(strings.Join(p.Lines, "\n"), old.RunID) {
				t.Fatalf("%v, %v", p.Lines, err)
			}
			newer := replace()
			if _, _, err := p.Do(ctx); err == nil {
				t.Error("the action on the replaced run succeeded")
			}
			untouched(t, e, old.WorkflowID, newer)
		})
	}
	for name, args := range map[string][]string{
		"cancel": {"cancel", ""}, "terminate": {"cancel", "", "--force", "--reason", "why"},
		"signal": {"signal", "", "any", "1"},
	} {
		t.Run("command "+name, func(t *testing.T) {
			old, replace := replaceable(t, e, "ace/cli-"+name)
			args[1] = "cli-" + name
			term := openTerminal(t, dir, 100, 40, args...)
			term.await("workflow  "+old.WorkflowID, "run       "+old.RunID, "do nothing")
			newer := replace()
			term.press("y\r")
			if code := term.exits(); code == cli.ExitFine || !strings.Contains(term.screen.String(),
				"acescope: ") {
				t.Errorf("exit code %d:\n%s", code, term.screen.String())
			}
			untouched(t, e, old.WorkflowID, newer)
		})
	}
}
