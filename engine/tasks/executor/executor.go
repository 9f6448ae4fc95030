package executor

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"acescope/engine/ace"
	"acescope/engine/internal/process"
	"acescope/engine/internal/redact"
	"acescope/engine/store/artifact"
	"acescope/engine/tasks/run"
)

// Options configure an [Executor].
type Options struct {
	Artifacts *artifact.Store  // nil: output that exceeds a result is dropped and counted
	Logs      *artifact.Logs   // nil: no live logs
	TempDir   string           // for files during a run; "": the system's
	Redact    *redact.Redactor // nil: the secrets of the environment
	Grace     time.Duration    // between SIGTERM and SIGKILL; 0: the default
	Logger    *slog.Logger
}

// Executor executes runs. It is safe for concurrent use.
type Executor struct {
	o       Options
	log     *slog.Logger
	capture func(lines func([]byte)) (*capture, error) // replaced by tests
}

// New returns an executor.
func New(o Options) *Executor {
	o.Redact = cmp.Or(o.Redact, redact.OfProcess())
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	e := &Executor{o: o, log: o.Logger}
	e.capture = func(lines func([]byte)) (*capture, error) { return newCapture(o.TempDir, o.Redact, lines) }
	return e
}

// Job is one run of a program.
type Job struct {
	RunID, SessionID string
	Blueprint        run.Blueprint
	Parameters       json.RawMessage   // an object
	ProjectDir       string            // absolute; "": the directory of this process
	Log              *artifact.LogName // nil: no live log
	OnStart          func(pid int)     // may be nil
	Files            []*os.File        // inherited, see [process.Spec.Files]
}

func (j Job) timeout() time.Duration {
	if j.Blueprint.TimeoutSeconds > 0 {
		return time.Duration(j.Blueprint.TimeoutSeconds) * time.Second
	}
	return run.DefaultTimeout * time.Second
}

func (j Job) failed(reason run.Reason, text string) run.Result {
	return run.Result{RunID: j.RunID, SessionID: j.SessionID, Status: run.Failed, Reason: reason, Error: text,
		OutputIs: run.OutputNone}
}

// Run executes a job's program and returns its result. If the context ends, Run ends the program, and the
// status of the run is stopped.
func (e *Executor) Run(ctx context.Context, j Job) run.Result {
	parameters, err := passParameters(j.Blueprint, j.Parameters)
	if err != nil {
		return j.failed(run.BadParameters, err.Error())
	}
	l, err := e.prepare(j, parameters)
	if err != nil {
		return j.failed(run.NotStarted, err.Error())
	}
	defer l.close()
	r, outputs := e.run(ctx, j, l)
	defer outputs.close()
	if r.Status == run.Completed || r.Reason == run.ExitCode {
		e.setOutput(ctx, &r, outputs)
	}
	e.storeOutputs(ctx, &r, outputs)
	return r
}

// outputs are the outputs of a program and its log.
type outputs struct {
	stdout, stderr *capture
	log            *liveLog
}

func (o *outputs) close() {
	for _, c := range []*capture{o.stdout, o.stderr} {
		if c != nil {
			c.close()
		}
	}
}

// run runs the program. The outputs are not in the result yet.
func (e *Executor) run(ctx context.Context, j Job, l *launch) (run.Result, *outputs) {
	o := &outputs{log: e.openLog(j.Log)}
	var err error
	if o.stdout, err = e.capture(o.log.stream(streamStdout)); err == nil {
		o.stderr, err = e.capture(o.log.stream(streamStderr))
	}
	if err != nil {
		return j.failed(run.NotStarted, "cannot create a file for the program's output: "+err.Error()), o
	}
	p, err := process.Start(ctx, process.Spec{Argv: l.argv, Dir: l.dir, Env: l.env, Input: l.stdin,
		Stdout: o.stdout, Stderr: o.stderr, Timeout: j.timeout(), Grace: e.o.Grace, DieWithParent: true,
		Files: j.Files})
	if err != nil && ctx.Err() != nil {
		r := j.failed("", "it was stopped before it began")
		r.Status = run.Stopped
		return r, o
	}
	if err != nil {
		return j.failed(run.NotStarted, startError(j.Blueprint, err)), o
	}
	r := run.Result{RunID: j.RunID, SessionID: j.SessionID, OutputIs: run.OutputNone,
		StartedAt: time.Now().UTC()}
	if j.OnStart != nil {
		j.OnStart(p.Pid())
	}
	exit := p.Wait()
	o.stdout.release(true)
	o.stderr.release(true)
	setExit(&r, exit, j)
	if r.Reason == run.ExitCode || r.Reason == run.Signaled {
		if last := ace.Cut(ace.LastLine(o.stderr.text()), 200); last != "" {
			r.Error += ": " + last
		}
	}
	e.log.Info("a program has ended", "run", j.RunID, "blueprint", j.Blueprint.Name, "class", exit.Class,
		"code", exit.Code)
	return r, o
}

