package activities

import (
	"context"
	"fmt"

	"acescope/engine/ace"
	"acescope/engine/internal/redact"
	"acescope/engine/learning/model"
	"acescope/engine/learning/playbook"
	"acescope/engine/store/artifact"
)

// inputs resolves the names and references in the inputs of activities.
type inputs struct {
	books     *playbook.Store
	artifacts *artifact.Store
	providers []model.Provider
	blueprint func(name string) (model.Provider, error) // nil if blueprints are not available
	secrets   *redact.Redactor
}

// maxPrompt bounds a text that is given by reference, in bytes.
const maxPrompt = 16 << 20

// step holds the resolved references of a step's input.
type step struct {
	provider model.Provider
	book     *playbook.Playbook
	prompt   string
	task     ace.TaskContext
	earlier  *ace.Usage // of earlier attempts
}

func (in *inputs) prepare(ctx context.Context, t ace.TaskContext, prompt string, ref *ace.Ref) (step,
	error) {
	p, err := in.provider(t.Provider)
	if err != nil {
		return step{}, err
	}
	book, err := in.playbook(ctx, t.PlaybookHash)
	if err != nil {
		return step{}, err
	}
	if prompt, err = in.resolve(ctx, "prompt", prompt, ref); err != nil {
		return step{}, permanent(err)
	}
	t.PhasePrompt, err = in.phasePrompt(ctx, p, t.PhasePrompt)
	return step{provider: p, book: book, prompt: prompt, task: t}, err
}

// phasePrompt returns the prompt of a phase with its text, or nil for the default.
func (in *inputs) phasePrompt(ctx context.Context, p model.Provider,
	of *ace.PhasePrompt) (*ace.PhasePrompt, error) {
	if of == nil {
		return nil, nil
	}
	if err := model.CheckPrompt(p); err != nil {
		return nil, err
	}
	text, err := in.resolve(ctx, "phase prompt "+of.String(), "", &of.Ref)
	if err != nil {
		return nil, permanent(err)
	}
	with := *of
	with.Text = text
	return &with, nil
}

// resolve returns a text that is given inline or by reference.
func (in *inputs) resolve(ctx context.Context, name, text string, ref *ace.Ref) (string, error) {
	if ref == nil {
		return text, nil
	}
	data, err := patiently(ctx, func() ([]byte, error) { return in.artifacts.Get(ctx, *ref, maxPrompt) })
	if err != nil {
		return "", fmt.Errorf("%s: %w", name, err)
	}
	return string(data), nil
}

func (in *inputs) provider(name string) (model.Provider, error) {
	if blueprint, ok := ace.BlueprintOf(name); ok && in.blueprint != nil {
		return in.blueprint(blueprint)
	}
	for _, p := range in.providers {
		if p.Name() == name {
			return p, nil
		}
	}
	return nil, permanent(fmt.Errorf("provider %q is not available on this worker", name))
}

func (in *inputs) playbook(ctx context.Context, hash string) (*playbook.Playbook, error) {
	if hash == "" {
		return &playbook.Playbook{}, nil
	}
	book, err := patiently(ctx, func() (*playbook.Playbook, error) { return in.books.Get(ctx, hash) })
	return book, stored(err)
}
