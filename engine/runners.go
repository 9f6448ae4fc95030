package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"

	"acescope/engine/ace"
	"acescope/engine/agents/agentcli"
	sessionhost "acescope/engine/agents/session/host"
	"acescope/engine/internal/process"
	"acescope/engine/tasks/runner"
	"acescope/engine/tasks/runner/host"
)

// ErrNoRunner means that no runner has the ID.
var ErrNoRunner = ace.NotFound{Kind: "runner", Hint: `run "acescope runner list"`}

// RunnerActions are the queries and actions on runners. They are methods of [Engine].
type RunnerActions struct{ e *Engine }

// Runners returns the state of the dispatcher, which is empty before its first run. It requires a
// running worker.
func (a RunnerActions) Runners(ctx context.Context, o runner.ViewOptions) (v runner.View, err error) {
	answer, err := a.e.Client.QueryWorkflow(ctx, runner.DispatcherID(a.e.TaskQueue), "",
		runner.QueryDispatcher, o)
	switch {
	case isNotFound(err):
		return v, nil
	case err != nil:
		return v, fmt.Errorf("query the dispatcher: %w", err)
	}
	err = answer.Get(&v)
	switch {
	case errors.Is(err, converter.ErrEncodingIsNotSupported):
		return v, fmt.Errorf("%w: set --codec-endpoint", ErrEncoded)
	case err != nil:
		return v, fmt.Errorf("answer of the dispatcher: %w", err)
	}
	return v, nil
}

// ErrEncoded means that an answer is an encoded payload and no codec server is configured.
var ErrEncoded = errors.New("the answer is encoded")

// Runner returns the state of a runner, which may be gone.
func (a RunnerActions) Runner(ctx context.Context, id string) (info runner.Info, err error) {
	answer, err := a.e.Client.QueryWorkflow(ctx, runner.WorkflowID(id), "", runner.QueryRunner)
	if err == nil {
		err = answer.Get(&info)
	}
	return info, runnerError(id, err)
}

// DrainRunner stops a runner from accepting runs. Its process ends after its open runs.
func (a RunnerActions) DrainRunner(ctx context.Context, id string, n runner.Note) (info runner.Info,
	err error) {
	err = a.e.update(ctx, runner.WorkflowID(id), runner.UpdateDrain, "", n, &info)
	return info, runnerError(id, err)
}

func runnerError(id string, err error) error {
	if err == nil {
		return nil
	}
	if isNotFound(err) {
		return ErrNoRunner.Of(id)
	}
	if app, ok := errors.AsType[*temporal.ApplicationError](err); ok {
		return fmt.Errorf("runner %s: %s", id, app.Message())
	}
	return fmt.Errorf("runner %s: %w", id, err)
}

// LocalRunner is the ID of the runner in the process that serves a data directory.
const LocalRunner = "local"

// minSlots is the minimum number of concurrent runs of the local runner.
const minSlots = 4

// NewRunner creates a runner on this server for the caller to run. The options set its
// capabilities and behavior; the engine sets its connection and storage.
func (a RunnerActions) NewRunner(o host.Options) (*host.Host, error) {
	dir, err := filepath.Abs(a.e.dir)
	if err != nil {
		return nil, err
	}
	o.Capabilities.Hostname = process.Hostname()
	if slices.ContainsFunc(o.Capabilities.ExecutorTypes, func(kind string) bool {
		return runner.Agent(kind) != ""
	}) {
		o.SessionQueue = sessionhost.Queue(o.Capabilities.Hostname, dir)
	}
	o.Client = a.e.workerClient()
	o.TaskQueue = a.e.TaskQueue
	o.DataDir = dir
	o.Artifacts = a.e.Artifacts
	o.Version = a.e.version
	o.Logger = a.e.log
	return host.New(o)
}

// ExecutorTypes returns the types of built-in executors that work on this machine: the executor of programs,
// and the executors of the installed agents.
func (a RunnerActions) ExecutorTypes() []string {
	types := []string{runner.Deterministic}
	for _, kind := range []string{runner.ClaudeCode, runner.Codex, runner.Gemini, runner.OpenCode} {
		cli := agentcli.CLI(runner.Agent(kind))
		adapter, err := agentcli.For(cli)
		if err != nil {
			continue
		}
		if _, err := process.LookPath(adapter.VersionArgv(a.e.Agents.Agent(cli).Command)[0], "",
			os.Environ()); err == nil {
			types = append(types, kind)
		}
	}
	return types
}

// runnerOptions returns the options of the runner that this process starts, or false if it starts none. On a
// data directory, it is the local runner, for any project and every executor. On a cluster, the user sets its
// name; it executes programs in the current directory.
func (e *Engine) runnerOptions(o Options) (r host.Options, ok bool) {
	dir, err := os.Getwd()
	if err != nil {
		dir = os.TempDir()
	}
	r = host.Options{WaitForLock: true, Capabilities: runner.Capabilities{ProjectDir: dir,
		Slots: max(minSlots, 2*runtime.NumCPU())}}
	if o.Remote == nil {
		r.ID = LocalRunner
		r.Capabilities.ExecutorTypes, r.Capabilities.AnyProject = e.ExecutorTypes(), true
		return r, !o.NoRunner
	}
	r.ID = host.UniqueID(o.Runner, e.dir)
	r.Capabilities.ExecutorTypes = []string{runner.Deterministic}
	return r, o.Runner != ""
}

// startRunner runs the runner of this process as soon as no other process runs it.
func (e *Engine) startRunner(o Options) *background {
	options, ok := e.runnerOptions(o)
	if !ok {
		return nil
	}
	force := make(chan struct{})
	close(force) // the end of this process does not wait for runs
	h, err := e.NewRunner(options)
	if err != nil {
		e.log.Error("the runner was not started", "runner", options.ID, "error", err)
		return nil
	}
	return inBackground(func(ctx context.Context) {
		if err := h.Run(ctx, force); err != nil && !errors.Is(err, context.Canceled) {
			e.log.Error("the runner failed", "runner", options.ID, "error", err)
			if o.Warn != nil {
				o.Warn(fmt.Sprintf("the runner failed; this process executes other runs: %v", err))
			}
		}
	})
}
