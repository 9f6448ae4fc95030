//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/protobuf/proto"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine"
	"acescope/engine/ace"
	"acescope/engine/learning/playbook"
	"acescope/engine/store/artifact"
	"acescope/engine/store/bucket"
	"acescope/engine/temporal/server"
)

// Variables of the long storm (make storm).
const (
	stormKillsEnv = "ACESCOPE_STORM_KILLS"
	stormSeedEnv  = "ACESCOPE_STORM_SEED"
)

// TestStorm kills processes at random moments while an experiment runs on three of them and two show it: the
// host, the attached ones, those that take over and those that start. Each is replaced. The result must be
// that of an uninterrupted experiment. All the while, unused objects are deleted from the data directory, or
// from the store that the machines of a cluster share, and everything to which a history refers must be
// there.
func TestStorm(t *testing.T) {
	t.Parallel()
	kills, seed := stormNumber(t, stormKillsEnv, 4), stormNumber(t, stormSeedEnv, 1)
	set := largeProblemSet(t, 6+6*kills)
	want := sync.OnceValue(func() []string {
		alone := &storm{T: t, dirs: []string{t.TempDir()}}
		_ = alone.command(0, "run", "--dataset", set, "--experiment", "k", "--json").Run()
		return alone.learned()
	})
	for name, newStorm := range map[string]func(*testing.T) *storm{"directory": onDirectory,
		"store": onStore} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := newStorm(t).run(set, kills, rand.New(rand.NewPCG(uint64(seed), 0)))
			if want := want(); !slices.Equal(got, want) {
				t.Errorf("after %d kills with seed %d:\n%s\nuninterrupted:\n%s", kills, seed,
					strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		})
	}
}

// storm runs programs with the data directories of one or several machines.
type storm struct {
	*testing.T
	dirs []string       // of the programs, which share the last one if there are fewer
	env  []string       // with the address of a cluster, or nil
	host *engine.Engine // of the cluster, or nil
	// store is the URL of the store of the cluster, or "".
	store string
}

// stormAge is the age at which unused objects are deleted during a storm.
const stormAge = "30s"

func onDirectory(t *testing.T) *storm {
	return &storm{T: t, dirs: []string{t.TempDir()}, env: append(os.Environ(), stormAgeEnv+"="+stormAge)}
}

func onStore(t *testing.T) *storm {
	s := onDirectory(t)
	s.host = s.open(s.dirs[0])
	for _, v := range s.host.Node().Env() {
		s.env = append(s.env, v.Name+"="+v.Value)
	}
	s.dirs = nil
	for range 6 {
		s.dirs = append(s.dirs, t.TempDir())
	}
	s.store = "file://" + t.TempDir()
	if out, err := s.command(0, "setup", "--store", s.store, "--yes").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return s
}

func (s *storm) open(dir string) *engine.Engine {
	s.Helper()
	e, err := engine.Open(s.Context(), engine.Options{DataDir: dir, Version: cli.BuildVersion(),
		Takeover: true})
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = e.Close(context.Background()) })
	return e
}

func (s *storm) command(machine int, args ...string) *exec.Cmd {
	dir := s.dirs[min(machine, len(s.dirs)-1)]
	if s.host == nil {
		args = append(args, "--data-dir", dir)
	}
	cmd := exec.Command("acescope", args...)
	if cmd.Env = s.env; s.host != nil {
		cmd.Env = append(slices.Clone(s.env), "XDG_DATA_HOME="+dir)
	}
	return cmd
}

