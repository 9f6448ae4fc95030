//go:build unix

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const keyShiftTab = "\x1b[Z"

// TestWorkbench is what a new user does without leaving the console: start an experiment, find a wrong
// answer, change its prompt in an editor, fork all wrong runs with the learned playbook, see what that fixed,
// and open a history file.
func TestWorkbench(t *testing.T) {
	t.Parallel()
	editor := filepath.Join(t.TempDir(), "editor")
	script := "#!/bin/sh\nprintf 'Better words' > \"$1\"\n"
	if err := os.WriteFile(editor, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("acescope")
	cmd.Env = []string{"VISUAL=" + editor}
	term := inTerminal(t, t.TempDir(), 100, 36, cmd)
	term.await("Next steps", "new experiment or task")

	term.press("n")
	term.await("New experiment or task", "Evaluation set")
	term.press(keyShiftTab + "mine" + keyTab + keyTab + "problems:14")
	term.await("$ acescope run --dataset problems:14 --experiment mine")
	term.press(keyEnter)
	term.await("▸5 exp", "started experiment mine")
	term.await("mine", "14/14")

	term.press("1/wrong" + keyEnter)
	term.untilLine("▸ mine-e1-", " → ")
	term.press(keyEnter)
	term.await("✗ wrong: answered", "expected")
	term.back("SUBJECT")

	term.press("f")
	term.await("Fork mine-e1-", "will rerun", "changed     nothing")
	term.press(keyTab + "\x05") // ctrl+e
	term.await("Better words", "changed     prompt:", "--prompt 'Better words'")
	term.press(keyEsc)
	term.gone("Better words")

	term.press("\x01") // ctrl+a
	term.await("marked runs")
	term.press("f")
	term.await("marked runs", "empty fields keep what each run has")
	term.press(keyTab + keyTab + keyTab + "mine" + keyEnter)
	term.await("runs?", "changed     playbook_hash:", "y fork the runs")
	term.press("y")
	term.await("Scoreboard forks-", "✓ fixed")
	term.until("shows no running fork", func(screen string) bool {
		return !strings.Contains(screen, "● running")
	})
	term.press("g" + keyEnter)
	term.await("▸diff")

	history, err := filepath.Abs("../../engine/workflows/testdata/experiment.json")
	if err != nil {
		t.Fatal(err)
	}
	term.press("H")
	term.await("▸H ")
	term.press("o")
	term.await("Open a history")
	term.press(history + keyEnter)
	term.await("file · experiment.json")
	term.press("q")
	term.await("▸H ", "closed ")
	term.press("o")
	term.await("Open a history")
	term.press("../../LICENSE" + keyEnter)
	term.await("▸H ", "‼ ../../LICENSE: ")
}
