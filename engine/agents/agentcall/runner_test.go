package agentcall

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"acescope/engine/agents/agentcli"
	"acescope/engine/internal/process"
	"acescope/engine/store/artifact"
)

// TestResults checks the class of every scenario of every CLI, and that only calls that can
// succeed later are retried.
func TestResults(t *testing.T) {
	type want struct {
		class agentcli.Class
		retry bool
	}
	ok := want{agentcli.ClassOK, false}
	all := func(w want) map[agentcli.CLI]want {
		return map[agentcli.CLI]want{agentcli.Claude: w, agentcli.Codex: w, agentcli.Gemini: w,
			agentcli.OpenCode: w}
	}
	for step, wants := range map[string]map[agentcli.CLI]want{
		"say hello":                  all(ok),
		"tools":                      all(ok),
		"badtool":                    all(ok),
		"parallel":                   all(ok),
		"slow 3 1":                   all(ok),
		"garbage; unknown; say well": all(ok),
		"longline 9; say well":       all(ok),
		"big 20 10":                  all(ok),
		"noise 300; say well":        all(ok),
		"tworesults":                 all(ok),
		"children; say well":         all(ok),
		"partial":                    all(want{agentcli.ClassNoResult, true}),
		"noresult 0":                 all(want{agentcli.ClassNoResult, true}),
		"kill":                       all(want{agentcli.ClassKilled, true}),
		"notloggedin":                all(want{agentcli.ClassNotLoggedIn, false}),
		"overloaded":                 all(want{agentcli.ClassOverloaded, true}),
		"ratelimit":                  all(want{agentcli.ClassRateLimited, true}),
		"apierror":                   all(want{agentcli.ClassAPIError, false}),
		"servererror":                all(want{agentcli.ClassAPIError, true}),
		"usage":                      all(want{agentcli.ClassUsage, false}),
		"error":                      all(want{agentcli.ClassFailed, false}),
		"tooold": {agentcli.Claude: {agentcli.ClassTooOld, false},
			agentcli.Codex: {agentcli.ClassTooOld, false}},
		"denied": {agentcli.Claude: {agentcli.ClassDenied, false},
			agentcli.Codex: {agentcli.ClassDenied, false}},
		"refusal": {agentcli.Claude: {agentcli.ClassRefusal, false}},
		"maxturns": {agentcli.Claude: {agentcli.ClassMaxTurns, false},
			agentcli.Gemini: {agentcli.ClassMaxTurns, false}},
		"budget":    {agentcli.Claude: {agentcli.ClassBudget, false}},
		"maxtokens": {agentcli.Claude: {agentcli.ClassMaxTokens, false}},
		"say well; exit 3": {agentcli.Claude: ok, agentcli.Codex: ok, agentcli.Gemini: ok,
			agentcli.OpenCode: {agentcli.ClassNoResult, true}}, // only its exit code reports the failure
	} {
		for cli, w := range wants {
			t.Run(step+"/"+string(cli), func(t *testing.T) {
				t.Parallel()
				p := newPlace(t, cli)
				e := p.run(p.call("SCENARIO: "+step, 1))
				if e.ExitClass != string(w.class) || e.Retry != w.retry || e.Success != w.class.OK() {
					t.Errorf("class %s, retry %v, success %v; want %+v\n%s", e.ExitClass, e.Retry, e.Success,
						w, e.Error)
				}
				p.checkResult(e)
			})
		}
	}
}

// checkResult checks what holds for every result with a log.
func (p *place) checkResult(e *Result) {
	t := p.t
	t.Helper()
	if e.Success == (e.Error != "") || e.Error != "" && len(e.Error) < 10 ||
		strings.ContainsAny(e.Error, "\n\r") || len(e.Error) > 600 || e.Summary == "" {
		t.Errorf("error %q, summary %q", e.Error, e.Summary)
	}
	l, data := p.log(e)
	if !e.LogComplete || l.End == nil || l.End.Success != e.Success || l.End.ExitClass != e.ExitClass ||
		l.Events != e.Events || l.Header.ID == "" {
		t.Errorf("log %+v, %+v; result %+v", l.Header, l.End, e)
	}
	for line := range bytes.Lines(data) {
		if !json.Valid(line) {
			t.Errorf("invalid JSON line: %.200q", line)
		}
	}
	if l.Outcome.Text != e.Text {
		t.Errorf("text %.80q in the log, %.80q in the result", l.Outcome.Text, e.Text)
	}
}

