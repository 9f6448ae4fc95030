package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	"go.temporal.io/sdk/temporal"

	"acescope/cmd/acescope/internal/admin"
	"acescope/cmd/acescope/internal/admin/contracttest"
	"acescope/engine/ace"
	"acescope/engine/temporal/searchattr"
)

// Variables that name what the tests of workers in other languages need.
const (
	pythonVar = "ACESCOPE_TEST_PYTHON"       // an interpreter with temporalio, default python3
	nodeVar   = "ACESCOPE_TEST_NODE_MODULES" // a directory node_modules with @temporalio/* and typescript
)

const examplesDir = "../../docs/examples/"

// foreignWorker is an example worker in another language, in a directory of its own.
type foreignWorker struct {
	name, queue, sdk string
	dir              string
	run              func(program string) []string // command line of one of its programs
	tests            []string                      // command line of its own tests, nil without the tools
}

// TestForeignWorkers runs the example workers of docs/examples next to an experiment of acescope on one
// server.
func TestForeignWorkers(t *testing.T) {
	t.Parallel()
	workers := []foreignWorker{}
	for name, prepare := range map[string]func(t *testing.T, dir string) foreignWorker{
		"python": pythonWorker, "typescript": typescriptWorker,
	} {
		dir := t.TempDir() // of the whole test
		t.Run(name+" is installed", func(t *testing.T) {
			workers = append(workers, prepare(t, dir))
		})
	}
	if len(workers) == 0 {
		return
	}
	const tasks = 20
	s := startForeign(t)
	own := startProc(t, s.dir, "run", "--dataset", problemSet(t, tasks), "--experiment", "own", "--json")
	for _, w := range workers {
		t.Run(w.name, func(t *testing.T) { s.check(t, w) })
	}
	runs := map[string]int{}
	if sum := own.next(t, "summary", runs); sum.Tasks != tasks || sum.Status != "completed" {
		t.Errorf("acescope's own experiment: %+v", sum)
	}
	checkRuns(t, runs, tasks)
}

func pythonWorker(t *testing.T, dir string) foreignWorker {
	python := cmp.Or(os.Getenv(pythonVar), "python3")
	has := func(module string) bool { return exec.Command(python, "-c", "import "+module).Run() == nil }
	if !has("temporalio") {
		t.Skipf("%s with temporalio is not installed; %s names another interpreter", python, pythonVar)
	}
	if err := os.CopyFS(dir, os.DirFS(examplesDir+"python")); err != nil {
		t.Fatal(err)
	}
	w := foreignWorker{name: "python", queue: "ace-python", sdk: "temporal-python", dir: dir}
	w.run = func(program string) []string { return []string{python, program + ".py"} }
	if has("pytest") {
		w.tests = []string{python, "-m", "pytest", "-q", "-p", "no:cacheprovider"}
	}
	return w
}

func typescriptWorker(t *testing.T, dir string) foreignWorker {
	from := examplesDir + "typescript/"
	modules, err := filepath.Abs(cmp.Or(os.Getenv(nodeVar), from+"node_modules"))
	if err == nil {
		_, err = os.Stat(filepath.Join(modules, "@temporalio", "worker"))
	}
	if _, missing := exec.LookPath("node"); errors.Join(err, missing) != nil {
		t.Skipf("node with @temporalio/worker is not installed; %s names a directory node_modules", nodeVar)
	}
	copied := os.CopyFS(filepath.Join(dir, "src"), os.DirFS(from+"src"))
	for _, name := range []string{"package.json", "tsconfig.json"} {
		content, err := os.ReadFile(from + name)
		copied = errors.Join(copied, err, os.WriteFile(filepath.Join(dir, name), content, 0o600))
	}
	if err := errors.Join(copied, os.Symlink(modules, filepath.Join(dir, "node_modules"))); err != nil {
		t.Fatal(err)
	}
	tsc := exec.Command(filepath.Join(modules, ".bin", "tsc"))
	tsc.Dir = dir
	if out, err := tsc.CombinedOutput(); err != nil {
		t.Fatalf("tsc: %v\n%s", err, out)
	}
	return foreignWorker{name: "typescript", queue: "ace-typescript", sdk: "temporal-typescript", dir: dir,
		run:   func(program string) []string { return []string{"node", "lib/" + program + ".js"} },
		tests: []string{"node", "--test", "lib/"}}
}

