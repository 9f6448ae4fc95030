package command

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"

	"acescope/engine/ace"
	"acescope/engine/model"
	"acescope/engine/playbook"
	"acescope/engine/run"
)

// MaxBook is how much of the parameters a playbook may be, in bytes; a larger one is named.
const MaxBook = 64 << 10

// Book is the playbook of a step among its parameters. Where it is above [MaxBook] as JSON,
// Ref names it in place of Bullets.
type Book struct {
	Hash    string            `json:"hash"`
	Count   int               `json:"count"`
	Bullets []playbook.Bullet `json:"bullets,omitzero"`
	Ref     *File             `json:"ref,omitempty"`
}

// File names an artifact, and the file that holds it on the machine that served the step.
type File struct {
	ace.Ref
	Path string `json:"path"`
}

// parameters are what the program is given: the step's input of the contract with the step's
// name and its playbook.
func (p *provider) parameters(ctx context.Context, step ace.Phase, in any, prompt string, book *playbook.Playbook) (json.RawMessage, error) {
	fields, err := object(in)
	if err != nil {
		return nil, fmt.Errorf("%s: the input of the %s: %w", p.name, step, err)
	}
	var hash struct {
		PlaybookHash string `json:"playbook_hash"`
	}
	if err := json.Unmarshal(fields["task"], &hash); err != nil {
		return nil, fmt.Errorf("%s: the input of the %s: %w", p.name, step, err)
	}
	delete(fields, "prompt_ref")
	if len(prompt) > ace.InlineBytes {
		ref, err := p.aside(ctx, []byte(prompt), "text/plain; charset=utf-8")
		if err != nil {
			return nil, err
		}
		delete(fields, "prompt")
		set(fields, "prompt_ref", ref)
	}
	b, err := p.book(ctx, hash.PlaybookHash, book)
	if err != nil {
		return nil, err
	}
	set(fields, "step", step)
	set(fields, "playbook", b)
	all, err := json.Marshal(fields)
	if err != nil {
		return nil, fmt.Errorf("%s: the input of the %s: %w", p.name, step, err)
	}
	if len(all) > run.MaxParams {
		return nil, model.Errorf(model.BadRequest, "%s: the input of the %s has %d bytes, a program is given at most %d", p.name, step, len(all), run.MaxParams)
	}
	return all, nil
}

// Sample is a small input of a step, by which it is found out whether a blueprint's schema
// takes such inputs at all.
func Sample(step ace.Phase) json.RawMessage {
	task := ace.TaskContext{TaskID: "sample", WorkflowID: ace.WorkflowID("sample"), RunID: "00000000-0000-0000-0000-000000000000", Provider: "sample", Model: "sample"}
	label := "42"
	var in any
	switch step {
	case ace.PhaseSkills:
		in = ace.SkillsInput{Task: task, Prompt: "sample", Plan: "sample"}
	case ace.PhaseReflector:
		in = ace.ReflectorInput{Task: task, Prompt: "sample", Plan: "sample", Answer: "42", Label: &label}
	case ace.PhaseCurator:
		right := true
		in = ace.CuratorInput{Task: task, Insights: "sample", Correct: &right}
	default:
		in = ace.GeneratorInput{Task: task, Prompt: "sample"}
	}
	fields, err := object(in)
	if err != nil {
		return nil
	}
	set(fields, "step", step)
	set(fields, "playbook", Book{Bullets: []playbook.Bullet{}})
	all, err := json.Marshal(fields)
	if err != nil {
		return nil
	}
	return all
}

// object is a value as an object of JSON.
func object(v any) (map[string]json.RawMessage, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	var fields map[string]json.RawMessage
	return fields, json.Unmarshal(data, &fields)
}

// set gives a field a value that can be written as JSON.
func set(fields map[string]json.RawMessage, name string, v any) {
	data, err := json.Marshal(v)
	if err == nil {
		fields[name] = data
	}
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
		return b, fmt.Errorf("%s: the playbook: %w", p.name, err)
	}
	if len(data) <= MaxBook {
		return b, nil
	}
	ref, err := p.aside(ctx, data, "application/json")
	b.Bullets, b.Ref = nil, &ref
	return b, err
}

// aside keeps what is too large for parameters in a file.
func (p *provider) aside(ctx context.Context, data []byte, mediaType string) (File, error) {
	ref, err := p.artifacts.PutBytes(ctx, data, mediaType)
	if err != nil {
		return File{}, fmt.Errorf("%s: %w", p.name, err)
	}
	path, err := p.artifacts.Path(ref)
	if err != nil {
		return File{}, fmt.Errorf("%s: %w", p.name, err)
	}
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	return File{Ref: ref, Path: path}, nil
}
