package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"acescope/engine/agentcli"
	"acescope/engine/agentrun"
	"acescope/engine/model"
	"acescope/engine/model/agent"
	"acescope/sources"
)

// agents says how agents are called here, by the configuration; never nil.
func (a *app) agents() map[agentcli.CLI]agentrun.Agent {
	out := map[agentcli.CLI]agentrun.Agent{}
	for _, c := range a.set.file.Agents {
		out[agentcli.CLI(c.Name)] = agentrun.Agent{Command: home(c.Command), Model: c.Model, Dir: home(c.WorkingDir), Env: c.Env, AllowFull: c.AllowFull}
	}
	return out
}

// home is a path with the begin ~/ as the user's directory.
func home(path string) string {
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

// agentRunner calls nobody: it knows what is installed.
func (a *app) agentRunner() *agentrun.Runner {
	return agentrun.New(agentrun.Options{Agents: a.agents()})
}

// agentProviders are the providers of ACE's steps by agents, to look at; those that serve
// are the engine's.
func (a *app) agentProviders() []model.Provider { return agent.Providers(a.agentRunner()) }

// agentsWithin bounds how long agents are asked for their versions.
const agentsWithin = 20 * time.Second

// installed looks for every agent, at the same time.
func installed(ctx context.Context, r *agentrun.Runner) []agentrun.Installed {
	ctx, cancel := context.WithTimeout(ctx, agentsWithin)
	defer cancel()
	all := make([]agentrun.Installed, len(agentcli.CLIs()))
	var wait sync.WaitGroup
	for i, cli := range agentcli.CLIs() {
		wait.Go(func() { all[i] = r.Look(ctx, cli) })
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

// agentChecks says the same for the health, as it was looked at last. It never waits long:
// an agent that hangs is known by the next time.
func (a *app) agentChecks() func(ctx context.Context) []sources.AgentCheck {
	r := a.agentRunner()
	var mu sync.Mutex
	var last []sources.AgentCheck
	var at time.Time
	var under chan struct{} // a look that has not ended
	return func(ctx context.Context) []sources.AgentCheck {
		mu.Lock()
		defer mu.Unlock()
		if under == nil && time.Since(at) > agentsEvery {
			done := make(chan struct{})
			under = done
			go func() {
				checks := checksOf(installed(context.Background(), r))
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

func checksOf(all []agentrun.Installed) (out []sources.AgentCheck) {
	for _, in := range all {
		out = append(out, sources.AgentCheck{Name: string(in.CLI), OK: in.OK(), Text: in.String()})
	}
	return out
}