func TestNotStarted(t *testing.T) {
	t.Parallel()
	p := newPlace(t, agentcli.Claude)
	p.SetVersion("1.9.9")
	old := p.run(p.call("hello", 1))
	p.SetVersion("2.1.329")
	q := newPlace(t, agentcli.Codex)
	if err := os.WriteFile(filepath.Join(t.TempDir(), "x"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		end   *Result
		class agentcli.Class
		say   string
	}{
		"too old": {old, agentcli.ClassTooOld, "claude 1.9.9 is too old; install 2.0.0 or newer"},
		"missing": {noAgents(t).Run(t.Context(),
			Call{CLI: agentcli.Gemini, Call: agentcli.Call{Instruction: "x", WorkingDir: p.dir}}),
			agentcli.ClassMissing, "gemini is not installed on this machine; to install it: "},
		"unknown CLI": {p.run(with(p.call("x", 1), func(c *Call) { c.CLI = "emacs" })), ClassBadInput,
			"use one of claude, codex, gemini, opencode"},
		"missing directory": {p.run(with(p.call("x", 1), func(c *Call) { c.WorkingDir = "/no/where" })),
			ClassBadInput, "working directory /no/where does not exist"},
		"relative": {p.run(with(p.call("x", 1), func(c *Call) { c.WorkingDir = "." })),
			ClassBadInput, "is not absolute"},
		"full permission": {p.run(with(p.call("x", 1), func(c *Call) { c.Permission = "full" })),
			ClassRefused, "full permission is not allowed by policy"},
		"unknown mode": {p.run(with(p.call("x", 1), func(c *Call) { c.Permission = "yolo" })),
			ClassRefused, "permission mode \"yolo\" is not supported"},
		"no instruction": {p.run(p.call("", 1)), ClassRefused, "the instruction is empty"},
		"bad session ID": {p.run(with(p.call("x", 1), func(c *Call) { c.Resume = "--help" })),
			ClassRefused, "invalid session ID"},
		"unsupported": {q.run(with(q.call("x", 1),
			func(c *Call) { c.AllowedTools = []string{"Bash"} })), ClassRefused,
			"allowing single tools is not supported"},
	} {
		e := c.end
		if e.ExitClass != string(c.class) || e.Retry != e.Elsewhere() || e.Success ||
			!strings.Contains(e.Error, c.say) || e.Log != nil {
			t.Errorf("%s: %+v; want %s, %q", name, e, c.class, c.say)
		}
	}
	if e := p.run(with(p.call("SCENARIO: say x", 1), func(c *Call) {
		c.Resume = "11111111-2222-4333-8444-555555555555"
	})); e.ExitClass != string(agentcli.ClassUnknownSession) || e.Retry {
		t.Errorf("unknown session: %+v", e)
	}
	id := p.run(p.call("SCENARIO: say x", 1)).SessionID
	if e := p.run(p.call("SCENARIO: say x", 1)); e.ExitClass != string(agentcli.ClassSessionInUse) ||
		e.Retry || !strings.Contains(e.Error, id) {
		t.Errorf("session in use: %+v", e)
	}
}

func with(c Call, change func(*Call)) Call {
	change(&c)
	return c
}

// TestWithheld checks that a runner which may not start agents leaves calls to another worker.
func TestWithheld(t *testing.T) {
	r := New(Options{DataDir: t.TempDir(), Withheld: "no agents here"})
	e := r.Run(t.Context(), Call{CLI: agentcli.Claude,
		Call: agentcli.Call{Instruction: "x", WorkingDir: t.TempDir()}})
	if e.Success || !e.Elsewhere() || e.Error != process.Hostname()+": no agents here" {
		t.Errorf("%+v", e)
	}
	if e := noAgents(t).Run(t.Context(), Call{CLI: "emacs"}); e.Elsewhere() || e.Retry {
		t.Errorf("%+v", e)
	}
}

// noAgents returns a runner whose agents are not installed.
func noAgents(t *testing.T) *Runner {
	dir := t.TempDir()
	store, err := artifact.Open(filepath.Join(dir, "artifacts"))
	if err != nil {
		t.Fatal(err)
	}
	agents := map[agentcli.CLI]Agent{}
	for _, cli := range agentcli.CLIs() {
		agents[cli] = Agent{Command: "acescope-no-such-" + string(cli)}
	}
	return New(Options{DataDir: dir, Artifacts: store, Agents: agents})
}

func TestProbe(t *testing.T) {
	p := newPlace(t, agentcli.OpenCode)
	in := p.Probe(t.Context(), agentcli.OpenCode)
	if in.Err != "" || in.Path != p.Binary() || in.Version.String() != "1.4.0" ||
		!strings.Contains(in.String(), "version 1.4.0") {
		t.Errorf("%+v: %s", in, in)
	}
	starts := len(p.Did("start"))
	p.Probe(t.Context(), agentcli.OpenCode)
	if again := len(p.Did("start")); again != starts {
		t.Errorf("the version is not cached: %d starts after %d", again, starts)
	}
	if in := noAgents(t).Probe(t.Context(), agentcli.Claude); in.Path != "" || in.OK() ||
		!strings.HasPrefix(in.String(), "claude is not installed on this machine") {
		t.Errorf("%+v: %s", in, in)
	}
}

// TestStopped checks that canceling and timing out end the agent and its process group.
func TestStopped(t *testing.T) {
	for step, what := range map[string]string{"hang": "hang", "ignoreterm": "hang",
		"children; hang": "hang"} {
		for _, cli := range agentcli.CLIs() {
			t.Run(step+"/"+string(cli), func(t *testing.T) {
				t.Parallel()
				p := newPlace(t, cli)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				done := make(chan *Result)
				c := p.call("SCENARIO: say before; "+step, 1)
				c.Progress = &Progress{}
				go func() { done <- p.Run(ctx, c) }()
				pid := p.Await(what, 1)[0].PID
				cancel()
				e := <-done
				if e.ExitClass != string(ClassCanceled) || e.Retry || e.Success ||
					e.LogPath != c.Progress.Now().LogPath {
					t.Errorf("%+v, %+v", e, c.Progress.Now())
				}
				if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
					t.Errorf("process %d still runs: %v", pid, err)
				}
				p.checkResult(e)
			})
		}
	}
	p := newPlace(t, agentcli.Claude)
	e := p.run(with(p.call("SCENARIO: say before; hang", 1), func(c *Call) {
		c.Timeout = 300 * time.Millisecond
	}))
	if e.ExitClass != string(agentcli.ClassTimedOut) || !e.Retry {
		t.Errorf("%+v", e)
	}
	p.checkResult(e)
}