// setExit sets the status of a run by the exit of its program.
func setExit(r *run.Result, exit process.Exit, j Job) {
	r.DurationSeconds = float64(exit.Duration.Milliseconds()) / 1000
	r.Signal = exit.Signal
	r.Status = run.Failed
	switch exit.Class {
	case process.Exited:
		r.ExitCode = &exit.Code
		if exit.Code == 0 {
			r.Status = run.Completed
			return
		}
		r.Reason, r.Error = run.ExitCode, fmt.Sprintf("it ended with exit code %d", exit.Code)
	case process.Signaled:
		r.Reason, r.Error = run.Signaled, fmt.Sprintf("it was ended by the signal %q", exit.Signal)
	case process.TimedOut:
		r.Reason, r.Error = run.Timeout, fmt.Sprintf("it did not end within %s, and was ended", j.timeout())
	case process.Canceled, process.Killed:
		r.Status, r.Error = run.Stopped, "it was stopped"
	default:
		r.Reason = run.NotStarted
		r.Error = exit.Err.Error()
	}
	if exit.Forced {
		r.Error += "; it ignored SIGTERM"
	}
}

// setOutput makes the program's stdout the output of the run.
func (e *Executor) setOutput(ctx context.Context, r *run.Result, o *outputs) {
	c := o.stdout
	is, value, err := c.classify()
	if err != nil {
		r.OutputIs = run.OutputInvalid
		addLoss(r, "its output cannot be read", err)
		return
	}
	r.OutputIs = is
	r.Output = value
	if is != run.OutputJSON || value != nil {
		return
	}
	r.OutputRef, err = c.store(ctx, e.o.Artifacts, "application/json")
	if err == nil && r.OutputRef == nil {
		err = io.ErrShortWrite
	}
	if err != nil {
		addLoss(r, "its output could not be stored", err)
	}
}

// storeOutputs stores both outputs and the log. If stdout is lost, a completed run fails.
func (e *Executor) storeOutputs(ctx context.Context, r *run.Result, o *outputs) {
	ctx = context.WithoutCancel(ctx)
	var err error
	if o.stdout != nil && o.stderr != nil {
		r.Stdout = o.stdout.text()
		r.Stderr = o.stderr.text()
		r.Dropped = o.stdout.dropped() + o.stderr.dropped()
		if r.StdoutRef, err = o.stdout.storeLong(ctx, e.o.Artifacts); err != nil {
			addLoss(r, "its standard output could not be stored", err)
		}
		if r.StderrRef, err = o.stderr.storeLong(ctx, e.o.Artifacts); err != nil {
			addError(r, "its standard error could not be stored: "+withoutPath(err))
		}
	}
	if r.Log, r.LogPath, err = o.log.close(ctx); err != nil {
		addError(r, withoutPath(err))
	}
}

// addLoss fails a completed run because a part of its result is lost.
func addLoss(r *run.Result, what string, err error) {
	if r.Status == run.Completed {
		r.Status = run.Failed
		r.Reason = run.Internal
	}
	addError(r, what+": "+withoutPath(err))
}

func addError(r *run.Result, text string) {
	if r.Error != "" {
		text = r.Error + "; " + text
	}
	r.Error = text
}

// withoutPath returns the text of an error without the path of an internal file.
func withoutPath(err error) string {
	if path, ok := errors.AsType[*os.PathError](err); ok {
		return path.Err.Error()
	}
	return err.Error()
}

// External is a custom executor: a program that reads an invocation from standard input and
// writes a result to standard output.
type External struct {
	Type string // the executor type, which is the name of its directory
	Path string // absolute
}

// maxAnswer bounds the result that an external executor writes, in bytes.
const maxAnswer = 4 << 20

