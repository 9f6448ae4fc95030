package views

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/exp/golden"

	"acescope/engine/ace"
	"acescope/engine/learning/prompts"
	"acescope/sources/phaseprompts"
	"acescope/theme"
)

type fakePrompts struct {
	fakeFeed[*phaseprompts.Prompts]
}

func (s fakePrompts) Refine(of phaseprompts.Ask) {
	s.tell("prompt %s/%s@%d", of.Phase, of.Name, of.Version)
}

// promptsSnap has a prompt with two versions, the newest of which is read.
func promptsSnap(name, text string) *snapshot {
	s := ready(many(5)...)
	version := func(n int, from string) prompts.Prompt {
		return prompts.Prompt{Phase: ace.PhaseGenerator, At: noon.Add(-time.Duration(10-n) * time.Hour),
			From: from,
			PhasePrompt: ace.PhasePrompt{Name: name, Version: n,
				Ref: ace.Ref{SHA256: strings.Repeat(fmt.Sprint(n), 64)}}}
	}
	list := []prompts.Prompt{version(2, name+"@1"), version(1, "default")}
	for _, phase := range ace.PromptedPhases() {
		p := prompts.Default(phase)
		p.SHA256 = strings.Repeat("d", 64)
		list = append(list, p)
	}
	s.Prompts = &phaseprompts.Prompts{List: list, Of: phaseprompts.AskOf(list[0]), Text: text, Since: name +
		"@1",
		Before: "Solve the task.\n\nShow every step.\n\n{{playbook}}\n", Updated: noon}
	return s
}

const briefPrompt = "Solve the task.\n\nBe brief.\n\n{{playbook}}\n"

func TestPromptScreens(t *testing.T) {
	for _, size := range [][2]int{{80, 24}, {120, 40}} {
		t.Run(fmt.Sprintf("%dx%d", size[0], size[1]), func(t *testing.T) {
			sc := newScreen(t, promptsSnap("brief", briefPrompt), theme.New(true, true), size[0], size[1])
			sc.press(":", "p", "r", "o", "m", "p", "t", "s", "enter", "tab")
			golden.RequireEqual(t, sc.plain())
		})
	}
}

// A version whose text is not read yet, names and texts that attack the terminal, and a store that does not
// answer.
func TestPromptScreenSizes(t *testing.T) {
	t.Parallel()
	evil := "\x1b[2J\x1b]0;owned\a\u202egnp.exe\r\n" + strings.Repeat("wide 漢字 ", 40)
	other := promptsSnap("brief", briefPrompt)
	other.Prompts.Of.Version = 1
	broken := promptsSnap("brief", briefPrompt)
	broken.Prompts = &phaseprompts.Prompts{Err: evil}
	for name, snap := range map[string]*snapshot{"hostile": promptsSnap(evil, evil), "other": other,
		"broken": broken, "none": ready()} {
		sc := newScreen(t, snap, theme.New(true, false), 80, 24)
		sc.press(":", "p", "r", "o", "m", "p", "t", "s", "enter", "tab")
		for w := 40; w <= 220; w += 9 {
			for _, h := range []int{10, 17, 24, 50} {
				sc.resize(w, h)
				sc.drawn()
			}
		}
		if t.Failed() {
			t.Fatal(name)
		}
	}
}
