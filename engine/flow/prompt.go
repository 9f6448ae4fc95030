package flow

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

// PromptAt returns the prompt of the step at a path, with its expressions. f is the flow of the source. ok is
// false if the step does not exist or has no prompt.
func (s Source) PromptAt(f *Flow, path string) (prompt string, ok bool) {
	p, ok := s.promptNode(f, path)
	if !ok {
		return "", false
	}
	if files := promptFile(p.value); len(files) == 1 {
		name, err := join(p.file, files[0].Value)
		prompt, ok = s.Files[name]
		return prompt, ok && err == nil
	}
	return p.value.Value, p.value.Kind == yaml.ScalarNode
}

// WithPrompt returns the source with another prompt for the step at a path, and its flow. f is the flow of
// the original source. All executions of the step have the new prompt. It replaces a reference to a file, so
// that other steps that read the file keep their prompts.
func (s Source) WithPrompt(f *Flow, path, prompt string) (Source, *Flow, error) {
	p, ok := s.promptNode(f, path)
	if !ok {
		return Source{}, nil, fmt.Errorf("step %q has no prompt; steps of kind prompt and agent have one",
			path)
	}
	p.value.Content = nil
	p.value.SetString(prompt)
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := enc.Encode(p.doc); err != nil {
		return Source{}, nil, fmt.Errorf("%s with another prompt: %w", p.file, err)
	}
	changed := Source{Main: s.Main, Files: map[string]string{}}
	for _, name := range s.Names() {
		changed.Files[name] = s.Files[name]
	}
	changed.Files[p.file] = b.String()
	next, err := Parsed(changed, changed.Digest())
	if problems, ok := errors.AsType[Problems](err); ok { // omit the place, which is in the rewritten file
		err = errors.New(strings.Trim(problems[0].Message+"; "+problems[0].Hint, "; "))
	}
	if err != nil {
		return Source{}, nil, fmt.Errorf("prompt of step %s: %w", path, err)
	}
	if got, _ := changed.PromptAt(next, path); got != prompt {
		return Source{}, nil, fmt.Errorf("prompt of step %s: the text cannot be written as YAML", path)
	}
	return changed, next, nil
}

// promptNode is the prompt of a step in its file.
type promptNode struct {
	file       string
	doc, value *yaml.Node
}

func (s Source) promptNode(f *Flow, path string) (p promptNode, ok bool) {
	step := f.StepAt(path)
	if step == nil {
		return p, false
	}
	p.file = step.At.File
	p.doc = &yaml.Node{}
	if yaml.NewDecoder(strings.NewReader(s.Files[p.file])).Decode(p.doc) != nil {
		return p, false
	}
	n := mappingAt(p.doc, step.At)
	for i := 0; n != nil && i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == "prompt" {
			p.value = n.Content[i+1]
		}
	}
	return p, p.value != nil
}

// mappingAt returns the mapping that begins at a position, or nil.
func mappingAt(n *yaml.Node, at Position) *yaml.Node {
	if n.Kind == yaml.MappingNode && n.Line == at.Line && n.Column == at.Column {
		return n
	}
	for _, c := range n.Content {
		if found := mappingAt(c, at); found != nil {
			return found
		}
	}
	return nil
}
