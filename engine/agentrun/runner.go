package agentrun

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"acescope/engine/ace"
	"acescope/engine/agentcli"
	"acescope/engine/artifact"
	"acescope/engine/process"
	"acescope/engine/redact"
	"acescope/engine/session"
)

// Agent is how one CLI is called on this machine.
type Agent struct {
	Command string   // a path or a name; "" for the CLI's own name
	Model   string   // where a call names none
	Dir     string   // where ACE steps work; "" for a directory of each run's own
	Env     []string // names of variables that it is given besides those it needs; * at the end stands for more
	// AllowFull lets calls have the permission mode full.
	AllowFull bool
}

// Options say where logs are kept and how agents are called.
type Options struct {
	DataDir   string
	Artifacts *artifact.Store
	Agents    map[agentcli.CLI]Agent
	Logger    *slog.Logger
}

// Runner calls agents. It may be used by many at once.
type Runner struct {
	o      Options
	logs   *artifact.Logs
	redact *redact.Redactor
	log    *slog.Logger
	wrap   func(liveLog) liveLog // for tests that let the disk get full

	mu       sync.Mutex
	versions map[string]probed
}

// Where things lie, below the data directory.
const (
	locksDir    = "agents/locks"
	sessionsDir = "agents/sessions"
	workDir     = "agents/work"
)

// New makes a runner. It touches nothing.
func New(o Options) *Runner {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Runner{o: o, logs: artifact.NewLogs(o.DataDir, o.Artifacts), log: o.Logger,
		redact: redact.New(redact.Environ(os.Environ())...), versions: map[string]probed{},
		wrap: func(l liveLog) liveLog { return l }}
}

// Agent is how a CLI is called here.
func (r *Runner) Agent(cli agentcli.CLI) Agent { return r.o.Agents[cli] }

// LogPath is where a log lies on this machine, given its path below the data directory.
func (r *Runner) LogPath(rel string) string { return r.logs.Path(rel) }

// WorkDir is the directory of a run's own, for agents that are told no other. It is made.
func (r *Runner) WorkDir(workflowID, runID string) (string, error) {
	dir, err := filepath.Abs(filepath.Join(r.o.DataDir, workDir, ace.FileName(workflowID), ace.FileName(runID)))
	if err != nil {
		return "", err
	}
	return dir, os.MkdirAll(dir, 0o700)
}

// environ is the environment of an agent's process.
func (r *Runner) environ(a agentcli.Adapter, cmd agentcli.Command) []string {
	names := append(slices.Clone(a.Inherit()), r.Agent(a.CLI()).Env...)
	return process.Environ(names, cmd.Unset, cmd.Env)
}

// fail is the end of a call that was not begun, or whose class is not the agent's.
func fail(c Call, class agentcli.Class, retry bool, format string, args ...any) *End {
	why := fmt.Sprintf(format, args...)
	return &End{Retry: retry, AgentResult: ace.AgentResult{ExitClass: string(class), Error: why, Summary: "CLI execution failed: " + why,
		Provider: string(c.CLI), SessionID: c.Resume}}
}

// Run makes a call. It returns when the process has ended, with all of its group. Where ctx
// is done first, the process is ended and the class is [ClassCancelled].
func (r *Runner) Run(ctx context.Context, c Call) *End {
	x, end := r.begin(ctx, c)
	if end == nil {
		end = x.run(ctx)
	}
	end.Attempt = c.Log.Attempt
	r.clean(end)
	r.log.Info("agent call has ended", "workflow", c.Log.WorkflowID, "run", c.Log.RunID, "session", end.SessionID, "agent", c.CLI,
		"activity", c.Log.Activity, "attempt", c.Log.Attempt, "class", end.ExitClass, "retry", end.Retry, "cost", end.CostUSD,
		"recovered", end.Recovered, "continued", end.Continued)
	return end
}

// clean strikes secrets out of what is told.
func (r *Runner) clean(e *End) {
	e.Error, e.Summary, e.Text = r.redact.String(e.Error), r.redact.String(e.Summary), r.redact.String(e.Text)
}

// begin looks at what can be known to be wrong before anything is done.
func (r *Runner) begin(ctx context.Context, c Call) (*run, *End) {
	adapter, err := agentcli.For(c.CLI)
	if err != nil {
		return nil, fail(c, ClassBadInput, false, "%v", err)
	}
	if c.Permission == "default" {
		c.Permission = ""
	}
	if c.WorkingDir == "" {
		if c.WorkingDir, err = r.WorkDir(c.Log.WorkflowID, c.Log.RunID); err != nil {
			return nil, fail(c, ClassCannotStart, true, "%v", err)
		}
	}
	info, err := os.Stat(c.WorkingDir)
	switch {
	case !filepath.IsAbs(c.WorkingDir):
		return nil, fail(c, ClassBadInput, false, "the working directory %.200q is not absolute", c.WorkingDir)
	case errors.Is(err, os.ErrNotExist) || err == nil && !info.IsDir():
		return nil, fail(c, ClassBadInput, false, "there is no directory %s on this machine", c.WorkingDir)
	case err != nil:
		return nil, fail(c, ClassBadInput, false, "the working directory: %v", err)
	}
	x := &run{r: r, c: c, adapter: adapter, session: c.Resume}
	if c.Resume == "" && adapter.Features().SessionID {
		x.minted = session.UUID("agent call", c.ID)
		x.session = x.minted
	}
	// The command is made only to see whether there is a way.
	if _, err := adapter.Command(x.call("")); err != nil {
		return nil, fail(c, ClassRefused, false, "%v", err)
	}
	version, end := r.version(ctx, c, adapter)
	if end != nil {
		return nil, end
	}
	x.version = version
	for _, d := range []string{locksDir, sessionsDir} {
		if err := os.MkdirAll(filepath.Join(r.o.DataDir, d), 0o700); err != nil {
			return nil, fail(c, ClassCannotStart, true, "%v", err)
		}
	}
	return x, nil
}
