package cli

import (
	"context"
	"encoding/json"
	"path/filepath"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"acescope/engine/agents/agentcall"
	"acescope/engine/agents/agentcli"
	"acescope/engine/tasks/blueprint"
	"acescope/engine/tasks/run"
	"acescope/sources/cluster"
)

// Agents returns how the configuration calls agent CLIs; never nil.
func (a *App) Agents() map[agentcli.CLI]agentcall.Agent {
	out := map[agentcli.CLI]agentcall.Agent{}
	for _, c := range a.Settings.File.Agents {
		out[agentcli.CLI(c.Name)] = agentcall.Agent{
			Command: Home(c.Command), Model: c.Model, Dir: Home(c.WorkingDir), Env: c.Env,
			AllowFull: c.AllowFull,
		}
	}
	return out
}

// AgentRunner returns a runner that knows which agents are installed. It calls none of them.
func (a *App) AgentRunner() *agentcall.Runner {
	return agentcall.New(agentcall.Options{Agents: a.Agents()})
}

const (
	// probeTimeout bounds how long agents may take to report their versions.
	probeTimeout = 20 * time.Second
	// probeWait bounds how long a health check waits for a first result.
	probeWait = 2 * time.Second
	// probeInterval is the minimum time between two probes of the same process.
	probeInterval = 30 * time.Second
)

// Installed probes every agent CLI concurrently.
func Installed(ctx context.Context, r *agentcall.Runner) []agentcall.Installation {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	all := make([]agentcall.Installation, len(agentcli.CLIs()))
	var wait sync.WaitGroup
	for i, cli := range agentcli.CLIs() {
		wait.Go(func() { all[i] = r.Probe(ctx, cli) })
	}
	wait.Wait()
	return all
}

// AgentCheck reports whether an agent can be called. One that is not installed is an error only if the
// configuration names it.
func AgentCheck(in agentcall.Installation) cluster.ToolCheck {
	c := cluster.ToolCheck{Name: string(in.CLI), State: cluster.ErrorUnless(in.OK()), Text: in.String()}
	if in.OK() && in.Path == "" {
		c.State = cluster.Info
	}
	return c
}

// AgentChecks returns a function that reports which agents are installed, as of the last probe. It waits
// briefly for the first result; an agent that hangs is reported by a later call. A probe outlives the call
// that started it by at most probeTimeout. The function is for one goroutine.
func (a *App) AgentChecks() func(ctx context.Context) []cluster.ToolCheck {
	r := a.AgentRunner()
	var last []cluster.ToolCheck
	var at time.Time
	results := make(chan []cluster.ToolCheck, 1)
	probing := false
	probe := func() {
		var checks []cluster.ToolCheck
		for _, in := range Installed(context.Background(), r) {
			checks = append(checks, AgentCheck(in))
		}
		results <- checks
	}
	return func(ctx context.Context) []cluster.ToolCheck {
		if !probing && time.Since(at) > probeInterval {
			probing = true
			go probe()
		}
		wait := probeWait
		if last != nil || !probing {
			wait = 0
		}
		select {
		case last = <-results:
			at, probing = time.Now(), false
		case <-time.After(wait):
		case <-ctx.Done():
		}
		return last
	}
}

func (a *App) AgentDirsFlag(f *pflag.FlagSet) {
	f.StringArrayVar(&a.AgentDirs, "agents-dir", nil,
		"a directory of blueprints instead of the default ones; repeat the flag for more, the first one wins")
}

// Library returns the blueprints in the directories of [App.AgentsPath]. Directories named by flags must
// exist.
func (a *App) Library() (blueprint.Library, error) {
	dirs, err := a.AgentsPath()
	if err != nil {
		return blueprint.Library{}, err
	}
	for _, dir := range a.AgentDirs {
		if !IsDir(dir) {
			return blueprint.Library{}, UsageError("--agents-dir %s: no such directory", dir)
		}
	}
	return blueprint.Library{Dirs: dirs}, nil
}

// AgentsPath returns the directories of blueprints, which need not exist: those of the flags, else those of
// the settings, else the default ones.
func (a *App) AgentsPath() ([]string, error) {
	dirs := a.AgentDirs
	if len(dirs) == 0 {
		for _, dir := range filepath.SplitList(a.Settings.AgentsDirs) {
			if dir != "" {
				dirs = append(dirs, Home(dir))
			}
		}
	}
	if len(dirs) == 0 {
		dirs = []string{"agents", filepath.Join(".acescope", "agents")}
		if config, err := ConfigDir(); err == nil {
			dirs = append(dirs, filepath.Join(config, "agents"))
		}
	}
	var out []string
	for _, dir := range dirs {
		abs, err := filepath.Abs(dir)
		if err != nil {
			return nil, err
		}
		out = append(out, abs)
	}
	return out, nil
}

// BlueprintNames returns the names of the blueprints with their descriptions. It hides errors.
func (a *App) BlueprintNames(ctx context.Context) (names []cobra.Completion) {
	l, _ := a.Library()
	entries, _ := l.Entries(ctx)
	for _, e := range entries {
		if e.Shadowed == "" {
			names = append(names, cobra.CompletionWithDesc(e.Name, e.Description))
		}
	}
	return names
}

// Blueprints implements [engine.Blueprints] with a library.
type Blueprints struct{ blueprint.Library }

// Load returns a blueprint and the function that checks its parameters, nil without parameters.
func (b Blueprints) Load(name string) (run.Blueprint, func(json.RawMessage) (json.RawMessage, error), error) {
	loaded, err := b.Library.Load(name)
	if err != nil || loaded.Parameters == nil {
		return loaded.Blueprint, nil, err
	}
	return loaded.Blueprint, loaded.Parameters.Check, nil
}

// ProgramFlags adds the flags with which a process with workers for a cluster lets the cluster's workflows
// start programs on this machine. Without these flags, it starts no programs.
func ProgramFlags(a *App, fs *pflag.FlagSet) {
	fs.StringVar(&a.Runner, "runner", "",
		"on a cluster, start a runner of this name: it executes the cluster's programs in the current directory")
	fs.BoolVar(&a.HostAgents, "host-agents", false,
		"on a cluster, let its workflows start agents on this machine: sessions, their tools, and calls of agents")
}

// checkPrograms rejects the flags if no cluster is named: on a data directory, the local runner and agents
// need no flags.
func checkPrograms(a *App) error {
	switch {
	case a.Cluster() == nil && (a.Runner != "" || a.HostAgents):
		return UsageError("--runner and --host-agents need a cluster; a data directory has its local runner, " +
			"and agents start there")
	case a.Runner != "" && !run.ValidName(a.Runner):
		return UsageError("--runner %q: use letters, digits, dots, dashes and underscores", a.Runner)
	}
	return nil
}
