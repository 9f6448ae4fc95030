// Package agent is a provider of the ACE phases that calls an agent's command line: Claude
// Code, Codex, Gemini or OpenCode. It uses the prompts and the parser of
// engine/learning/model/llm. The agent uses its own tools; each call becomes a tool event of the
// run immediately.
//
// Order: tool events have the order of the agent's output. Bounds and loss are those of
// engine/agents/agentcall, which keeps a log of every call.
package agent

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"acescope/engine/ace"
	"acescope/engine/agents/agentcall"
	"acescope/engine/agents/agentcli"
	"acescope/engine/learning/model"
	"acescope/engine/learning/model/llm"
)

// DefaultModel means the CLI's own default.
const DefaultModel = "default"

// idleTimeout is long because an agent's tool may run for hours. The activity's timeout ends it.
const idleTimeout = 24 * time.Hour

// Providers returns the providers of all known CLIs, installed or not.
func Providers(r *agentcall.Runner) (all []model.Provider) {
	for _, cli := range agentcli.CLIs() {
		all = append(all, New(r, cli))
	}
	return all
}

// titles are the display names of the CLIs.
var titles = map[agentcli.CLI]string{
	agentcli.Claude: "Claude Code", agentcli.Codex: "Codex", agentcli.Gemini: "Gemini CLI",
	agentcli.OpenCode: "OpenCode",
}

// New returns a provider that calls a CLI.
func New(r *agentcall.Runner, cli agentcli.CLI) model.Provider {
	c := &completer{runner: r, cli: cli}
	return &provider{c, llm.New(c,
		llm.Options{Name: string(cli), Model: cmp.Or(r.Agent(cli).Model, DefaultModel),
			IdleTimeout: idleTimeout, About: titles[cli] + " on this machine, with its own tools and login"})}
}

// provider is the provider of a CLI. It hides the optional interfaces of the provider of package llm that do
// not suit an agent, such as [model.Streamer]: the log of the call already has the agent's text.
type provider struct {
	*completer
	model.Provider
}

// Judge implements [model.Judge].
func (p *provider) Judge(ctx context.Context, in ace.ReflectorInput) (model.Judgment, ace.Usage, error) {
	return p.Provider.(model.Judge).Judge(ctx, in)
}

// TakesPrompt implements [model.Prompted].
func (p *provider) TakesPrompt() error { return model.CheckPrompt(p.Provider) }

func (p *provider) Ready() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if in := p.runner.Probe(ctx, p.cli); in.Err != "" {
		return fmt.Errorf("%s: %s", p.cli, in.Err)
	}
	return nil
}
