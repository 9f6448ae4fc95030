// Package host runs agent sessions on this machine: it executes their activities (claim_session,
// run_turn, run_session_tool, close_session) and keeps the agents' processes warm between turns.
// It may import the packages of engine/agents, engine/internal, engine/store/artifact and
// Temporal's SDK.
//
// One process at a time serves the sessions of a data directory: the holder of
// sessions/host.lock. If it dies, the next process that waits for the lock takes over at once.
// The process of an agent holds a lock of its session as long as it or one of its children
// lives, so a session never has two agents.
//
// If the agent no longer knows the conversation that a turn resumes, the turn starts another one
// with the recorded turns as its context.
//
// Order: turns of a session run one after another; an event is written to the turn's log before
// it is processed. Bounds: the Max constants here, in engine/agents/session and in
// engine/store/artifact. Loss: a turn that the agent has ended is never lost. After a crash, the
// next attempt looks for the turn in the logs of the earlier attempts and then in the agent's
// transcript: a completed turn is not repeated, and a started turn is continued with a new
// message. A served tool call is executed at most once: if the process that requested it is
// gone, the call is dropped and the agent requests it again.
//
// Costs come from the agent. Claude Code reports the total of its process at the end of a turn
// and starts from the last total in its transcript, so the cost of a turn is the difference. If
// a process ended during a turn without reporting, the cost is the total that it wrote at its
// end or, if it was killed, the messages of the transcript at list prices; a model without a
// list price makes the usage unpriced.
//
// Secrets from the environment and texts that look like secrets are redacted in logs, results
// and requests. The agent and its tools exchange the original texts, in memory only.
package host

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/gofrs/flock"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/worker"

	"acescope/engine/ace"
	"acescope/engine/agents/agentcall"
	"acescope/engine/agents/agentcli"
	"acescope/engine/agents/session"
	"acescope/engine/agents/transcript/copies"
	"acescope/engine/internal/filelock"
	"acescope/engine/internal/process"
	"acescope/engine/internal/redact"
	"acescope/engine/store/artifact"
)

// Default bounds for warm processes.
const (
	MaxWarm = 8                // idle processes
	MaxIdle = 15 * time.Minute // idle time of a process
)

// Options configure a [Host].
type Options struct {
	DataDir   string
	Artifacts *artifact.Store
	Workflows Workflows
	// Agents configures the agents on this machine.
	Agents map[agentcli.CLI]agentcall.Agent
	// MCPCommand starts acescope's own MCP server; --session is appended. It defaults to this
	// program's mcp command on the data directory.
	MCPCommand []string
	MaxWarm    int           // 0: [MaxWarm]
	MaxIdle    time.Duration // 0: [MaxIdle]
	Logger     *slog.Logger
	// OnStep is called at each step of a session, for tests that end the process there.
	OnStep func(step string)
}

// Workflows lets a turn call back to the workflow of its session.
type Workflows interface {
	// RequestTool asks the session's workflow for a tool call and waits for the answer. It may be
	// called again for the same call.
	RequestTool(ctx context.Context, workflowID, runID string, r session.ToolRequest) (session.ToolAnswer,
		error)
	// TryAgain tells the session's workflow that a turn is tried again.
	TryAgain(ctx context.Context, workflowID, runID string, a session.TurnAttempt) error
	// PastTurns returns the newest ended turns of a session, the oldest first, from the given run of
	// its workflow and the runs before it.
	PastTurns(ctx context.Context, workflowID, runID string) ([]session.PastTurn, error)
}

// Host executes the activities of sessions.
type Host struct {
	o      Options
	name   string
	queue  string
	log    *slog.Logger
	logs   *artifact.Logs
	copies *copies.Copier // nil without a shared store
	redact *redact.Redactor
	calls  sync.Map                // of *pendingCall, by id
	fault  func(path string) error // see [agentcall.EventLog]

	life    context.Context // of processes
	end     context.CancelFunc
	running sync.WaitGroup // all goroutines
	slots   *slots
}

