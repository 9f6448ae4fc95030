package engine

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"acescope/engine/agentcli"
	"acescope/engine/blueprint"
	"acescope/engine/process"
	"acescope/engine/runner"
	"acescope/engine/runner/host"
	sessionhost "acescope/engine/session/host"
)

// LocalRunner is the id of the runner that a process brings along which serves a data
// directory. There is one of each.
const LocalRunner = "local"

// leastSlots is how many runs the local runner executes at a time on a small machine.
const leastSlots = 4

// NewRunner makes a runner on this server, to be run by the caller. The options need what it
// can do and how it behaves; where it is and what it keeps is the engine's.
func (e *Engine) NewRunner(o host.Options) (*host.Host, error) {
	dir, err := filepath.Abs(e.dir)
	if err != nil {
		return nil, err
	}
	o.Capabilities.Hostname = host.Hostname()
	if slices.ContainsFunc(o.Capabilities.ExecutorTypes, func(kind string) bool { return runner.Agent(kind) != "" }) {
		o.SessionQueue = sessionhost.Queue(o.Capabilities.Hostname, dir)
	}
	o.Client, o.DataDir, o.Artifacts, o.Version, o.Logger = e.Client, dir, e.Artifacts, e.version, e.log
	o.Check = CheckParameters
	if e.serving != nil {
		o.Client = e.serving
	}
	return host.New(o)
}

// CheckParameters tells whether parameters fit the schema of a blueprint.
func CheckParameters(schema, parameters json.RawMessage) error {
	s, err := blueprint.Compile(schema, "")
	if err != nil {
		return err
	}
	_, err = s.Check(parameters)
	return err
}

// ExecutorTypes are the executors that there are on this machine of those that acescope
// brings along: that of programs, and the agents that are installed.
func (e *Engine) ExecutorTypes() []string {
	types := []string{runner.Deterministic}
	for _, kind := range []string{runner.ClaudeCode, runner.Codex, runner.Gemini, runner.OpenCode} {
		cli := agentcli.CLI(runner.Agent(kind))
		adapter, err := agentcli.For(cli)
		if err != nil {
			continue
		}
		if _, err := process.Look(adapter.VersionArgv(e.Agents.Agent(cli).Command)[0], "", os.Environ()); err == nil {
			types = append(types, kind)
		}
	}
	return types
}

// localRunner is the runner of the data directory, while this process is the one that has it.
type localRunner struct {
	end   context.CancelFunc
	force chan struct{}
	done  chan struct{}
}

// startRunner runs the local runner as soon as no other process of the data directory does.
func (e *Engine) startRunner() *localRunner {
	ctx, cancel := context.WithCancel(context.Background())
	l := &localRunner{end: cancel, force: make(chan struct{}), done: make(chan struct{})}
	close(l.force) // whoever ends this process does not wait for runs
	dir, err := os.Getwd()
	if err != nil {
		dir = os.TempDir()
	}
	h, err := e.NewRunner(host.Options{ID: LocalRunner, Insist: true, Capabilities: runner.Capabilities{ExecutorTypes: e.ExecutorTypes(),
		ProjectDir: dir, AnyProject: true, Slots: max(leastSlots, 2*runtime.NumCPU())}})
	if err != nil {
		e.log.Error("there is no local runner", "error", err)
		close(l.done)
		return l
	}
	go func() {
		defer close(l.done)
		if err := h.Run(ctx, l.force); err != nil && !errors.Is(err, context.Canceled) {
			e.log.Error("the local runner has ended", "error", err)
		}
	}()
	return l
}

// stop ends the runner, and the programs that it runs. It may be called of none.
func (l *localRunner) stop() {
	if l == nil {
		return
	}
	l.end()
	<-l.done
}
