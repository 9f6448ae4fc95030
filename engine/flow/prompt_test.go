package flow

import (
	"maps"
	"strings"
	"testing"
	"time"

	"acescope/engine/ace"
)

// prompted is a flow with prompts in all places: a block and a flow mapping, a file, a loop and a sub-flow.
var prompted = Source{Main: "main.yaml", Files: map[string]string{
	"main.yaml": `flow: prompted
inputs:
  topic: {type: string}
steps:
  # asks first
  - id: one
    prompt: About ${{ inputs.topic }}?
  - {id: two, agent: claude, prompt: "Work."}
  - id: three
    prompt: {file: three.md}
  - id: four
    prompt: {file: three.md}
  - id: each
    for_each: "[1, 2]"
    as: item
    steps: [{id: five, prompt: "Item ${{ item_index }}"}]
  - id: sub
    flow: sub.yaml
  - id: plain
    run: ["true"]
`,
	"three.md": "From a file.\n",
	"sub.yaml": "flow: sub\nsteps:\n  - id: six\n    prompt: >-\n      Sub\n      flow\n",
}}

func TestPrompts(t *testing.T) {
	src := prompted
	f, err := Parse(src)
	if err != nil {
		t.Fatal(err)
	}
	paths := map[string]string{"one": "About ${{ inputs.topic }}?", "two": "Work.", "three": "From a file.\n",
		"four": "From a file.\n", "each/1/five": "Item ${{ item_index }}", "sub/six": "Sub flow"}
	for path, want := range paths {
		if got, ok := src.PromptAt(f, path); !ok || got != want {
			t.Errorf("%s: %q, %t; want %q", path, got, ok, want)
		}
		for _, text := range []string{"Other", "true", "", "two\nlines \n\n", "a: b # no",
			"  ${{ 1 + 1 }} \"x\"", "- \t'"} {
			changed, next, err := src.WithPrompt(f, path, text)
			if err != nil {
				t.Errorf("%s: %q: %v", path, text, err)
				continue
			}
			for other, before := range paths {
				if other == path {
					before = text
				}
				if got, _ := changed.PromptAt(next, other); got != before {
					t.Errorf("with %q at %s, %s is %q, not %q", text, path, other, got, before)
				}
			}
		}
	}
	for path, want := range map[string]string{"plain": "has no prompt", "nothing": "has no prompt"} {
		if _, _, err := src.WithPrompt(f, path, "x"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", path, err)
		}
	}
	for _, text := range []string{"${{ inputs.none }}", "${{", "\x1b[2J"} {
		if _, _, err := src.WithPrompt(f, "one", text); err == nil ||
			!strings.Contains(err.Error(), "step one") {
			t.Errorf("%q: %v", text, err)
		}
	}
	if changed, _, _ := src.WithPrompt(f, "one", "x"); !strings.Contains(changed.Files["main.yaml"],
		"# asks first") {
		t.Errorf("comments are lost:\n%s", changed.Files["main.yaml"])
	}
}

// Usage is metered by model, unless a transcript of an agent's CLI has it. A clone keeps what it had.
func TestMetered(t *testing.T) {
	var s State
	use := func(f Fact) {
		f.Usage = &ace.Usage{InputTokens: 10, CostUSD: 1}
		s.Apply("ask", time.Time{}, f)
	}
	use(Fact{})
	if s.Metered != nil {
		t.Errorf("usage of an agent is metered: %v", *s.Metered)
	}
	use(Fact{Metered: true, Model: "a"})
	before := s.Clone()
	use(Fact{Metered: true, Model: "a"})
	use(Fact{Metered: true, Model: "b"})
	want := ace.ModelUsage{"a": {InputTokens: 20, CostUSD: 2}, "b": {InputTokens: 10, CostUSD: 1}}
	if !maps.Equal(*s.Metered, want) || s.Usage.InputTokens != 40 {
		t.Errorf("%v of %v, want %v", *s.Metered, s.Usage, want)
	}
	if got := *before.Metered; len(got) != 1 || got["a"].InputTokens != 10 {
		t.Errorf("the clone changed: %v", got)
	}
}
