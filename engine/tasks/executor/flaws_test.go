//go:build unix

package executor

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"acescope/engine/tasks/blueprint"
	"acescope/engine/tasks/run"
)

// Each test checks that a flaw of document 004 is fixed, from the files of a blueprint to the
// program that runs. docs/design/documents.md lists the flaws.

// read reads a blueprint with the name x from its files.
func read(t *testing.T, files map[string]string) run.Blueprint {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "x")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	b, err := blueprint.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	return b.Blueprint
}

// program returns a blueprint with the given fields in its agent.json.
func program(t *testing.T, fields string) run.Blueprint {
	t.Helper()
	return read(t, map[string]string{blueprint.AgentFile: `{"name":"x","description":"d","type":"deterministic",` + fields + `}`})
}

func (h *fixture) execute(b run.Blueprint, parameters string) run.Result {
	h.t.Helper()
	return h.Run(h.t.Context(), Job{RunID: "r1", SessionID: "ses_1", ProjectDir: h.work,
		Parameters: json.RawMessage(parameters), Blueprint: b})
}

// prints is a command that prints each argument in brackets, one per line.
const prints = `"command":"sh -c 'for a in \"$@\"; do echo \"[$a]\"; done' sh"`

// TestQuotingIsKept: command.split() treated quotes as letters.
func TestQuotingIsKept(t *testing.T) {
	h := newFixture(t, nil)
	r := h.execute(program(t, `"command":"printf '%s|' 'a b' \"c  d\" e\\ f ''"`), `{}`)
	if r.Status != run.Completed || r.Stdout != "a b|c  d|e f||" {
		t.Errorf("%s %s %q", r.Status, r.Error, r.Stdout)
	}
}

// TestNoFlagIsInjected: a value or a name could be a flag.
func TestNoFlagIsInjected(t *testing.T) {
	h := newFixture(t, nil)
	b := program(t, prints+`,"parameter_strategy":"args"`)
	r := h.execute(b, `{"a":"--evil","b":"x --y","c":["-r","-f"],"d":"two\nlines"}`)
	if r.Status != run.Completed ||
		r.Stdout != "[--a=--evil]\n[--b=x --y]\n[--c=-r]\n[--c=-f]\n[--d=two\nlines]\n" {
		t.Errorf("%s %s %q", r.Status, r.Error, r.Stdout)
	}
	for _, name := range []string{"-evil", "--evil", "a=b", "a b", "", "a\u0000"} {
		params, err := json.Marshal(map[string]any{name: "x"})
		if err != nil {
			t.Fatal(err)
		}
		if r := h.execute(b, string(params)); r.Status != run.Failed || r.Stdout != "" {
			t.Errorf("%q: %s %q", name, r.Status, r.Stdout)
		}
	}
}

// TestFalseAndNullAreOmitted: False became `--v False`, and None `--n None`.
func TestFalseAndNullAreOmitted(t *testing.T) {
	h := newFixture(t, nil)
	r := h.execute(program(t, prints+`,"parameter_strategy":"args"`),
		`{"v":false,"n":null,"y":true,"s":"False"}`)
	if r.Status != run.Completed || r.Stdout != "[--y]\n[--s=False]\n" {
		t.Errorf("%s %s %q", r.Status, r.Error, r.Stdout)
	}
}

// TestEnvAndFile: the strategies env and file were only mentioned.
func TestEnvAndFile(t *testing.T) {
	h := newFixture(t, nil)
	const params = `{"s":"a b\nc","n":1.50,"l":["x",{"y":[]}],"o":{"k":null},"z":null}`
	r := h.execute(program(
		t, `"command":"sh -c 'echo \"$PARAM_S|$PARAM_N|$PARAM_L|$PARAM_O|${PARAM_Z-unset}\"'","parameter_strategy":"env"`), params)
	if r.Stdout != "a b\nc|1.50|[\"x\",{\"y\":[]}]|{\"k\":null}|unset\n" {
		t.Errorf("env: %s %s %q", r.Status, r.Error, r.Stdout)
	}
	r = h.execute(program(t, `"command":"cat {parameters_file}","parameter_strategy":"file"`), params)
	if string(r.Output) != params {
		t.Errorf("file: %s %s %s", r.Status, r.Error, r.Output)
	}
}

