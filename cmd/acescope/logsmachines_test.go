package main

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"acescope/cmd/acescope/internal/cli"
	"acescope/cmd/acescope/internal/runs"
	"acescope/engine"
	"acescope/engine/agents/agentcli/agentclitest"
)

// TestLogsOfAnotherMachine reads the logs of a run on machines that do not execute it, while an agent works
// and when it has ended.
func TestLogsOfAnotherMachine(t *testing.T) {
	t.Parallel()
	e, err := engine.Open(t.Context(), engine.Options{DataDir: t.TempDir(), Version: cli.BuildVersion(),
		Takeover: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close(context.Background()) })
	agent := agentclitest.New(t, "claude")
	env := append(os.Environ(), "CLAUDE_CONFIG_DIR="+agent.ConfigDir(),
		"PATH="+agent.Dir()+string(os.PathListSeparator)+os.Getenv("PATH"))
	for _, v := range e.Node().Env() {
		env = append(env, v.Name+"="+v.Value)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	executing, following, later := t.TempDir(), t.TempDir(), t.TempDir()
	prepare := func(dir string, args []string) *exec.Cmd {
		cmd := exec.CommandContext(ctx, "acescope", args...)
		cmd.Env, cmd.Stderr = append(slices.Clone(env), "XDG_DATA_HOME="+dir), os.Stderr
		return cmd
	}
	start := func(dir string, args ...string) *scanned {
		t.Helper()
		cmd := prepare(dir, args)
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
		return scanLines(t, out)
	}
	command := func(dir string, args ...string) string {
		t.Helper()
		out, err := prepare(dir, args).Output()
		if err != nil {
			t.Fatalf("acescope %v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	command(following, "setup", "--store", "file://"+t.TempDir(), "--yes")
	start(executing, "serve", "--host-agents")
	var run runs.StartedLine
	started := command(following, "run", "--provider", "claude", "--detach", "--json",
		`SCENARIO: bash echo one; gate open; bash echo two; say {"final_answer": "42"}`)
	if err := json.Unmarshal([]byte(started), &run); err != nil {
		t.Fatalf("%s: %v", started, err)
	}
	lines := start(following, "logs", run.ID, "--follow", "--from-start", "--json")
	lines.has("/run_generator-0-1@", `"command":"echo one"`)
	if strings.Contains(lines.text.String(), `"command":"echo two"`) || len(agent.Did("gate")) != 1 {
		t.Errorf("the agent did not wait: %.2000s", &lines.text)
	}
	agent.Open("open")
	lines.has("/run_generator-0-1@", `"command":"echo two"`, `"type":"acescope_end"`)

	whole := command(later, "logs", run.ID, "--from-start", "--json")
	for _, part := range []string{"/run_generator-0-1@", `"command":"echo one"`, `"command":"echo two"`,
		`"type":"acescope_end"`} {
		if !strings.Contains(whole, part) {
			t.Errorf("the logs of the ended agent lack %q: %.2000s", part, whole)
		}
	}
	if own := command(executing, "logs", run.ID, "--from-start", "--json"); strings.Contains(own, "-1@") {
		t.Errorf("the machine of the run shows copies: %.2000s", own)
	}
}
