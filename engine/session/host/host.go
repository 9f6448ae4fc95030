package host

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/worker"

	"acescope/engine/agentcli"
	"acescope/engine/artifact"
	"acescope/engine/redact"
	"acescope/engine/session"
)

// Bounds of what is kept warm, unless [Options] say otherwise.
const (
	MaxWarm = 8                // processes of agents that wait for a turn
	MaxIdle = 15 * time.Minute // how long one waits
)

// Options say where sessions are kept and what they may do.
type Options struct {
	DataDir   string
	Artifacts *artifact.Store
	Workflows Workflows
	// AllowFull lists the agents whose sessions may run with permission mode "full".
	AllowFull map[agentcli.CLI]bool
	// Binaries are the programs of agents that are not to be looked for in the PATH.
	Binaries map[agentcli.CLI]string
	// Tools is the command of acescope's own server of tools, which is told the session behind
	// --session; nil for this program's mcp command on the data directory.
	Tools   []string
	MaxWarm int           // 0: [MaxWarm]
	MaxIdle time.Duration // 0: [MaxIdle]
	Logger  *slog.Logger
	// At is called at each step of a session, for tests that end the process there.
	At func(step string)
}

// Workflows is the way back from a turn to its session.
type Workflows interface {
	// RequestTool asks the session's workflow for a tool call, and waits for the answer for
	// as long as that takes. It may be called again for the same call.
	RequestTool(ctx context.Context, workflowID, runID string, r session.ToolRequest) (session.ToolAnswer, error)
}

// Host serves sessions.
type Host struct {
	o      Options
	name   string
	queue  string
	log    *slog.Logger
	logs   *artifact.Logs
	redact *redact.Redactor
	calls  calls
	// openLog begins a turn's log.
	openLog func(artifact.LogName) (turnLog, error)

	life context.Context // of processes
	end  context.CancelFunc

	mu    sync.Mutex
	slots map[string]*slot
	over  bool
}

// slot is what this process has of a session.
type slot struct {
	id string
	in sync.Mutex // held while a turn begins, or the process is ended

	mu    sync.Mutex // of the rest
	agent *agent
	run   *run // the newest turn, under way or ended
	used  time.Time
}

// New makes a host. Close must be called.
func New(o Options) (*Host, error) {
	dir, err := filepath.Abs(o.DataDir)
	if err != nil {
		return nil, err
	}
	o.DataDir = dir
	if o.Tools == nil {
		self, err := os.Executable()
		if err != nil {
			return nil, err
		}
		o.Tools = []string{self, "mcp", "--data-dir", dir}
	}
	if o.MaxWarm <= 0 {
		o.MaxWarm = MaxWarm
	}
	if o.MaxIdle <= 0 {
		o.MaxIdle = MaxIdle
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if err := os.MkdirAll(filepath.Join(dir, sessionsDir), 0o700); err != nil {
		return nil, err
	}
	name, err := os.Hostname()
	if err != nil {
		name = "localhost"
	}
	h := &Host{o: o, name: name, queue: Queue(name, dir), log: o.Logger, logs: artifact.NewLogs(dir, o.Artifacts),
		redact: redact.New(redact.Environ(os.Environ())...), slots: map[string]*slot{}}
	h.openLog = func(n artifact.LogName) (turnLog, error) { return h.logs.Create(n) }
	h.calls.list = map[string]*call{}
	h.life, h.end = context.WithCancel(context.Background())
	return h, nil
}

// RegisterClaim makes claim_session known, for the contract's queue.
func (h *Host) RegisterClaim(r worker.ActivityRegistry) {
	r.RegisterActivityWithOptions(h.claim, activity.RegisterOptions{Name: session.ActivityClaim})
}

// Register makes the other activities known, for the queue of this machine.
func (h *Host) Register(r worker.ActivityRegistry) {
	for name, fn := range map[string]any{
		session.ActivityTurn:  h.runTurn,
		session.ActivityTool:  h.runTool,
		session.ActivityClose: h.closeSession,
	} {
		r.RegisterActivityWithOptions(fn, activity.RegisterOptions{Name: name})
	}
}

// Close ends the processes of all agents. Turns under way are given up; they go on where
// the session is served next.
func (h *Host) Close() {
	h.mu.Lock()
	h.over = true
	var all []*slot
	for _, s := range h.slots {
		all = append(all, s)
	}
	h.mu.Unlock()
	h.end()
	for _, s := range all {
		s.mu.Lock()
		a := s.agent
		s.mu.Unlock()
		if a != nil {
			<-a.gone
		}
	}
}

func (h *Host) slot(id string) *slot {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.slots[id]
	if s == nil {
		s = &slot{id: id, used: time.Now()}
		h.slots[id] = s
	}
	return s
}

// at tells tests of a step.
func (h *Host) at(step string) {
	if h.o.At != nil {
		h.o.At(step)
	}
}

// trim ends the processes that waited longest, where too many wait.
func (h *Host) trim() {
	for {
		var oldest *slot
		var idle *agent
		var since time.Time
		waiting := 0
		h.mu.Lock()
		for _, s := range h.slots {
			a, used := s.idle()
			if a == nil {
				continue
			}
			waiting++
			if oldest == nil || used.Before(since) {
				oldest, idle, since = s, a, used
			}
		}
		h.mu.Unlock()
		if waiting <= h.o.MaxWarm {
			return
		}
		h.retire(oldest, idle, "others are warmer")
	}
}

// idle is the slot's process, where it waits for a turn, and since when.
func (s *slot) idle() (*agent, time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.agent == nil || s.run != nil && !s.run.over() {
		return nil, s.used
	}
	return s.agent, s.used
}

// retire ends a process that waits. The session goes on with another one.
func (h *Host) retire(s *slot, a *agent, why string) {
	s.in.Lock()
	defer s.in.Unlock()
	if now, _ := s.idle(); now != a {
		return
	}
	h.log.Info("the agent's process is ended", "session", s.id, "why", why, "pid", a.p.Pid())
	a.close()
	s.drop(a)
}

// drop forgets a process.
func (s *slot) drop(a *agent) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.agent == a {
		s.agent = nil
	}
}
