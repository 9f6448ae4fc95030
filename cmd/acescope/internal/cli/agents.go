package cli

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"acescope/engine/agents/agentcall"
	"acescope/engine/agents/agentcli"
	"acescope/engine/learning/model"
	"acescope/engine/learning/model/agent"
	"acescope/sources/cluster"
)

// Agents says how agents are called here, by the configuration; never nil.
func (a *App) Agents() map[agentcli.CLI]agentcall.Agent {
	out := map[agentcli.CLI]agentcall.Agent{}
	for _, c := range a.Settings.File.Agents {
		out[agentcli.CLI(c.Name)] = agentcall.Agent{Command: Home(c.Command), Model: c.Model, Dir: Home(c.WorkingDir), Env: c.Env, AllowFull: c.AllowFull}
	}
	return out
}

// Home is a path with the begin ~/ as the user's directory.
func Home(path string) string {
	rest, ok := strings.CutPrefix(path, "~/")
	if !ok {
		return path
	}
	dir, err := os.UserHomeDir()
	if err != nil {
		return path
	}
	return filepath.Join(dir, rest)
}

// AgentRunner calls nobody: it knows what is installed.
func (a *App) AgentRunner() *agentcall.Runner {
	return agentcall.New(agentcall.Options{Agents: a.Agents()})
}

// AgentProviders are the providers of ACE's steps by agents, to look at; those that serve
// are the engine's.
func (a *App) AgentProviders() []model.Provider { return agent.Providers(a.AgentRunner()) }

// agentsWithin bounds how long agents are asked for their versions.
const agentsWithin = 20 * time.Second

// Installed looks for every agent, at the same time.
func Installed(ctx context.Context, r *agentcall.Runner) []agentcall.Installation {
	ctx, cancel := context.WithTimeout(ctx, agentsWithin)
	defer cancel()
	all := make([]agentcall.Installation, len(agentcli.CLIs()))
	var wait sync.WaitGroup
	for i, cli := range agentcli.CLIs() {
		wait.Go(func() { all[i] = r.Probe(ctx, cli) })
	}
	wait.Wait()
	return all
}

// How long the health waits for agents that are slow to tell their versions, and how often
// it looks again.
const (
	agentsWait  = 2 * time.Second
	agentsEvery = 30 * time.Second
)

// AgentChecks says the same for the health, as it was looked at last. It never waits long:
// an agent that hangs is known by the next time.
func (a *App) AgentChecks() func(ctx context.Context) []cluster.AgentCheck {
	r := a.AgentRunner()
	var mu sync.Mutex
	var last []cluster.AgentCheck
	var at time.Time
	var under chan struct{} // a look that has not ended
	return func(ctx context.Context) []cluster.AgentCheck {
		mu.Lock()
		defer mu.Unlock()
		if under == nil && time.Since(at) > agentsEvery {
			done := make(chan struct{})
			under = done
			go func() {
				checks := checksOf(Installed(context.Background(), r))
				mu.Lock()
				defer mu.Unlock()
				last, at, under = checks, time.Now(), nil
				close(done)
			}()
		}
		if done := under; done != nil && last == nil {
			mu.Unlock()
			select {
			case <-done:
			case <-time.After(agentsWait):
			case <-ctx.Done():
			}
			mu.Lock()
		}
		return last
	}
}

func checksOf(all []agentcall.Installation) (out []cluster.AgentCheck) {
	for _, in := range all {
		out = append(out, cluster.AgentCheck{Name: string(in.CLI), OK: in.OK(), Text: in.String()})
	}
	return out
}
