//go:build unix

package main

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestConsoleTrust opens a copy of a data directory whose open flow would create a file: a console executes
// nothing in read-only mode and before the user trusts the copy.
func TestConsoleTrust(t *testing.T) {
	t.Parallel()
	home, dir, work := t.TempDir(), t.TempDir(), t.TempDir()
	file := filepath.Join(work, "flow.yaml")
	text := "flow: mark\nsteps:\n  - {id: go, wait: {signal: go}}\n  - {id: mark, run: [touch, MARK]}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	env := append(os.Environ(), "ACESCOPE_TRUST_DATA_DIR=", "XDG_STATE_HOME="+home+"/state")
	acescope := func(args ...string) {
		t.Helper()
		cmd := exec.Command("acescope", args...)
		cmd.Env = env
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v: %s", args, err, out)
		}
	}
	run := startProcWith(t, env, dir, "flow", "run", file, "--id", "m", "--dir", work, "--json")
	if !run.out.Scan() {
		t.Fatal("the flow does not start")
	}
	_ = run.Process.Kill()
	_ = run.Wait()
	elsewhere := filepath.Join(t.TempDir(), "copy")
	if err := errors.Join(os.CopyFS(elsewhere, os.DirFS(dir)),
		os.Chmod(filepath.Join(elsewhere, "token"), 0o600)); err != nil {
		t.Fatal(err)
	}
	console := func(dir string, args ...string) *terminal {
		cmd := exec.Command("acescope", append(args, "--data-dir", dir)...)
		cmd.Env = []string{"ACESCOPE_TRUST_DATA_DIR="}
		return inTerminal(t, home, 140, 30, cmd)
	}
	for _, d := range []string{dir, elsewhere} {
		acescope("signal", "m", "go", "--yes", "--data-dir", d)
		term := console(d, "--read-only")
		term.await("m", "running", "no worker runs here: read-only mode")
		term.press("q")
		term.quits()
	}
	term := console(elsewhere)
	term.await("Trust this data directory?", elsewhere, "1 open run,")
	term.press("n")
	term.await("m", "running", "no worker runs here: the data directory is not confirmed")
	term.press("q")
	term.quits()
	mark := filepath.Join(work, "MARK")
	if _, err := os.Stat(mark); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("a step was executed before the user agreed: %v", err)
	}
	term = console(elsewhere)
	term.await("Trust this data directory?")
	term.press("y")
	term.await("1 completed")
	if _, err := os.Stat(mark); err != nil {
		t.Error(err)
	}
	term.press("q")
	term.quits()
	term = console(elsewhere)
	term.await("1 completed", "nothing to report")
}