// foreignServer is an acescope process that hosts the server, and a client of it.
type foreignServer struct {
	dir    string
	client client.Client
	env    []string // of workers
}

func startForeign(t *testing.T) *foreignServer {
	t.Helper()
	s := &foreignServer{dir: t.TempDir(), env: append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1")}
	host := startProc(t, s.dir, "serve", "--print-env", "--json")
	var line admin.ServeLine
	if !host.out.Scan() || json.Unmarshal(host.out.Bytes(), &line) != nil {
		t.Fatalf("serve: %s", host.out.Text())
	}
	for k, v := range line.Env {
		s.env = append(s.env, k+"="+v)
	}
	lookup := envconfig.LoadClientOptionsRequest{EnvLookup: mapLookup(line.Env), DisableFile: true}
	options, err := envconfig.LoadClientOptions(lookup)
	if err != nil {
		t.Fatal(err)
	}
	if s.client, err = client.Dial(options); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.client.Close)
	return s
}

// mapLookup is the environment of a client.
type mapLookup map[string]string

func (m mapLookup) LookupEnv(name string) (string, bool) { v, ok := m[name]; return v, ok }

func (m mapLookup) Environ() (list []string) {
	for k, v := range m {
		list = append(list, k+"="+v)
	}
	return list
}

// command returns a command with the environment of workers.
func (s *foreignServer) command(w foreignWorker, args []string) *exec.Cmd {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir, cmd.Env = w.dir, s.env
	return cmd
}

// check runs tasks on a worker, reads them as a user would, and holds every payload against its schema.
func (s *foreignServer) check(t *testing.T, w foreignWorker) {
	if w.tests == nil {
		t.Log("pytest is not installed")
	} else if out, err := s.command(w, w.tests).CombinedOutput(); err != nil {
		t.Errorf("its own tests: %v\n%s", err, out)
	}
	var log bytes.Buffer
	worker := s.command(w, w.run("worker"))
	worker.Stdout, worker.Stderr = &log, &log
	if err := worker.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = worker.Process.Kill()
		_ = worker.Wait()
		if t.Failed() {
			t.Logf("the worker's output:\n%.4000s", log.String())
		}
	})
	r := s.task(t, w, "What is 3 dozen?", new("36"))
	if r.Verdict != ace.Wrong || r.Answer != "3" || r.Bullets != 1 || r.Seq != 1 {
		t.Errorf("the first task: %+v", r)
	}
	r = s.task(t, w, "What is 5 dozen?", new("60"))
	if r.Verdict != ace.Correct || r.Answer != "60" || r.Seq != 2 || r.Summary.Tagged != 1 {
		t.Errorf("the second task: %+v", r)
	}
	s.checkShow(t, w, r.TaskID)
	s.checkHistory(t, r.TaskID)
	s.checkFailure(t, w)
	s.checkReport(t, w)
}

// task starts a task on a worker and returns its result.
func (s *foreignServer) task(t *testing.T, w foreignWorker, prompt string, label *string) (r ace.TaskResult) {
	t.Helper()
	run := s.start(t, w, prompt, label)
	if err := run.Get(t.Context(), &r); err != nil {
		t.Fatal(err)
	}
	return r
}

func (s *foreignServer) start(t *testing.T, w foreignWorker, prompt string,
	label *string) client.WorkflowRun {
	t.Helper()
	id := fmt.Sprintf("%s-%x", w.name, prompt)
	in := ace.TaskInput{TaskID: id, Prompt: prompt, Adapter: ace.Online, ExperimentID: w.name, DatasetID: "d",
		Provider: w.name, Model: "lookup", Label: label, Branch: w.name}
	run, err := s.client.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: ace.WorkflowID(id),
		TaskQueue: w.queue, TypedSearchAttributes: searchattr.Task(in)}, ace.TaskWorkflow, in)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// acescope runs a command and returns its standard output.
