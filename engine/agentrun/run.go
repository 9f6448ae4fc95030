package agentrun

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"acescope/engine/ace"
	"acescope/engine/agentcli"
	"acescope/engine/process"
	"acescope/engine/process/filelock"
)

// stderrKept is how much of standard error is kept, in bytes, of its begin and its end.
const stderrKept = 8 << 10

// run is a call under way.
type run struct {
	r       *Runner
	c       Call
	adapter agentcli.Adapter
	version agentcli.Version
	minted  string // the id of a session that begins, where it can be chosen
	session string // the agent's, as far as it is known

	log    liveLog
	logErr error
	judge  agentcli.Judge
	events int64
}

// liveLog is the part of [artifact.LiveLog] that a call needs.
type liveLog interface {
	Path() string
	Line(line []byte) error
	Complete() bool
	Dropped() int64
	Seal(ctx context.Context) (ace.Ref, error)
}

// continueText is what an agent is told whose work was broken off.
const continueText = "The program that runs you was interrupted in the middle of this task and has started you again. " +
	"Go on where you stopped and finish it. What you have done already is done: look before you do it again. The task was:\n\n"

// call is how the agent is called; resume is the session to go on with.
func (x *run) call(resume string) agentcli.Call {
	c, can, agent := x.c, x.adapter.Features(), x.r.Agent(x.c.CLI)
	call := agentcli.Call{Binary: agent.Command, Instruction: c.Instruction, WorkingDir: c.WorkingDir, Model: c.Model, Resume: resume,
		Permission: agentcli.Permission(c.Permission), AllowFull: agent.AllowFull, AllowedTools: c.AllowedTools,
		DisallowedTools: c.DisallowedTools, SystemPrompt: c.SystemPrompt, MaxTurns: c.MaxTurns, MaxBudgetUSD: c.MaxBudgetUSD}
	if call.Model == "" {
		call.Model = agent.Model
	}
	if resume == "" {
		call.Resume, call.SessionID = "", x.minted
	}
	if c.SystemPrompt != "" && !can.SystemPrompt {
		call.SystemPrompt, call.Instruction = "", c.SystemPrompt+"\n\n"+c.Instruction
	}
	return call
}

// run makes the call, or finds that it was made.
func (x *run) run(ctx context.Context) *End {
	began := time.Now()
	key := x.session
	if key == "" {
		key = "call-" + x.c.ID
	}
	lock, err := filelock.Take(ctx, filepath.Join(x.r.o.DataDir, locksDir, ace.FileName(key)+".lock"), func(pid int) {
		x.r.log.Warn("a process of the agent was left behind and is ended", "session", key, "pid", pid)
	})
	switch {
	case err != nil && ctx.Err() != nil:
		return x.stopped(ctx)
	case errors.Is(err, filelock.ErrHeld):
		return fail(x.c, agentcli.ClassSessionInUse, true, "another process of the agent has the session %s and does not end", key)
	case err != nil:
		return fail(x.c, ClassCannotStart, true, "%v", err)
	}
	defer lock.Release()
	p, err := x.past(ctx)
	if err != nil {
		return fail(x.c, ClassCannotStart, true, "what earlier attempts did cannot be read: %v", err)
	}
	if p.end != nil {
		return p.end
	}
	e := x.attempt(ctx, lock, p, began)
	switch class := agentcli.Class(e.ExitClass); {
	case class == agentcli.ClassUnknownSession && x.c.Resume == "" && p.resume != "":
		// What was to be gone on with never came to be.
		e = x.attempt(ctx, lock, past{before: -1, used: p.used, told: p.told}, began)
	case class == agentcli.ClassSessionInUse && x.c.Log.Attempt > 1 && p.resume == "" && x.minted != "":
		// The transcript lies where it was not looked for.
		e = x.attempt(ctx, lock, past{resume: x.minted, begun: true, before: -1, meter: p.meter, used: p.used, told: p.told}, began)
	}
	return e
}