// answer is the result of an external executor, with the names of document 004.
type answer struct {
	Status   run.Status      `json:"status"`
	Reason   run.Reason      `json:"reason"`
	Error    string          `json:"error"`
	Output   json.RawMessage `json:"output"`
	Stdout   string          `json:"stdout"`
	Stderr   string          `json:"stderr"`
	ExitCode *int            `json:"exit_code"`
	Signal   string          `json:"signal"`
	Duration float64         `json:"duration_seconds"`
	Usage    ace.Usage       `json:"usage"`
}

// RunExternal executes a job with an external executor, whose standard error is logged.
func (e *Executor) RunExternal(ctx context.Context, x External, j Job, in Invocation) run.Result {
	if in.Mode == Execute {
		if err := checkParameters(j.Blueprint, j.Parameters); err != nil {
			return j.failed(run.BadParameters, err.Error())
		}
	}
	payload, err := in.MarshalJSON()
	if err != nil {
		return j.failed(run.Internal, "the invocation cannot be written: "+err.Error())
	}
	l := &launch{argv: []string{x.Path}, dir: j.ProjectDir, stdin: append(payload, '\n')}
	if l.env, err = environ(j, nil); err != nil {
		return j.failed(run.NotStarted, err.Error())
	}
	r, o := e.run(ctx, j, l)
	defer o.close()
	var a answer
	if r.Status == run.Completed || r.Reason == run.ExitCode {
		a, err = readAnswer(o.stdout)
	}
	e.storeOutputs(ctx, &r, o)
	switch {
	case r.Status == run.Completed && err != nil:
		r.Status = run.Failed
		r.Reason = run.Internal
		r.Error = fmt.Sprintf("the executor %s wrote no result: %v", x.Type, err)
	case err == nil && a.Status != "":
		e.setAnswer(ctx, &r, a)
	}
	return r
}

// readAnswer reads the result of an external executor. Its stdout must contain nothing else.
func readAnswer(c *capture) (a answer, err error) {
	if c.err != nil || c.size > c.kept || c.kept > maxAnswer {
		return a, fmt.Errorf("it is longer than %d bytes, or could not be stored", maxAnswer)
	}
	data, err := io.ReadAll(io.NewSectionReader(c.f, 0, c.kept))
	if err != nil {
		return a, err
	}
	data = bytes.TrimSpace(data)
	if len(data) == 0 {
		return a, errors.New("standard output is empty")
	}
	if err := json.Unmarshal(data, &a); err != nil {
		return answer{}, errors.New(jsonError(err))
	}
	if !a.Status.Over() {
		return answer{}, fmt.Errorf("status %q is not completed, failed or stopped", short(string(a.Status)))
	}
	return a, nil
}

// setAnswer makes the answer the result. A failed program cannot answer that it completed.
func (e *Executor) setAnswer(ctx context.Context, r *run.Result, a answer) {
	if a.Status != run.Completed || r.Status == run.Completed {
		r.Status = a.Status
		r.Reason = a.reason()
		r.Error = headTail(a.Error)
		if a.ExitCode != nil || a.Status != run.Completed {
			r.ExitCode = a.ExitCode
		}
		r.Signal = short(a.Signal)
	}
	if a.Duration > 0 {
		r.DurationSeconds = a.Duration
	}
	r.Usage = a.Usage
	r.Stdout = headTail(a.Stdout)
	r.Stderr = headTail(a.Stderr)
	r.OutputIs = run.OutputNone
	value := compact(a.Output)
	if len(value) == 0 || string(value) == "null" {
		return
	}
	r.OutputIs = run.OutputJSON
	if value[0] == '"' {
		r.OutputIs = run.OutputText
	}
	if len(value) <= run.MaxOutput {
		r.Output = value
		return
	}
	if e.o.Artifacts == nil {
		addLoss(r, "its output could not be stored", errors.New("there is no artifact store"))
		return
	}
	ref, err := e.o.Artifacts.PutBytes(context.WithoutCancel(ctx), value, "application/json")
	if err != nil {
		addLoss(r, "its output could not be stored", err)
		return
	}
	r.OutputRef = &ref
}

func (a answer) reason() run.Reason {
	switch {
	case a.Status != run.Failed:
		return ""
	case a.Reason != "":
		return run.Reason(short(string(a.Reason)))
	case a.ExitCode != nil && *a.ExitCode != 0:
		return run.ExitCode
	}
	return run.AgentFailed
}
