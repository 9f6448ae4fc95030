package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"acescope/engine/ace"
	"acescope/engine/internal/sleep"
	"acescope/engine/store/artifact"
	"acescope/engine/tasks/executor"
	"acescope/engine/tasks/run"
	"acescope/engine/tasks/runner"
)

// heartbeatInterval is the interval of a run's heartbeats. It bounds the delay of a
// cancellation.
const heartbeatInterval = time.Second

// startedDelay is how long a program runs before its workflow is notified of the start. A shorter program
// needs no notice, because its result has the time of the start.
const startedDelay = 150 * time.Millisecond

var errLeaseLost = errors.New("the lease is lost")

// returnRun is the error with which the runner returns a run that another runner may execute.
func returnRun(errType, format string, args ...any) error {
	return temporal.NewNonRetryableApplicationError(fmt.Sprintf(format, args...), errType, nil)
}

// execute executes a run. Cancellation ends the program, and the result says so. After the
// loss of the lease there is no result, since another runner may have the run.
func (w *leaseWorker) execute(ctx context.Context, x run.Execution) (run.Result, error) {
	id := w.lease.RunnerID
	if c := x.Claim; c.RunnerID != "" && (c.RunnerID != id || c.Epoch != w.lease.Epoch) {
		return run.Result{}, returnRun(run.TypeNotStarted,
			"the run was given to runner %s, lease %d; this is %s, lease %d", c.RunnerID, c.Epoch, id,
			w.lease.Epoch)
	}
	if !w.startRun() {
		return run.Result{}, returnRun(run.TypeNotStarted, "runner %s is leaving", id)
	}
	defer w.endRun()
	beating, over := context.WithCancel(context.WithoutCancel(ctx)) // also during the grace period
	defer over()
	go sleep.Every(beating, heartbeatInterval, func() { activity.RecordHeartbeat(beating) })
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(w.life, func() { cancel(errLeaseLost) })()

	w.h.emit(Event{Kind: RunStarted, Lease: w.lease, Run: &x.Input})
	r, err := w.h.execute(ctx, x, logName(ctx))
	if err != nil {
		r = run.Result{Status: run.Failed, Reason: run.NotStarted, Error: err.Error(),
			OutputIs: run.OutputNone}
	}
	r.RunID = x.Input.RunID
	r.SessionID = x.Input.SessionID
	r.Runner = id
	r.Claim = x.Claim.Number
	w.h.emit(Event{Kind: RunEnded, Lease: w.lease, Run: &x.Input, Result: &r})
	if r.Status == run.Stopped && !temporal.IsCanceledError(context.Cause(ctx)) { // the run was not canceled
		return run.Result{}, returnRun(run.TypeRunnerLost,
			"runner %s was ended, or has lost its lease or the server, "+
				"while the program ran; it was ended too", id)
	}
	return r, nil
}

// logName returns the name of the live log of an attempt.
func logName(ctx context.Context) artifact.LogName {
	info := activity.GetInfo(ctx)
	seq, err := strconv.Atoi(info.ActivityID)
	if err != nil || seq < 0 {
		seq = 0
	}
	return artifact.LogName{WorkflowID: info.WorkflowExecution.ID, RunID: info.WorkflowExecution.RunID,
		Activity: run.ActivityExecute, Seq: seq, Attempt: info.Attempt}
}

// execute executes a run. The error says why it could not be started.
func (h *Host) execute(ctx context.Context, x run.Execution, log artifact.LogName) (run.Result, error) {
	job, invocation, err := h.job(ctx, x)
	if err != nil {
		return run.Result{}, err
	}
	lock, err := h.dir.lockRun(ctx, x.Input.RunID, x.Claim.Number)
	if err != nil {
		return run.Result{}, fmt.Errorf("the run's lock: %w", err)
	}
	defer lock.Release()
	job.Log = &log
	job.Files = append(job.Files, lock.File)
	var started *time.Timer
	defer func() {
		if started != nil {
			started.Stop()
		}
	}()
	job.OnStart = func(pid int) {
		if err := lock.WritePID(pid); err != nil {
			h.o.Logger.Warn("the pid of the program was not written to the run's lock", "run", x.Input.RunID,
				"error", err)
		}
		start := run.ProgramStart{Claim: x.Claim.Number, Try: x.Claim.Try, PID: pid, At: time.Now().UTC()}
		started = time.AfterFunc(startedDelay, func() { h.signalStart(ctx, x.Input.RunID, log, start) })
	}
	executorType := executorType(x.Input)
	i := slices.IndexFunc(h.o.External, func(e executor.External) bool { return e.Type == executorType })
	switch {
	case i >= 0:
		return h.exec.RunExternal(ctx, h.o.External[i], job, invocation), nil
	case executorType != runner.Deterministic || invocation.Mode != executor.Execute:
		return run.Result{}, fmt.Errorf("the runner has no program for the executor type %q", executorType)
	}
	return h.exec.Run(ctx, job), nil
}

