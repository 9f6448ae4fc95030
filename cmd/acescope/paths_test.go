//go:build unix

package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"

	"acescope/engine"
	"acescope/engine/ace"
	"acescope/engine/temporal/searchattr"
	"acescope/engine/workflows"
)

// troubleQueue is the task queue of a worker of this test whose generator never succeeds.
const troubleQueue = "trouble"

// fixture is a data directory with a host, a closed experiment, a failed run and a run that is retrying.
type fixture struct {
	dir  string
	host *proc
}

func startFixture(t *testing.T) fixture {
	t.Helper()
	p := fixture{dir: t.TempDir()}
	p.host = startProc(t, p.dir, "serve", "--json")
	p.host.next(t, "serve", nil)
	startTrouble(t, p.dir)
	runs := map[string]int{}
	startProc(t, p.dir, "run", "--dataset", problemSet(t, 12), "--experiment", "walk", "--json").next(t,
		"summary", runs)
	checkRuns(t, runs, 12)
	return p
}

// startTrouble starts a worker and two tasks whose model cannot be reached.
func startTrouble(t *testing.T, dir string) {
	t.Helper()
	e, err := engine.Open(t.Context(), engine.Options{DataDir: dir, Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	w := worker.New(e.Client, troubleQueue, worker.Options{})
	workflows.Register(w)
	w.RegisterActivityWithOptions(unreachable, activity.RegisterOptions{Name: ace.ActivityGenerator})
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		w.Stop()
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		_ = e.Close(ctx)
	})
	for _, id := range []string{"broken-1", "again-1"} {
		in := ace.TaskInput{
			TaskID: id, Prompt: "a question", Adapter: ace.Offline, Provider: "none", Model: "far-away",
			ExperimentID: "trouble", DatasetID: "none",
		}
		options := client.StartWorkflowOptions{
			ID: ace.WorkflowID(id), TaskQueue: troubleQueue, TypedSearchAttributes: searchattr.Task(in),
		}
		run, err := e.Client.ExecuteWorkflow(t.Context(), options, ace.TaskWorkflow, in)
		if err != nil {
			t.Fatal(err)
		}
		if id == "broken-1" && run.Get(t.Context(), nil) == nil {
			t.Fatal("the task did not fail")
		}
	}
}

// unreachable fails; a task whose id starts with broken is not retried.
func unreachable(ctx context.Context, in ace.GeneratorInput) (ace.GeneratorResult, error) {
	if strings.HasPrefix(in.Task.TaskID, "broken") {
		return ace.GeneratorResult{}, temporal.NewNonRetryableApplicationError(
			"model far-away: 401 no such key", "ModelError", nil)
	}
	o := temporal.ApplicationErrorOptions{}
	if activity.GetInfo(ctx).Attempt > 1 {
		o.NextRetryDelay = time.Hour // so that the run keeps waiting
	}
	return ace.GeneratorResult{}, temporal.NewApplicationErrorWithOptions(
		"dial tcp 10.0.0.1:443: connection refused", "ModelError", o)
}

// TestPaths follows the main paths through the console, each in its own terminal, attached to one host.
func TestPaths(t *testing.T) {
	t.Parallel()
	p := startFixture(t)
	for _, path := range []struct {
		name string
		walk func(*testing.T, fixture)
	}{
		{"screens by key", screensByKey},
		{"screens by command", screensByCommand},
		{"a failed run from triage", failedFromTriage},
		{"a run that is retrying", retrying},
		{"from a bullet to its event", bulletToEvent},
		{"filters", filterPath},
		{"panes", panePath},
		{"theme", themePath},
		{"read-only", readOnlyPath},
		{"copy", copyPath},
		{"quit", quitPath},
	} {
		t.Run(path.name, func(t *testing.T) {
			t.Parallel()
			path.walk(t, p)
		})
	}
}

// landmarks are texts that each screen shows for the fixture, in the order of the keys.
var landmarks = []struct {
	screen string
	texts  []string
}{
	{"runs", []string{"TASK", "walk-e1-0012", "broken-1", "last 13:"}},
	{"run", []string{"Phases", "generator", "far-away"}},
	{"timeline", []string{"SPAN", "run_generator", "AceTaskWorkflow"}},
	{"playbook", []string{"Playbook walk", "calc-00001", "newest"}},
	{"experiments", []string{"EXPERIMENT", "12/12", "Accuracy"}},
	{"logs", []string{"Logs", "acescope.log", "Started Worker"}},
	{"triage", []string{"Failures", "no such key", "Slowest"}},
	{"health", []string{"Server", "Workers", "ace activity", "search attributes"}},
}

func screensByKey(t *testing.T, p fixture) {
	term := openTerminal(t, p.dir, 160, 45)
	for _, order := range [][]int{{0, 1, 2, 3, 4, 5, 6, 7}, {7, 4, 1, 0}} {
		for _, n := range order {
			term.press(string(rune('1' + n)))
			term.await(append(landmarks[n].texts, "▸"+string(rune('1'+n))+" "+landmarks[n].screen)...)
		}
	}
}

func screensByCommand(t *testing.T, p fixture) {
	term := openTerminal(t, p.dir, 80, 24)
	term.await("again-1")
	for n, l := range landmarks {
		term.press(":" + l.screen + keyEnter)
		term.await(l.texts[0], "▸"+string(rune('1'+n))+" ")
	}
	term.press(":no-such-thing" + keyEnter)
	term.await("no-such-thing")
}

func failedFromTriage(t *testing.T, p fixture) {
	term := openTerminal(t, p.dir, 120, 30)
	term.await("again-1")
	term.press("7")
	term.await("no such key", "again-1")
	term.press("jj")
	term.untilLine("▸", "‼ failed")
	term.press(keyEnter)
	term.await("broken-1", "401 no such key", "Phases")
	term.press("3")
	term.await("Timeline ace/broken-1", "‼ AceTaskWorkflow", "401")
	term.back("Phases")
	term.back("Failures", "no such key")
}

