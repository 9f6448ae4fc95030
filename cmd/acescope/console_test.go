//go:build unix

package main

import (
	"os"
	"os/exec"
	"syscall"
	"testing"

	"acescope/cmd/acescope/internal/cli"
)

// TestConsole uses a console that hosts the server: an empty list, an experiment of another process, a run, a
// filter, other terminal sizes, and quit.
func TestConsole(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	term := openTerminal(t, dir, 80, 24)
	term.await("no runs yet", "embedded")

	run := startProc(t, dir, "run", "--dataset", problemSet(t, 12), "--experiment", "walk", "--json")
	runs := map[string]int{}
	run.next(t, "summary", runs)
	checkRuns(t, runs, 12)
	term.await("walk", "12/12", "Accuracy")
	term.press("1")
	term.await("walk-e1-0012", "experiment walk", "1/13")

	term.press("/wrong exp=walk" + keyEnter)
	term.await(`ExitStatus="wrong"`)
	term.gone("experiment walk")
	term.press("g" + keyEnter)
	term.await("ace/walk-e1-", "Skills", "Playbook", "complete")
	term.press(keyEsc)
	term.await("TASK", "SUBJECT")
	term.press("?")
	term.await("Help")
	term.press(keyEsc) // a key directly after esc would be read as alt and that key
	term.gone("Help,")

	term.resize(200, 50)
	term.await("Skills", "TASK", "Log")
	term.resize(30, 8)
	term.await("too small")
	term.resize(80, 24)
	term.await("TASK", "SUBJECT")
	term.press("q")
	term.quits()
}

// TestConsoleSignal ends consoles by signals, which restore the terminal and set the exit code.
func TestConsoleSignal(t *testing.T) {
	t.Parallel()
	for _, sig := range []os.Signal{os.Interrupt, syscall.SIGTERM, os.Interrupt, syscall.SIGTERM} {
		cmd := exec.Command("acescope", "--address", "127.0.0.1:1", "--data-dir", t.TempDir())
		term := inTerminal(t, t.TempDir(), 80, 24, cmd)
		term.await("Overview")
		if err := cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
		if got := term.exits(); got != cli.ExitInterrupted {
			t.Errorf("exit code %d after %v", got, sig)
		}
		term.restored()
	}
}
