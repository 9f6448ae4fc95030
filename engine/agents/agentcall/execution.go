package agentcall

import (
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"time"

	"acescope/engine/ace"
	"acescope/engine/agents/agentcli"
	"acescope/engine/internal/filelock"
	"acescope/engine/internal/process"
)

// stderrKept is how many bytes are kept of the beginning and of the end of standard error.
const stderrKept = 8 << 10

// execution is a call in progress.
type execution struct {
	r       *Runner
	c       Call
	adapter agentcli.Adapter
	version agentcli.Version
	newID   string // the ID of a new session, if the CLI lets the caller choose it
	session string // the agent's session ID as far as it is known

	log    EventLog
	judge  agentcli.Judge
	events int64
}

// continueText precedes the instruction of an interrupted call.
const continueText = "The program that runs you was interrupted in the middle of this task and has " +
	"restarted you. Continue where you stopped and finish the task. Some of it is done already: check " +
	"before you do it again. The task was:\n\n"

// call returns the call of the agent; resume is the session to continue.
func (x *execution) call(resume string) agentcli.Call {
	call, agent := x.c.Call, x.r.Agent(x.c.CLI)
	call.Binary, call.AllowFull, call.Resume = agent.Command, agent.AllowFull, resume
	call.Model = cmp.Or(call.Model, agent.Model)
	if resume == "" {
		call.SessionID = x.newID
	}
	if call.SystemPrompt != "" && !x.adapter.Features.SystemPrompt {
		call.SystemPrompt, call.Instruction = "", call.SystemPrompt+"\n\n"+call.Instruction
	}
	return call
}

// run makes the call, unless an earlier attempt finished it.
func (x *execution) run(ctx context.Context) *Result {
	began := time.Now()
	key := cmp.Or(x.session, "call-"+x.c.ID)
	path := filepath.Join(x.r.o.DataDir, locksDir, ace.FileName(key)+".lock")
	lock, err := filelock.Acquire(ctx, path, func(pid int) {
		x.r.log.Warn("stopping a leftover process of the agent", "session", key, "pid", pid)
	})
	switch {
	case err != nil && ctx.Err() != nil:
		return x.stopped(ctx)
	case errors.Is(err, filelock.ErrHeld):
		return failed(x.c, agentcli.ClassSessionInUse, true,
			"another process of the agent uses session %s and does not end", key)
	case err != nil:
		return failed(x.c, ClassCannotStart, true, "%v", err)
	}
	defer lock.Release()
	p, err := x.past(ctx)
	if err != nil {
		return failed(x.c, ClassCannotStart, true, "cannot read the logs of earlier attempts: %v", err)
	}
	if p.result != nil {
		return p.result
	}
	r := x.attempt(ctx, lock, p, began)
	switch class := agentcli.Class(r.ExitClass); {
	case class == agentcli.ClassUnknownSession && x.c.Resume == "" && p.resume != "":
		// The earlier attempt ended before the agent created its session.
		r = x.attempt(ctx, lock, past{before: -1, used: p.used, logged: p.logged}, began)
	case class == agentcli.ClassSessionInUse && x.c.Log.Attempt > 1 && p.resume == "" && x.newID != "":
		// The session exists, but its transcript was not found.
		again := past{resume: x.newID, begun: true, before: -1, meter: p.meter, used: p.used,
			logged: p.logged}
		r = x.attempt(ctx, lock, again, began)
	}
	return r
}

// attempt runs the agent to its end.
func (x *execution) attempt(ctx context.Context, lock *filelock.Lock, p past, began time.Time) *Result {
	x.judge, x.events = agentcli.Judge{Meter: p.meter}, 0
	call := x.call(p.resume)
	if p.begun {
		call.Instruction = continueText + call.Instruction
	}
	cmd, err := x.adapter.Command(call)
	if err != nil {
		return failed(x.c, ClassRefused, false, "%v", err).setUsage(p.used)
	}
	log, err := x.r.logs.Create(x.c.Log)
	if err != nil {
		return failed(x.c, ClassLogBroken, false, "%v", err).setUsage(p.used)
	}
	x.log = EventLog{LiveLog: log, Redact: x.r.redact, Fault: x.r.fault}
	x.heartbeat()
	x.log.AddOwn(ownLine{Type: lineCall, Call: x.header(cmd, call, p)})
	var exit process.Exit
	stderr := process.NewTail(stderrKept, stderrKept)
	if x.log.Err == nil {
		exit = x.runProcess(ctx, cmd, lock, stderr)
	}
	r := x.interpret(ctx, exit, stderr)
	r.setUsage(x.usage(ctx, r.Usage, p))
	r.Continued = p.begun
	r.DurationMS = float64(time.Since(began).Microseconds()) / 1000
	x.seal(ctx, r, exit, stderr)
	x.saveMeter(r.SessionID, x.judge.Meter)
	return r
}

// header makes the first line of the log.
func (x *execution) header(cmd agentcli.Command, call agentcli.Call, p past) *Header {
	n := x.c.Log
	h := &Header{
		ID: x.c.ID, At: time.Now().UTC(), WorkflowID: n.WorkflowID, RunID: n.RunID, ActivityName: n.Activity,
		SequenceNumber: n.Seq, Attempt: n.Attempt, Provider: string(x.c.CLI), Version: x.version.String(),
		WorkingDir: cmd.Dir, Model: call.Model, PermissionMode: string(call.Permission), Session: x.session,
		Resumed: call.Resume != "", Continued: p.begun, Instruction: instructionOf(x.c.Instruction),
		Before: max(p.before, 0), Meter: p.meter, Used: p.used,
	}
	for _, arg := range cmd.Argv {
		h.Argv = append(h.Argv, ace.Cut(arg, previewBytes))
	}
	return h
}

