//go:build unix

package main

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"acescope/engine/temporal/server"
)

// Variables of the long storm (make storm).
const (
	stormKillsEnv = "ACESCOPE_STORM_KILLS"
	stormSeedEnv  = "ACESCOPE_STORM_SEED"
)

// TestStorm kills processes at random moments while an experiment runs on three of them and two show it: the
// host, the attached ones, those that take over and those that start. Each is replaced. The result must be
// that of an uninterrupted experiment.
func TestStorm(t *testing.T) {
	t.Parallel()
	kills, seed := stormNumber(t, stormKillsEnv, 4), stormNumber(t, stormSeedEnv, 1)
	set := problemSet(t, 6+6*kills)
	want := make(chan []string, 1)
	go func() {
		dir := t.TempDir()
		_ = exec.Command("acescope", "run", "--dataset", set, "--experiment", "k", "--json", "--data-dir",
			dir).Run()
		want <- learned(t, dir)
	}()
	dir := t.TempDir()
	got := storm(t, dir, set, kills, rand.New(rand.NewPCG(uint64(seed), 0)))
	if want := <-want; !slices.Equal(got, want) {
		t.Errorf("after %d kills with seed %d:\n%s\nuninterrupted:\n%s", kills, seed,
			strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func stormNumber(t *testing.T, name string, otherwise int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// storm returns what an experiment has learned whose processes were killed: three that serve, one that
// follows the experiment, and a console.
func storm(t *testing.T, dir, set string, kills int, random *rand.Rand) []string {
	t.Helper()
	var console *terminal
	serve := func() *stormed { return startStormed(t, "serve", "--data-dir", dir) }
	tail := func() *stormed { return startStormed(t, "tail", "k", "--json", "--data-dir", dir) }
	watch := func() *stormed {
		cmd := exec.Command("acescope", "--data-dir", dir)
		console = inTerminal(t, t.TempDir(), 120, 40, cmd)
		return &stormed{cmd, console.ended}
	}
	procs := []*stormed{serve(), serve(), serve()}
	// Without a process that serves, the run would start one of its own, which would outlive the test.
	for end := time.Now().Add(time.Minute); server.Staying(dir) == 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("no process serves the data directory")
		}
	}
	begun, err := exec.Command("acescope", "run", "--dataset", set, "--experiment", "k", "--pace", "20ms",
		"--detach",
		"--json", "--data-dir", dir).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, begun)
	}
	procs = append(procs, tail(), watch())
	starts := []func() *stormed{serve, serve, serve, tail, watch}
	hosts := 0
	for range kills {
		// the random moment, not a wait
		time.Sleep(time.Duration(random.Int64N(int64(1500 * time.Millisecond))))
		i := random.IntN(len(procs))
		if e, ok := server.Lookup(dir); ok && e.PID == procs[i].Process.Pid {
			hosts++
		}
		_ = procs[i].Process.Kill()
		// A process that attaches while the host dies finds the next one, or hosts.
		if out, err := exec.Command("acescope", "list", "--limit", "1", "--data-dir",
			dir).CombinedOutput(); err != nil {
			t.Errorf("list after a kill: %v\n%s", err, out)
		}
		<-procs[i].ended
		procs[i] = starts[i]()
	}
	t.Logf("%d kills, %d of them of the host", kills, hosts)
	if err := <-procs[3].ended; err != nil {
		t.Errorf("tail: %v", err)
	}
	console.press("1")
	console.await("experiment k")
	console.press("q")
	console.quits()
	return learned(t, dir)
}

// stormed is a process that may be killed.
type stormed struct {
	*exec.Cmd
	ended <-chan error
}

func startStormed(t *testing.T, args ...string) *stormed {
	t.Helper()
	cmd := exec.Command("acescope", args...)
	cmd.Stderr = t.Output()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		ended <- cmd.Wait()
		close(ended)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
	})
	return &stormed{cmd, ended}
}

// learned returns the outcome of each task of experiment k, and its playbook.
func learned(t *testing.T, dir string) []string {
	list, err := exec.Command("acescope", "list", "--json", "--data-dir", dir).Output()
	if err != nil {
		t.Errorf("list: %v", err)
	}
	var lines []string
	for line := range strings.Lines(string(list)) {
		var r struct {
			ID         string `json:"task_id"`
			ExitStatus string `json:"exit_status"`
			Summary    struct{ Added, Updated, Removed, Tagged, Rejected int }
		}
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Errorf("%q: %v", line, err)
		}
		data, _ := json.Marshal(r)
		lines = append(lines, string(data))
	}
	slices.Sort(lines)
	playbook, err := exec.Command("acescope", "playbook", "show", "k", "--json", "--data-dir", dir).Output()
	if err != nil {
		t.Errorf("playbook: %v", err)
	}
	return append(lines, string(playbook))
}
