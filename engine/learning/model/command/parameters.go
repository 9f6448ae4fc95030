package command

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"

	"acescope/engine/ace"
	"acescope/engine/learning/model"
	"acescope/engine/learning/playbook"
	"acescope/engine/tasks/run"
)

// MaxBook is the number of bytes of a playbook in the parameters. A larger one is in a file.
const MaxBook = 64 << 10

// Book is the playbook in the parameters of a phase. If it is larger than [MaxBook] as JSON,
// Ref replaces Bullets.
type Book struct {
	Hash    string            `json:"hash"`
	Count   int               `json:"count"`
	Bullets []playbook.Bullet `json:"bullets,omitzero"`
	Ref     *File             `json:"ref,omitempty"`
}

// File is an artifact and its path on the machine that serves the phase.
type File struct {
	ace.Ref
	Path string `json:"path"`
}

// parameters returns the parameters of the program: the input of the phase, the name of the
// phase and the playbook.
func (p *provider) parameters(ctx context.Context, phase ace.Phase, at ace.TaskContext, in any, prompt string,
	book *playbook.Playbook) (json.RawMessage, error) {
	var file *File
	if len(prompt) > ace.InlineBytes {
		ref, err := p.putFile(ctx, []byte(prompt), "text/plain; charset=utf-8")
		if err != nil {
			return nil, err
		}
		file = &ref
	}
	b, err := p.book(ctx, at.PlaybookHash, book)
	if err != nil {
		return nil, err
	}
	all, err := encode(phase, at, in, file, b)
	if err != nil {
		return nil, fmt.Errorf("%s: input of the %s: %w", p.name, phase, err)
	}
	if len(all) > run.MaxParams {
		return nil, model.Errorf(model.BadRequest,
			"%s: the input of the %s has %d bytes, at most %d are allowed",
			p.name, phase, len(all), run.MaxParams)
	}
	return all, nil
}

// encode adds the phase, its prompt and the playbook to the input of a phase, and replaces a prompt in a
// file.
func encode(phase ace.Phase, task ace.TaskContext, in any, prompt *File, book Book) (json.RawMessage, error) {
	data, err := json.Marshal(in)
	if err != nil {
		return nil, err
	}
	var given map[string]json.RawMessage
	if err := json.Unmarshal(data, &given); err != nil {
		return nil, err
	}
	fields := map[string]any{}
	for name, value := range given {
		fields[name] = value
	}
	delete(fields, "prompt_ref")
	if prompt != nil {
		delete(fields, "prompt")
		fields["prompt_ref"] = prompt
	}
	if p := task.PhasePrompt; p != nil {
		fields[instructions] = p.Text
		without := *p
		without.Text = ""
		task.PhasePrompt = &without
		fields["task"] = task
	}
	fields["step"], fields["playbook"] = phase, book
	return json.Marshal(fields)
}

// Sample returns a small input of a phase, to check whether a blueprint's schema accepts it.
func Sample(phase ace.Phase) json.RawMessage {
	task := ace.TaskContext{TaskID: "sample", WorkflowID: ace.WorkflowID("sample"),
		RunID: "00000000-0000-0000-0000-000000000000", Provider: "sample", Model: "sample"}
	var in any
	switch phase {
	case ace.PhaseSkills:
		in = ace.SkillsInput{Task: task, Prompt: "sample", Plan: "sample"}
	case ace.PhaseReflector:
		in = ace.ReflectorInput{Task: task, Prompt: "sample", Plan: "sample", Answer: "42", Label: new("42")}
	case ace.PhaseCurator:
		in = ace.CuratorInput{Task: task, Insights: "sample", Correct: new(true)}
	default:
		in = ace.GeneratorInput{Task: task, Prompt: "sample"}
	}
	sample, err := encode(phase, task, in, nil, Book{Bullets: []playbook.Bullet{}})
	if err != nil {
		return nil
	}
	return sample
}

func (p *provider) book(ctx context.Context, hash string, book *playbook.Playbook) (Book, error) {
	b := Book{Hash: hash, Bullets: []playbook.Bullet{}}
	if book == nil {
		return b, nil
	}
	b.Count = len(book.Bullets)
	b.Bullets = append(b.Bullets, book.Bullets...)
	data, err := json.Marshal(b.Bullets)
	if err != nil {
		return b, fmt.Errorf("%s: encode the playbook: %w", p.name, err)
	}
	if len(data) <= MaxBook {
		return b, nil
	}
	ref, err := p.putFile(ctx, data, "application/json")
	b.Bullets, b.Ref = nil, &ref
	return b, err
}

// putFile stores data that is too large for parameters.
func (p *provider) putFile(ctx context.Context, data []byte, mediaType string) (File, error) {
	ref, err := p.artifacts.PutBytes(ctx, data, mediaType)
	if err != nil {
		return File{}, fmt.Errorf("%s: %w", p.name, err)
	}
	path, err := p.artifacts.Path(ctx, ref)
	if err != nil {
		return File{}, fmt.Errorf("%s: %w", p.name, err)
	}
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	return File{Ref: ref, Path: path}, nil
}