func retrying(t *testing.T, p fixture) {
	term := openTerminal(t, p.dir, 120, 30)
	term.await("again-1", "retry #3")
	term.press("R")
	term.gone("walk-e1-0001")
	term.await("again-1", "retry #3")
	term.press("7")
	term.await("Retrying", "#3", "again-1")
	term.press("g" + keyEnter)
	term.await("ace/again-1", "attempt 3 of 5")
}

// bulletToEvent goes from a bullet to the event of the phase that added it, and back.
func bulletToEvent(t *testing.T, p fixture) {
	term := openTerminal(t, p.dir, 160, 45)
	term.await("again-1")
	term.press("4")
	term.await("calc-00001", "Written by", "walk-e1-0001  ADD", "curator: event")
	term.press("J")
	term.await("Events ace/walk-e1-0001")
	term.untilLine("▸", "ActivityTaskCompleted")
	term.back("Playbook walk", "Written by")
	term.press(keyEnter)
	term.await("Written by")
}

func filterPath(t *testing.T, p fixture) {
	home := t.TempDir()
	term := openTerminalAt(t, home, p.dir, 120, 30)
	term.press("1")
	term.await("again-1", "walk-e1-0001")
	term.press("/Exit")
	term.await("ExitStatus")
	term.press(keyEmpty + "exp=trouble" + keyEnter)
	term.await(`ExperimentId="trouble"`, "broken-1")
	term.gone("walk-e1-0001")
	term.press("\x13") // ctrl+s
	term.await("name")
	term.press("woes" + keyEnter)
	term.await("woes")
	term.press("q")
	term.quits()

	term = openTerminalAt(t, home, p.dir, 120, 30)
	term.await("broken-1", `ExperimentId="trouble"`)
	term.press("/" + keyEmpty + keyEnter)
	term.await("walk-e1-0001")
	term.press("\x0f") // ctrl+o
	term.await("ctrl+s saves the query")
	term.press("G" + keyEnter)
	term.gone("walk-e1-0001")
	term.await("broken-1")
}

func panePath(t *testing.T, p fixture) {
	home := t.TempDir()
	term := openTerminalAt(t, home, p.dir, 160, 40)
	term.press("1")
	term.await("again-1", "Facts")
	for range 2 {
		wide := term.column("Facts")
		term.press(">")
		term.until("has a wider left pane", func(string) bool { return term.column("Facts") > wide })
	}
	wider := term.column("Facts")
	term.press("5")
	term.await("12/12", "Accuracy")
	term.press("z")
	term.gone("Accuracy")
	term.press("q")
	term.quits()

	term = openTerminalAt(t, home, p.dir, 160, 40)
	term.await("Experiments (zoomed)", "12/12")
	term.press("1")
	term.until("keeps the width", func(string) bool { return term.column("Facts") == wider })
}

func themePath(t *testing.T, p fixture) {
	term := openTerminal(t, p.dir, 120, 30)
	term.await("again-1")
	term.press(":theme li" + keyTab)
	term.await(": theme light")
	term.press(keyEnter)
	term.await("theme light until you quit")
	term.press(":theme no-such" + keyEnter)
	term.await("no-such")
	term.await("again-1")
}

func readOnlyPath(t *testing.T, p fixture) {
	term := openTerminal(t, p.dir, 120, 30, "--read-only")
	term.await("again-1", "read-only")
	term.press("x")
	term.await("read-only mode disables")
	if strings.Contains(term.screen.String(), "Cancel this run?") {
		t.Error("a read-only console asks for confirmation")
	}
	term.await("retry #3")
}

func copyPath(t *testing.T, p fixture) {
	term := openTerminal(t, p.dir, 120, 30)
	term.await("again-1")
	term.press("y")
	term.await("Copy", "experiment id")
	term.press("y")
	term.await("copied")
	if !strings.Contains(term.screen.String(), "OSC 52") { // the system clipboard took it
		return
	}
	term.wrote("the copy", "\x1b]52;c;")
}

// quitPath checks that the console restores the terminal.
func quitPath(t *testing.T, p fixture) {
	term := openTerminal(t, p.dir, 100, 30, "--mouse")
	term.await("again-1")
	term.wrote("the other screen", "\x1b[?1049h")
	term.press("q")
	term.quits()
	term.restored()
}

// TestHostKilledUnderConsole kills the host of an attached console: the console takes over.
func TestHostKilledUnderConsole(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	host := startProc(t, dir, "serve", "--json")
	host.next(t, "serve", nil)
	term := openTerminal(t, dir, 100, 30)
	term.await("attached", "no runs yet")
	host.kill9(t)
	term.await("embedded")
	runs := map[string]int{}
	startProc(t, dir, "run", "--dataset", problemSet(t, 3), "--experiment", "after", "--json").next(t,
		"summary", runs)
	checkRuns(t, runs, 3)
	term.press("1")
	term.await("after-e1-0003", "experiment after")
	term.press("q")
	term.quits()
}

// TestLogScreenFollows follows a file that is appended to and rotated.
func TestLogScreenFollows(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "logs", "other.log")
	term := openTerminal(t, dir, 160, 40)
	term.await("no runs yet")
	add := func(text string) {
		f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if _, err := f.WriteString(text + "\n"); err != nil {
			t.Fatal(err)
		}
	}
	term.press("6")
	term.await("acescope.log")
	add("first words")
	term.await("other.log", "first words")
	add("second words")
	term.await("second words")
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	add("words after the rotation")
	term.await("words after the rotation")
	add("last words")
	term.await("last words")
}