// largeProblemSet returns a data set whose prompts are too large for a history.
func largeProblemSet(t *testing.T, n int) (path string) {
	t.Helper()
	path = problemSet(t, n)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const field = `"context":"`
	text = bytes.ReplaceAll(text, []byte(field), []byte(field+strings.Repeat(" ", ace.InlineBytes)))
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
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

// run returns what an experiment has learned whose processes were killed: three that serve, one that follows
// the experiment, and a console.
func (s *storm) run(set string, kills int, random *rand.Rand) []string {
	s.Helper()
	var console *terminal
	serve := func(i int) *stormed { return startStormed(s.T, s.command(i, "serve")) }
	tail := func(i int) *stormed { return startStormed(s.T, s.command(i, "tail", "k", "--json")) }
	watch := func(i int) *stormed {
		cmd := s.command(i)
		console = inTerminal(s.T, s.TempDir(), 120, 40, cmd)
		return &stormed{cmd, console.ended}
	}
	procs := []*stormed{serve(0), serve(1), serve(2)}
	// Without a process that serves, the run would start one of its own, which would outlive the test.
	for end := time.Now().Add(time.Minute); s.host == nil && server.Staying(s.dirs[0]) == 0; {
		if time.Sleep(10 * time.Millisecond); time.Now().After(end) {
			s.Fatal("no process serves the data directory")
		}
	}
	if out, err := s.command(5, "dataset", problemSet(s.T, 1)).CombinedOutput(); err != nil { // unused
		s.Fatalf("%v\n%s", err, out)
	}
	begun, err := s.command(5, "run", "--dataset", set, "--experiment", "k", "--pace", "20ms", "--detach",
		"--json").CombinedOutput()
	if err != nil {
		s.Fatalf("%v\n%s", err, begun)
	}
	stop := make(chan struct{})
	collected := make(chan struct{})
	go func() {
		defer close(collected)
		s.collect(stop)
	}()
	procs = append(procs, tail(3), watch(4))
	starts := []func(int) *stormed{serve, serve, serve, tail, watch}
	hosts := 0
	for range kills {
		// the random moment, not a wait
		time.Sleep(time.Duration(random.Int64N(int64(1500 * time.Millisecond))))
		i := random.IntN(len(procs))
		if e, ok := server.Lookup(s.dirs[0]); ok && e.PID == procs[i].Process.Pid {
			hosts++
		}
		_ = procs[i].Process.Kill()
		// A process that attaches while the host dies finds the next one, or hosts.
		if out, err := s.command(5, "list", "--limit", "1").CombinedOutput(); err != nil {
			s.Errorf("list after a kill: %v\n%s", err, out)
		}
		<-procs[i].ended
		procs[i] = starts[i](i)
	}
	s.Logf("%d kills, %d of them of the host", kills, hosts)
	if err := <-procs[3].ended; err != nil {
		s.Errorf("tail: %v", err)
	}
	close(stop)
	<-collected
	console.press("1")
	console.await("experiment k")
	console.press("q")
	console.quits()
	s.checkReferences()
	return s.learned()
}

// collect deletes unused objects until stop is closed and the unused data set was deleted. Collections fail
// while the host is replaced.
func (s *storm) collect(stop <-chan struct{}) {
	deleted, ended, failed := 0, 0, 0
	for end := false; !end || deleted == 0 && !s.Failed(); {
		select {
		case <-stop:
			end = true
		default:
		}
		out, err := s.command(5, "store", "gc", "--older-than", stormAge, "--yes", "--json").Output()
		if err != nil {
			failed++
			if stderr := new(exec.ExitError); end && errors.As(err, &stderr) {
				s.Errorf("gc: %v\n%s", err, stderr.Stderr)
			}
			continue
		}
		ended++
		deleted += strings.Count(string(out), `"type":"garbage",`)
	}
	s.Logf("%d collections deleted %d objects, %d failed", ended, deleted, failed)
}

var playbookHash = regexp.MustCompile(`"playbook_hash":"([0-9a-f]{64})"`)

// checkReferences checks that everything to which a history refers is stored.
func (s *storm) checkReferences() {
	s.Helper()
	e := s.host
	if e == nil {
		e = s.open(s.dirs[0])
	}
	store, books := e.Artifacts, e.Books
	if s.host != nil {
		b, err := bucket.Open(s.Context(), s.store, nil)
		if err == nil {
			store, err = artifact.OpenShared(s.TempDir(), b)
		}
		if err == nil {
			books, err = playbook.OpenShared(s.TempDir(), b, e.Namespace())
		}
		if err != nil {
			s.Fatal(err)
		}
	}
	read := map[string]bool{}
	var check func(text []byte)
	check = func(text []byte) {
		for _, ref := range ace.RefsIn(text) {
			if read[ref.SHA256] {
				continue
			}
			read[ref.SHA256] = true
			content, err := store.Get(s.Context(), ref, 64<<20)
			if err != nil {
				s.Error(err)
			}
			check(content)
		}
		for _, m := range playbookHash.FindAllSubmatch(text, -1) {
			if hash := string(m[1]); !read[hash] {
				read[hash] = true
				if _, err := books.Get(s.Context(), hash); err != nil {
					s.Error(err)
				}
			}
		}
	}
	list, err := e.Client.ListWorkflow(s.Context(), &workflowservice.ListWorkflowExecutionsRequest{
		Namespace: e.Namespace(), PageSize: 1000})
	if err != nil {
		s.Fatal(err)
	}
	for _, info := range list.GetExecutions() {
		run := info.GetExecution()
		events := e.Client.GetWorkflowHistory(s.Context(), run.GetWorkflowId(), run.GetRunId(), false, 0)
		for events.HasNext() {
			event, err := events.Next()
			if err != nil {
				s.Fatal(err)
			}
			text, err := proto.Marshal(event)
			if err != nil {
				s.Fatal(err)
			}
			check(text)
		}
	}
	s.Logf("%d references in %d histories", len(read), len(list.GetExecutions()))
}

// stormed is a process that may be killed.
type stormed struct {
	*exec.Cmd
	ended <-chan error
}

func startStormed(t *testing.T, cmd *exec.Cmd) *stormed {
	t.Helper()
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
func (s *storm) learned() []string {
	list, err := s.command(5, "list", "--json").Output()
	if err != nil {
		s.Errorf("list: %v", err)
	}
	var lines []string
	for line := range strings.Lines(string(list)) {
		var r struct {
			ID         string `json:"task_id"`
			ExitStatus string `json:"exit_status"`
			Summary    struct{ Added, Updated, Removed, Tagged, Rejected int }
		}
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			s.Errorf("%q: %v", line, err)
		}
		data, _ := json.Marshal(r)
		lines = append(lines, string(data))
	}
	slices.Sort(lines)
	playbook, err := s.command(5, "playbook", "show", "k", "--json").Output()
	if err != nil {
		s.Errorf("playbook: %v", err)
	}
	return append(lines, string(playbook))
}