// attempt starts the agent and follows it to its end.
func (x *run) attempt(ctx context.Context, lock *filelock.Lock, p past, began time.Time) *End {
	x.judge, x.events, x.logErr = agentcli.Judge{Meter: p.meter}, 0, nil
	call := x.call(p.resume)
	if p.begun {
		call.Instruction = continueText + call.Instruction
	}
	cmd, err := x.adapter.Command(call)
	if err != nil {
		return fail(x.c, ClassRefused, false, "%v", err).costs(p.used)
	}
	log, err := x.r.logs.Create(x.c.Log)
	if err != nil {
		return fail(x.c, ClassLogBroken, false, "%v", err).costs(p.used)
	}
	x.log = x.r.wrap(log)
	x.beat()
	x.own(headLine{lineCall, x.header(cmd, call, p)})
	var exit process.Exit
	errs := process.NewTail(stderrKept, stderrKept)
	if x.logErr == nil {
		exit = x.follow(ctx, cmd, lock, errs)
	}
	e := x.judged(ctx, exit, errs)
	e.costs(x.spent(ctx, e.Usage, p))
	e.Continued = p.begun
	e.DurationMS = float64(time.Since(began).Microseconds()) / 1000
	x.seal(ctx, e, exit, errs)
	x.keepMeter(e.SessionID, x.judge.Meter)
	return e
}

// header is the first line of the log.
func (x *run) header(cmd agentcli.Command, call agentcli.Call, p past) Header {
	n := x.c.Log
	h := Header{ID: x.c.ID, At: time.Now().UTC(), WorkflowID: n.WorkflowID, RunID: n.RunID, ActivityName: n.Activity, SequenceNumber: n.Seq,
		Attempt: n.Attempt, Provider: string(x.c.CLI), Version: x.version.String(), WorkingDir: cmd.Dir, Model: call.Model,
		PermissionMode: string(call.Permission), Session: x.session, Resumed: call.Resume != "", Continued: p.begun,
		Instruction: instructionOf(x.c.Instruction), Before: max(p.before, 0), Meter: p.meter, Used: p.used}
	for _, arg := range cmd.Argv {
		h.Argv = append(h.Argv, ace.Cut(arg, previewBytes))
	}
	return h
}

// follow starts the process and reads what it says, to its end.
func (x *run) follow(ctx context.Context, cmd agentcli.Command, lock *filelock.Lock, errs *process.Tail) process.Exit {
	out, to := io.Pipe()
	p, err := process.Start(ctx, process.Spec{Argv: cmd.Argv, Dir: cmd.Dir, Env: x.r.environ(x.adapter, cmd), Input: cmd.Input,
		Stdout: to, Stderr: errs, Timeout: x.c.Timeout, Files: []*os.File{lock.File}, DieWithParent: true})
	if err != nil {
		return process.Exit{Class: process.NotStarted, Code: -1, Err: err}
	}
	if err := lock.Sign(p.Pid()); err != nil {
		x.r.log.Warn("the lock tells nobody's name", "session", x.session, "error", err)
	}
	go func() {
		<-p.Done()
		_ = to.Close() // the reader has the end now
	}()
	events := agentcli.NewReader(out, x.c.CLI)
	events.Clean = func(line []byte, cut bool) []byte {
		if cut {
			return x.r.redact.Cut(line)
		}
		return x.r.redact.Line(line)
	}
	err = events.All(func(e agentcli.Event) error {
		x.take(e)
		if x.logErr != nil {
			p.Stop()
		}
		return nil
	})
	if err != nil {
		_ = out.CloseWithError(err)
	}
	return p.Wait()
}

// take logs an event, counts it and hands it on.
func (x *run) take(e agentcli.Event) {
	x.write(e)
	x.judge.Add(e)
	x.events++
	if e.SessionID != "" && agentcli.ValidSessionID(e.SessionID) {
		x.session = e.SessionID
	}
	x.beat()
	if x.c.Each != nil {
		e.Raw = nil
		x.c.Each(e)
	}
}

func (x *run) beat() {
	x.c.Progress.set(Beat{SessionID: x.session, LogPath: x.log.Path(), Events: x.events})
}

// write writes the line of an event, once. What is no JSON becomes some.
func (x *run) write(e agentcli.Event) {
	switch {
	case e.Kind == agentcli.KindGarbage:
		x.own(garbageLine{lineGarbage, e.Name, e.Text, e.Size})
	case e.Part == 0 && e.Raw != nil:
		x.line(e.Raw)
	}
}

// own writes a line of our own.
func (x *run) own(v any) {
	line, err := json.Marshal(v)
	if err != nil {
		x.logErr = err
		return
	}
	x.line(x.r.redact.Line(line))
}

