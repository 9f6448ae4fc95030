package agentcall

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"acescope/engine/ace"
	"acescope/engine/agents/agentcli"
	"acescope/engine/agents/session"
	"acescope/engine/internal/process"
	"acescope/engine/internal/redact"
	"acescope/engine/store/artifact"
)

// Agent is the configuration of a CLI on this machine.
type Agent struct {
	Command string   // a path or a name; "" for the CLI's own name
	Model   string   // for calls that name no model
	Dir     string   // where ACE steps work; "" for each run's own directory
	Env     []string // names of further variables to pass on; a name that ends with * is a prefix
	// AllowFull permits calls with the permission mode full.
	AllowFull bool
}

// Options configure a [Runner].
type Options struct {
	DataDir   string
	Artifacts *artifact.Store
	Agents    map[agentcli.CLI]Agent
	// Withheld, if set, says why this process calls no agents.
	Withheld string
	Logger   *slog.Logger
}

// Runner calls agents. It is safe for concurrent use.
type Runner struct {
	o      Options
	logs   *artifact.Logs
	redact *redact.Redactor
	log    *slog.Logger
	fault  func(path string) error // see EventLog

	mu       sync.Mutex
	versions map[string]knownVersion // by path
}

// Directories below the data directory.
const (
	locksDir    = "agents/locks"
	sessionsDir = "agents/sessions"
	workDir     = "agents/work"
)

// New makes a runner. It creates no files.
func New(o Options) *Runner {
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	return &Runner{
		o: o, logs: artifact.NewLogs(o.DataDir, o.Artifacts), log: o.Logger,
		redact: redact.OfProcess(), versions: map[string]knownVersion{},
	}
}

// Agent returns the configuration of a CLI.
func (r *Runner) Agent(cli agentcli.CLI) Agent { return r.o.Agents[cli] }

// LogPath returns the path of a log, given its path below the data directory.
func (r *Runner) LogPath(rel string) string { return r.logs.Path(rel) }

// WorkDir creates and returns the directory of a run, for agents without a configured one. OpenCode
// decodes its directory as a URL, so the name has no percent signs, unless the directory exists
// under the name that earlier versions used.
func (r *Runner) WorkDir(workflowID, runID string) (string, error) {
	rel := filepath.Join(ace.FileName(workflowID), ace.FileName(runID))
	root, err := filepath.Abs(filepath.Join(r.o.DataDir, workDir))
	if err != nil {
		return "", err
	}
	dir := filepath.Join(root, rel)
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	dir = filepath.Join(root, strings.ReplaceAll(rel, "%", "="))
	return dir, os.MkdirAll(dir, 0o700)
}

// Environ returns the environment of a process of the agent.
func (a Agent) Environ(adapter agentcli.Adapter, cmd agentcli.Command) []string {
	return adapter.Environ(cmd, a.Env...)
}

func (r *Runner) environ(a agentcli.Adapter, cmd agentcli.Command) []string {
	return r.Agent(a.CLI).Environ(a, cmd)
}

// Run makes a call. It returns when the process and its group have ended. If ctx is done first,
// it stops the process; the class is then [ClassCanceled] or timed out.
func (r *Runner) Run(ctx context.Context, c Call) *Result {
	x, result := r.prepare(ctx, c)
	if result == nil {
		result = x.run(ctx)
	}
	result.Attempt = c.Log.Attempt
	if result.Elsewhere() {
		result.Error = process.Hostname() + ": " + result.Error
	}
	result.Error = r.redact.String(result.Error)
	result.Text = r.redact.String(result.Text)
	result.Summary = "CLI execution failed: " + result.Error
	if result.Success {
		chars := utf8.RuneCountInString(result.Text)
		result.Summary = fmt.Sprintf("CLI execution completed successfully (%d chars)", chars)
	}
	r.log.Info("agent call ended", "workflow", c.Log.WorkflowID, "run", c.Log.RunID,
		"session", result.SessionID, "agent", c.CLI, "activity", c.Log.Activity, "attempt", c.Log.Attempt,
		"class", result.ExitClass, "retry", result.Retry, "cost", result.CostUSD,
		"recovered", result.Recovered, "continued", result.Continued)
	return result
}

