// Package command serves the ACE phases by runs of a blueprint: a program in any language that
// a runner starts for each phase. Its parameters are the input of the phase, and it writes the
// result, which engine/learning/model/llm parses.
//
// Order: a retry of the phase finds the run of the previous attempt by its ID. Bounds:
// parameters have at most [run.MaxParams] bytes; prompts above [ace.InlineBytes] and playbooks
// above [MaxBook] are passed as files; at most [MaxWritten] bytes of the output are read.
// Loss: if no runner took a run or its runner died, the next attempt starts another run, so a
// program must tolerate being executed twice.
package command

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/tidwall/gjson"

	"acescope/engine/ace"
	"acescope/engine/learning/model"
	"acescope/engine/learning/model/llm"
	"acescope/engine/learning/playbook"
	"acescope/engine/store/artifact"
	"acescope/engine/tasks/run"
)

// Runs is the part of [run.Service] that steps need.
type Runs interface {
	Start(ctx context.Context, r run.Request) (run.Input, error)
	State(ctx context.Context, id string) (run.State, error)
	Await(ctx context.Context, runID string) (run.Result, error)
	Stop(ctx context.Context, id string, r run.StopRequest) (run.State, error)
}

// New returns a provider that serves each phase by a run of a blueprint, of which it needs the name, the
// description and the schema.
func New(runs Runs, artifacts *artifact.Store, b run.Blueprint) model.Provider {
	return &provider{runs: runs, artifacts: artifacts, blueprint: b.Name, about: b.Description,
		name:     ace.BlueprintProvider(b.Name),
		prompted: gjson.GetBytes(b.Schema, "properties."+instructions).Exists()}
}

// instructions is the parameter with the prompt of the phase.
const instructions = "instructions"

type provider struct {
	runs                   Runs
	artifacts              *artifact.Store
	name, blueprint, about string
	prompted               bool // the program takes the prompt of its phase
}

// TakesPrompt implements [model.Prompted].
func (p *provider) TakesPrompt() error {
	if p.prompted {
		return nil
	}
	return model.Errorf(model.BadRequest,
		"%s takes no phase prompt: its parameters_schema has no property %q",
		p.name, instructions)
}

func (p *provider) Name() string { return p.name }

func (p *provider) About() string { return p.about }

// DefaultModel implements [model.Provider]. It is the blueprint.
func (p *provider) DefaultModel() string { return p.blueprint }

func (p *provider) Generate(ctx context.Context, in ace.GeneratorInput,
	book *playbook.Playbook) (r ace.GeneratorResult, err error) {
	r.Served, err = p.serve(ctx, ace.PhaseGenerator, in.Task, in, in.Prompt, book,
		func(w llm.Written) (err error) {
			r, err = w.Generator(book, in.Task)
			return err
		})
	return r, err
}

// Skills implements [model.Provider]. The program uses its own tools; the calls that it reports
// become tool events.
func (p *provider) Skills(ctx context.Context, in ace.SkillsInput, book *playbook.Playbook,
	tools model.Toolbox) (r ace.SkillSessionResult, err error) {
	r.Served, err = p.serve(ctx, ace.PhaseSkills, in.Task, in, in.Prompt, book,
		func(w llm.Written) (err error) {
			r, err = w.Skills()
			return err
		})
	if err == nil {
		recordCalls(ctx, tools, &r, in.Task.SkillsConfig)
	}
	return r, err
}

func (p *provider) Reflect(ctx context.Context, in ace.ReflectorInput,
	book *playbook.Playbook) (r ace.ReflectorResult, err error) {
	r.Served, err = p.serve(ctx, ace.PhaseReflector, in.Task, in, in.Prompt, book,
		func(w llm.Written) (err error) {
			r, err = w.Reflector(book, in)
			return err
		})
	return r, err
}

func (p *provider) Curate(ctx context.Context, in ace.CuratorInput,
	book *playbook.Playbook) (r ace.CuratorResult, err error) {
	r.Served, err = p.serve(ctx, ace.PhaseCurator, in.Task, in, "", book, func(w llm.Written) (err error) {
		r, err = w.Curator(book)
		return err
	})
	return r, err
}

// serve runs the blueprint for a phase and lets read parse its output.
func (p *provider) serve(ctx context.Context, phase ace.Phase, at ace.TaskContext, in any, prompt string,
	book *playbook.Playbook,
	read func(llm.Written) error) (*ace.Served, error) {
	params, err := p.parameters(ctx, phase, at, in, prompt, book)
	if err != nil {
		return nil, err
	}
	result, err := p.execute(ctx, phase, at, params)
	if err != nil {
		return nil, err
	}
	served := &ace.Served{Provider: p.name, RunID: result.RunID, Runner: result.Runner}
	text, err := p.output(ctx, result)
	if err == nil {
		err = read(llm.Written{Name: p.name, Text: text})
	}
	if e, ok := errors.AsType[*model.Error](err); ok {
		e.Message += " (run " + result.RunID + ")"
	}
	return served, err
}

// MaxWritten is the number of bytes that may be read of a program's output.
const MaxWritten = 1 << 20

// output returns the output of a program: its JSON, or all of its text.
func (p *provider) output(ctx context.Context, r run.Result) (string, error) {
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
		return "", model.Errorf(model.BadAnswer, "%s: the output has %d bytes, at most %d are allowed",
			p.name, ref.Size, MaxWritten)
	}
	data, err := p.artifacts.Get(ctx, *ref, MaxWritten)
	if err != nil {
		return "", model.Errorf(model.BadAnswer, "%s: cannot read the output: %v", p.name, err)
	}
	return string(data), nil
}

// outputJSON is the value of [run.Result].OutputIs for JSON.
const outputJSON = "json"

// Bounds of a reported tool call.
const (
	maxError = 500 // bytes
	maxName  = 100
	maxTook  = 365 * 24 * time.Hour
)

// recordCalls passes the tool calls that a program reports to the toolbox, in their order. The
// program's IDs need not be unique, so the calls are numbered.
func recordCalls(ctx context.Context, tools model.Toolbox, r *ace.SkillSessionResult,
	allowed ace.SkillsConfig) {
	w, ok := tools.(model.CallRecorder)
	if !ok {
		return
	}
	for i, inv := range r.Invocations {
		id := strconv.Itoa(i + 1)
		name := ace.Cut(inv.Name, maxName)
		took := min(max(inv.DurationMS, 0), float64(maxTook/time.Millisecond))
		w.Begun(ctx, id, name, inv.Args)
		w.Ended(ctx, id, model.CallEnd{Result: inv.Result, Accepted: inv.Accepted, OK: inv.OK,
			Error: ace.Cut(inv.Error, maxError),
			Began: inv.At, Took: time.Duration(took * float64(time.Millisecond))})
		if inv.Accepted && !allowed.Allows(inv.Name) {
			note(r.Parsed, "the program called the tool "+name+", which is not allowed")
		}
	}
}

// note appends to the note of a report, within bounds.
func note(v *ace.ParseReport, text string) {
	const most = 1000
	if len(v.Note)+len(text) > most {
		return
	}
	if v.Note != "" {
		v.Note += "; "
	}
	v.Note += text
}