// TestSecrets checks that no secret gets into a log, a result or an event.
func TestSecrets(t *testing.T) {
	const key = "plantedvalue-8f3a91c07d"
	t.Setenv("ANTHROPIC_API_KEY", key)
	p := newPlace(t, agentcli.Claude)
	for _, step := range []string{"env ANTHROPIC_API_KEY", "secret", "tool Write {\"content\":\"" + key +
		"\"}; say " + key} {
		var events bytes.Buffer
		c := p.call("SCENARIO: "+step, 1)
		c.ID += step
		c.OnEvent = func(e agentcli.Event) {
			line, err := json.Marshal(e)
			if err != nil {
				t.Error(err)
			}
			events.Write(line)
		}
		e := p.run(c)
		_, log := p.log(e)
		end, err := json.Marshal(e)
		if err != nil || !e.Success {
			t.Fatalf("%v, %+v", err, e)
		}
		for what, text := range map[string][]byte{"log": log, "result": end, "events": events.Bytes()} {
			for _, secret := range []string{key, "sk-ant-api03-AbCd", "AKIAQ7XJ4K2M5N8P3R6T",
				"abcDEF123456ghiJKL789012", "hunter2secret"} {
				if bytes.Contains(text, []byte(secret)) {
					t.Errorf("%s: %s is in the %s", step, secret, what)
				}
			}
		}
		if !bytes.Contains(log, []byte("[redacted:")) {
			t.Errorf("%s: nothing is redacted in the log", step)
		}
	}
}