func (x *execution) runProcess(
	ctx context.Context, cmd agentcli.Command, lock *filelock.Lock, stderr *process.Tail,
) process.Exit {
	out, to := io.Pipe()
	p, err := process.Start(ctx, process.Spec{
		Argv: cmd.Argv, Dir: cmd.Dir, Env: x.r.environ(x.adapter, cmd), Input: cmd.Input,
		Stdout: to, Stderr: stderr, Timeout: x.c.Timeout, Files: []*os.File{lock.File}, DieWithParent: true,
	})
	if err != nil {
		return process.Exit{Class: process.NotStarted, Code: -1, Err: err}
	}
	if err := lock.WritePID(p.Pid()); err != nil {
		x.r.log.Warn("cannot write the process ID to the lock", "session", x.session, "error", err)
	}
	go func() {
		<-p.Done()
		_ = to.Close() // ends the reader
	}()
	events := agentcli.NewReader(out, x.c.CLI)
	events.Clean = func(line []byte, cut bool) []byte {
		if cut {
			return x.r.redact.Truncated(line)
		}
		return x.r.redact.Line(line)
	}
	err = events.All(func(e agentcli.Event) error {
		x.event(e)
		if x.log.Err != nil {
			p.Stop()
		}
		return nil
	})
	if err != nil {
		_ = out.CloseWithError(err)
	}
	return p.Wait()
}

func (x *execution) event(e agentcli.Event) {
	x.log.Add(e)
	x.judge.Add(e)
	x.events++
	if agentcli.ValidSessionID(e.SessionID) {
		x.session = e.SessionID
	}
	x.heartbeat()
	if x.c.OnEvent != nil {
		e.Raw = nil
		x.c.OnEvent(e)
	}
}

func (x *execution) heartbeat() {
	if x.c.Progress != nil {
		x.c.Progress.now.Store(Heartbeat{SessionID: x.session, LogPath: x.log.Path(), Events: x.events})
	}
}

// interpret returns the result of a process that has ended.
func (x *execution) interpret(ctx context.Context, exit process.Exit, stderr *process.Tail) *Result {
	o := x.judge.Outcome(exit, string(x.r.redact.Truncated(stderr.Bytes())))
	r := x.result(o)
	var failure *Result
	switch {
	case x.log.Err != nil:
		x.r.log.Error("cannot write the log of an agent", "log", x.log.Path(), "error", x.log.Err)
		failure = failed(x.c, ClassLogBroken, false, "%v", x.log.Err)
	case exit.Err != nil:
		failure = notStarted(x.c, x.adapter, exit.Err)
	case exit.Class == process.Canceled && !o.OK:
		failure = x.stopped(ctx)
	default:
		return r
	}
	r.Success, r.ExitClass, r.Error, r.Retry = false, failure.ExitClass, failure.Error, failure.Retry
	return r
}

// stopped is the result of a call whose context is done.
func (x *execution) stopped(ctx context.Context) *Result {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return failed(x.c, agentcli.ClassTimedOut, true, "the attempt timed out, and the agent was stopped")
	}
	return failed(x.c, ClassCanceled, false, "the call was canceled, and the agent was stopped")
}

func (x *execution) result(o agentcli.Outcome) *Result {
	r := &Result{Text: o.Text, Retry: o.Retry, AgentResult: ace.AgentResult{
		Success: o.OK, ExitClass: string(o.Class), Provider: string(x.c.CLI), Model: o.Model,
		Version: x.version.String(), SessionID: x.session, Usage: o.Usage, CostUSD: o.Usage.CostUSD,
		Denials: o.Denials, LogComplete: true,
		Events: x.events,
	}}
	if !o.OK {
		r.Error = o.Sentence
	}
	if o.Class != agentcli.ClassUnknownSession && agentcli.ValidSessionID(o.SessionID) {
		r.SessionID = o.SessionID
	}
	return r
}

// seal writes the last lines of the log and stores it as an artifact, even if the call was
// canceled.
func (x *execution) seal(ctx context.Context, r *Result, exit process.Exit, stderr *process.Tail) {
	if stderr.Size() > 0 {
		text := string(x.r.redact.Truncated(stderr.Bytes()))
		x.log.AddOwn(ownLine{Type: lineStderr, Text: text, Size: stderr.Size()})
	}
	x.log.AddOwn(ownLine{Type: lineEnd, End: &footer{
		Success: r.Success, ExitClass: r.ExitClass, Retry: r.Retry, Error: r.Error, SessionID: r.SessionID,
		CostUSD: r.CostUSD, Usage: r.Usage, DurationMS: r.DurationMS, ExitCode: exit.Code, Events: x.events,
		At: time.Now().UTC(),
	}})
	r.LogPath = x.log.Path()
	ref, err := x.log.Seal(context.WithoutCancel(ctx))
	r.LogComplete = x.log.Complete() && x.log.Err == nil
	if err != nil {
		x.r.log.Error("cannot seal the log of an agent", "log", x.log.Path(), "error", err)
	} else {
		r.Log = &ref
	}
	if !r.LogComplete && x.log.Err == nil {
		x.r.log.Warn("the log of an agent is incomplete", "log", x.log.Path(), "dropped", x.log.Dropped())
	}
}