// prepare checks a call. The result is set if the call cannot be made.
func (r *Runner) prepare(ctx context.Context, c Call) (*execution, *Result) {
	adapter, err := agentcli.For(c.CLI)
	switch {
	case err != nil:
		return nil, failed(c, ClassBadInput, false, "%v", err)
	case r.o.Withheld != "":
		return nil, failed(c, agentcli.ClassMissing, true, "%s", r.o.Withheld)
	}
	if c.Permission == "default" {
		c.Permission = ""
	}
	if c.WorkingDir == "" {
		if c.WorkingDir, err = r.WorkDir(c.Log.WorkflowID, c.Log.RunID); err != nil {
			return nil, failed(c, ClassCannotStart, true, "%v", err)
		}
	}
	info, err := os.Stat(c.WorkingDir)
	switch {
	case !filepath.IsAbs(c.WorkingDir):
		return nil, failed(c, ClassBadInput, false, "working directory %.200q is not absolute", c.WorkingDir)
	case errors.Is(err, os.ErrNotExist) || err == nil && !info.IsDir():
		return nil, failed(c, ClassBadInput, false, "working directory %s does not exist", c.WorkingDir)
	case err != nil:
		return nil, failed(c, ClassBadInput, false, "working directory: %v", err)
	}
	x := &execution{r: r, c: c, adapter: adapter, session: c.Resume}
	if c.Resume == "" && adapter.Features.SessionID {
		x.newID = session.UUID("agent call", c.ID)
		x.session = x.newID
	}
	if _, err := adapter.Command(x.call("")); err != nil { // only a check
		return nil, failed(c, ClassRefused, false, "%v", err)
	}
	version, result := r.version(ctx, c, adapter)
	if result != nil {
		return nil, result
	}
	x.version = version
	for _, d := range []string{locksDir, sessionsDir} {
		if err := os.MkdirAll(filepath.Join(r.o.DataDir, d), 0o700); err != nil {
			return nil, failed(c, ClassCannotStart, true, "%v", err)
		}
	}
	return x, nil
}

// versionTimeout bounds the call that asks a CLI for its version.
const versionTimeout = 20 * time.Second

// knownVersion is the version of a program file, valid while the file is unchanged.
type knownVersion struct {
	version agentcli.Version
	modTime time.Time
	size    int64
}

// version returns the version of a CLI, which is called once for each change of its program
// file. The result is set if the CLI cannot be used.
func (r *Runner) version(ctx context.Context, c Call, adapter agentcli.Adapter) (agentcli.Version, *Result) {
	argv, env := adapter.VersionArgv(r.Agent(c.CLI).Command), r.environ(adapter, agentcli.Command{})
	path, err := process.LookPath(argv[0], "", env)
	if err != nil {
		return agentcli.Version{}, notStarted(c, adapter, err)
	}
	info, err := os.Stat(path)
	if err != nil {
		return agentcli.Version{}, failed(c, ClassCannotStart, true, "%v", err)
	}
	r.mu.Lock()
	known, ok := r.versions[path]
	r.mu.Unlock()
	if ok && known.modTime.Equal(info.ModTime()) && known.size == info.Size() {
		return known.version, nil
	}
	argv[0] = path
	version, result := AskVersion(ctx, adapter, argv, env)
	if result == nil {
		r.mu.Lock()
		r.versions[path] = knownVersion{version, info.ModTime(), info.Size()}
		r.mu.Unlock()
	}
	return version, result
}

