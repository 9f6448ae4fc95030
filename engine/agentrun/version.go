package agentrun

import (
	"context"
	"fmt"
	"os"
	"time"

	"acescope/engine/agentcli"
	"acescope/engine/process"
)

// versionWithin is how long a CLI may take to tell its version.
const versionWithin = 20 * time.Second

// probed is what a program said of itself. It counts while the file is the same.
type probed struct {
	version agentcli.Version
	at      time.Time
	size    int64
}

// Installed is what is known of a CLI on this machine.
type Installed struct {
	CLI     agentcli.CLI
	Named   bool             // the configuration says where it is
	Path    string           // "" where it was not found
	Version agentcli.Version // zero where it does not tell it
	Oldest  agentcli.Version // that is of use
	Hint    string           // how it is got and logged in to
	Err     string           // what keeps it from being used, "" for nothing that is known
}

// Look says whether a CLI can be called here. Whether it is logged in is only known when it
// is called.
func (r *Runner) Look(ctx context.Context, cli agentcli.CLI) Installed {
	in := Installed{CLI: cli, Named: r.Agent(cli).Command != ""}
	adapter, err := agentcli.For(cli)
	if err != nil {
		in.Err = err.Error()
		return in
	}
	in.Oldest, in.Hint = adapter.Oldest(), adapter.InstallHint()
	argv := adapter.VersionArgv(r.Agent(cli).Command)
	if in.Path, err = process.Look(argv[0], "", r.environ(adapter, agentcli.Command{})); err != nil {
		in.Err = notStarted(Call{CLI: cli}, adapter, err).Error
		return in
	}
	version, end := r.version(ctx, Call{CLI: cli}, adapter)
	if in.Version = version; end != nil {
		in.Err = end.Error
	}
	return in
}

// version is that of a CLI, which is asked for it once for each change of its program. end
// is set where the CLI cannot be used.
func (r *Runner) version(ctx context.Context, c Call, adapter agentcli.Adapter) (agentcli.Version, *End) {
	argv, env := adapter.VersionArgv(r.Agent(c.CLI).Command), r.environ(adapter, agentcli.Command{})
	path, err := process.Look(argv[0], "", env)
	if err != nil {
		return agentcli.Version{}, notStarted(c, adapter, err)
	}
	info, err := os.Stat(path)
	if err != nil {
		return agentcli.Version{}, fail(c, ClassCannotStart, true, "%v", err)
	}
	r.mu.Lock()
	known, ok := r.versions[path]
	r.mu.Unlock()
	if !ok || !known.at.Equal(info.ModTime()) || known.size != info.Size() {
		known = probed{at: info.ModTime(), size: info.Size()}
		argv[0] = path
		var end *End
		if known.version, end = r.ask(ctx, c, adapter, argv, env); end != nil {
			return known.version, end
		}
		r.mu.Lock()
		r.versions[path] = known
		r.mu.Unlock()
	}
	return known.version, nil
}

func (r *Runner) ask(ctx context.Context, c Call, adapter agentcli.Adapter, argv, env []string) (agentcli.Version, *End) {
	out, errs := process.NewTail(4<<10, 0), process.NewTail(4<<10, 0)
	exit := process.Run(ctx, process.Spec{Argv: argv, Env: env, Stdout: out, Stderr: errs, Timeout: versionWithin, DieWithParent: true})
	var none agentcli.Version
	switch {
	case exit.Class == process.Cancelled:
		return none, fail(c, ClassCancelled, false, "the call was cancelled")
	case exit.Err != nil:
		return none, notStarted(c, adapter, exit.Err)
	case exit.Class == process.TimedOut:
		return none, fail(c, ClassCannotStart, true, "%s did not tell its version within %s", c.CLI, versionWithin)
	}
	version, ok := agentcli.ParseVersion(out.String() + "\n" + errs.String())
	switch {
	case !ok && exit.Signal != "":
		return none, fail(c, agentcli.ClassKilled, true, "%s was killed when it was asked for its version", c.CLI)
	case !ok:
		return none, fail(c, agentcli.ClassMissing, false, "%s does not tell its version, so it may not be the agent that is meant; get it by: %s", argv[0], adapter.InstallHint())
	case version.Before(adapter.Oldest()):
		return version, fail(c, agentcli.ClassTooOld, false, "%s %s is too old: %s or newer is needed; get it by: %s", c.CLI, version, adapter.Oldest(), adapter.InstallHint())
	}
	return version, nil
}

// notStarted is the end of a call whose program could not be started. That there is none is
// for a person to mend; other reasons go by.
func notStarted(c Call, adapter agentcli.Adapter, err error) *End {
	switch {
	case process.IsStart(err, process.NotFound):
		return fail(c, agentcli.ClassMissing, false, "%s is not installed on this machine; get it by: %s", c.CLI, adapter.InstallHint())
	case process.IsStart(err, process.NotExecutable):
		return fail(c, agentcli.ClassMissing, false, "%v", err)
	case process.IsStart(err, process.BadDir), process.IsStart(err, process.BadSpec):
		return fail(c, ClassBadInput, false, "%v", err)
	case process.IsStart(err, process.NotAsked):
		return fail(c, ClassCancelled, false, "the call was cancelled before it began")
	}
	return fail(c, ClassCannotStart, true, "%v", err)
}

// OK tells whether all is as it should be: a CLI that nobody asked for need not be there.
func (in Installed) OK() bool { return in.Err == "" || in.Path == "" && !in.Named }

// String says it in a line.
func (in Installed) String() string {
	switch {
	case in.Path == "" && in.Named:
		return in.Err
	case in.Path == "":
		return "not installed (optional): " + in.Hint
	case in.Err != "":
		return in.Path + ": " + in.Err
	}
	return fmt.Sprintf("%s, version %s; not logged in yet? %s", in.Path, in.Version, in.Hint)
}
