//go:build unix

package main

import "testing"

// TestConsole uses a console that hosts the server: an empty list, an experiment of another process, a run, a filter,
// other terminal sizes, and quit.
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
