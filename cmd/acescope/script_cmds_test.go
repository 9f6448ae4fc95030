package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"acescope/cmd/acescope/internal/cli"
	"acescope/cmd/acescope/internal/runs"
	"acescope/engine"
	"acescope/engine/ace"
	"acescope/engine/agents/observe/spool"
	"acescope/engine/agents/transcript"
	"acescope/engine/store/bucket/buckettest"
	"acescope/engine/temporal/codec/codectest"
	"acescope/engine/workflows"
)

// exits runs a command and checks its exit code and that it writes exactly one line to standard error:
// exits CODE COMMAND …
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND …")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		got = exit.ExitCode()
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d; standard error: %s", got, want, ts.ReadFile("stderr"))
	}
	if text := strings.TrimSuffix(ts.ReadFile("stderr"), "\n"); want != 0 &&
		(text == "" || strings.Contains(text, "\n")) {
		ts.Fatalf("standard error is not one line: %q", text)
	}
}

// save runs a command and writes its standard output to a file instead of the log: save FILE COMMAND …
func save(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: save FILE COMMAND …")
	}
	cmd := exec.Command(args[1], args[2:]...)
	cmd.Dir = ts.Getenv("WORK")
	out, err := cmd.Output()
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), out, 0o600))
}

// endPID kills the background process of a started line at the end of the script: endpid FILE
func endPID(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: endpid FILE")
	}
	var started runs.StartedLine
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[0])), &started))
	ts.Defer(func() {
		if p, err := os.FindProcess(started.PID); err == nil {
			_ = p.Kill()
		}
	})
}

// lineCount checks the number of lines in a file: lines N FILE
func lineCount(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: lines N FILE")
	}
	if got := strconv.Itoa(strings.Count(ts.ReadFile(args[1]), "\n")); got != args[0] {
		ts.Fatalf("%s has %s lines, want %s", args[1], got, args[0])
	}
}

// eventually runs a command until it succeeds, for at most a minute: eventually COMMAND …
func eventually(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: eventually COMMAND …")
	}
	deadline := time.Now().Add(time.Minute)
	for ts.Exec(args[0], args[1:]...) != nil {
		if time.Now().After(deadline) {
			ts.Fatalf("%v did not succeed within a minute: %s", args, ts.ReadFile("stderr"))
		}
		time.Sleep(100 * time.Millisecond) // each start of a command costs a tenth of a second of a processor
	}
}

// callHook appends the input of an agent's hook to the spool, as acescope-hook does: hook FILE
func callHook(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: hook FILE")
	}
	input := strings.ReplaceAll(ts.ReadFile(args[0]), "$WORK", ts.Getenv("WORK"))
	ts.Check(spool.Append(spool.Dir(ts.Getenv), spool.Hook, []byte(input)))
}

// listedUsage is a line of session list, session show and cost, reduced to the usage of a session.
type listedUsage struct {
	ID, Key, Agent string
	Tokens         transcript.Tokens
	CostUSD        float64 `json:"cost_usd"`
	Transcript     *struct{ ID, Path string }
	Engine         *struct{}
}

