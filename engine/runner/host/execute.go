package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"acescope/engine/ace"
	"acescope/engine/artifact"
	"acescope/engine/executor"
	"acescope/engine/run"
	"acescope/engine/runner"
)

// beatEvery is how often a run tells that it lives. It also bounds how late it notices that
// it is to stop.
const beatEvery = time.Second

// sayStarted is how long a run goes on before its workflow is told that it has started: most
// that are shorter say so by ending.
const sayStarted = 150 * time.Millisecond

// givenBack is of a run that another runner may have.
func givenBack(kind, text string) error {
	return temporal.NewNonRetryableApplicationError(text, kind, nil)
}

// execute executes a run. When it is cancelled, its program is ended and the result says so;
// when the lease is lost there is no result, since the run may be another's by now.
func (s *served) execute(ctx context.Context, x run.Execution) (run.Result, error) {
	if c := x.Claim; c.RunnerID != "" && (c.RunnerID != s.lease.RunnerID || c.Epoch != s.lease.Epoch) {
		return run.Result{}, givenBack(run.TypeNotBegun, fmt.Sprintf("the run was given to runner %s, lease %d; this is %s, lease %d", c.RunnerID, c.Epoch, s.lease.RunnerID, s.lease.Epoch))
	}
	if !s.begin() {
		return run.Result{}, givenBack(run.TypeNotBegun, "runner "+s.lease.RunnerID+" is leaving")
	}
	defer s.ended()
	over := make(chan struct{})
	defer close(over)
	go beat(context.WithoutCancel(ctx), over) // also while a program that is to end takes its time
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(s.life, func() { cancel(errLeaseLost) })()

	s.h.tell(Event{Kind: RunBegan, Lease: s.lease, Run: &x.Input})
	r := s.h.execute(ctx, x, logName(ctx, x))
	r.RunID, r.SessionID, r.Runner, r.Claim = x.Input.RunID, x.Input.SessionID, s.lease.RunnerID, x.Claim.Number
	s.h.tell(Event{Kind: RunEnded, Lease: s.lease, Run: &x.Input, Result: &r})
	if r.Status == run.Stopped && !temporal.IsCanceledError(context.Cause(ctx)) { // nobody asked for that
		return run.Result{}, givenBack(run.TypeRunnerLost, "runner "+s.lease.RunnerID+" was ended, or has lost its lease or the server, while the program ran; it was ended too")
	}
	return r, nil
}

var errLeaseLost = errors.New("the lease is lost")

// beat heartbeats until the run is over.
func beat(ctx context.Context, over <-chan struct{}) {
	tick := time.NewTicker(beatEvery)
	defer tick.Stop()
	for {
		select {
		case <-over:
			return
		case <-tick.C:
			activity.RecordHeartbeat(ctx)
		}
	}
}

// logName is the name of the live log of an attempt.
func logName(ctx context.Context, x run.Execution) artifact.LogName {
	info := activity.GetInfo(ctx)
	seq, err := strconv.Atoi(info.ActivityID)
	if err != nil || seq < 0 {
		seq = 0
	}
	return artifact.LogName{WorkflowID: info.WorkflowExecution.ID, RunID: info.WorkflowExecution.RunID, Activity: run.ActivityExecute,
		Seq: seq, Attempt: info.Attempt}
}

// execute executes a run and says what came of it.
func (h *Host) execute(ctx context.Context, x run.Execution, log artifact.LogName) run.Result {
	job, in, err := h.job(x)
	if err != nil {
		return run.Result{Status: run.Failed, Reason: run.NotStarted, Error: err.Error(), OutputIs: "none"}
	}
	lock, err := h.place.lockRun(ctx, x.Input.RunID, x.Claim.Number)
	if err != nil {
		return run.Result{Status: run.Failed, Reason: run.NotStarted, Error: "the run's lock: " + err.Error(), OutputIs: "none"}
	}
	defer lock.Release()
	job.Log, job.Files = &log, append(job.Files, lock.File)
	done := make(chan struct{})
	defer close(done)
	job.Started = func(pid int) {
		if err := lock.Sign(pid); err != nil {
			h.o.Logger.Warn("the run's lock cannot be signed", "run", x.Input.RunID, "error", err)
		}
		began := run.Began{Claim: x.Claim.Number, Try: x.Claim.Try, PID: pid, At: time.Now().UTC()}
		go h.sayStarted(ctx, x, log, began, done)
	}
	kind := executorType(x.Input)
	for _, external := range h.o.External {
		if external.Type == kind {
			return h.exec.RunExternal(ctx, external, job, in)
		}
	}
	if kind != runner.Deterministic || in.Mode != executor.Execute {
		return run.Result{Status: run.Failed, Reason: run.NotStarted, OutputIs: "none",
			Error: fmt.Sprintf("the runner has no program for the executor type %q", kind)}
	}
	return h.exec.Run(ctx, job)
}