// TestOrdinarySecrets checks that a log is readable if secrets are words that acescope itself writes
// into it, and that they are redacted elsewhere.
func TestOrdinarySecrets(t *testing.T) {
	t.Setenv("STORE_PASSWORD", "acescope")
	t.Setenv("SERVER_PASSWORD", "opencode")
	t.Setenv("PIN_KEY", "timed_out")
	t.Setenv("OTHER_KEY", "exit_class")
	p := newPlace(t, agentcli.OpenCode)
	e := p.run(with(p.call("SCENARIO: say acescope opencode exit_class; hang", 1), func(c *Call) {
		c.Timeout = 300 * time.Millisecond
	}))
	l, data := p.log(e)
	if l.Header.Provider != "opencode" || l.Header.ID == "" || l.End == nil || l.End.ExitClass != "timed_out" {
		t.Errorf("%+v, end %+v", l.Header, l.End)
	}
	const clean = "say [redacted:STORE_PASSWORD] [redacted:SERVER_PASSWORD] [redacted:OTHER_KEY]"
	if !strings.HasSuffix(l.Header.Instruction.Preview, clean+"; hang") ||
		bytes.Contains(data, []byte("say acescope")) {
		t.Errorf("%s", data)
	}
}

// TestEnvironment checks that an agent gets only permitted variables.
func TestEnvironment(t *testing.T) {
	t.Setenv("SOME_SETTING", "seen")
	for _, names := range [][]string{nil, {"SOME_*"}} {
		p := newPlace(t, agentcli.Claude)
		a := p.o.Agents[agentcli.Claude]
		a.Env = names
		p.o.Agents[agentcli.Claude] = a
		want := "SOME_SETTING="
		if names != nil {
			want += "seen"
		}
		if e := p.run(p.call("SCENARIO: env SOME_SETTING", 1)); e.Text != want {
			t.Errorf("%v: %q", names, e.Text)
		}
	}
}

// TestFullDisk checks that a full disk gives one failure of its own class and stops the agent.
func TestFullDisk(t *testing.T) {
	p := newPlace(t, agentcli.Claude)
	room := 3
	p.fault = func(path string) error {
		if room--; room < 0 {
			return &artifact.LogError{Path: path, Err: syscall.ENOSPC}
		}
		return nil
	}
	e := p.run(p.call("SCENARIO: say one; say two; say three; hang", 1))
	if e.ExitClass != string(ClassLogBroken) || e.Retry || e.LogComplete ||
		!strings.HasPrefix(e.Error, "the disk is full: the log logs/runs/wf%2F1/run/") {
		t.Errorf("%+v", e)
	}
	l, data := p.log(e)
	if l.End != nil || bytes.Count(data, []byte("\n")) != 3 {
		t.Errorf("%d lines, end %+v", bytes.Count(data, []byte("\n")), l.End)
	}
}

// TestWorkDir checks that the directory of a run has no percent signs, which OpenCode decodes, and
// that the directory of an earlier version is found.
func TestWorkDir(t *testing.T) {
	r := New(Options{DataDir: t.TempDir()})
	dir, err := r.WorkDir("ace/a=b%2F", "run 1")
	if err != nil || strings.Contains(dir, "%") || filepath.Base(dir) != "run=201" {
		t.Errorf("%s, %v", dir, err)
	}
	if again, err := r.WorkDir("ace/a=b%2F", "run 1"); err != nil || again != dir {
		t.Errorf("%s, %v", again, err)
	}
	if other, err := r.WorkDir("ace/a=b/", "run 1"); err != nil || other == dir {
		t.Errorf("%s, %v", other, err)
	}
	old := filepath.Join(r.o.DataDir, workDir, "ace%2Fold", "run-1")
	if err := os.MkdirAll(old, 0o700); err != nil {
		t.Fatal(err)
	}
	if found, err := r.WorkDir("ace/old", "run-1"); err != nil || found != old {
		t.Errorf("%s, %v", found, err)
	}
}