// signalStart notifies the run's workflow that its program runs.
func (h *Host) signalStart(ctx context.Context, runID string, log artifact.LogName, start run.ProgramStart) {
	err := h.o.Client.SignalWorkflow(ctx, log.WorkflowID, log.RunID, run.SignalStarted, start)
	if err != nil && ctx.Err() == nil {
		h.o.Logger.Warn("cannot notify the run that its program has started", "run", runID, "error", err)
	}
}

func executorType(in run.Input) string {
	switch {
	case in.Requirements.ExecutorType != "":
		return in.Requirements.ExecutorType
	case in.IsProgram():
		return runner.Deterministic
	}
	return runner.ClaudeCode
}

// maxBlueprint bounds a blueprint that is stored as an artifact, in bytes.
const maxBlueprint = 4 << 20

// job returns the job of a run for the built-in executor, and its invocation for an external executor.
func (h *Host) job(ctx context.Context, x run.Execution) (j executor.Job, invocation executor.Invocation,
	err error) {
	in := x.Input
	if j.ProjectDir, err = h.projectDir(in); err != nil {
		return j, invocation, err
	}
	if in.Blueprint == nil && in.BlueprintRef != nil {
		data, err := h.fetch(ctx, "blueprint", in.BlueprintRef, maxBlueprint)
		if err != nil {
			return j, invocation, err
		}
		in.Blueprint = &run.Blueprint{}
		if err := json.Unmarshal(data, in.Blueprint); err != nil {
			return j, invocation, fmt.Errorf("its blueprint: %w", err)
		}
	}
	if in.ParametersRef != nil {
		if in.Parameters, err = h.fetch(ctx, "parameters", in.ParametersRef, run.MaxParams); err != nil {
			return j, invocation, err
		}
	}
	if in.PromptRef != nil {
		prompt, err := h.fetch(ctx, "prompt", in.PromptRef, 4*run.MaxPrompt)
		if err != nil {
			return j, invocation, err
		}
		in.Prompt = string(prompt)
	}
	j.RunID = in.RunID
	j.SessionID = in.SessionID
	j.Parameters = in.Parameters
	if in.Blueprint != nil {
		j.Blueprint = *in.Blueprint
	}
	invocation, err = newInvocation(in, j.ProjectDir)
	return j, invocation, err
}

// fetch reads an artifact of a run's input.
func (h *Host) fetch(ctx context.Context, what string, ref *ace.Ref, limit int64) ([]byte, error) {
	data, err := h.o.Artifacts.Get(ctx, *ref, limit)
	if errors.Is(err, artifact.ErrNotFound) {
		return nil, fmt.Errorf(
			"its %s is an artifact of another machine's data directory, which this runner cannot read", what)
	}
	if err != nil {
		return nil, fmt.Errorf("its %s: %w", what, err)
	}
	return data, nil
}

// projectDir returns the directory of a run. A runner without AnyProject only works in its own.
func (h *Host) projectDir(in run.Input) (string, error) {
	c := h.o.Capabilities
	switch {
	case in.ProjectDir == "":
		return c.ProjectDir, nil
	case !filepath.IsAbs(in.ProjectDir):
		return "", fmt.Errorf("its project directory %q is not absolute", in.ProjectDir)
	case !c.AnyProject && filepath.Clean(in.ProjectDir) != filepath.Clean(c.ProjectDir):
		return "", fmt.Errorf("its project directory is %s; this runner works in %s only", in.ProjectDir,
			c.ProjectDir)
	}
	return in.ProjectDir, nil
}

// newInvocation returns the invocation of an external executor.
func newInvocation(in run.Input, projectDir string) (executor.Invocation, error) {
	out := executor.Invocation{SessionID: in.SessionID, ProjectDir: projectDir, Prompt: in.Prompt}
	var err error
	if out.Metadata, err = json.Marshal(map[string]string{"run_id": in.RunID}); err != nil {
		return out, err
	}
	switch in.Type {
	case run.ExecuteTask:
		if in.Blueprint == nil {
			return out, errors.New("its blueprint is missing")
		}
		out.Mode = executor.Execute
		out.Parameters = in.Parameters
		out.Task = in.Blueprint
		return out, nil
	case run.StartSession:
		out.Mode = executor.Start
	case run.ResumeSession:
		out.Mode = executor.Resume
	default:
		return out, fmt.Errorf("its type %q is not start_session, resume_session or execute_task", in.Type)
	}
	if in.Blueprint != nil {
		out.Agent, err = json.Marshal(in.Blueprint)
	}
	return out, err
}
