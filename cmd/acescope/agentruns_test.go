package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/spf13/pflag"

	"acescope/cmd/acescope/internal/agents"
	"acescope/cmd/acescope/internal/cli"
	"acescope/engine/ace"
	"acescope/engine/tasks/run"
	"acescope/engine/tasks/runner"
)

const schemaOfCrawler = `{
	"type": "object", "required": ["url"], "$defs": {"level": {"$ref": "#/$defs/number"}, "number": {"type": "integer"}},
	"properties": {
		"url": {"type": "string"}, "depth": {"type": "integer"}, "wait": {"type": "number"}, "follow": {"type": "boolean"}, "zip": {"type": "string"},
		"patterns": {"type": "array", "items": {"type": "string"}}, "ports": {"type": "array", "items": {"type": "integer"}}, "any": {"type": "array"},
		"level": {"$ref": "#/$defs/level"}, "size": {"type": ["integer", "string", "null"]}, "mode": {"enum": ["fast", 1]},
		"one": {"const": true}, "either": {"anyOf": [{"type": "integer"}, {"type": "boolean"}]}, "opts": {"type": "object"}
	},
	"allOf": [{"properties": {"extra": {"type": "integer"}}}]
}`

// fakeRuns is a run.Service with one run.
type fakeRuns struct {
	asked  run.Request
	state  run.State
	result run.Result
	err    error // of Start
	empty  bool  // there is no run yet
	stop   run.StopRequest
	filter run.Filter
	rows   []run.Summary
	hang   func() // if set, Await calls it and waits for its context
}

func (f *fakeRuns) Blueprints(context.Context) ([]run.BlueprintInfo, error) {
	return []run.BlueprintInfo{{Name: "crawl", Type: run.Deterministic,
		Schema: json.RawMessage(schemaOfCrawler)}}, nil
}

func (f *fakeRuns) Start(_ context.Context, r run.Request) (run.Input, error) {
	f.asked = r
	return f.state.Input, f.err
}

func (f *fakeRuns) Resume(ctx context.Context, r run.Request) (run.Input, error) {
	return f.Start(ctx, r)
}

func (f *fakeRuns) State(_ context.Context, id string) (run.State, error) {
	if f.empty || id != f.state.Input.RunID && id != f.state.Input.SessionID {
		return run.State{}, fmt.Errorf("%w: %s", run.ErrNotFound, id)
	}
	return f.state, nil
}

func (f *fakeRuns) Await(ctx context.Context, _ string) (run.Result, error) {
	if f.hang != nil {
		f.hang()
		<-ctx.Done()
		return run.Result{}, ctx.Err()
	}
	return f.result, nil
}

func (f *fakeRuns) Stop(_ context.Context, _ string, r run.StopRequest) (run.State, error) {
	f.stop = r
	return f.state, nil
}

func (f *fakeRuns) List(_ context.Context, q run.Filter) ([]run.Summary, error) {
	f.filter = q
	return f.rows, nil
}

// files are artifacts by their digest.
type files map[string]string

func (s files) Open(_ context.Context, ref ace.Ref) (io.ReadCloser, error) {
	data, ok := s[ref.SHA256]
	if !ok {
		return nil, errors.New("artifact not found")
	}
	return io.NopCloser(strings.NewReader(data)), nil
}

func (s files) Path(_ context.Context, ref ace.Ref) (string, error) {
	return "/data/" + ref.SHA256, nil
}

// newRunClient returns a client of a fake service, and its outputs.
func newRunClient(f *fakeRuns, json bool) (client *agents.RunClient, out, err *bytes.Buffer) {
	out, err = &bytes.Buffer{}, &bytes.Buffer{}
	return &agents.RunClient{Service: f, Artifacts: files{}, App: &cli.App{Out: out, Err: err, JSON: json}},
		out, err
}

func crawlRun() *fakeRuns {
	code := 0
	at := time.Date(2026, 11, 21, 18, 0, 0, 0, time.UTC)
	f := &fakeRuns{
		state: run.State{Input: run.Input{RunID: "r-1", SessionID: "ses_1", Type: run.ExecuteTask,
			TaskName: "crawl", Mode: run.Sync, CreatedAt: at, By: "me",
			Requirements: runner.Requirements{ExecutorType: "deterministic", Tags: []string{"web"}}},
			Status: run.Running, Try: 2,
			Claim: &runner.Claim{RunnerID: "lnch_2",
				Capabilities: runner.Capabilities{ExecutorTypes: []string{"deterministic"}}},
			ProgramStart: &run.ProgramStart{PID: 7, At: at},
			Moves:        []run.MoveRecord{{Runner: "lnch_1", Reason: "it was lost"}}, Notified: "none",
			TimeoutAt: at.Add(time.Hour)},
		result: run.Result{RunID: "r-1", SessionID: "ses_1", Status: run.Completed,
			Output: json.RawMessage(`{"pages":3}`), OutputIs: "json", Stdout: "{\"pages\":3}\n",
			Stderr:   "3 pages\n",
			ExitCode: &code, DurationSeconds: 1.25, StartedAt: at, Runner: "lnch_2"},
		rows: []run.Summary{{RunID: "r-1", SessionID: "ses_1", Type: run.ExecuteTask, AgentName: "crawl",
			Status: run.Completed, CreatedAt: at, EndedAt: at.Add(2 * time.Second), RunnerID: "lnch_2"},
			{RunID: "r-0", SessionID: "ses_0", Type: run.StartSession, AgentName: "wr\x1b[31miter",
				Status: run.Pending, CreatedAt: at, ParentSessionID: "ses_p"}},
	}
	return f
}

