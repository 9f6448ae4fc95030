package engine_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.temporal.io/sdk/worker"
	"google.golang.org/grpc"

	"acescope/engine"
	"acescope/engine/agents/agentcli/agentclitest"
	"acescope/engine/tasks/runner"
	"acescope/engine/tasks/runner/host"
	"acescope/engine/temporal/server"
)

// member configures a process of a [runEnv].
type member struct {
	Dir    string
	Serve  bool   // hosts the server if no other process does, and serves workflows and sessions
	Runner string // ID of its runner, "" without a runner
	Agents bool   // the runner executes agents too
	Tags   []string
	Work   string // the runner's directory
	Slots  int
	Stale  time.Duration
	Remove time.Duration
	Kill   *killAt
}

// killAt is a call to the server at which a process kills itself.
type killAt struct {
	Method string // such as RespondWorkflowTaskCompleted
	With   string // text in the request
	After  bool   // after the answer instead of before the call
}

func (k *killAt) intercept() grpc.UnaryClientInterceptor {
	if k == nil {
		return nil
	}
	return func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn,
		invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		matches := path.Base(method) == k.Method && strings.Contains(fmt.Sprint(req), k.With)
		if matches && !k.After {
			killSelf()
		}
		err := invoke(ctx, method, req, reply, cc, opts...)
		if matches && err == nil {
			killSelf()
		}
		return err
	}
}

func killSelf() {
	self, _ := os.FindProcess(os.Getpid())
	_ = self.Kill()
	select {}
}

// memberProgram runs a member until its input is closed or it is killed. SIGTERM drains its runner.
func memberProgram(config []byte) error {
	var m member
	if err := json.Unmarshal(config, &m); err != nil {
		return err
	}
	return m.run()
}

func (m member) run() error {
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer cancel()
	if _, err := server.OpenDir(m.Dir, "test"); err != nil {
		return err
	}
	logs, err := os.OpenFile(filepath.Join(m.Dir, workerLog), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if m.Kill != nil {
		worker.SetStickyWorkflowCacheSize(0) // or the server waits for the worker that died
	}
	e, err := engine.Open(context.Background(), engine.Options{DataDir: m.Dir, Version: "test",
		Worker: m.Serve, Takeover: m.Serve, NoRunner: true,
		Intercept: m.Kill.intercept(), Logger: slog.New(slog.NewTextHandler(logs, nil))})
	if err != nil {
		return err
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	if m.Serve {
		fmt.Println("serving")
	}
	if m.Runner != "" {
		var h *host.Host
		if h, err = e.NewRunner(m.options()); err == nil {
			err = h.Run(ctx, nil)
		}
	}
	<-ctx.Done()
	if closed := e.Close(context.Background()); err == nil {
		err = closed
	}
	return err
}

func (m member) options() host.Options {
	types := []string{runner.Deterministic}
	if m.Agents {
		types = append(types, runner.ClaudeCode)
	}
	return host.Options{ID: m.Runner, Grace: 300 * time.Millisecond, Stale: m.Stale, Remove: m.Remove,
		Capabilities: runner.Capabilities{ProjectDir: m.Work, AnyProject: true, Slots: max(m.Slots, 1),
			ExecutorTypes: types, Tags: m.Tags},
		OnEvent: func(e host.Event) { fmt.Println("runner", e.Kind) }}
}

// process is a started program.
type process struct {
	*exec.Cmd
	t    *testing.T
	gone chan struct{}
	in   io.Closer

	mu    sync.Mutex
	lines []string
	more  chan struct{} // closed when there are more lines
}

// startProgram starts one of the [programs], with a stand-in for agents if there is one. It is
// killed at the end of the test.
func startProgram(t *testing.T, agent *agentclitest.Agent, name string, config any) *process {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), programEnv+"="+name, configEnv+"="+string(text))
	if agent != nil {
		cmd.Env = append(cmd.Env, "CLAUDE_CONFIG_DIR="+agent.ConfigDir(), "PATH="+agent.Dir()+
			string(os.PathListSeparator)+os.Getenv("PATH"))
	}
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &process{Cmd: cmd, t: t, gone: make(chan struct{}), in: in, more: make(chan struct{})}
	go func() {
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			p.mu.Lock()
			p.lines = append(p.lines, lines.Text())
			close(p.more)
			p.more = make(chan struct{})
			p.mu.Unlock()
		}
		_ = cmd.Wait()
		close(p.gone)
	}()
	t.Cleanup(p.end)
	return p
}

// output waits for the first line, or the end of the process, and returns the lines so far.
func (p *process) output() []string {
	p.mu.Lock()
	lines, more := p.lines, p.more
	p.mu.Unlock()
	if len(lines) == 0 {
		select {
		case <-more:
		case <-p.gone:
		case <-time.After(time.Minute):
			p.t.Error("the process prints nothing")
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lines
}

// waitLine waits for a line.
func (p *process) waitLine(line string) *process {
	p.t.Helper()
	for limit := time.After(time.Minute); ; {
		p.mu.Lock()
		said, more := p.lines, p.more
		p.mu.Unlock()
		for _, l := range said {
			if l == line {
				return p
			}
		}
		select {
		case <-more:
		case <-p.gone:
			p.t.Fatalf("the process ended after printing %q, not %q", said, line)
		case <-limit:
			p.t.Fatalf("the process printed %q, not %q", said, line)
		}
	}
}

func (p *process) end() {
	_ = p.Process.Kill()
	<-p.gone
}

func (p *process) kill() {
	p.t.Helper()
	_ = p.Process.Kill()
	p.await()
}

func (p *process) terminate() {
	p.t.Helper()
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		p.t.Fatal(err)
	}
}

// await waits for the end of the process.
func (p *process) await() {
	p.t.Helper()
	select {
	case <-p.gone:
	case <-time.After(time.Minute):
		p.t.Fatalf("the process is still running: %q", p.lines)
	}
}