// New creates a host. Call Close to end it.
func New(o Options) (*Host, error) {
	dir, err := filepath.Abs(o.DataDir)
	if err != nil {
		return nil, err
	}
	o.DataDir = dir
	if o.MCPCommand == nil {
		self, err := os.Executable()
		if err != nil {
			return nil, err
		}
		o.MCPCommand = []string{self, "mcp", "--data-dir", dir}
	}
	o.MaxWarm, o.MaxIdle = cmp.Or(max(o.MaxWarm, 0), MaxWarm), cmp.Or(max(o.MaxIdle, 0), MaxIdle)
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	if err := os.MkdirAll(filepath.Join(dir, sessionsDir), 0o700); err != nil {
		return nil, err
	}
	here, err := Here(dir)
	if err != nil {
		return nil, err
	}
	h := &Host{
		o: o, name: here.Name, queue: here.Queue, log: o.Logger, logs: artifact.NewLogs(dir, o.Artifacts),
		redact: redact.OfProcess(),
		slots:  &slots{maxWarm: o.MaxWarm, maxIdle: o.MaxIdle, log: o.Logger, byID: map[string]*slot{}},
	}
	h.copies = copies.New(h.logs)
	h.life, h.end = context.WithCancel(context.Background())
	h.running.Go(func() { h.slots.retireIdle(h.life) })
	return h, nil
}

// RegisterClaim registers claim_session, for the contract's task queue.
func (h *Host) RegisterClaim(r worker.ActivityRegistry) {
	r.RegisterActivityWithOptions(h.claim, activity.RegisterOptions{Name: session.ActivityClaim})
}

// Register registers the other activities, for this host's task queue.
func (h *Host) Register(r worker.ActivityRegistry) {
	r.RegisterActivityWithOptions(h.runTurn, activity.RegisterOptions{Name: session.ActivityTurn})
	r.RegisterActivityWithOptions(h.runTool, activity.RegisterOptions{Name: session.ActivityTool})
	r.RegisterActivityWithOptions(h.closeSession, activity.RegisterOptions{Name: session.ActivityClose})
}

// Close ends the processes of all agents. Turns in progress are given up and continue where the
// session is served next.
func (h *Host) Close() {
	h.slots.mu.Lock()
	h.end() // no attempt starts from now on
	h.slots.mu.Unlock()
	h.running.Wait()
}

// step reports a step to tests.
func (h *Host) step(name string) {
	if h.o.OnStep != nil {
		h.o.OnStep(name)
	}
}

// closeSession ends the agent's process, even if another process started it.
func (h *Host) closeSession(ctx context.Context, in session.CloseInput) error {
	h.step("close")
	s := h.slots.of(in.SessionID)
	s.start.Lock()
	defer s.start.Unlock()
	h.slots.endProcess(s)
	lock, err := h.lockSession(ctx, in.SessionID)
	if err != nil {
		return err
	}
	h.log.Info("session closed", "session", in.SessionID)
	h.slots.remove(in.SessionID)
	h.step("closed")
	lock.Release()
	return nil
}

const (
	sessionsDir = "sessions"    // below the data directory
	hostLock    = "host.lock"   // held by the process that serves the sessions
	lockExt     = ".agent.lock" // of sessions' locks; differs from hostLock for every session id
	lockRetry   = 2 * time.Second
)

// Here returns the host that serves the sessions of a data directory on this machine.
func Here(dataDir string) (session.Host, error) {
	dir, err := filepath.Abs(dataDir)
	if err != nil {
		return session.Host{}, err
	}
	name := process.Hostname()
	return session.Host{Name: name, Queue: Queue(name, dir)}, nil
}

// Queue returns the task queue of the sessions of one data directory on one machine.
func Queue(hostname, dataDir string) string {
	return fmt.Sprintf("session.%x", sha256.Sum256([]byte(hostname+"\x00"+filepath.Clean(dataDir))))[:32]
}

// Queue returns the task queue that this host serves.
func (h *Host) Queue() string { return h.queue }

// Lock waits until this process may serve the sessions of the data directory. The lock ends
// with the process or with release.
func (h *Host) Lock(ctx context.Context) (release func(), err error) {
	lock := flock.New(filepath.Join(h.o.DataDir, sessionsDir, hostLock), flock.SetPermissions(0o600))
	if _, err := lock.TryLockContext(ctx, lockRetry); err != nil {
		return nil, err
	}
	return func() { _ = lock.Close() }, nil
}

// lockSession takes the lock of a session. If an agent's process still holds it because its host
// died, that process is ended first. The new process inherits the file, so close it here after
// the start. The file is removed only when the session is closed: removed earlier, the next
// process would lock another file.
func (h *Host) lockSession(ctx context.Context, id string) (*filelock.Lock, error) {
	path := filepath.Join(h.o.DataDir, sessionsDir, ace.FileName(id)+lockExt)
	lock, err := filelock.Acquire(ctx, path, func(pid int) {
		h.log.Warn("ending an orphaned process of the session", "session", id, "pid", pid)
	})
	if err != nil {
		return nil, fmt.Errorf("lock of session %s: %w", id, err)
	}
	return lock, nil
}
