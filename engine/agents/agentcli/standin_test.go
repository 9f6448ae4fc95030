package agentcli_test

import (
	"bytes"
	"os/exec"
	"testing"

	"acescope/engine/agents/agentcli"
	"acescope/engine/agents/agentcli/agentclitest"
	"acescope/engine/internal/process"
)

// callResult is the outcome of a call of a stand-in.
type callResult struct {
	agentcli.Outcome
	events []agentcli.Event
	stderr string
}

// call runs a stand-in with the command of its adapter.
func call(t *testing.T, a *agentclitest.Agent, cli agentcli.CLI, c agentcli.Call) callResult {
	t.Helper()
	adapter, err := agentcli.For(cli)
	if err != nil {
		t.Fatal(err)
	}
	c.Binary = a.Binary()
	if c.WorkingDir == "" {
		c.WorkingDir = a.Dir()
	}
	how, err := adapter.Command(c)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), how.Argv[0], how.Argv[1:]...)
	cmd.Dir, cmd.Env = how.Dir, append(cmd.Environ(), how.Env...)
	cmd.Stdin = bytes.NewReader(how.Input)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	runErr := cmd.Run()
	if cmd.ProcessState == nil {
		t.Fatal(runErr)
	}
	var judge agentcli.Judge
	var events []agentcli.Event
	err = agentcli.NewReader(&out, cli).All(func(e agentcli.Event) error {
		e.Raw = nil
		events = append(events, e)
		judge.Add(e)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	exit := process.Exit{Class: process.Exited, Code: cmd.ProcessState.ExitCode()}
	if exit.Code < 0 {
		exit.Signal = "killed"
	}
	return callResult{judge.Outcome(exit, errs.String()), events, errs.String()}
}