// TestNoVariableIsOverridden: a parameter could set PATH or LD_PRELOAD.
func TestNoVariableIsOverridden(t *testing.T) {
	h := newFixture(t, nil)
	r := h.execute(program(
		t, `"command":"sh -c 'echo \"$PATH|${LD_PRELOAD-none}|${ld_preload-none}|$PARAM_PATH\"'","parameter_strategy":"env"`),
		`{"PATH":"/evil","LD_PRELOAD":"/evil.so","ld-preload":"x"}`)
	if r.Status == run.Completed {
		t.Errorf("two parameters are one variable: %q", r.Stdout)
	}
	r = h.execute(program(
		t, `"command":"sh -c 'echo \"$PATH|${LD_PRELOAD-none}|$PARAM_PATH\"'","parameter_strategy":"env"`),
		`{"PATH":"/evil","LD_PRELOAD":"/evil.so"}`)
	if r.Status != run.Completed || r.Stdout != os.Getenv("PATH")+"|none|/evil\n" {
		t.Errorf("%s %s %q", r.Status, r.Error, r.Stdout)
	}
}

// TestStrategyIsInTheInvocation: the invocation and the resolved blueprint lacked the strategy.
func TestStrategyIsInTheInvocation(t *testing.T) {
	in, err := ParseInvocation(
		[]byte(`{"schema_version":"2.1","mode":"execute","session_id":"ses_1","parameters":{"a":1},
		"task_blueprint":{"name":"x","type":"deterministic","command":"echo","parameter_strategy":"args"}}`))
	if err != nil || in.Task == nil || in.Task.Strategy != run.Args {
		t.Fatalf("%+v, %v", in, err)
	}
	if again := roundTrip(t, in); again.Task.Strategy != run.Args {
		t.Errorf("%+v", again.Task)
	}
	if b := program(t, prints+`,"parameter_strategy":"env"`); b.Strategy != run.Env {
		t.Errorf("%+v", b)
	}
}

// TestCommandFileIsRun: agent.command.sh was listed, but not read.
func TestCommandFileIsRun(t *testing.T) {
	h := newFixture(t, nil)
	b := read(t, map[string]string{
		blueprint.AgentFile:   `{"name":"x","description":"d","type":"deterministic","parameter_strategy":"args"}`,
		blueprint.CommandFile: "#!/bin/sh\necho \"ran with $1\"\n",
	})
	if r := h.execute(b, `{"a":"b c"}`); r.Status != run.Completed || r.Stdout != "ran with --a=b c\n" {
		t.Errorf("%s %s %q", r.Status, r.Error, r.Stdout)
	}
}

// TestPipesDoNotBlock: writing all input before reading output blocks if the program does the
// same.
func TestPipesDoNotBlock(t *testing.T) {
	h := newFixture(t, nil)
	big := `{"x":"` + strings.Repeat("y", 250_000) + `"}`
	r := h.execute(program(
		t, `"command":"sh -c 'head -c 2000000 /dev/zero | tr \"\\\\0\" z; echo; wc -c; echo end >&2'"`), big)
	if r.Status != run.Completed || !strings.HasSuffix(strings.TrimSpace(r.Stdout), "250009") ||
		r.Stderr != "end\n" {
		t.Errorf("%s %s …%q %q", r.Status, r.Error, r.Stdout[max(0, len(r.Stdout)-40):], r.Stderr)
	}
}

// TestTimeoutEndsTheGroup: a timeout ended the program only, and its status was undefined.
func TestTimeoutEndsTheGroup(t *testing.T) {
	h := newFixture(t, func(o *Options) { o.Grace = 200 * time.Millisecond })
	b := program(t, `"command":"sh -c 'sleep 1000 & echo $! > child; wait'","timeout_seconds":1`)
	r := h.execute(b, `{}`)
	if r.Status != run.Failed || r.Reason != run.Timeout || r.ExitCode != nil {
		t.Errorf("%+v", r)
	}
	pid, err := os.ReadFile(filepath.Join(h.work, "child"))
	if err != nil {
		t.Fatal(err)
	}
	dead(t, string(pid))
}

// TestEveryProgramHasATimeout: without timeout_seconds there was no limit.
func TestEveryProgramHasATimeout(t *testing.T) {
	if got := (Job{Blueprint: program(t, prints)}).timeout(); got != run.DefaultTimeout*time.Second {
		t.Errorf("%s", got)
	}
}

// TestEmptyIsNotMissing: {} and missing parameters were the same.
func TestEmptyIsNotMissing(t *testing.T) {
	h := newFixture(t, nil)
	if r := h.execute(program(t, `"command":"cat"`), `{}`); r.Status != run.Completed || r.Stdout != "{}\n" {
		t.Errorf("%s %s %q", r.Status, r.Error, r.Stdout)
	}
	const task = `"schema_version":"2.1","mode":"execute","session_id":"s","task_blueprint":{"name":"x","command":"cat"}`
	if _, err := ParseInvocation([]byte(`{` + task + `,"parameters":{}}`)); err != nil {
		t.Errorf("{}: %v", err)
	}
	if _, err := ParseInvocation([]byte(`{` + task + `}`)); err == nil ||
		!strings.Contains(err.Error(), "$.parameters: is missing") {
		t.Errorf("none: %v", err)
	}
}
