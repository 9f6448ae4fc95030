package prompts

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"acescope/engine/ace"
)

func TestParse(t *testing.T) {
	for name, c := range map[string]struct {
		phase ace.Phase
		text  string
		err   string // "" if values fill it in as want
		want  []string
	}{
		"playbook":      {ace.PhaseGenerator, "Solve.\n\n{{playbook}}\n", "", []string{"Solve.", "BOOK"}},
		"within a line": {ace.PhaseSkills, "Use {{ playbook }} now", "", []string{"Use", "BOOK", "now"}},
		"optional":      {ace.PhaseReflector, "Reflect.", "", []string{"Reflect."}},
		"inline":        {ace.PhaseCurator, "To {{sections}}.{{playbook}}", "", []string{"To A, B.", "BOOK"}},
		"braces":        {ace.PhaseReflector, "a {{{{playbook}} } {b", "", []string{"a {{playbook}} } {b"}},
		"unknown": {ace.PhaseGenerator, "é\nb {{plan}}",
			"2:3: unknown placeholder {{plan}}; the generator has {{playbook}}", nil},
		"other phase": {ace.PhaseSkills, "{{playbook}} {{sections}}",
			"1:14: unknown placeholder {{sections}}", nil},
		"missing": {ace.PhaseCurator, "one\ntwo", "2:4: the curator needs {{playbook}}, the playbook",
			nil},
		"twice": {ace.PhaseGenerator, "{{playbook}}\n {{playbook}}",
			"2:2: {{playbook}} appears twice; use it once", nil},
		"open":      {ace.PhaseGenerator, "{{playbook}} {{\n}}", "1:14: {{ without }}", nil},
		"empty":     {ace.PhaseReflector, " \n", "1:1: the text is empty", nil},
		"control":   {ace.PhaseReflector, "a\n\x1b[2J", "2:1: control characters are not allowed", nil},
		"not UTF-8": {ace.PhaseReflector, "a\nb\xff", "2:2: the text is not UTF-8", nil},
		"too long": {ace.PhaseReflector, strings.Repeat("a\n", MaxText), "at most 65536 are allowed",
			nil},
		"no prompt": {ace.PhasePersist, "a", `1:1: phase "persist" has no prompt`, nil},
	} {
		parsed, err := Parse(c.phase, c.text)
		var mistake *SyntaxError
		switch {
		case c.err != "" && (!errors.As(err, &mistake) || !strings.Contains(err.Error(), c.err)):
			t.Errorf("%s: error %v, want %s", name, err, c.err)
		case c.err == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		}
		if got := parsed.Paragraphs(map[string]string{Playbook: "BOOK", Sections: "A, B"}); !slices.Equal(got,
			c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// A value with braces is data and not parsed again.
func TestValuesAreData(t *testing.T) {
	parsed, err := Parse(ace.PhaseCurator, "{{sections}} {{playbook}}")
	if err != nil {
		t.Fatal(err)
	}
	got := parsed.Paragraphs(map[string]string{Playbook: "{{sections}}", Sections: "{{playbook}}"})
	if !slices.Equal(got, []string{"{{playbook}}", "{{sections}}"}) {
		t.Errorf("%q", got)
	}
}

func TestShippedPrompts(t *testing.T) {
	for _, phase := range ace.PromptedPhases() {
		if _, err := Parse(phase, Default(phase).Text); err != nil {
			t.Errorf("%s: %v", phase, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{"{{playbook}}", "a {{{{ {{playbook}} }}", "{{ {{playbook}}",
		"{{{{{playbook}}", "é\n{{x}}"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, phase := range ace.PromptedPhases() {
			parsed, err := Parse(phase, text)
			var mistake *SyntaxError
			if err != nil {
				lines := strings.Split(text, "\n")
				if !errors.As(err, &mistake) || mistake.Line < 1 || mistake.Line > len(lines) ||
					mistake.Column < 1 ||
					mistake.Column > len(lines[mistake.Line-1])+1 {
					t.Fatalf("%q: %v", text, err)
				}
				continue
			}
			again, err := Parse(phase, parsed.String())
			if len(parsed.String()) <= MaxText && (err != nil || !reflect.DeepEqual(again, parsed)) {
				t.Fatalf("%q: %q is read as %q, %v", text, parsed, again, err)
			}
			if phase != ace.PhaseReflector && !slices.Contains(parsed, Part{Placeholder: Playbook}) {
				t.Fatalf("%q: no playbook for the %s", text, phase)
			}
		}
	})
}