// sameUsage continues each transcript of an agent with usage in a session on the engine, and checks that all
// commands show the same tokens and cost for it: sameusage N, the number of these transcripts
func sameUsage(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: sameusage N")
	}
	lines := func(args ...string) (list []listedUsage) {
		ts.Check(ts.Exec("acescope", append(args, "--json")...))
		for line := range strings.Lines(ts.ReadFile("stdout")) {
			var l listedUsage
			ts.Check(json.Unmarshal([]byte(line), &l))
			list = append(list, l)
		}
		return list
	}
	want := map[string]listedUsage{} // by session on the engine
	for _, t := range lines("session", "list", "--transcripts") {
		if t.Tokens.Total() > 0 {
			id := t.Agent + "-" + strconv.Itoa(len(want))
			lines("session", "start", "--agent", t.Agent, "--resume", t.ID, "--id", id, "--dir", ".")
			want[id] = t
		}
	}
	if got := strconv.Itoa(len(want)); got != args[0] {
		ts.Fatalf("%s transcripts with usage", got)
	}
	check := func(what string, got []listedUsage, isLine func(listedUsage, string) bool) {
		for id, w := range want {
			i := slices.IndexFunc(got, func(l listedUsage) bool { return isLine(l, id) })
			if i < 0 || got[i].Tokens != w.Tokens || got[i].CostUSD != w.CostUSD {
				ts.Fatalf("%s has other usage of %s than %+v: %+v", what, id, w, got)
			}
		}
	}
	isSession := func(l listedUsage, id string) bool { return l.ID == id && l.Engine != nil }
	check("session list", lines("session", "list"), isSession)
	check("session list --engine", lines("session", "list", "--engine"), isSession)
	var shown, files []listedUsage
	for id, w := range want {
		shown = append(shown, lines("session", "show", id, "--summary")...)
		files = append(files, lines("session", "show", w.Transcript.Path, "--summary")...)
	}
	check("session show SESSION", shown, isSession)
	isFile := func(l listedUsage, id string) bool { return l.ID == want[id].ID }
	check("session show FILE", files, isFile)
	check("cost", lines("cost", "--by", "session"),
		func(l listedUsage, id string) bool { return l.Key == want[id].ID })
}

// up waits until there is a host in the script's data directory.
func up(ts *testscript.TestScript, neg bool, args []string) {
	deadline := time.Now().Add(time.Minute)
	path := ts.Getenv("XDG_DATA_HOME") + "/acescope/endpoint.json"
	for time.Now().Before(deadline) {
		if _, err := os.Stat(path); err == nil {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	ts.Fatalf("no host after a minute: %s", path)
}

// newCluster starts a server without workers, the cluster of later commands by its environment variables:
// cluster
func newCluster(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: cluster")
	}
	o := engine.Options{DataDir: ts.MkAbs("cluster"), Version: cli.BuildVersion(), Takeover: true}
	e, err := engine.Open(context.Background(), o)
	ts.Check(err)
	ts.Defer(func() { ts.Check(e.Close(context.Background())) })
	for _, v := range e.Node().Env() {
		ts.Setenv(v.Name, v.Value)
	}
}

// barereplay replays a file with the replayer of the Temporal SDK: barereplay FILE
func barereplay(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: barereplay FILE")
	}
	r := worker.NewWorkflowReplayer()
	r.RegisterWorkflowWithOptions(workflows.Task, workflow.RegisterOptions{Name: ace.TaskWorkflow})
	r.RegisterWorkflowWithOptions(workflows.Experiment,
		workflow.RegisterOptions{Name: ace.ExperimentWorkflow})
	ts.Check(r.ReplayWorkflowHistoryFromJSONFile(nil, ts.MkAbs(args[0])))
}

// codecServer starts a codec server that requires "Bearer s3cret" and sets a variable to its URL:
// codecserver VARIABLE
func codecServer(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: codecserver VARIABLE")
	}
	s := codectest.New(codectest.Cipher{Key: "k1"}, "Bearer s3cret")
	ts.Defer(s.Close)
	ts.Setenv(args[0], s.URL)
}

// s3Store starts an S3 store and sets a variable to its URL, and those of its credentials: s3 VARIABLE
func s3Store(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: s3 VARIABLE")
	}
	s, err := buckettest.NewS3()
	ts.Check(err)
	ts.Defer(s.Close)
	ts.Setenv(args[0], s.URL())
	for variable, value := range buckettest.Credentials() {
		ts.Setenv(variable, value)
	}
}

// taskOf sets a variable to the task id of the first line of a list: task VARIABLE FILE
func taskOf(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: task VARIABLE FILE")
	}
	first, _, _ := strings.Cut(ts.ReadFile(args[1]), "\n")
	var run struct {
		TaskID string `json:"task_id"`
	}
	ts.Check(json.Unmarshal([]byte(first), &run))
	ts.Setenv(args[0], run.TaskID)
}