func (x *run) line(line []byte) {
	if err := x.log.Line(line); err != nil && x.logErr == nil {
		x.logErr = err
		x.r.log.Error("the log of an agent cannot be written, so the agent is ended", "log", x.log.Path(), "error", err)
	}
}

// judged is how the call ended.
func (x *run) judged(ctx context.Context, exit process.Exit, errs *process.Tail) *End {
	stderr := string(x.r.redact.Cut(errs.Bytes()))
	o := x.judge.Outcome(agentcli.Exit{Code: exit.Code, Signal: exit.Signal, TimedOut: exit.Class == process.TimedOut,
		ByUs: exit.Class == process.Killed || exit.Class == process.Cancelled, StartErr: exit.Err}, stderr)
	switch {
	case x.logErr != nil:
		return x.with(fail(x.c, ClassLogBroken, false, "%v", x.logErr), o)
	case exit.Err != nil:
		return x.with(notStarted(x.c, x.adapter, exit.Err), o)
	case exit.Class == process.Cancelled && !o.OK:
		return x.with(x.stopped(ctx), o)
	}
	return x.endOf(o)
}

// stopped is the end of a call whose context is done.
func (x *run) stopped(ctx context.Context) *End {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fail(x.c, agentcli.ClassTimedOut, true, "the time of the attempt was over, and the agent was ended")
	}
	return fail(x.c, ClassCancelled, false, "the call was cancelled, and the agent was ended")
}

// with adds to an end what the agent did before it.
func (x *run) with(e *End, o agentcli.Outcome) *End {
	full := x.endOf(o)
	full.Success, full.ExitClass, full.Error, full.Retry = false, e.ExitClass, e.Error, e.Retry
	full.say()
	return full
}

// endOf is the end that an outcome tells.
func (x *run) endOf(o agentcli.Outcome) *End {
	e := &End{Text: o.Text, Retry: o.Retry, AgentResult: ace.AgentResult{Success: o.OK, ExitClass: string(o.Class), Provider: string(x.c.CLI),
		Model: o.Model, Version: x.version.String(), SessionID: x.session, Usage: o.Usage, CostUSD: o.Usage.CostUSD, Denials: o.Denials,
		LogComplete: true, Events: x.events}}
	if !o.OK {
		e.Error = o.Sentence
	}
	if o.SessionID != "" && o.Class != agentcli.ClassUnknownSession && agentcli.ValidSessionID(o.SessionID) {
		e.SessionID = o.SessionID
	}
	e.say()
	return e
}

// costs sets what the call used, in all of its attempts.
func (e *End) costs(u ace.Usage) *End {
	e.Usage, e.CostUSD = u, u.CostUSD
	return e
}

// say sums up.
func (e *End) say() {
	if e.Success {
		e.Summary = fmt.Sprintf("CLI execution completed successfully (%d chars)", len([]rune(e.Text)))
		return
	}
	e.Summary = "CLI execution failed: " + e.Error
}

// seal writes the log's last lines and makes it an artifact. The log of a call that was
// cancelled is sealed too.
func (x *run) seal(ctx context.Context, e *End, exit process.Exit, errs *process.Tail) {
	if errs.Size() > 0 {
		x.own(stderrLine{lineStderr, string(x.r.redact.Cut(errs.Bytes())), errs.Size()})
	}
	x.own(endLine{lineEnd, footer{Success: e.Success, ExitClass: e.ExitClass, Retry: e.Retry, Error: e.Error, SessionID: e.SessionID,
		CostUSD: e.CostUSD, Usage: e.Usage, DurationMS: e.DurationMS, ExitCode: exit.Code, Events: x.events, At: time.Now().UTC()}})
	e.LogPath = x.log.Path()
	ref, err := x.log.Seal(context.WithoutCancel(ctx))
	if e.LogComplete = x.log.Complete(); err == nil {
		e.Log = &ref
	} else {
		x.r.log.Error("the log of an agent was not sealed", "log", x.log.Path(), "error", err)
	}
	if !e.LogComplete && x.logErr == nil {
		x.r.log.Warn("the log of an agent has not all of its lines", "log", x.log.Path(), "dropped", x.log.Dropped())
	}
}