// checkSchema checks that each line of a command's output matches its schema.
func checkSchema(t *testing.T, command, out string) {
	t.Helper()
	s, err := compiled(command, true)
	if err != nil {
		t.Fatal(err)
	}
	for l := range strings.SplitSeq(strings.TrimSuffix(out, "\n"), "\n") {
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(l))
		if err == nil {
			err = s.Validate(v)
		}
		if err != nil {
			t.Errorf("%s: %v\n%s", command, err, l)
		}
	}
}

func TestAgentStart(t *testing.T) {
	f := crawlRun()
	client, out, errs := newRunClient(f, false)
	flags, err := parseRunFlags("--param", "url=x", "--param", "depth=2")
	if err != nil {
		t.Fatal(err)
	}
	r, err := flags.Request(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r.AgentName = "crawl"
	if err := client.StartRun(t.Context(), r, flags); err != nil {
		t.Fatal(err)
	}
	if string(f.asked.Parameters) != `{"depth":2,"url":"x"}` || f.asked.Mode != run.Sync {
		t.Errorf("%+v", f.asked)
	}
	if out.String() != "{\"pages\":3}\n" ||
		errs.String() != "acescope: run r-1 of crawl started in session ses_1\n3 pages\n" {
		t.Errorf("%q, %q", out, errs)
	}

	client, out, errs = newRunClient(f, true)
	if err := client.StartRun(t.Context(), r, flags); err != nil {
		t.Fatal(err)
	}
	checkSchema(t, "agent start", out.String())
	if strings.Count(out.String(), "\n") != 2 || errs.Len() > 0 {
		t.Errorf("%q, %q", out, errs)
	}

	// Without waiting, only the ids are written.
	client, out, errs = newRunClient(f, false)
	f.state.Input.Mode = run.AsyncPoll
	if err := client.StartRun(t.Context(), run.Request{AgentName: "crawl"}, agents.RunFlags{}); err != nil {
		t.Fatal(err)
	}
	if out.String() != "run r-1 of crawl started in session ses_1\n" || errs.Len() > 0 {
		t.Errorf("%q, %q", out, errs)
	}
}

func TestAgentStartFails(t *testing.T) {
	f := crawlRun()
	code := 3
	f.result.Status, f.result.Reason, f.result.Error, f.result.ExitCode = run.Failed, run.ExitCode,
		"the program ended with code 3", &code
	client, out, _ := newRunClient(f, false)
	err := client.StartRun(t.Context(), run.Request{AgentName: "crawl"}, agents.RunFlags{})
	if cli.ExitCode(err) != cli.ExitFailed ||
		err.Error() != "run r-1 failed: the program ended with code 3" || out.String() != "{\"pages\":3}\n" {
		t.Errorf("%v, %q", err, out)
	}
	client, out, _ = newRunClient(f, true)
	if err := client.StartRun(t.Context(), run.Request{AgentName: "crawl"},
		agents.RunFlags{}); cli.ExitCode(err) != cli.ExitFailed {
		t.Errorf("%v", err)
	}
	checkSchema(t, "agent start", out.String())
	for refused, code := range map[error]int{run.ErrBadRequest: cli.ExitUsage,
		run.ErrNoBlueprint: cli.ExitNotFound, run.ErrNotFound: cli.ExitNotFound,
		run.ErrOver: cli.ExitFailed} {
		f.err = fmt.Errorf("it is so: %w", refused)
		if err := agents.RunError(client.StartRun(t.Context(), run.Request{AgentName: "crawl"},
			agents.RunFlags{})); cli.ExitCode(err) != code {
			t.Errorf("%v: exit code %d, want %d", err, cli.ExitCode(err), code)
		}
	}
}

func TestAgentStartInterrupted(t *testing.T) {
	f := crawlRun()
	ctx, cancel := context.WithCancel(t.Context())
	f.hang = cancel
	client, _, errs := newRunClient(f, false)
	err := client.StartRun(ctx, run.Request{AgentName: "crawl"}, agents.RunFlags{})
	if cli.ExitCode(err) != cli.ExitInterrupted ||
		!strings.Contains(errs.String(),
			`run r-1: the run continues; wait for it with "acescope wait r-1", stop it with "acescope cancel r-1"`+"\n") {
		t.Errorf("%v, %q", err, errs)
	}
}

// The artifact with the complete output replaces the shortened one. If it is on another machine, the user is
// told.
func TestAgentResultArtifact(t *testing.T) {
	f := crawlRun()
	f.result.StdoutRef = &ace.Ref{SHA256: "a", Size: 20}
	client, out, errs := newRunClient(f, false)
	client.Artifacts = files{"a": "the whole\x1b[31m\nof it"}
	if err := client.WriteResult(t.Context(), f.state.Input, f.result); err != nil ||
		out.String() != "the whole\x1b[31m\nof it" {
		t.Errorf("%v, %q", err, out)
	}
	client, out, errs = newRunClient(f, false)
	if err := client.WriteResult(t.Context(), f.state.Input, f.result); err != nil ||
		out.String() != f.result.Stdout ||
		!strings.Contains(errs.String(), "only the beginning and the end are shown") {
		t.Errorf("%v, %q, %q", err, out, errs)
	}
	// JSON has the complete output.
	client, out, _ = newRunClient(f, true)
	client.Artifacts = files{"a": "the whole", "b": `{"n":[1]}`}
	f.result.Output, f.result.OutputRef = nil, &ace.Ref{SHA256: "b", Size: 9}
	if err := client.WriteResult(t.Context(), f.state.Input, f.result); err != nil ||
		!strings.Contains(out.String(),
			`"output":{"n":[1]},"output_ref":{"sha256":"b","size":9},"output_is":"json"`) {
		t.Errorf("%v, %s", err, out)
	}
	checkSchema(t, "show", out.String())
	// An agent's answer ends with a line break.
	client, out, _ = newRunClient(f, false)
	if err := client.WriteResult(t.Context(), run.Input{RunID: "r-2", Type: run.StartSession},
		run.Result{Status: run.Completed, Output: json.RawMessage(`"done\nso"`)}); err != nil ||
		out.String() != "done\nso\n" {
		t.Errorf("%v, %q", err, out)
	}
}

func TestAgentResult(t *testing.T) {
	f := crawlRun()
	client, out, _ := newRunClient(f, false)
	if err := client.Result(t.Context(), "r-1"); err == nil ||
		!strings.Contains(err.Error(),
			`run r-1 has not ended, it is running: wait for it with "acescope wait r-1"`) {
		t.Errorf("%v", err)
	}
	f.state.Status, f.state.Result = run.Stopped, &f.result
	f.result.Status, f.result.Error = run.Stopped, "by you"
	if err := client.Result(t.Context(), "r-1"); err == nil || err.Error() != "run r-1: by you" ||
		out.String() != f.result.Stdout {
		t.Errorf("%v, %q", err, out)
	}
	if err := agents.RunError(client.Result(t.Context(), "r-9")); cli.ExitCode(err) != cli.ExitNotFound {
		t.Errorf("%v", err)
	}
}

func TestAgentResume(t *testing.T) {
	f := crawlRun()
	client, _, _ := newRunClient(f, false)
	for id, want := range map[string]string{"r-1": "ses_1", "ses_1": "ses_1",
		"ses_of-no-run": "ses_of-no-run"} {
		if err := client.ResumeRun(t.Context(), id, run.Request{Prompt: "p"},
			agents.RunFlags{}); err != nil || f.asked.SessionID != want {
			t.Errorf("%s: %v, %+v", id, err, f.asked)
		}
	}
}

// parseRunFlags parses the flags of agent start.
func parseRunFlags(args ...string) (f agents.RunFlags, err error) {
	fs := pflag.NewFlagSet("start", pflag.ContinueOnError)
	f.StartFlags(fs)
	err = fs.Parse(args)
	return f, err
}

func parseRequest(args ...string) (run.Request, error) {
	f, err := parseRunFlags(args...)
	if err != nil {
		return run.Request{}, err
	}
	return f.Request(context.Background())
}

func TestRunRequest(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return "@" + path
	}
	r, err := parseRequest("--prompt", write("p", "do it\n"), "--project-dir", "x", "--require-tag", "a")
	if err != nil || r.Prompt != "do it\n" || !filepath.IsAbs(r.ProjectDir) || r.Requirements.Tags[0] != "a" {
		t.Errorf("%+v, %v", r, err)
	}
	if r, err := parseRequest("--detach"); err != nil || r.Mode != run.AsyncPoll {
		t.Errorf("%+v, %v", r, err)
	}
	if r, err := parseRequest("--match-within", "1m30s"); err != nil || r.MatchWithin != 90 {
		t.Errorf("%+v, %v", r, err)
	}
	for want, args := range map[string][]string{
		"must be one of sync, async_poll, async_callback": {"--mode", "later"},
		"needs a session to notify":                       {"--mode", "async_callback"},
		`argument "../x" for "--session"`:                 {"--session", "../x"},
		`argument "a/b" for "--run-id"`:                   {"--run-id", "a/b"},
		`argument "-1s" for "--match-within"`:             {"--match-within", "-1s"},
		"such as 90s or 5m":                               {"--match-within", "300"},
		"the input is empty":                              {"--prompt", write("e", " \n")},
		"at most 100,000 are allowed":                     {"--prompt", strings.Repeat("é", 100_001)},
		"longer than 400,000 bytes": {"--prompt",
			write("l", strings.Repeat("x", 500_000))},
		"no such file": {"--prompt", "@" + filepath.Join(dir, "none")},
	} {
		if _, err := parseRequest(args...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", want, err)
		}
	}
}
