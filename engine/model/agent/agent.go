// Package agent is the provider of ACE's steps by an agent's command line: Claude Code,
// Codex, Gemini or OpenCode. The prompts, and the reading of answers, are those of
// engine/model/llm; the tools are the agent's own, and each of its calls becomes a tool
// event of the run as it happens. It may import engine/model, engine/model/llm,
// engine/agentrun, engine/agentcli, engine/artifact, engine/session (for identities),
// engine/price, engine/playbook and engine/ace.
//
// Order: tool events come in the order of the agent's output. Bounds and loss are those of
// engine/agentrun, which keeps a log of every call.
package agent

import (
	"context"
	"fmt"
	"time"

	"acescope/engine/ace"
	"acescope/engine/agentcli"
	"acescope/engine/agentrun"
	"acescope/engine/model"
	"acescope/engine/model/llm"
	"acescope/engine/playbook"
)

// DefaultModel stands for the model that the CLI chooses itself.
const DefaultModel = "default"

// silence is how long an agent may say nothing: a tool of its own may run for hours, and
// the activity's time-out ends it.
const silence = 24 * time.Hour

// Providers are those of all CLIs that are known, whether they are installed or not.
func Providers(r *agentrun.Runner) (all []model.Provider) {
	for _, cli := range agentcli.CLIs() {
		all = append(all, New(r, cli))
	}
	return all
}

// titles are the CLIs as people call them.
var titles = map[agentcli.CLI]string{agentcli.Claude: "Claude Code", agentcli.Codex: "Codex", agentcli.Gemini: "Gemini CLI", agentcli.OpenCode: "OpenCode"}

// New makes a provider that calls a CLI.
func New(r *agentrun.Runner, cli agentcli.CLI) model.Provider {
	p := &provider{runner: r, cli: cli, model: r.Agent(cli).Model}
	if p.model == "" {
		p.model = DefaultModel
	}
	p.llm = llm.New(p, llm.Options{Name: string(cli), About: titles[cli] + " on this machine, with its own tools and login", Model: p.model, Silence: silence})
	return p
}

type provider struct {
	runner *agentrun.Runner
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
	if in := p.runner.Look(ctx, p.cli); in.Err != "" {
		return fmt.Errorf("%s: %s", p.cli, in.Err)
	}
	return nil
}

// Generate implements [model.Provider].
func (p *provider) Generate(ctx context.Context, in ace.GeneratorInput, book *playbook.Playbook) (ace.GeneratorResult, error) {
	ctx, s := p.enter(ctx, in.Task, nil)
	r, err := p.llm.Generate(ctx, in, book)
	r.Usage = s.used()
	r.PromptTokens, r.CompletionTokens = s.usage.InputTokens+s.usage.CacheReadTokens, s.usage.OutputTokens
	return r, err
}

// Skills implements [model.Provider]. The agent works with its own tools, as the skills
// configuration of the task allows.
func (p *provider) Skills(ctx context.Context, in ace.SkillsInput, book *playbook.Playbook, tools model.Toolbox) (ace.SkillSessionResult, error) {
	ctx, s := p.enter(ctx, in.Task, tools)
	r, err := p.llm.Skills(ctx, in, book, tools)
	r.Usage = s.used()
	return r, err
}

// Reflect implements [model.Provider].
func (p *provider) Reflect(ctx context.Context, in ace.ReflectorInput, book *playbook.Playbook) (ace.ReflectorResult, error) {
	ctx, s := p.enter(ctx, in.Task, nil)
	r, err := p.llm.Reflect(ctx, in, book)
	r.Usage = s.used()
	return r, err
}

// Curate implements [model.Provider].
func (p *provider) Curate(ctx context.Context, in ace.CuratorInput, book *playbook.Playbook) (ace.CuratorResult, error) {
	ctx, s := p.enter(ctx, in.Task, nil)
	r, err := p.llm.Curate(ctx, in, book)
	r.Usage = s.used()
	return r, err
}
