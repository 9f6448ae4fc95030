//go:build unix

package executor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"acescope/engine/tasks/run"
)

// external returns a custom executor, a shell script.
func (h *fixture) external(script string) External {
	h.t.Helper()
	dir := filepath.Join(h.t.TempDir(), "my-executor")
	path := filepath.Join(dir, "exec")
	if os.Mkdir(dir, 0o700) != nil || os.WriteFile(path, []byte("#!/bin/sh\n"+script), 0o700) != nil {
		h.t.Fatal("no executor")
	}
	x, err := NewExternal(path)
	if err != nil || x.Type != "my-executor" {
		h.t.Fatalf("%+v, %v", x, err)
	}
	return x
}

// TestExternal checks the results of custom executors.
func TestExternal(t *testing.T) {
	h := newFixture(t, nil)
	start := Invocation{Mode: Start, SessionID: "ses_1", Prompt: "hello"}
	for _, c := range []struct {
		script string
		status run.Status
		reason run.Reason
		text   string
		output string
	}{
		{`cat > in; echo '{"status":"completed","output":{"n":1},"stdout":"inner","stderr":"","exit_code":0,"duration_seconds":1.5}'`, run.Completed, "", "", `{"n":1}`},
		{`echo '{"status":"completed","output":"said"}'`, run.Completed, "", "", `"said"`},
		{`echo '{"status":"failed","error":"no luck","exit_code":4}'; exit 1`, run.Failed, run.ExitCode,
			"no luck", ``},
		{`echo '{"status":"failed","error":"no luck"}'`, run.Failed, run.AgentFailed, "no luck", ``},
		{`echo '{"status":"stopped"}'`, run.Stopped, "", "", ``},
		{`echo '{"status":"completed"}'; exit 9`, run.Failed, run.ExitCode, "exit code 9", ``},
		{`echo broken >&2; exit 9`, run.Failed, run.ExitCode, "exit code 9: broken", ``},
		{`echo nothing of the kind`, run.Failed, run.Internal, "wrote no result", ``},
		{`:`, run.Failed, run.Internal, "standard output is empty", ``},
		{`echo '{"status":"running"}'`, run.Failed, run.Internal, `status "running"`, ``},
		{`echo '{"status":"completed","exit_code":"x"}'`, run.Failed, run.Internal, "wrote no result", ``},
		{`echo '{"status":"completed"} {"status":"failed"}'`, run.Failed, run.Internal, "wrote no result",
			``},
		{`kill -9 $$`, run.Failed, run.Signaled, "signal", ``},
		{`head -c 5000000 /dev/zero`, run.Failed, run.Internal, "longer than", ``},
	} {
		r := h.RunExternal(t.Context(), h.external(c.script), h.job("", `{}`, ""), start)
		if r.Status != c.status || r.Reason != c.reason || !strings.Contains(r.Error, c.text) ||
			string(r.Output) != c.output || r.RunID != "r1" {
			t.Errorf("%s:\n%+v", c.script, r)
		}
	}
	got, err := os.ReadFile(filepath.Join(h.work, "in"))
	if in, perr := ParseInvocation(got); err != nil || perr != nil || in.Prompt != "hello" ||
		in.Mode != Start {
		t.Errorf("%s, %v, %v", got, err, perr)
	}
}

// TestNewExternal checks the errors of paths that are not executors.
func TestNewExternal(t *testing.T) {
	dir := t.TempDir()
	for path, want := range map[string]string{filepath.Join(dir, "none"): "the program does not exist",
		dir: "is a directory"} {
		if _, err := NewExternal(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v", err)
		}
	}
}
