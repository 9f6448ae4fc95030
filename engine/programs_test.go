package engine_test

import (
	"context"
	"strings"
	"testing"

	"acescope/engine"
	"acescope/engine/agents/agentcli/agentclitest"
	"acescope/engine/agents/session"
	"acescope/engine/tasks/runner"
	runnerhost "acescope/engine/tasks/runner/host"
)

// TestClusterStartsNoPrograms checks that a process with workers for a cluster runs only the
// programs that its user asked for: the runner of a name, and no agents.
func TestClusterStartsNoPrograms(t *testing.T) {
	server := openEngine(t, engine.Options{DataDir: t.TempDir(), Takeover: true})
	for _, v := range server.Node().Env() {
		t.Setenv(v.Name, v.Value)
	}
	dir := t.TempDir()
	e := openEngine(t, engine.Options{DataDir: dir, Worker: true, Remote: &engine.Remote{}, Runner: "build"})
	id := runnerhost.UniqueID("build", dir)
	info, err := e.Runner(t.Context(), id)
	for poll(func() error {
		if info, err = e.Runner(t.Context(), id); err == nil && info.Status != runner.Online {
			err = errNotYet
		}
		return err
	}) != nil {
		t.Fatal("the named runner did not register")
	}
	if c := info.Registration.Capabilities; c.AnyProject ||
		strings.Join(c.ExecutorTypes, ",") != runner.Deterministic ||
		info.Registration.SessionQueue != "" {
		t.Errorf("%+v", info.Registration)
	}
	if info, err := e.Runner(t.Context(), engine.LocalRunner); err == nil {
		t.Errorf("a local runner: %+v", info)
	}
	if _, err := e.StartSession(t.Context(), session.Input{SessionID: "s", Agent: "claude",
		WorkingDir: dir}); err != nil {
		t.Fatal(err)
	}
	err = e.Client.GetWorkflow(context.Background(), session.WorkflowID("s"), "").Get(t.Context(), nil)
	if err == nil || !strings.Contains(err.Error(),
		"starts no agents for a cluster; start a worker with \"acescope serve --host-agents\"") {
		t.Errorf("session on a cluster: %v", err)
	}
}

// TestClaimElsewhere checks that a session which one worker of the task queue cannot host is claimed
// by another.
func TestClaimElsewhere(t *testing.T) {
	server := openEngine(t, engine.Options{DataDir: t.TempDir(), Takeover: true})
	for _, v := range server.Node().Env() {
		t.Setenv(v.Name, v.Value)
	}
	dir, agent := t.TempDir(), agentclitest.New(t, "claude")
	without := openEngine(t, engine.Options{DataDir: t.TempDir(), Worker: true, Remote: &engine.Remote{}})
	if _, err := without.StartSession(t.Context(), session.Input{SessionID: "s", Agent: "claude",
		WorkingDir: dir}); err != nil {
		t.Fatal(err)
	}
	with := openEngine(t, engine.Options{DataDir: t.TempDir(), Worker: true, Remote: &engine.Remote{},
		HostAgents: true,
		Agents:     claudeAt(agent.Binary())})
	if err := poll(func() error {
		s, err := with.Describe(t.Context(), "s")
		if err == nil && s.Host == nil {
			err = errNotYet
		}
		return err
	}); err != nil {
		t.Errorf("no worker claimed the session: %v", err)
	}
}

// TestUniqueRunnerID checks that a runner on a cluster has one id per machine, user and directory.
func TestUniqueRunnerID(t *testing.T) {
	id := runnerhost.UniqueID("build", "/a")
	if !strings.HasPrefix(id, "build-") || id != runnerhost.UniqueID("build", "/a") ||
		id == runnerhost.UniqueID("build", "/b") {
		t.Errorf("%s, %s", id, runnerhost.UniqueID("build", "/b"))
	}
}
