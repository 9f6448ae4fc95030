package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"acescope/engine/agents/observe/spool"
)

// asHook makes the test binary act as the hook.
const asHook = "ACESCOPE_TEST_HOOK"

func TestMain(m *testing.M) {
	if os.Getenv(asHook) != "" {
		main()
	}
	os.Exit(m.Run())
}

// hook runs the hook and checks that it prints nothing and exits with 0.
func hook(t *testing.T, in io.Reader, env ...string) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env, cmd.Stdin = append([]string{asHook + "=1"}, env...), in
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("with %v: %v, %q", env, err, out)
	}
}

func records(t *testing.T, dir string) (all []spool.Record) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, spool.Active))
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.SplitSeq(data, []byte{'\n'}) {
		if r, ok := spool.Parse(line); ok {
			all = append(all, r)
		} else if len(line) > 0 {
			t.Errorf("a broken line of %d bytes", len(line))
		}
	}
	return all
}

func TestManyAtOnce(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "spool")
	var wg sync.WaitGroup
	for n := range 50 {
		wg.Go(func() { hook(t, strings.NewReader(fmt.Sprintf(`{"n": %d}`, n)), spool.Env+"="+dir) })
	}
	wg.Wait()
	seen, ids := map[string]bool{}, map[string]bool{}
	for _, r := range records(t, dir) {
		seen[string(r.Payload)], ids[r.ID] = true, true
	}
	if len(seen) != 50 || len(ids) != 50 {
		t.Errorf("%d of 50 arrived, with %d ids", len(seen), len(ids))
	}
}

func TestExperiment(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "spool")
	hook(t, strings.NewReader(`{"a": 1}`), spool.Env+"="+dir, spool.EnvExperiment+"=refactoring")
	if got := records(t, dir); len(got) != 1 ||
		string(got[0].Payload) != `{"acescope_experiment":"refactoring","a": 1}` {
		t.Errorf("records %s", got[0].Payload)
	}
}

func TestAnyInput(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "spool")
	env := spool.Env + "=" + dir
	large := strings.Repeat("x", spool.MaxPayload)
	hook(t, strings.NewReader(""), env)
	hook(t, strings.NewReader("\x00\xff garbage\n\nmore"), env)
	hook(t, strings.NewReader(large), env)
	hook(t, strings.NewReader(large+"and more"), env)
	got := records(t, dir)
	if len(got) != 3 {
		t.Fatalf("%d records", len(got))
	}
	if string(got[0].Payload) != "\x00\xff garbage  more" || got[1].Kind != spool.Hook ||
		got[2].Kind != spool.HookTruncated ||
		len(got[1].Payload) != spool.MaxPayload || len(got[2].Payload) != spool.MaxPayload {
		t.Errorf("kinds %c %c %c", got[0].Kind, got[1].Kind, got[2].Kind)
	}
}

// TestNeverDisturbsAgent checks that the hook prints nothing and exits with 0 in any environment.
func TestNeverDisturbsAgent(t *testing.T) {
	closed, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	w.Close()
	closed.Close()
	dir := t.TempDir()
	locked := filepath.Join(dir, "locked")
	if err := os.Mkdir(locked, 0o500); err != nil {
		t.Fatal(err)
	}
	for _, env := range [][]string{nil, {"HOME="}, {"HOME=/proc"}, {"HOME=relative"},
		{spool.Env + "=/dev/full"}, {spool.Env + "=/dev/null/x"},
		{spool.Env + "=" + locked + "/spool"}, {spool.Env + "=" + dir + "/off", "ACESCOPE_OBSERVE=off"},
		{spool.Env + "=" + dir + "/off", spool.EnvHook + "=off"}} {
		hook(t, strings.NewReader(`{"a":1}`), env...)
	}
	if _, err := os.Stat(dir + "/off"); err == nil {
		t.Error("wrote although it was off")
	}
	full := filepath.Join(dir, "full")
	if err := os.MkdirAll(full, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/dev/full", filepath.Join(full, spool.Active)); err == nil {
		hook(t, strings.NewReader(`{"a":1}`), spool.Env+"="+full)
	}
	shell := exec.Command("/bin/sh", "-c", `exec "$0" <&- >&- 2>&-`, mustExe(t))
	shell.Env = []string{asHook + "=1", spool.Env + "=" + dir + "/closed"}
	if err := shell.Run(); err != nil {
		t.Errorf("all closed: %v", err)
	}
}

func mustExe(t *testing.T) string {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return exe
}

// TestDependencies checks that the hook does not import fmt, JSON and the network.
func TestDependencies(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Skip("no go command")
	}
	for _, dep := range strings.Fields(string(out)) {
		first, _, _ := strings.Cut(dep, "/")
		if dep == "fmt" || dep == "net" || strings.HasPrefix(dep, "encoding") ||
			strings.Contains(first, ".") {
			t.Errorf("the hook imports %s", dep)
		}
	}
}
