// Package agent is a provider of the ACE phases that calls an agent's command line: Claude
// Code, Codex, Gemini or OpenCode. It uses the prompts and the parser of
// engine/learning/model/llm. The agent uses its own tools; each call becomes a tool event of the
// run immediately. It may import engine/learning/model, engine/learning/model/llm,
// engine/agents/agentcall, engine/agents/agentcli, engine/store/artifact, engine/agents/session
// (for IDs), engine/agents/price, engine/learning/playbook and engine/ace.
//
// Order: tool events have the order of the agent's output. Bounds and loss are those of
// engine/agents/agentcall, which keeps a log of every call.
package agent

import (
	"context"
	"fmt"
	"time"

	"acescope/engine/ace"
	"acescope/engine/agents/agentcall"
	"acescope/engine/agents/agentcli"
	"acescope/engine/learning/model"
	"acescope/engine/learning/model/llm"
	"acescope/engine/learning/playbook"
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
	agentcli.Claude: "Claude Code", agentcli.Codex: "Codex", agentcli.Gemini: "Gemini CLI", agentcli.OpenCode: "OpenCode",
}

// New returns a provider that calls a CLI.
func New(r *agentcall.Runner, cli agentcli.CLI) model.Provider {
	p := &provider{runner: r, cli: cli, model: r.Agent(cli).Model}
	if p.model == "" {
		p.model = DefaultModel
	}
	p.llm = llm.New(p, llm.Options{Name: string(cli), Model: p.model, IdleTimeout: idleTimeout,
		About: titles[cli] + " on this machine, with its own tools and login"})
	return p
}

type provider struct {
	runner *agentcall.Runner
	cli    agentcli.CLI
	model  string
	llm    model.Provider
}

// Name implements [model.Provider].
func (p *provider) Name() string { return p.llm.Name() }

// About implements [model.Provider].
func (p *provider) About() string { return p.llm.About() }

// DefaultModel implements [model.Provider].
func (p *provider) DefaultModel() string { return p.model }

// Ready implements [model.Checker].
func (p *provider) Ready() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if in := p.runner.Probe(ctx, p.cli); in.Err != "" {
		return fmt.Errorf("%s: %s", p.cli, in.Err)
	}
	return nil
}

// Generate implements [model.Provider].
func (p *provider) Generate(ctx context.Context, in ace.GeneratorInput, book *playbook.Playbook) (ace.GeneratorResult, error) {
	ctx, s := p.newStep(ctx, in.Task, nil)
	r, err := p.llm.Generate(ctx, in, book)
	r.Usage = s.used()
	r.PromptTokens, r.CompletionTokens = s.usage.InputTokens+s.usage.CacheReadTokens, s.usage.OutputTokens
	return r, err
}

// Skills implements [model.Provider]. The agent uses its own tools, within the skills
// configuration of the task.
func (p *provider) Skills(ctx context.Context, in ace.SkillsInput, book *playbook.Playbook, tools model.Toolbox) (ace.SkillSessionResult, error) {
	ctx, s := p.newStep(ctx, in.Task, tools)
	r, err := p.llm.Skills(ctx, in, book, tools)
	r.Usage = s.used()
	return r, err
}

// Reflect implements [model.Provider].
func (p *provider) Reflect(ctx context.Context, in ace.ReflectorInput, book *playbook.Playbook) (ace.ReflectorResult, error) {
	ctx, s := p.newStep(ctx, in.Task, nil)
	r, err := p.llm.Reflect(ctx, in, book)
	r.Usage = s.used()
	return r, err
}

// Curate implements [model.Provider].
func (p *provider) Curate(ctx context.Context, in ace.CuratorInput, book *playbook.Playbook) (ace.CuratorResult, error) {
	ctx, s := p.newStep(ctx, in.Task, nil)
	r, err := p.llm.Curate(ctx, in, book)
	r.Usage = s.used()
	return r, err
}
