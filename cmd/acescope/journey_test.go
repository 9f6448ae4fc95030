//go:build unix

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"acescope/engine/learning/model/llm/llmtest"
)

const (
	keyCtrlA = "\x01"
	keyCtrlE = "\x05"
	keyCtrlN = "\x0e"
	keyCtrlS = "\x13"
)

// betterEditor writes a prompt that makes percentModel right, each time another text.
const betterEditor = `#!/bin/sh
echo "Give percent as a number out of a hundred ($$). {{playbook}}" > "$1"
`

// TestJourney is what a new user does with a model of their own, without a page: start an experiment, see why
// answers are wrong and where, change the prompt and try it on one run and then on all that failed, see what
// that fixed, start the next experiment with the prompt, and export the playbook.
func TestJourney(t *testing.T) {
	t.Parallel()
	for _, size := range []struct{ width, height int }{{80, 24}, {120, 40}, {200, 50}} {
		t.Run(fmt.Sprintf("%dx%d", size.width, size.height), func(t *testing.T) {
			t.Parallel()
			journey(t, size.width, size.height)
		})
	}
}

func journey(t *testing.T, width, height int) {
	server := llmtest.New(percentModel)
	t.Cleanup(server.Close)
	home, work := t.TempDir(), t.TempDir()
	put(t, filepath.Join(home, "config", "acescope", "config.toml"), fmt.Sprintf(
		"[providers.house]\nbase_url = \"%s/v1\"\nmodel = \"house-7b\"\n\n"+
			"[[prices]]\nmodel = \"house-7b\"\ninput = 0.5\noutput = 1.5\n", server.URL))
	put(t, filepath.Join(work, "train.jsonl"), percentTasks)
	put(t, filepath.Join(work, "editor"), betterEditor)
	cmd := exec.Command("acescope")
	cmd.Dir = work
	cmd.Env = []string{"VISUAL=" + filepath.Join(work, "editor")}
	term := inTerminal(t, home, width, height, cmd)
	term.await("Next steps", "new experiment or task")

	// Start an experiment. What is typed replaces the default.
	term.press("n")
	term.await("New experiment or task", "or one task", "file or stored data set")
	term.press(keyTab + "train.jsonl")
	term.await("--dataset train.jsonl")
	term.press(keyTab + keyTab + "house")
	term.await("--provider house")
	term.press(keyShiftTab + keyShiftTab + keyShiftTab + keyShiftTab + "first" + keyEnter)
	term.await("▸5 exp", "first", "6/6")

	// Why it fails, and the moment where an answer became wrong.
	term.press("H")
	term.await("4 wrong", "a fraction where percent is asked")
	term.press("]" + "t")
	term.await("became wrong here", "f fork")

	// Fork this run with another prompt for the generator.
	term.press("f")
	term.await("Fork first-e1-", "From", "generator", "will rerun")
	term.press(strings.Repeat(keyTab, 8))
	term.await("▸ Generator prompt", "ctrl+e")
	term.press(keyCtrlE)
	term.await("prompt own@1", "changed     prompts.generator: default → own@1", "costs       about")
	term.press(keyEnter)
	term.await("~f1")

	// Fork all wrong runs with it.
	term.press("1")
	term.await("▸1 runs", "wrong 4")
	term.press("]]")
	term.await("▸wrong 4")
	term.press(keyCtrlA)
	term.await("4 marked runs")
	term.press("f")
	term.await("Fork 4 marked runs", "empty fields keep what each run has")
	term.press(strings.Repeat(keyTab, 6))
	term.await("▸ Generator prompt", "own@1")
	term.press("own@1" + keyEnter)
	term.await("Fork 4 runs?", "prompts.generator: default → own@1", "y fork the runs")
	term.press("y")
	term.await("Scoreboard forks-", "4 fixed, 0 broken, 0 unchanged", "cost $0.00")

	// The next version of the prompt, from its screen.
	term.press(":prompts" + keyEnter)
	term.untilLine("generator own", " 1 ")
	term.press(keyCtrlE)
	term.await("save as generator/", "a version of own")
	term.press(keyEnter)
	term.untilLine("generator own", " 2 ")

	// The next experiment with that prompt.
	term.press("5")
	term.await("▸5 exp", "n new")
	term.press("n" + keyTab + "train.jsonl" + keyTab + keyTab + "house" + strings.Repeat(keyTab, 5))
	term.await("▸ Generator prompt")
	term.press("own" + keyCtrlE)
	term.untilLine("▸ Generator prompt", "own@3")
	term.press(strings.Repeat(keyShiftTab, 9) + "second" + keyEnter)
	term.untilLine("▸", "second", "completed")

	// Its runs, and its playbook as a file.
	term.press("F")
	term.await("▸1 runs", "second", "e1-0006", "55.00 ✓")
	term.press("4")
	term.await("Playbook second", "A share of a whole", "^s export")
	term.press(keyCtrlS)
	term.await("Export playbook second@", "second.json")
	term.press(keyEnter)
	term.await("wrote /")
	data, err := os.ReadFile(filepath.Join(work, "second.json"))
	if err != nil || !strings.Contains(string(data), "A share of a whole") {
		t.Errorf("the exported playbook is %s: %v", data, err)
	}
}

