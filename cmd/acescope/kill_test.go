package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"acescope/cmd/acescope/internal/admin"
	"acescope/engine/learning/model/llm/llmtest"
)

// proc is an acescope process whose standard output is read line by line.
type proc struct {
	*exec.Cmd
	out *bufio.Scanner
}

func startProc(t *testing.T, dir string, args ...string) *proc {
	t.Helper()
	return startProcWith(t, nil, dir, args...)
}

// startProcWith starts a process with further environment variables.
func startProcWith(t *testing.T, env []string, dir string, args ...string) *proc {
	t.Helper()
	cmd := exec.Command("acescope", append(args, "--data-dir", dir)...)
	cmd.Env = append(os.Environ(), env...)
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return &proc{cmd, bufio.NewScanner(pipe)}
}

// line holds the fields of the output of run and tail that the tests use.
type line struct {
	Type   string  `json:"type"`
	TaskID string  `json:"task_id"`
	Status string  `json:"status"`
	Tasks  int     `json:"tasks"`
	Cited  int     `json:"cited"`
	Effect float64 `json:"effect"`
}

// next reads lines until one has the type, and counts the runs in between.
func (p *proc) next(t *testing.T, kind string, runs map[string]int) line {
	t.Helper()
	for p.out.Scan() {
		var l line
		if err := json.Unmarshal(p.out.Bytes(), &l); err != nil {
			t.Fatalf("%q: %v", p.out.Text(), err)
		}
		if l.Type == "task" {
			runs[l.TaskID]++
			if l.Status != "completed" {
				t.Errorf("%s closed as %s", l.TaskID, l.Status)
			}
		}
		if l.Type == kind {
			return l
		}
	}
	t.Fatalf("no line of type %s: %v", kind, p.out.Err())
	return line{}
}

func (p *proc) kill9(t *testing.T) {
	t.Helper()
	if err := p.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for p.out.Scan() { // drain the output
	}
	_ = p.Wait()
}

func problemSet(t *testing.T, n int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "train.jsonl")
	if err := admin.WriteProblems(path, 7, n); err != nil {
		t.Fatal(err)
	}
	return path
}

func checkRuns(t *testing.T, runs map[string]int, n int) {
	t.Helper()
	if len(runs) != n {
		t.Errorf("%d tasks closed, want %d", len(runs), n)
	}
	for id, times := range runs {
		if times != 1 {
			t.Errorf("%s closed %d times", id, times)
		}
	}
}

// TestHostKilled kills the host during an experiment: the attached process takes over, and every task closes
// once.
func TestHostKilled(t *testing.T) {
	t.Parallel()
	dir, n := t.TempDir(), 25
	host := startProc(t, dir, "serve", "--json")
	host.next(t, "serve", nil)
	runs := map[string]int{}
	run := startProc(t, dir, "run", "--dataset", problemSet(t, n), "--experiment", "k", "--json")
	for len(runs) < 5 {
		run.next(t, "task", runs)
	}
	host.kill9(t)
	if sum := run.next(t, "summary", runs); sum.Tasks != n || sum.Status != "completed" {
		t.Errorf("summary %+v", sum)
	}
	checkRuns(t, runs, n)
}

// TestOnlyProcessKilled kills the only process: the next process continues the experiment.
func TestOnlyProcessKilled(t *testing.T) {
	t.Parallel()
	dir, n := t.TempDir(), 25
	runs := map[string]int{}
	run := startProc(t, dir, "run", "--dataset", problemSet(t, n), "--experiment", "k", "--json")
	for len(runs) < 5 {
		run.next(t, "task", runs)
	}
	run.kill9(t)
	seen := map[string]int{}
	tail := startProc(t, dir, "tail", "k", "--json")
	for len(seen) < n {
		tail.next(t, "task", seen)
	}
	checkRuns(t, seen, n)
	for id := range runs {
		if seen[id] == 0 {
			t.Errorf("%s closed before the kill and is lost", id)
		}
	}
}

// TestAblationKilled kills an ablation of 70 bullets on 200 items twice. No finished answer is repeated: at
// most the one in progress is. It is not parallel to the other tests that kill processes, which wait for
// heartbeats.
func TestAblationKilled(t *testing.T) {
	t.Parallel()
	const bullets, items = 70, 200
	killAt := []int{60, 260} // answers: in the evaluation, and in the trials
	kills := len(killAt)
	dir, files := t.TempDir(), t.TempDir()
	var book, set strings.Builder
	for i := range bullets {
		fmt.Fprintf(&book, "[r-%05d] helpful=0 harmful=0 :: rule%d of x: x+%d\n", i+1, i, i)
	}
	for i := range items {
		fmt.Fprintf(&set, "{\"context\": \"What is the rule%d of %d?\", \"target\": \"%d\"}\n", i%bullets,
			i+1, i+1+i%bullets)
	}
	for name, content := range map[string]string{"book.txt": "## RULES\n" + book.String(),
		"set.jsonl": set.String()} {
		if err := os.WriteFile(filepath.Join(files, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	answer := modelLearner(nil)
	var mu sync.Mutex
	asked := map[string]int{} // generator requests by playbook and task
	enough := make(chan struct{}, kills)
	models := llmtest.New(func(q llmtest.Request) llmtest.Reply {
		if roleOf(q) == "generator" {
			mu.Lock()
			asked[q.System+q.Last()]++
			if len(killAt) > 0 && len(asked) >= killAt[0] {
				killAt = killAt[1:]
				enough <- struct{}{}
			}
			mu.Unlock()
		}
		return answer(q)
	})
	t.Cleanup(models.Close)
	env := []string{"OPENAI_BASE_URL=" + models.URL + "/v1"}
	args := []string{"playbook", "ablate", filepath.Join(files, "book.txt"),
		"--dataset", filepath.Join(files, "set.jsonl"),
		"--provider", "openai", "--model", "m-1", "--experiment", "k", "--json"}
	for range kills {
		p := startProcWith(t, env, dir, args...)
		select {
		case <-enough:
		case <-time.After(time.Minute):
			t.Fatal("the ablation does not continue")
		}
		p.kill9(t)
		args = []string{"tail", "k", "--json"}
	}
	startProcWith(t, env, dir, args...).next(t, "summary", nil)
	shown := startProcWith(t, env, dir, "playbook", "effects", "k", "--json")
	for range bullets {
		if e := shown.next(t, "effect", nil); e.Effect != 1 || e.Cited < items/bullets {
			t.Errorf("%+v", e)
		}
	}
	repeated := 0
	for _, times := range asked {
		repeated += times - 1
	}
	if len(asked) != 2*items || repeated > kills {
		t.Errorf("%d answers, %d of them repeated", len(asked), repeated)
	}
}

// TestManyStartAtOnce starts several processes on a new data directory: one becomes the host, and all of them
// work.
func TestManyStartAtOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	hosting := 0
	var procs []*proc
	for range 4 {
		procs = append(procs, startProc(t, dir, "serve", "--json"))
	}
	for _, p := range procs {
		if !p.out.Scan() {
			t.Fatalf("a process exited: %v", p.out.Err())
		}
		var l admin.ServeLine
		if err := json.Unmarshal(p.out.Bytes(), &l); err != nil {
			t.Fatal(err)
		}
		if l.Mode == "embedded" {
			hosting++
		}
	}
	if hosting != 1 {
		t.Errorf("%d hosts, want 1", hosting)
	}
}
