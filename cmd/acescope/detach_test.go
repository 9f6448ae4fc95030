package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"testing"

	"acescope/cmd/acescope/internal/runs"
	"acescope/engine/agents/agentcli/agentclitest"
)

// TestDetachedRunsShareProcess checks that detached runs and sessions are left to the process that serves,
// and that it ends when only sessions that wait for their user are open.
func TestDetachedRunsShareProcess(t *testing.T) {
	t.Parallel()
	agent := agentclitest.New(t, "claude")
	dir := t.TempDir()
	env := append(os.Environ(), "PATH="+agent.Dir()+string(os.PathListSeparator)+os.Getenv("PATH"))
	detached := func(args ...string) int {
		t.Helper()
		cmd := exec.Command("acescope", append(args, "--detach", "--json", "--data-dir", dir)...)
		cmd.Env = env
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v: %v", args, err)
		}
		var started runs.StartedLine
		if err := json.Unmarshal(out, &started); err != nil {
			t.Fatalf("%s: %v", out, err)
		}
		return started.PID
	}
	first := detached("run", "What is 2 + 2?")
	p, err := os.FindProcess(first)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Kill() })
	for _, args := range [][]string{
		{"run", "What is 3 + 3?"},
		{"session", "start", "--agent", "claude", "--id", "waits", "--dir", t.TempDir()},
	} {
		if pid := detached(args...); pid != first {
			t.Errorf("%v was left to process %d, want %d", args, pid, first)
		}
	}
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
	serve := exec.Command("acescope", "serve", "--until-idle", "1s", "--data-dir", dir)
	serve.Env = env
	if out, err := serve.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	list := exec.Command("acescope", "list", "--type", "session", "--json", "--data-dir", dir)
	if out, err := list.Output(); err != nil || !bytes.Contains(out, []byte(`"phase":"idle"`)) {
		t.Errorf("the session is not open: %v\n%s", err, out)
	}
}
