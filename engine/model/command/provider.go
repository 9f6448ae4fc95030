package command

import (
	"context"

	"acescope/engine/ace"
	"acescope/engine/model"
	"acescope/engine/model/llm"
	"acescope/engine/playbook"
	"acescope/engine/run"
)

// Runs is the part of [run.Verbs] that steps need.
type Runs interface {
	Start(ctx context.Context, r run.Request) (run.Input, error)
	State(ctx context.Context, id string) (run.State, error)
	Await(ctx context.Context, runID string) (run.Result, error)
	Stop(ctx context.Context, id string, r run.StopRequest) (run.State, error)
}

// Artifacts keep what is too large for a history.
type Artifacts interface {
	Get(ref ace.Ref, limit int64) ([]byte, error)
	PutBytes(ctx context.Context, content []byte, mediaType string) (ace.Ref, error)
	Path(ref ace.Ref) (string, error)
}

// New makes a provider whose steps are runs of a blueprint.
func New(runs Runs, artifacts Artifacts, blueprint, about string) model.Provider {
	return &provider{runs: runs, artifacts: artifacts, blueprint: blueprint, about: about, name: ace.BlueprintProvider(blueprint)}
}

type provider struct {
	runs                   Runs
	artifacts              Artifacts
	name, blueprint, about string
}

// Name implements [model.Provider].
func (p *provider) Name() string { return p.name }

// About implements [model.Provider].
func (p *provider) About() string { return p.about }

// DefaultModel implements [model.Provider]. A program is its own model.
func (p *provider) DefaultModel() string { return p.blueprint }

// Generate implements [model.Provider].
func (p *provider) Generate(ctx context.Context, in ace.GeneratorInput, book *playbook.Playbook) (ace.GeneratorResult, error) {
	text, served, err := p.serve(ctx, ace.PhaseGenerator, in.Task, in, in.Prompt, book)
	if err != nil {
		return ace.GeneratorResult{}, err
	}
	r, err := p.written(text).Generator(book, in.Task)
	r.Served = served
	return r, ofRun(err, served)
}

// Skills implements [model.Provider]. The program works with tools of its own; what it tells of
// them becomes tool events.
func (p *provider) Skills(ctx context.Context, in ace.SkillsInput, book *playbook.Playbook, tools model.Toolbox) (ace.SkillSessionResult, error) {
	text, served, err := p.serve(ctx, ace.PhaseSkills, in.Task, in, in.Prompt, book)
	if err != nil {
		return ace.SkillSessionResult{}, err
	}
	r, err := p.written(text).Skills()
	r.Served = served
	if err != nil {
		return r, ofRun(err, served)
	}
	witness(ctx, tools, &r, in.Task.SkillsConfig)
	return r, nil
}

// Reflect implements [model.Provider].
func (p *provider) Reflect(ctx context.Context, in ace.ReflectorInput, book *playbook.Playbook) (ace.ReflectorResult, error) {
	text, served, err := p.serve(ctx, ace.PhaseReflector, in.Task, in, in.Prompt, book)
	if err != nil {
		return ace.ReflectorResult{}, err
	}
	r, err := p.written(text).Reflector(book, in)
	r.Served = served
	return r, ofRun(err, served)
}

// Curate implements [model.Provider].
func (p *provider) Curate(ctx context.Context, in ace.CuratorInput, book *playbook.Playbook) (ace.CuratorResult, error) {
	text, served, err := p.serve(ctx, ace.PhaseCurator, in.Task, in, "", book)
	if err != nil {
		return ace.CuratorResult{}, err
	}
	r, err := p.written(text).Curator(book)
	r.Served = served
	return r, ofRun(err, served)
}

func (p *provider) written(text string) llm.Written { return llm.Written{Name: p.name, Text: text} }

// serve runs the blueprint for a step and gives what it wrote.
func (p *provider) serve(ctx context.Context, step ace.Phase, at ace.TaskContext, in any, prompt string, book *playbook.Playbook) (string, *ace.Served, error) {
	params, err := p.parameters(ctx, step, in, prompt, book)
	if err != nil {
		return "", nil, err
	}
	result, err := p.execute(ctx, step, at, params)
	if err != nil {
		return "", nil, err
	}
	served := &ace.Served{Provider: p.name, RunID: result.RunID, Runner: result.Runner}
	text, err := p.output(result)
	return text, served, ofRun(err, served)
}

// MaxWritten is how much is read of what a program writes, in bytes.
const MaxWritten = 1 << 20

// output is what a program wrote: the JSON that it was found to be, else all of its text.
func (p *provider) output(r run.Result) (string, error) {
	ref := r.OutputRef
	switch {
	case ref == nil && len(r.Output) > 0 && r.OutputIs == outputJSON:
		return string(r.Output), nil
	case ref == nil:
		ref = r.StdoutRef
	}
	if ref == nil {
		return r.Stdout, nil
	}
	if ref.Size > MaxWritten {
		return "", model.Errorf(model.BadAnswer, "%s: it wrote %d bytes, at most %d are read", p.name, ref.Size, MaxWritten)
	}
	data, err := p.artifacts.Get(*ref, MaxWritten)
	if err != nil {
		return "", model.Errorf(model.BadAnswer, "%s: what it wrote cannot be read here: %v", p.name, err)
	}
	return string(data), nil
}

// outputJSON is the value of [run.Result]'s OutputIs for JSON.
const outputJSON = "json"