func (s *foreignServer) acescope(t *testing.T, exit int, args ...string) string {
	t.Helper()
	cmd := exec.Command("acescope", append(args, "--data-dir", s.dir)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != exit {
		t.Errorf("acescope %v: %v, want exit code %d\n%s%s", args, err, exit, out, &stderr)
	}
	return string(out)
}

// contains reports the words that a text lacks.
func contains(t *testing.T, what, text string, words ...string) {
	t.Helper()
	for _, word := range words {
		if !strings.Contains(text, word) {
			t.Errorf("%s lacks %q:\n%s", what, word, text)
		}
	}
}

// checkShow reads the second task by commands.
func (s *foreignServer) checkShow(t *testing.T, w foreignWorker, task string) {
	t.Helper()
	contains(t, "list", s.acescope(t, 0, "list", "-q", fmt.Sprintf("ExperimentId = %q", w.name)),
		"completed", "✓ correct", "✗ wrong", "+1", "#1")
	contains(t, "show", s.acescope(t, 0, "show", task),
		"completed  correct", "generator  done", "reflector  done", "persist    done", "multiply by 12",
		"accepted TAG", `multiply {"amount":5,"factor":12} → 60`)
	contains(t, "tail", s.acescope(t, 0, "tail", task), "multiply", "correct")
	contains(t, "verify", s.acescope(t, 1, "replay", "verify", task), "unverified", "decided by "+w.sdk)
	contains(t, "experiment list", s.acescope(t, 0, "experiment", "list"), w.name+" ", "2/2", "50.0%")
	contains(t, "experiment show", s.acescope(t, 0, "experiment", "show", w.name, "--tasks"),
		"no experiment workflow, only the tasks", "playbook 1 bullet,", "2 accepted", "60")
	contains(t, "playbook", s.acescope(t, 0, "playbook", "show", w.name), "helpful=1", "1 dozen = 12")
}

// checkHistory holds the payloads of a task, and its answers of queries, against the schemas of the contract.
func (s *foreignServer) checkHistory(t *testing.T, task string) {
	t.Helper()
	schemas, seen := contracttest.Compile(t, false), map[string]int{}
	check := func(name string, data []byte) {
		known, err := schemas.Check(name, data)
		if known {
			seen[name]++
		}
		if err != nil {
			t.Errorf("%s: %v\n%.500s", name, err, data)
		}
	}
	var events []*historypb.HistoryEvent
	iter := s.client.GetWorkflowHistory(t.Context(), ace.WorkflowID(task), "", false,
		enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for iter.HasNext() {
		e, err := iter.Next()
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, e)
	}
	contracttest.Payloads(t, events, func(_ int64, name string, data []byte) { check(name, data) })
	for _, query := range []string{ace.QueryPhase, ace.QuerySkills, ace.QueryDelta} {
		var raw json.RawMessage
		v, err := s.client.QueryWorkflow(t.Context(), ace.WorkflowID(task), "", query)
		if err == nil {
			err = v.Get(&raw)
		}
		if err != nil {
			t.Errorf("%s: %v", query, err)
		}
		check(query, raw)
	}
	for _, name := range []string{"AceTaskWorkflow.input", "AceTaskWorkflow.result", "run_generator.input",
		"run_curator.result", "persist_results.result", "read_playbook.result", ace.SignalToolEvent,
		"memo.ace_summary"} {
		if seen[name] == 0 {
			t.Errorf("the history has no %s; it has %v", name, seen)
		}
	}
}

// checkFailure checks that a step that fails after its retries fails the run.
func (s *foreignServer) checkFailure(t *testing.T, w foreignWorker) {
	t.Helper()
	run := s.start(t, w, "How long is a piece of string?", nil)
	if err := run.Get(t.Context(), nil); !isExecutionError(err) {
		t.Errorf("a task that cannot be solved: %v", err)
	}
	contains(t, "show", s.acescope(t, 0, "show", run.GetID()),
		"failed", "generator  failed", "skills     not reached", "BadPrompt")
}

func isExecutionError(err error) bool {
	_, ok := errors.AsType[*temporal.WorkflowExecutionError](err)
	return ok
}

// checkReport checks a run that happens outside Temporal.
func (s *foreignServer) checkReport(t *testing.T, w foreignWorker) {
	t.Helper()
	task := w.name + "-reported"
	cmd := s.command(w, append(slices.Clone(w.run("report")), task))
	if out, err := cmd.CombinedOutput(); err != nil && len(out) > 0 &&
		!bytes.Contains(out, []byte("PyGILState")) {
		t.Errorf("report: %v\n%s", err, out)
	}
	if err := s.client.GetWorkflow(t.Context(), ace.WorkflowID(task), "").Get(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	contains(t, "show", s.acescope(t, 0, "show", task), "completed  correct", "36  (correct)", "/review",
		`multiply {"amount":3,"factor":12} → 36`, "accepted ADD", "multiply by 12")
}
