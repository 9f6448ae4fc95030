package executor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"acescope/engine/ace"
	"acescope/engine/artifact"
	"acescope/engine/process"
	"acescope/engine/redact"
	"acescope/engine/run"
)

// Options say where an executor keeps things.
type Options struct {
	Artifacts *artifact.Store // nil: what does not fit into a result is lost, and counted
	Logs      *artifact.Logs  // nil for no live logs
	TempDir   string          // of files while a run lasts; "" for the system's
	// Check tells whether parameters fit a schema. It is asked once more here, since who sent
	// them may be anybody.
	Check func(schema, parameters json.RawMessage) error
	// Redact strikes secrets out of all that is kept; nil for those of the environment.
	Redact *redact.Redactor
	Grace  time.Duration // between SIGTERM and SIGKILL; 0 for the usual
	Logger *slog.Logger
}

// Executor executes runs. It may be used by many at once.
type Executor struct {
	o   Options
	log *slog.Logger
	// capture makes the keeper of an output.
	capture func(lines func([]byte)) (*capture, error)
}

// New makes an executor.
func New(o Options) *Executor {
	if o.Redact == nil {
		o.Redact = redact.New(redact.Environ(os.Environ())...)
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	e := &Executor{o: o, log: o.Logger}
	e.capture = func(lines func([]byte)) (*capture, error) { return newCapture(o.TempDir, o.Redact, lines) }
	return e
}

// Job is one run of a program.
type Job struct {
	RunID, SessionID string
	Blueprint        run.Blueprint
	Parameters       json.RawMessage // an object
	ProjectDir       string          // absolute, "" for the directory of this process
	// Log names the live log; nil for none.
	Log *artifact.LogName
	// Started is told when the program runs; nil for nobody.
	Started func(pid int)
	// Files are open in the program, as [process.Spec.Files].
	Files []*os.File
}

// timeout is how long the job's program may run.
func (j Job) timeout() time.Duration {
	if j.Blueprint.TimeoutSeconds > 0 {
		return time.Duration(j.Blueprint.TimeoutSeconds) * time.Second
	}
	return run.DefaultTimeout * time.Second
}

// Run executes a job's program and says what came of it. When the context is done the
// program is ended, and the run was stopped.
func (e *Executor) Run(ctx context.Context, j Job) run.Result {
	if err := e.check(j); err != nil {
		return failed(j, run.BadParameters, err.Error())
	}
	l, err := e.prepare(j)
	var bad *badParameters
	switch {
	case errors.As(err, &bad):
		return failed(j, run.BadParameters, err.Error())
	case err != nil:
		return failed(j, run.NotStarted, err.Error())
	}
	defer l.close()
	r, outputs := e.run(ctx, j, l)
	defer outputs.close()
	if r.Status == run.Completed || r.Reason == run.ExitCode {
		e.output(ctx, &r, outputs)
	}
	e.keepOutputs(ctx, &r, outputs)
	return r
}

// check looks at the parameters again.
func (e *Executor) check(j Job) error {
	if text := bytes.TrimSpace(j.Parameters); len(text) == 0 || text[0] != '{' {
		return errors.New("the parameters are not a JSON object; {} is one")
	}
	if len(j.Parameters) > run.MaxParams {
		return fmt.Errorf("the parameters have %d bytes, %d are allowed", len(j.Parameters), run.MaxParams)
	}
	if e.o.Check == nil || len(j.Blueprint.Schema) == 0 {
		return nil
	}
	return e.o.Check(j.Blueprint.Schema, j.Parameters)
}

func failed(j Job, reason run.Reason, text string) run.Result {
	return run.Result{RunID: j.RunID, SessionID: j.SessionID, Status: run.Failed, Reason: reason, Error: text, OutputIs: outputNone}
}

// outputs are both outputs of a program, and its log.
type outputs struct {
	out, err *capture
	log      *liveLog
}

func (o *outputs) close() {
	for _, c := range []*capture{o.out, o.err} {
		if c != nil {
			c.close()
		}
	}
}

// run runs the program. The result lacks its outputs.
func (e *Executor) run(ctx context.Context, j Job, l *launch) (run.Result, *outputs) {
	o := &outputs{log: e.openLog(j.Log)}
	r := run.Result{RunID: j.RunID, SessionID: j.SessionID, OutputIs: outputNone}
	for _, s := range []struct {
		name string
		into **capture
	}{{streamOut, &o.out}, {streamErr, &o.err}} {
		var err error
		if *s.into, err = e.capture(o.log.stream(s.name)); err != nil {
			r.Status, r.Reason, r.Error = run.Failed, run.NotStarted, "there is no place for the program's output: "+err.Error()
			return r, o
		}
	}
	p, err := process.Start(ctx, process.Spec{Argv: l.argv, Dir: l.dir, Env: l.env, Input: l.stdin, Stdout: o.out, Stderr: o.err,
		Timeout: j.timeout(), Grace: e.o.Grace, DieWithParent: true, Files: j.Files})
	if err != nil {
		if ctx.Err() != nil {
			r.Status, r.Error = run.Stopped, "it was stopped before it began"
			return r, o
		}
		r.Status, r.Reason, r.Error = run.Failed, run.NotStarted, startTrouble(j.Blueprint, err)
		return r, o
	}
	r.StartedAt = time.Now().UTC()
	if j.Started != nil {
		j.Started(p.Pid())
	}
	exit := p.Wait()
	for _, c := range []*capture{o.out, o.err} {
		c.release(true)
	}
	verdict(&r, exit, j)
	if r.Reason == run.ExitCode || r.Reason == run.Signalled {
		if last := lastLine(o.err.text()); last != "" {
			r.Error += ": " + last
		}
	}
	e.log.Info("a program has ended", "run", j.RunID, "blueprint", j.Blueprint.Name, "class", exit.Class, "code", exit.Code)
	return r, o
}

// verdict says how a run ended whose program ended so.
func verdict(r *run.Result, exit process.Exit, j Job) {
	r.DurationSeconds = float64(exit.Duration.Milliseconds()) / 1000
	r.Signal = exit.Signal
	if exit.Class == process.Exited {
		code := exit.Code
		r.ExitCode = &code
	}
	r.Status = run.Failed
	switch exit.Class {
	case process.Exited:
		if exit.Code == 0 {
			r.Status = run.Completed
			return
		}
		r.Reason, r.Error = run.ExitCode, fmt.Sprintf("it ended with exit code %d", exit.Code)
	case process.Signalled:
		r.Reason, r.Error = run.Signalled, fmt.Sprintf("it was ended by the signal %q", exit.Signal)
	case process.TimedOut:
		r.Reason, r.Error = run.Timeout, fmt.Sprintf("it did not end within %s, and was ended", j.timeout())
	case process.Cancelled, process.Killed:
		r.Status, r.Error = run.Stopped, "it was stopped"
	default:
		r.Reason, r.Error = run.NotStarted, exit.Err.Error()
	}
	if exit.Forced {
		r.Error += "; it did not heed SIGTERM"
	}
}

// maxLast is how much of the last line of standard error an error holds, in bytes.
const maxLast = 200

func lastLine(text string) string {
	text = strings.TrimSpace(text)
	if at := strings.LastIndexByte(text, '\n'); at >= 0 {
		text = text[at+1:]
	}
	text = strings.TrimSpace(text)
	if len(text) <= maxLast {
		return text
	}
	return strings.ToValidUTF8(text[:maxLast], "") + "…"
}

// output takes what the program wrote to standard output for its output.
func (e *Executor) output(ctx context.Context, r *run.Result, o *outputs) {
	is, value, err := outputOf(o.out.f, o.out.kept, o.out.err == nil && o.out.size == o.out.kept)
	if err != nil {
		r.OutputIs = outputInvalid
		lost(r, "its output cannot be read again", err)
		return
	}
	r.OutputIs, r.Output = is, value
	if is != outputJSON || value != nil {
		return
	}
	if r.OutputRef, err = o.out.store(ctx, e.o.Artifacts, "application/json"); err == nil && r.OutputRef == nil {
		err = io.ErrShortWrite
	}
	if err != nil {
		lost(r, "its output could not be kept", err)
	}
}

// keepOutputs stores all of both outputs and the log. What a program that has done its work
// wrote must not be lost unnoticed: where it is, the run has failed.
func (e *Executor) keepOutputs(ctx context.Context, r *run.Result, o *outputs) {
	ctx = context.WithoutCancel(ctx)
	if o.out != nil && o.err != nil {
		r.Stdout, r.Stderr = o.out.text(), o.err.text()
		r.Dropped = o.out.dropped() + o.err.dropped()
		var err error
		if r.StdoutRef, err = o.out.more(ctx, e.o.Artifacts); err == nil {
			err = o.out.err
		}
		if err != nil {
			lost(r, "what it wrote to standard output could not be kept", err)
		}
		if r.StderrRef, err = o.err.more(ctx, e.o.Artifacts); err == nil {
			err = o.err.err
		}
		if err != nil {
			note(r, "what it wrote to standard error could not be kept: "+plain(err))
		}
	}
	var err error
	if r.Log, r.LogPath, err = o.log.close(ctx); err != nil {
		note(r, plain(err))
	}
}

// more stores all of an output where it is more than the result holds.
func (c *capture) more(ctx context.Context, to *artifact.Store) (ref *ace.Ref, err error) {
	if c.size <= run.MaxText && c.err == nil {
		return nil, nil
	}
	return c.store(ctx, to, "text/plain; charset=utf-8")
}

// lost says that something is missing which the run was for.
func lost(r *run.Result, what string, err error) {
	if r.Status == run.Completed {
		r.Status, r.Reason = run.Failed, run.Internal
	}
	note(r, what+": "+plain(err))
}

// note adds to what went wrong.
func note(r *run.Result, text string) {
	if r.Error != "" {
		text = r.Error + "; " + text
	}
	r.Error = text
}

// plain is an error without the path of a file that nobody knows.
func plain(err error) string {
	var path *os.PathError
	if errors.As(err, &path) {
		return path.Err.Error()
	}
	return err.Error()
}