// sayStarted tells the run's workflow that its program runs, unless it has ended by then.
func (h *Host) sayStarted(ctx context.Context, x run.Execution, log artifact.LogName, b run.Began, done <-chan struct{}) {
	timer := time.NewTimer(sayStarted)
	defer timer.Stop()
	select {
	case <-done:
		return
	case <-ctx.Done():
		return
	case <-timer.C:
	}
	if err := h.o.Client.SignalWorkflow(ctx, log.WorkflowID, log.RunID, run.SignalStarted, b); err != nil && ctx.Err() == nil {
		h.o.Logger.Warn("the run could not be told that it has started", "run", x.Input.RunID, "error", err)
	}
}

// executorType is what is to execute a run.
func executorType(in run.Input) string {
	switch {
	case in.Demands.ExecutorType != "":
		return in.Demands.ExecutorType
	case in.Program():
		return runner.Deterministic
	}
	return runner.ClaudeCode
}

// maxBlueprint bounds a blueprint that comes as an artifact, in bytes.
const maxBlueprint = 4 << 20

// job makes of a run what an executor needs: the job, and the invocation of an external one.
func (h *Host) job(x run.Execution) (j executor.Job, in executor.Invocation, err error) {
	r := x.Input
	if j.ProjectDir, err = h.projectDir(r); err != nil {
		return j, in, err
	}
	if r.Blueprint == nil && r.BlueprintRef != nil {
		r.Blueprint = &run.Blueprint{}
		if err := h.fetch("blueprint", r.BlueprintRef, maxBlueprint, func(b []byte) error { return json.Unmarshal(b, r.Blueprint) }); err != nil {
			return j, in, err
		}
	}
	if r.ParametersRef != nil {
		if err := h.fetch("parameters", r.ParametersRef, run.MaxParams, func(b []byte) error { r.Parameters = b; return nil }); err != nil {
			return j, in, err
		}
	}
	if r.PromptRef != nil {
		if err := h.fetch("prompt", r.PromptRef, 4*run.MaxPrompt, func(b []byte) error { r.Prompt = string(b); return nil }); err != nil {
			return j, in, err
		}
	}
	j.RunID, j.SessionID, j.Parameters = r.RunID, r.SessionID, r.Parameters
	if r.Blueprint != nil {
		j.Blueprint = *r.Blueprint
	}
	in, err = invocationOf(r, j)
	return j, in, err
}

// fetch reads what is not in the run's input itself.
func (h *Host) fetch(what string, ref *ace.Ref, limit int64, into func([]byte) error) error {
	data, err := h.o.Artifacts.Get(*ref, limit)
	if err == nil {
		err = into(data)
	}
	if errors.Is(err, artifact.ErrNotFound) {
		return fmt.Errorf("its %s is an artifact of another machine's data directory, which this runner cannot read", what)
	}
	if err != nil {
		return fmt.Errorf("its %s: %w", what, err)
	}
	return nil
}

// projectDir is where a run works. A runner of one directory works nowhere else, whatever
// the run says.
func (h *Host) projectDir(in run.Input) (string, error) {
	c := h.o.Capabilities
	switch {
	case in.ProjectDir == "":
		return c.ProjectDir, nil
	case !filepath.IsAbs(in.ProjectDir):
		return "", fmt.Errorf("its project directory %q is not absolute", in.ProjectDir)
	case !c.AnyProject && filepath.Clean(in.ProjectDir) != filepath.Clean(c.ProjectDir):
		return "", fmt.Errorf("its project directory is %s; this runner works in %s only", in.ProjectDir, c.ProjectDir)
	}
	return in.ProjectDir, nil
}

// invocationOf is a run as an executor of somebody else's is given it.
func invocationOf(r run.Input, j executor.Job) (executor.Invocation, error) {
	in := executor.Invocation{SessionID: r.SessionID, ProjectDir: j.ProjectDir, Prompt: r.Prompt}
	meta, err := json.Marshal(map[string]string{"run_id": r.RunID})
	if err != nil {
		return in, err
	}
	in.Metadata = meta
	switch r.Type {
	case run.ExecuteTask:
		if r.Blueprint == nil {
			return in, errors.New("its blueprint is missing")
		}
		in.Mode, in.Parameters, in.Task = executor.Execute, r.Parameters, r.Blueprint
		return in, nil
	case run.StartSession:
		in.Mode = executor.Start
	case run.ResumeSession:
		in.Mode = executor.Resume
	default:
		return in, fmt.Errorf("its type %q is none of start_session, resume_session and execute_task", r.Type)
	}
	if r.Blueprint != nil {
		in.Agent, err = json.Marshal(r.Blueprint)
	}
	return in, err
}
