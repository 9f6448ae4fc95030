package llm_test

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"

	"acescope/engine/ace"
	"acescope/engine/ace/calls"
	"acescope/engine/learning/model"
	"acescope/engine/learning/model/llm"
	"acescope/engine/learning/model/llm/llmtest"
	"acescope/engine/learning/prompts"
)

// phases call each phase of a provider with a task.
var phases = map[ace.Phase]struct {
	answer string
	call   func(t *testing.T, p model.Provider, task ace.TaskContext) error
}{
	ace.PhaseGenerator: {generated, func(t *testing.T, p model.Provider, task ace.TaskContext) error {
		_, err := p.Generate(t.Context(), ace.GeneratorInput{Task: task, Prompt: "p"}, samplePlaybook())
		return err
	}},
	ace.PhaseSkills: {generated, func(t *testing.T, p model.Provider, task ace.TaskContext) error {
		_, err := p.Skills(t.Context(), ace.SkillsInput{Task: task, Prompt: "p", Plan: "x"}, samplePlaybook(),
			nil)
		return err
	}},
	ace.PhaseReflector: {`{"key_insight": "k"}`,
		func(t *testing.T, p model.Provider, task ace.TaskContext) error {
			_, err := p.Reflect(t.Context(), ace.ReflectorInput{Task: task, Prompt: "p"}, samplePlaybook())
			return err
		}},
	ace.PhaseCurator: {`{"operations": []}`,
		func(t *testing.T, p model.Provider, task ace.TaskContext) error {
			_, err := p.Curate(t.Context(), ace.CuratorInput{Task: task}, samplePlaybook())
			return err
		}},
}

// A model sees the instructions of the user with the playbook in their middle, and after them always the form
// of the answer.
func TestPhasePrompts(t *testing.T) {
	for phase, c := range phases {
		forBothServers(t, llm.Options{}, llmtest.Script(llmtest.Reply{Text: c.answer}),
			func(t *testing.T, p model.Provider, s *llmtest.Server) {
				prompt := &ace.PhasePrompt{Name: "mine", Version: 2,
					Text: "Do it MY way.\n\n{{playbook}}\n\nMind {{{{this}}.\n"}
				if err := c.call(t, p, ace.TaskContext{PhasePrompt: prompt}); err != nil {
					t.Fatalf("%s: %v", phase, err)
				}
				system := s.Seen()[0].System
				rest := system
				for _, part := range []string{"Do it MY way.", "<playbook-", "[calc-00001]", "</playbook-",
					"Mind {{this}}.", "Text between", "one JSON object and nothing else"} {
					if phase == ace.PhaseGenerator && part == "Text between" {
						part = "only the problem"
					}
					_, after, ok := strings.Cut(rest, part)
					if !ok {
						t.Errorf("%s: no %q at its place in\n%s", phase, part, system)
					}
					rest = after
				}
				if strings.Contains(system, "{{playbook}}") {
					t.Errorf("%s: the placeholder is in the request", phase)
				}
			})
	}
}

func TestDefaultPrompts(t *testing.T) {
	for phase, c := range phases {
		forBothServers(t, llm.Options{}, llmtest.Script(llmtest.Reply{Text: c.answer}),
			func(t *testing.T, p model.Provider, s *llmtest.Server) {
				if err := c.call(t, p, ace.TaskContext{}); err != nil {
					t.Fatalf("%s: %v", phase, err)
				}
				system := s.Seen()[0].System
				if !strings.HasPrefix(system, "You ") ||
					!strings.Contains(system, "one JSON object and nothing else") {
					t.Errorf("%s: %s", phase, system)
				}
				if has := strings.Contains(system, "[calc-00001]"); has != (phase != ace.PhaseReflector) {
					t.Errorf("%s: has the playbook: %t", phase, has)
				}
			})
	}
}

// A text that this version cannot read fails the phase and is not sent.
func TestUnreadablePhasePrompt(t *testing.T) {
	forBothServers(t, llm.Options{}, llmtest.Script(llmtest.Reply{Text: generated}),
		func(t *testing.T, p model.Provider, s *llmtest.Server) {
			task := ace.TaskContext{PhasePrompt: &ace.PhasePrompt{Name: "new", Version: 1,
				Text: "{{playbook}}\n{{weather}}"}}
			err := phases[ace.PhaseGenerator].call(t, p, task)
			if model.KindOf(err) != model.BadRequest ||
				!strings.Contains(err.Error(),
					"generator prompt new@1: 2:1: unknown placeholder {{weather}}") || len(s.Seen()) > 0 {
				t.Errorf("%v, %d requests", err, len(s.Seen()))
			}
		})
}

// The record of a request names the prompt that it was made of, also the default.
func TestRecordNamesThePrompt(t *testing.T) {
	mine := ace.PhasePrompt{Name: "mine", Version: 2, Ref: ace.Ref{SHA256: "abc", Size: 3},
		Text: "{{playbook}}"}
	recorded := mine
	recorded.Text = ""
	byDefault := prompts.Default(ace.PhaseGenerator).PhasePrompt
	byDefault.Text = ""
	for _, c := range []struct {
		prompt *ace.PhasePrompt
		want   ace.PhasePrompt
	}{{&mine, recorded}, {nil, byDefault}} {
		forBothServers(t, llm.Options{}, llmtest.Script(llmtest.Reply{Text: generated}),
			func(t *testing.T, p model.Provider, _ *llmtest.Server) {
				recorder := new(calls.Recorder)
				ctx := calls.WithRecorder(t.Context(), recorder)
				in := ace.GeneratorInput{Task: ace.TaskContext{PhasePrompt: c.prompt}, Prompt: "p"}
				if _, err := p.Generate(ctx, in, samplePlaybook()); err != nil {
					t.Fatal(err)
				}
				line := ""
				put := func(_ context.Context, content []byte, _ string) (ace.Ref, error) {
					line = string(content)
					return ace.Ref{}, nil
				}
				if _, err := recorder.Store(ctx, put, bytes.Clone); err != nil {
					t.Fatal(err)
				}
				var got ace.ModelCall
				if err := json.Unmarshal([]byte(line), &got); err != nil || got.PhasePrompt == nil ||
					*got.PhasePrompt != c.want {
					t.Errorf("recorded %+v, %v, want %+v", got.PhasePrompt, err, c.want)
				}
			})
	}
}
