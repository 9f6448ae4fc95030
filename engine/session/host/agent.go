package host

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"sync"
	"time"

	"acescope/engine/agentcli"
	"acescope/engine/process"
	"acescope/engine/process/filelock"
)

// agent is a process of an agent. One that takes turns over standard input stays for
// several of them.
type agent struct {
	h       *Host
	id      string // of the session
	cli     agentcli.CLI
	p       *process.Process
	errs    *process.Tail
	tools   *toolServer // nil where the session serves none
	gone    chan struct{}
	streams bool // it takes turns over standard input

	in sync.Mutex // of standard input

	mu      sync.Mutex
	session string // the agent's id of the conversation
	run     *run   // the turn under way
	asks    map[string]context.CancelFunc
	bye     bool // we end it
	timer   *time.Timer
}

// How much of standard error is kept, in bytes, of its begin and its end.
const stderrKept = 8 << 10

// start starts an agent's process, for a turn. It holds the session's lock from then on.
func (h *Host) start(r *run, adapter agentcli.Adapter, call agentcli.Call, lock *filelock.Lock) (*agent, error) {
	in := r.in
	call, env, err := h.equipped(in, call)
	if err != nil {
		return nil, err
	}
	cmd, err := adapter.Command(call)
	if err != nil {
		return nil, err
	}
	cmd.Env = append(cmd.Env, env...)
	a := &agent{h: h, id: in.SessionID, cli: adapter.CLI(), errs: process.NewTail(stderrKept, stderrKept), gone: make(chan struct{}),
		streams: cmd.Streaming, session: call.Resume, run: r, asks: map[string]context.CancelFunc{}}
	if a.session == "" {
		a.session = call.SessionID
	}
	if call.HostServer != "" {
		if a.tools, err = newToolServer(h.life, in.Served, a.serve); err != nil {
			return nil, err
		}
	}
	out, to := io.Pipe()
	a.p, err = process.Start(h.life, process.Spec{Argv: cmd.Argv, Dir: cmd.Dir, Env: h.environ(adapter, cmd), Input: cmd.Input, Pipe: cmd.Streaming,
		Stdout: to, Stderr: a.errs, Files: []*os.File{lock.File}, DieWithParent: true})
	if err != nil {
		a.tools.close()
		return nil, err
	}
	if err := lock.Sign(a.p.Pid()); err != nil {
		h.log.Warn("the lock tells nobody's name", "session", in.SessionID, "error", err)
	}
	go func() {
		<-a.p.Done()
		_ = to.Close() // the reader has the end now
	}()
	go a.read(out)
	h.log.Info("the agent's process runs", "session", in.SessionID, "agent", in.Agent, "pid", a.p.Pid(), "resumed", call.Resume != "")
	return a, nil
}

// begin takes a turn, before the process can say anything of it; false where it has ended.
func (a *agent) begin(r *run) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.bye {
		return false
	}
	a.run = r
	if a.timer != nil {
		a.timer.Stop()
	}
	return true
}

// alive tells whether the process takes another turn.
func (a *agent) alive() bool {
	select {
	case <-a.gone:
		return false
	default:
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.streams && !a.bye
}

// send writes a line to standard input.
func (a *agent) send(line []byte, err error) error {
	if err != nil {
		return err
	}
	a.in.Lock()
	defer a.in.Unlock()
	_, err = a.p.Stdin().Write(line)
	return err
}

// read takes what the process says, to its end.
func (a *agent) read(out *io.PipeReader) {
	events := agentcli.NewReader(out, a.cli)
	err := events.All(func(e agentcli.Event) error {
		a.take(e)
		return nil
	})
	if err != nil {
		a.h.log.Error("the agent's output cannot be read", "session", a.id, "error", err)
		_ = out.CloseWithError(err)
	}
	exit := a.p.Wait()
	a.mu.Lock()
	r := a.run
	a.run, a.bye = nil, true
	for _, cancel := range a.asks {
		cancel()
	}
	if a.timer != nil {
		a.timer.Stop()
	}
	a.mu.Unlock()
	a.tools.close()
	close(a.gone)
	if r != nil {
		r.died(exit, a.errs.String())
	}
}

func (a *agent) take(e agentcli.Event) {
	a.mu.Lock()
	r := a.run
	if e.SessionID != "" && e.Kind == agentcli.KindInit {
		a.session = e.SessionID
	}
	a.mu.Unlock()
	ended := r != nil && r.take(e)
	if e.Kind == agentcli.KindControl {
		a.control(e.Raw, r)
	}
	if ended && a.streams {
		a.mu.Lock()
		a.run = nil
		a.mu.Unlock()
		r.answered()
	}
}

// control answers a line of the control protocol. What takes longer is done beside the
// reading.
func (a *agent) control(line []byte, r *run) {
	c, err := agentcli.DecodeControl(line)
	if err != nil {
		a.h.log.Warn("a control line is not understood", "session", a.id, "error", err)
		return
	}
	switch {
	case c.Cancel != "":
		a.mu.Lock()
		if cancel := a.asks[c.Cancel]; cancel != nil {
			cancel()
		}
		a.mu.Unlock()
	case c.Request != nil:
		q := *c.Request
		q.Raw = append(json.RawMessage{}, q.Raw...)
		ctx, cancel := context.WithCancel(a.h.life)
		a.mu.Lock()
		a.asks[q.ID] = cancel
		a.mu.Unlock()
		answer := func() {
			reply, err := a.answer(ctx, q, r)
			a.mu.Lock()
			gone := ctx.Err() != nil
			delete(a.asks, q.ID)
			a.mu.Unlock()
			cancel()
			if gone {
				return
			}
			if err := a.send(reply, err); err != nil {
				a.h.log.Warn("an answer did not reach the agent", "session", a.id, "error", err)
			}
			if q.MCP != nil && a.tools != nil {
				a.tools.sent(q.MCP.Message)
			}
		}
		go answer()
	}
}

// answer is the line that answers a request of the agent's.
func (a *agent) answer(ctx context.Context, q agentcli.ControlRequest, r *run) ([]byte, error) {
	switch {
	case q.Tool != nil:
		return a.mayUse(ctx, q, r)
	case q.MCP != nil && a.tools != nil && q.MCP.Server == serverName:
		reply, err := a.tools.message(ctx, q.MCP.Message)
		if err != nil {
			return agentcli.Fail(q.ID, err.Error())
		}
		return agentcli.MCPResponse(q.ID, reply)
	}
	return agentcli.Fail(q.ID, "acescope has no answer to "+q.Subtype)
}

// How long an agent is waited for when it is to end its turn, or itself.
const (
	interruptWithin = 5 * time.Second
	closeWithin     = 5 * time.Second
)

// close lets the process end: asked first, then without input, then by signals. It returns
// when it has ended.
func (a *agent) close() {
	a.mu.Lock()
	a.bye = true
	if a.timer != nil {
		a.timer.Stop()
	}
	a.mu.Unlock()
	if a.streams {
		line, err := agentcli.EndSession("acescope-end")
		if err := a.send(line, err); err == nil || errors.Is(err, os.ErrClosed) {
			_ = a.p.Stdin().Close()
		}
		select {
		case <-a.gone:
			return
		case <-time.After(closeWithin):
		}
	}
	a.p.Stop()
	<-a.gone
}