// AskVersion calls a CLI for its version. The result is set if the CLI cannot be used.
func AskVersion(
	ctx context.Context, adapter agentcli.Adapter, argv, env []string,
) (version agentcli.Version, _ *Result) {
	c := Call{CLI: adapter.CLI}
	out, errs := process.NewTail(4<<10, 0), process.NewTail(4<<10, 0)
	exit := process.Run(ctx, process.Spec{
		Argv: argv, Env: env, Stdout: out, Stderr: errs, Timeout: versionTimeout, DieWithParent: true,
	})
	switch {
	case exit.Class == process.Canceled:
		return version, failed(c, ClassCanceled, false, "the call was canceled")
	case exit.Err != nil:
		return version, notStarted(c, adapter, exit.Err)
	case exit.Class == process.TimedOut:
		return version, failed(c, ClassCannotStart, true,
			"%s did not print its version within %s", c.CLI, versionTimeout)
	}
	version, ok := agentcli.ParseVersion(out.String() + "\n" + errs.String())
	switch {
	case !ok && exit.Signal != "":
		return version, failed(c, agentcli.ClassKilled, true, "%s was killed while printing its version",
			c.CLI)
	case !ok:
		return version, failed(c, agentcli.ClassMissing, true,
			"%s prints no version, so it may not be %s; to install it: %s", argv[0], c.CLI, adapter.Install)
	case version.Before(adapter.Oldest):
		return version, failed(c, agentcli.ClassTooOld, true, "%s %s is too old; install %s or newer: %s",
			c.CLI, version, adapter.Oldest, adapter.Install)
	}
	return version, nil
}

// notStarted is the result of a call whose program could not be started.
func notStarted(c Call, adapter agentcli.Adapter, err error) *Result {
	switch {
	case process.IsStartError(err, process.NotFound):
		return failed(c, agentcli.ClassMissing, true,
			"%s is not installed on this machine; to install it: %s",
			c.CLI, adapter.Install)
	case process.IsStartError(err, process.NotExecutable):
		return failed(c, agentcli.ClassMissing, true, "%v", err)
	case process.IsStartError(err, process.BadDir), process.IsStartError(err, process.BadSpec):
		return failed(c, ClassBadInput, false, "%v", err)
	case process.IsStartError(err, process.ContextDone):
		return failed(c, ClassCanceled, false, "the call was canceled before it began")
	}
	return failed(c, ClassCannotStart, true, "%v", err)
}

// Installation describes a CLI on this machine.
type Installation struct {
	CLI     agentcli.CLI
	Named   bool             // the configuration names its program
	Path    string           // "" if it was not found
	Version agentcli.Version // zero if unknown
	Oldest  agentcli.Version // the oldest supported version
	Hint    string           // how to install it and log in
	Err     string           // why it cannot be used
}

// Find looks for the program of a CLI without starting it.
func (r *Runner) Find(cli agentcli.CLI) Installation {
	in := Installation{CLI: cli, Named: r.Agent(cli).Command != ""}
	adapter, err := agentcli.For(cli)
	if err != nil {
		in.Err = err.Error()
		return in
	}
	in.Oldest, in.Hint = adapter.Oldest, adapter.Install
	argv := adapter.VersionArgv(r.Agent(cli).Command)
	if in.Path, err = process.LookPath(argv[0], "", r.environ(adapter, agentcli.Command{})); err != nil {
		in.Err = notStarted(Call{CLI: cli}, adapter, err).Error
	}
	return in
}

// Probe checks whether a CLI can be called, except for its login, which only a call can check.
func (r *Runner) Probe(ctx context.Context, cli agentcli.CLI) Installation {
	in := r.Find(cli)
	adapter, err := agentcli.For(cli)
	if err != nil || in.Err != "" {
		return in
	}
	version, result := r.version(ctx, Call{CLI: cli}, adapter)
	in.Version = version
	if result != nil {
		in.Err = result.Error
	}
	return in
}

// OK reports whether there is no problem. A CLI that the configuration does not name is
// optional.
func (in Installation) OK() bool { return in.Err == "" || in.Path == "" && !in.Named }

// String describes the installation in one line.
func (in Installation) String() string {
	switch {
	case in.Path == "" && in.Named:
		return in.Err
	case in.Path == "":
		return "not installed (optional): " + in.Hint
	case in.Err != "":
		return in.Path + ": " + in.Err
	}
	return fmt.Sprintf("%s, version %s; to log in: %s", in.Path, in.Version, in.Hint)
}
