//go:build unix

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// historyDir returns a directory with recorded histories, one of them truncated, and with files that are not
// histories.
func historyDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"right", "wrong", "failed", "experiment"} {
		copyHistory(t, name, filepath.Join(dir, name+".json"), 0)
	}
	copyHistory(t, "live", filepath.Join(dir, "torn.json"), 9000)
	copyHistory(t, "right", filepath.Join(dir, "again.json"), 0)
	for name, data := range map[string]string{"notes.txt": "not a history", "empty.json": "",
		"garbage.json": "hello"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// copyHistory copies a recorded history, or its first bytes.
func copyHistory(t *testing.T, name, to string, bytes int) {
	t.Helper()
	data, err := os.ReadFile("../../engine/workflows/testdata/" + name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	if bytes > 0 {
		data = data[:bytes]
	}
	if err := os.WriteFile(to, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestOpenConsole uses the console on a directory of histories: every screen that works from histories, a
// filter, and actions that are not available. It checks that no file is left behind.
func TestOpenConsole(t *testing.T) {
	t.Parallel()
	dir, home, temp := historyDir(t), t.TempDir(), t.TempDir()
	data := filepath.Join(home, "data")
	cmd := exec.Command("acescope", "open", dir, "--data-dir", data)
	cmd.Env = []string{"TMPDIR=" + temp}
	term := inTerminal(t, home, 80, 24, cmd)
	term.await("file · "+filepath.Base(dir), "not live", "1/5", "TASK", "live", "experiment exp")

	term.press("/wrong exp=e2e" + keyEnter)
	term.await(`ExitStatus="wrong"`, "1/1")
	term.press("/" + keyEmpty + "Nothing = 3" + keyEnter)
	term.await("invalid search attribute: Nothing")
	term.press("/" + keyEmpty + keyEnter)
	term.await("1/5")
	term.press("F")
	term.await("Facets", "[ ] correct or ungraded", "2")
	term.press("F")
	term.await("TASK")

	term.press("g2") // the truncated run is open, so it comes first
	term.await("ace/live", "torn.json is incomplete: byte")
	term.press("3")
	term.await("Timeline", "AceTaskWorkflow", "generator")
	term.press("4")
	term.await("Playbook e2e", "v2 of 2 (newest)", "the answer is 42, says right")
	term.press("5")
	term.await("EXPERIMENT", "exp", "7/7")
	term.press("6")
	term.await("no data directory")
	term.press("7")
	term.await("4 closed runs, 1 open", "this prompt cannot be answered")
	term.press("8")
	term.await("there is no server, and nothing runs", "5 recorded, 1 open", "garbage.json", "torn.json")
	term.press("1x")
	term.await("not available on files; use: acescope cancel live")
	term.press("f")
	term.await("not available on files; use: acescope fork ")
	term.press(":signal x" + keyEnter)
	term.await("not available on files; use: acescope signal live")
	term.press("!")
	term.await("Errors", "no history", "is also in")
	term.press(keyEsc)
	term.gone("is also in")

	term.press("/right" + keyEnter)
	term.await("1/1")
	term.press("9")
	term.await("State at event 38 of right")
	term.press("[")
	term.await("event 32 of 38")
	term.press("r")
	term.await("verify: ")
	term.press("1/" + keyEmpty + `TaskId = "right" OR TaskId = "wrong"` + keyEnter)
	term.await("2/2")
	term.press("g G=")
	term.await("Diff", "first difference", "run_reflector")

	term.press("q")
	term.quits()
	term.restored()
	if _, err := os.Stat(data); err == nil {
		t.Error("a data directory was made")
	}
	empty(t, temp)
}

// empty checks that a directory is empty.
func empty(t *testing.T, dir string) {
	t.Helper()
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestOpenConsoleHangup checks that no file is left behind when the terminal is closed.
func TestOpenConsoleHangup(t *testing.T) {
	t.Parallel()
	dir, home, temp := historyDir(t), t.TempDir(), t.TempDir()
	cmd := exec.Command("acescope", "open", dir, "--data-dir", filepath.Join(home, "data"))
	cmd.Env = []string{"TMPDIR=" + temp}
	term := inTerminal(t, home, 80, 24, cmd)
	term.await("1/5")
	if left, err := os.ReadDir(temp); err != nil || len(left) != 1 {
		t.Errorf("no directory of playbooks: %v, %v", left, err)
	}
	_ = term.file.Close()
	<-term.ended
	term.ended <- nil
	empty(t, temp)
}

// TestOpenConsoleFromPipe reads histories from standard input and keys from the terminal.
func TestOpenConsoleFromPipe(t *testing.T) {
	t.Parallel()
	dir := historyDir(t)
	cmd := exec.Command("sh", "-c", `cat "$1" "$2" | acescope open -`, "sh", filepath.Join(dir, "right.json"),
		filepath.Join(dir, "wrong.json"))
	term := inTerminal(t, t.TempDir(), 80, 24, cmd)
	term.await("file · stdin", "1/2", "right", "wrong")
	term.press("j")
	term.await("2/2")
	term.press("f")
	term.await("2/2", "not available on files; use: acescope fork right")
	term.press("q")
	term.quits()
	term.restored()
}

// TestOpenConsoleWithoutHistory checks that the console exits with one line if there is no history.
func TestOpenConsoleWithoutHistory(t *testing.T) {
	t.Parallel()
	dir := historyDir(t)
	for name, want := range map[string]string{"empty.json": "no history found",
		"garbage.json": "a history begins with"} {
		term := openTerminal(t, t.TempDir(), 80, 24, "open", filepath.Join(dir, name))
		if err := <-term.ended; err == nil || !strings.Contains(err.Error(), "exit status 1") {
			t.Errorf("%s: exited with %v", name, err)
		}
		<-term.drained
		if !bytes.Contains(term.bytes, []byte(want)) {
			t.Errorf("%s: the output lacks %q:\n%s", name, want, term.screen.String())
		}
	}
}
