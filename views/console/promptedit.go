package console

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	tea "charm.land/bubbletea/v2"

	"acescope/engine/ace"
	"acescope/engine/learning/prompts"
	"acescope/tui"
)

// PromptActions read and store phase prompts.
type PromptActions interface {
	// PromptBase returns the prompt, with its text, that a change of NAME or NAME@N begins with.
	PromptBase(ctx context.Context, phase ace.Phase, ref string) (prompts.Prompt, error)
	// PutPrompt stores a version with a text, made from another prompt.
	PutPrompt(ctx context.Context, phase ace.Phase, name, text, from string) (prompts.Prompt, error)
}

// ownPrompt is the name under which a change of the default prompt is stored, unless the user types another
// name.
const ownPrompt = "own"

// promptTexts are the texts of phase prompts, as $EDITOR edits them. A text that was not stored opens again
// for the next change of its prompt.
type promptTexts struct {
	context context.Context
	actions PromptActions

	mu   sync.Mutex
	kept map[string]string // texts that were not stored, by phase and name
}

// field returns the text that the value of a field names.
func (t *promptTexts) field(phase ace.Phase) *tui.NamedText {
	return &tui.NamedText{
		Load: func(value string) (string, error) { return t.load(phase, nameOf(value), value) },
		Save: func(value, text string) (string, error) { return t.save(phase, nameOf(value), value, text) },
	}
}

// nameOf returns the name under which a change of NAME or NAME@N is stored.
func nameOf(ref string) string {
	if name, _, _ := strings.Cut(strings.TrimSpace(ref), "@"); name != "" && name != ace.DefaultPrompt {
		return name
	}
	return ownPrompt
}

// load returns the text that a change begins with.
func (t *promptTexts) load(phase ace.Phase, name, from string) (string, error) {
	t.mu.Lock()
	kept, ok := t.kept[string(phase)+"/"+name]
	t.mu.Unlock()
	if ok {
		return kept, nil
	}
	if err := prompts.CheckName(name); err != nil {
		return "", err
	}
	ctx, stop := context.WithTimeout(t.context, ActionTimeout)
	defer stop()
	base, err := t.actions.PromptBase(ctx, phase, strings.TrimSpace(from))
	return base.Text, err
}

// save stores a text as a version and returns NAME@N. It returns from for a text that is empty or not
// changed.
func (t *promptTexts) save(phase ace.Phase, name, from, text string) (string, error) {
	ctx, stop := context.WithTimeout(t.context, ActionTimeout)
	defer stop()
	key := string(phase) + "/" + name
	base, err := t.actions.PromptBase(ctx, phase, strings.TrimSpace(from))
	unchanged := strings.TrimSpace(text) == "" || err == nil && prompts.Clean(text) == base.Text
	var stored prompts.Prompt
	if err == nil && !unchanged {
		stored, err = t.actions.PutPrompt(ctx, phase, name, text, base.PhasePrompt.String())
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case unchanged:
		delete(t.kept, key)
		return from, nil
	case err != nil:
		t.kept[key] = text
		return "", keptError{err}
	}
	delete(t.kept, key)
	return stored.PhasePrompt.String(), nil
}

// keptError says why a text was not stored, and how to continue.
type keptError struct{ error }

func (e keptError) Error() string {
	summary := e.error.Error()
	if mistake, ok := errors.AsType[*prompts.SyntaxError](e.error); ok {
		summary = fmt.Sprintf("line %d: %s", mistake.Line, mistake.Message)
	}
	return summary + "; ctrl+e opens your text again"
}

func (e keptError) Unwrap() error { return e.error }

// EditPrompt asks for the name of a version that is made from another one, then opens its text in $EDITOR and
// stores it.
func (l *Launcher) EditPrompt(s tui.Shell, of prompts.Prompt) {
	from := of.PhasePrompt.String()
	phase := string(of.Phase)
	s.Ask(tui.Prompt{Label: "save as " + phase + "/", Value: nameOf(from), Check: prompts.CheckName,
		Preview: func(name string) string {
			return "opens " + phase + "/" + from + " in $EDITOR; a version of " + name
		},
		Done: func(name string) tea.Cmd { return l.editPrompt(of.Phase, strings.TrimSpace(name), from) }})
}

func (l *Launcher) editPrompt(phase ace.Phase, name, from string) tea.Cmd {
	t := tui.NamedText{
		Load: func(from string) (string, error) { return l.texts.load(phase, name, from) },
		Save: func(from, text string) (string, error) { return l.texts.save(phase, name, from, text) },
	}
	return t.Edit(from, func(stored string, err error) tea.Msg {
		switch {
		case err != nil:
			return tui.Failed(err)
		case stored == from:
			return tui.Noted("the text was not changed, so there is no new version")
		}
		return tui.Noted("stored as " + string(phase) + "/" + stored + "; n and f use it for that phase")
	})
}
