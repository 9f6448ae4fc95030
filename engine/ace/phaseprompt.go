package ace

import (
	"fmt"
	"maps"
	"strings"
)

// PhasePrompt is a version of the instructions that a phase gives to its model. The text is an artifact with
// the placeholders of engine/learning/prompts.
type PhasePrompt struct {
	Name string `json:"name"`
	// Version is the number of the version in the branch Name, from 1; 0 for a text from a file, which is not
	// in a branch.
	Version int `json:"version,omitempty"`
	Ref
	// Text is set for the provider of the phase only, not in a history.
	Text string `json:"text,omitempty"`
}

// DefaultPrompt is the name of the built-in prompt, which a phase has unless the input sets another.
const DefaultPrompt = "default"

// Builtin is the name of the provider that asks no model, costs nothing and takes no phase prompt.
const Builtin = "builtin"

// String returns "name@version", or for a text from a file its name and the beginning of its hash.
func (p *PhasePrompt) String() string {
	switch {
	case p == nil || p.Name == DefaultPrompt:
		return DefaultPrompt
	case p.Version == 0:
		return fmt.Sprintf("%s (%.12s)", p.Name, p.SHA256)
	}
	return fmt.Sprintf("%s@%d", p.Name, p.Version)
}

// PromptedPhases returns the phases that have a prompt, in their order.
func PromptedPhases() []Phase {
	return []Phase{PhaseGenerator, PhaseSkills, PhaseReflector, PhaseCurator}
}

// Prompts holds prompts by phase. Other phases have the default.
type Prompts map[string]PhasePrompt

// Of returns the prompt of a phase, or nil for the default.
func (p Prompts) Of(step Phase) *PhasePrompt {
	prompt, ok := p[string(step)]
	if !ok {
		return nil
	}
	return &prompt
}

// With returns a copy in which a phase has another prompt; nil is the default.
func (p Prompts) With(step Phase, prompt *PhasePrompt) Prompts {
	with := maps.Clone(p)
	if with == nil {
		with = Prompts{}
	}
	delete(with, string(step))
	if prompt != nil {
		with[string(step)] = *prompt
	}
	if len(with) == 0 {
		return nil
	}
	return with
}

// String lists the phases that do not have the default, with their prompts.
func (p Prompts) String() string {
	var list []string
	for _, step := range PromptedPhases() {
		if prompt := p.Of(step); prompt != nil {
			list = append(list, string(step)+" "+prompt.String())
		}
	}
	return strings.Join(list, ", ")
}
