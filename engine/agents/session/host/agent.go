package host

import (
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"sync"
	"time"

	"acescope/engine/agents/agentcli"
	"acescope/engine/agents/session"
	"acescope/engine/internal/filelock"
	"acescope/engine/internal/process"
)

// agent is a process of an agent. A streaming process takes several turns over standard input.
type agent struct {
	h         *Host
	sessionID string
	dir       string // working directory
	dirInfo   os.FileInfo
	cli       agentcli.CLI
	p         *process.Process
	stderr    *process.Tail
	tools     *toolServer   // nil if the session serves no tools
	gone      chan struct{} // closed when the process has ended
	streams   bool          // takes turns over standard input

	mu           sync.Mutex
	conversation string   // the agent's session id
	attempt      *attempt // the turn in progress
	requests     map[string]context.CancelFunc
	closing      bool
}

// stderrKept is how many bytes of the start and of the end of standard error are kept.
const stderrKept = 8 << 10

// start starts an agent's process for a turn. The process holds the session's lock from then on.
func (t *attempt) start(call agentcli.Call, lock *filelock.Lock) (*agent, error) {
	in := t.in
	call, env, err := t.h.addServers(in, call)
	if err != nil {
		return nil, err
	}
	cmd, err := t.adapter.Command(call)
	if err != nil {
		return nil, err
	}
	cmd.Env = append(cmd.Env, env...)
	a := &agent{
		h: t.h, sessionID: in.SessionID, dir: in.WorkingDir, cli: t.adapter.CLI,
		stderr: process.NewTail(stderrKept, stderrKept),
		gone:   make(chan struct{}), streams: cmd.Streaming,
		conversation: cmp.Or(call.Resume, call.SessionID),
		attempt:      t, requests: map[string]context.CancelFunc{},
	}
	if call.HostServer != "" {
		a.tools = newToolServer(in.Served, a.callTool)
	}
	if a.dirInfo, err = os.Stat(in.WorkingDir); err != nil {
		return nil, err
	}
	out, stdout := io.Pipe()
	a.p, err = process.Start(t.h.life, process.Spec{
		Argv: cmd.Argv, Dir: cmd.Dir, Env: t.h.environ(t.adapter, cmd), Input: cmd.Input, Pipe: cmd.Streaming,
		Stdout: stdout, Stderr: a.stderr, Files: []*os.File{lock.File}, DieWithParent: true,
	})
	if err != nil {
		return nil, err
	}
	if err := lock.WritePID(a.p.Pid()); err != nil {
		t.h.log.Warn("the process id was not written to the session's lock", "session", in.SessionID, "error",
			err)
	}
	t.h.running.Go(func() {
		<-a.p.Done()
		_ = stdout.Close()
	})
	t.h.running.Go(func() { a.read(out) })
	a.requestHooks(in)
	t.h.log.Info("agent process started", "session", in.SessionID, "agent", in.Agent,
		"pid", a.p.Pid(), "resumed", call.Resume != "")
	return a, nil
}

// begin assigns a turn before the process can report anything about it. It returns false if the
// process is ending.
func (a *agent) begin(t *attempt) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closing {
		return false
	}
	a.attempt = t
	return true
}

// isIn reports whether dir is the directory that the process works in, not a new one with the same path.
func (a *agent) isIn(dir string) bool {
	info, err := os.Stat(dir)
	return err == nil && dir == a.dir && os.SameFile(info, a.dirInfo)
}

// alive reports whether the process can take another turn.
func (a *agent) alive() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.streams && !a.closing
}

// send writes a line to standard input, unless err is set. It fails if the agent does not read the
// line before ctx ends; its process must then be stopped.
func (a *agent) send(ctx context.Context, line []byte, err error) error {
	if err != nil {
		return err
	}
	return a.p.Write(ctx, line)
}

// request sends a request, which the agent must read within interruptTimeout.
func (a *agent) request(line []byte, err error) error {
	ctx, cancel := context.WithTimeout(a.h.life, interruptTimeout)
	defer cancel()
	return a.send(ctx, line, err)
}

