package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestClockWarning checks that commands say that the machine's clock was set back since the last host, and
// that runs complete nevertheless.
func TestClockWarning(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	command := func(args ...string) (stdout, stderr string) {
		t.Helper()
		var out, errs bytes.Buffer
		cmd := exec.Command("acescope", append(args, "--data-dir", dir)...)
		cmd.Stdout, cmd.Stderr = &out, &errs
		_ = cmd.Run() // doctor without workers may exit with 1
		return out.String(), errs.String()
	}
	if _, stderr := command("list"); strings.Contains(stderr, "clock") {
		t.Errorf("a warning without reason: %s", stderr)
	}
	later := time.Now().Add(time.Hour)
	if err := os.Chtimes(filepath.Join(dir, "host.lock"), later, later); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"list"}, {"run", "What is 2 + 2?"}} {
		if _, stderr := command(args...); !strings.Contains(stderr,
			"the clock of this machine was set back") {
			t.Errorf("%v: no warning: %s", args, stderr)
		}
	}
	if stdout, _ := command("doctor", "--json"); !strings.Contains(stdout, `"name":"clock"`) {
		t.Errorf("doctor: %s", stdout)
	}
}