// put writes a file that may be executed, and the directories above it.
func put(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o700); err != nil {
		t.Fatal(err)
	}
}

const percentTasks = `{"question": "What is 3 of 8 in percent?", "target": "37.50"}
{"question": "What is 7 of 16 in percent?", "target": "43.75"}
{"question": "What is 5 of 32 as a fraction?", "target": "0.16"}
{"question": "What is 9 of 40 in percent?", "target": "22.50"}
{"question": "What is 13 of 25 as a fraction?", "target": "0.52"}
{"question": "What is 11 of 20 in percent?", "target": "55.00"}
`

var (
	sharePattern  = regexp.MustCompile(`([0-9]+) of ([0-9]+)`)
	numberPattern = regexp.MustCompile(`[0-9.]+`)
)

// percentModel simulates a model that answers a question for percent with a fraction, unless the instructions
// of the generator speak of a hundred. It learns one bullet, which does not help.
func percentModel(q llmtest.Request) llmtest.Reply {
	task := llmtest.Between(q.Last(), "task")
	inPercent := strings.Contains(task, "percent")
	switch roleOf(q) {
	case "generator":
		var part, whole float64
		_, _ = fmt.Sscanf(sharePattern.FindString(task), "%f of %f", &part, &whole)
		share := part / whole
		if inPercent && strings.Contains(q.System, "hundred") {
			share *= 100
		}
		return llmtest.Reply{Text: fmt.Sprintf(
			`{"reasoning": "%v over %v", "bullet_ids": [], "final_answer": "%.2f"}`, part, whole, share)}
	case "skills":
		answer := numberPattern.FindString(llmtest.Between(q.Last(), "answer"))
		return llmtest.Reply{Text: `{"final_answer": "` + answer + `"}`}
	case "reflector":
		if strings.Contains(q.Last(), "is WRONG") {
			return llmtest.Reply{Text: `{"mistake": "a fraction where percent is asked",
				"error_identification": "The answer is a fraction.",
				"key_insight": "Give percentages as percent.", "bullet_tags": []}`}
		}
		return llmtest.Reply{Text: `{"key_insight": "none", "bullet_tags": []}`}
	}
	if strings.Contains(llmtest.Between(q.System, "playbook"), "share") {
		return llmtest.Reply{Text: `{"reasoning": "known", "operations": []}`}
	}
	return llmtest.Reply{Text: `{"reasoning": "new", "operations": [
		{"type": "ADD", "section": "OTHERS", "content": "A share of a whole is part / whole."}]}`}
}