// read processes the output until the process has ended.
func (a *agent) read(out *io.PipeReader) {
	err := agentcli.NewReader(out, a.cli).All(func(e agentcli.Event) error {
		a.handle(e)
		return nil
	})
	if err != nil {
		a.h.log.Error("the agent's output cannot be read", "session", a.sessionID, "error", err)
		_ = out.CloseWithError(err)
	}
	exit := a.p.Wait()
	a.mu.Lock()
	t := a.attempt
	a.attempt = nil
	a.closing = true
	for _, cancel := range a.requests {
		cancel()
	}
	a.mu.Unlock()
	close(a.gone)
	if t != nil {
		t.agentEnd <- agentEnd{exit, a.stderr.String()}
	}
}

func (a *agent) handle(e agentcli.Event) {
	a.mu.Lock()
	t := a.attempt
	if e.SessionID != "" && e.Kind == agentcli.KindInit {
		a.conversation = e.SessionID
	}
	a.mu.Unlock()
	ended := t != nil && t.add(e)
	if e.Kind == agentcli.KindControl {
		a.control(e.Raw, t)
	}
	if ended && a.streams {
		a.mu.Lock()
		a.attempt = nil
		a.mu.Unlock()
		t.agentEnd <- agentEnd{}
	}
}

// control handles a line of the control protocol. A request is answered by a goroutine.
func (a *agent) control(line []byte, t *attempt) {
	c, err := agentcli.DecodeControl(line)
	if err != nil {
		a.h.log.Warn("malformed control line", "session", a.sessionID, "error", err)
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case c.Refused == rulesID:
		a.h.log.Error("the agent does not report tool calls, so rules have no effect; ending its process",
			"session", a.sessionID)
		go a.p.Stop()
	case c.Cancels:
		if cancel := a.requests[c.ID]; cancel != nil {
			cancel()
		}
	case c.ID != "":
		ctx, cancel := context.WithCancel(a.h.life)
		a.requests[c.ID] = cancel
		a.h.running.Go(func() { a.respond(ctx, cancel, c, t) })
	}
}

// respond answers a request of the agent unless it was canceled meanwhile.
func (a *agent) respond(ctx context.Context, cancel context.CancelFunc, q agentcli.Control, t *attempt) {
	reply, err := a.answer(ctx, q, t)
	a.mu.Lock()
	canceled := ctx.Err() != nil
	delete(a.requests, q.ID)
	a.mu.Unlock()
	cancel()
	if canceled {
		return
	}
	if err := a.send(a.h.life, reply, err); err != nil {
		a.h.log.Warn("an answer did not reach the agent", "session", a.sessionID, "error", err)
	}
	if q.MCP != nil && a.tools != nil {
		a.tools.sent(q.MCP.Message)
	}
}

// answer returns the line that answers a request of the agent.
func (a *agent) answer(ctx context.Context, q agentcli.Control, t *attempt) ([]byte, error) {
	switch {
	case q.Hook != nil:
		return a.restrict(ctx, q, t)
	case q.Tool != nil:
		return a.mayUse(ctx, q, t)
	case q.MCP != nil && a.tools != nil && q.MCP.Server == session.ToolServerName:
		reply, err := a.tools.answer(ctx, q.MCP.Message)
		if err != nil {
			return agentcli.Fail(q.ID, err.Error())
		}
		return agentcli.MCPResponse(q.ID, reply)
	}
	return agentcli.Fail(q.ID, "acescope does not support "+q.Subtype)
}

// How long to wait for an agent to end its turn, or its process.
const (
	interruptTimeout = 5 * time.Second
	closeTimeout     = 5 * time.Second
)

// close ends the process, first by a request, then by closing its input, then by signals. It
// returns when the process has ended.
func (a *agent) close() {
	a.mu.Lock()
	a.closing = true
	a.mu.Unlock()
	if a.streams {
		if err := a.request(agentcli.EndSession("acescope-end")); err == nil || errors.Is(err, os.ErrClosed) {
			a.p.CloseInput()
		}
		select {
		case <-a.gone:
			return
		case <-time.After(closeTimeout):
		}
	}
	a.p.Stop()
	<-a.gone
}
