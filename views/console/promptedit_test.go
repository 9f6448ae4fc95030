package console

import (
	"context"
	"errors"
	"strings"
	"testing"

	"acescope/engine/ace"
	"acescope/engine/learning/prompts"
)

// promptStore keeps one text in memory.
type promptStore struct {
	text, from string
	version    int
}

func (s *promptStore) PromptBase(_ context.Context, phase ace.Phase, ref string) (prompts.Prompt, error) {
	p := prompts.Default(phase)
	if ref == "own@1" {
		p.PhasePrompt = ace.PhasePrompt{Name: "own", Version: 1, Text: s.text}
	}
	return p, nil
}

func (s *promptStore) PutPrompt(_ context.Context, phase ace.Phase, name, text, from string) (prompts.Prompt,
	error) {
	if _, err := prompts.Parse(phase, text); err != nil {
		return prompts.Prompt{}, err
	}
	s.version++
	s.text, s.from = prompts.Clean(text), from
	return prompts.Prompt{Phase: phase, PhasePrompt: ace.PhasePrompt{Name: name, Version: s.version}}, nil
}

// TestPromptTexts edits the prompt that a field names: a text with a mistake is kept until it is stored or
// emptied.
func TestPromptTexts(t *testing.T) {
	store := &promptStore{}
	texts := &promptTexts{context: t.Context(), actions: store, kept: map[string]string{}}
	field := texts.field(ace.PhaseGenerator)
	shipped, err := field.Load("")
	if err != nil || !strings.Contains(shipped, "{{playbook}}") {
		t.Fatalf("the text of the default is %q, %v", shipped, err)
	}
	if saved, err := field.Save("", shipped); saved != "" || err != nil || store.version != 0 {
		t.Errorf("an unchanged text is stored as %q, %v", saved, err)
	}
	var mistake *prompts.SyntaxError
	if _, err := field.Save("", "No placeholder."); !errors.As(err, &mistake) ||
		!strings.Contains(err.Error(), "ctrl+e") {
		t.Errorf("a text without the playbook: %v", err)
	}
	if kept, _ := field.Load("default"); kept != "No placeholder." {
		t.Errorf("the kept text is %q", kept)
	}
	if saved, err := field.Save("", "Be brief. {{playbook}}"); saved != "own@1" || err != nil ||
		store.from != "default" {
		t.Errorf("stored as %q from %q, %v", saved, store.from, err)
	}
	if next, _ := field.Load("own@1"); next != "Be brief. {{playbook}}\n" {
		t.Errorf("the stored text is %q", next)
	}
	if _, err := field.Save("own@1", "{{typo}}"); err == nil {
		t.Error("an unknown placeholder is stored")
	}
	if saved, err := field.Save("own@1", " \n"); saved != "own@1" || err != nil {
		t.Errorf("an empty text is stored as %q, %v", saved, err)
	}
	if next, _ := field.Load("own@1"); next != "Be brief. {{playbook}}\n" {
		t.Errorf("an empty text does not drop the kept one: %q", next)
	}
	if _, err := field.Load("Not a name"); !errors.Is(err, prompts.ErrName) {
		t.Errorf("an invalid name: %v", err)
	}
}
