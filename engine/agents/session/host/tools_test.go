//go:build unix

package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.temporal.io/sdk/temporal"

	"acescope/engine/ace"
	"acescope/engine/agents/agentcli"
	"acescope/engine/agents/session"
	"acescope/engine/store/artifact"
)

func TestToolRequests(t *testing.T) {
	s := newStage(t, "claude")
	s.answer = func(_ context.Context, r session.ToolRequest) (session.ToolAnswer, error) {
		if r.Name == "Write" {
			return session.ToolAnswer{ID: r.ID, Action: session.Deny, Reason: "not here", By: "rule"}, nil
		}
		return session.ToolAnswer{ID: r.ID, Action: session.Allow, By: "person"}, nil
	}
	r := s.good(1, `SCENARIO: bash echo a; tool Write {"file_path":"/x"}; say end`)
	if len(s.asked) != 2 || s.asked[0].Name != "Bash" || s.asked[0].Turn != 1 || s.asked[0].Attempt != 1 ||
		s.asked[0].Served {
		t.Errorf("asked: %+v", s.asked)
	}
	if ran := s.agent.Did("tool"); len(ran) != 1 || ran[0].Tool != "Bash" || ran[0].ToolID != s.asked[0].ID {
		t.Errorf("ran: %+v", ran)
	}
	denied := false
	for _, o := range r.Messages {
		denied = denied || o.Kind == session.OutToolResult && o.Tool == "Write" && !*o.OK &&
			o.Text == "this call was denied by rule: not here"
	}
	if !denied {
		t.Errorf("messages: %+v", r.Messages)
	}
}

// TestInterruptPendingRequest interrupts a turn whose agent waits for an answer.
func TestInterruptPendingRequest(t *testing.T) {
	s := newStage(t, "claude")
	waits, gone := make(chan struct{}), make(chan struct{})
	s.answer = func(ctx context.Context, _ session.ToolRequest) (session.ToolAnswer, error) {
		close(waits)
		<-ctx.Done()
		close(gone)
		return session.ToolAnswer{}, ctx.Err()
	}
	p := s.begin(s.input(1, "SCENARIO: bash echo a"), 1)
	<-waits
	p.cancel(temporal.NewCanceledError())
	if r := p.wait(t); p.err != nil || r.Status != session.TurnInterrupted {
		t.Errorf("%+v, %v", r, p.err)
	}
	<-gone // the agent has withdrawn its request
}

func TestServedTools(t *testing.T) {
	s := newStage(t, "claude")
	if err := os.WriteFile(filepath.Join(s.work, "a.txt"), []byte("alpha"), 0o600); err != nil {
		t.Fatal(err)
	}
	in := s.input(1, `SCENARIO: tool mcp__acescope__read_file {"path":"a.txt"}; tool mcp__acescope__write_file {"path":"d/b.txt","content":"beta"}; `+
		`tool mcp__acescope__run_command {"command":"cat d/b.txt"}; tool mcp__acescope__read_file {"path":"../x"}; say end`)
	in.Served = ServedTools()
	r, err := s.run(in, 1)
	if err != nil || r.Status != session.TurnCompleted {
		t.Fatalf("%+v, %v", r, err)
	}
	var got []string
	for _, o := range r.Messages {
		if o.Kind == session.OutToolResult {
			got = append(got, fmt.Sprintf("%t %s", *o.OK, o.Text))
		}
	}
	want := []string{"true alpha", "true wrote 4 bytes to d/b.txt", "true beta",
		`false "../x" is outside of the working directory`}
	if strings.Join(got, "|") != strings.Join(want, "|") {
		t.Errorf("results: %q", got)
	}
	// The agent requests each call once.
	if len(s.asked) != 4 || len(s.agent.Did("host_tool")) != 4 {
		t.Errorf("asked %d times", len(s.asked))
	}
	for i, a := range s.asked {
		if !a.Served || a.ID != s.agent.Did("host_tool")[i].ToolID {
			t.Errorf("asked: %+v", a)
		}
	}
	s.calls.Range(func(id, _ any) bool {
		t.Errorf("call %v is still pending", id)
		return true
	})
}

// TestExecutesCallOnce checks that a call is executed once and only while the agent waits.
func TestExecutesCallOnce(t *testing.T) {
	s := newStage(t, "claude")
	s.calls.Store("c1", &pendingCall{args: json.RawMessage(`{"command":"echo x >> y"}`)})
	call := session.ToolCall{WorkingDir: s.work, ID: "c1", Name: "run_command"}
	if r, err := s.executeCall(t.Context(), call); err != nil || r.Error || r.Text != "x >> y\n" {
		t.Errorf("%+v, %v", r, err)
	}
	for _, id := range []string{"c1", "c2"} {
		call.ID = id
		var app *temporal.ApplicationError
		if _, err := s.executeCall(t.Context(), call); !errors.As(err, &app) || app.Type() != TypeCallLost ||
			!app.NonRetryable() {
			t.Errorf("%s: %v", id, err)
		}
	}
}

func TestToolsStayInWorkingDir(t *testing.T) {
	s := newStage(t, "claude")
	outside := t.TempDir()
	if err := errors.Join(os.WriteFile(filepath.Join(outside, "secret"), []byte("secret"), 0o600),
		os.Symlink(outside, filepath.Join(s.work, "out")), os.Symlink(filepath.Join(outside, "secret"),
			filepath.Join(s.work, "link")),
		os.Mkdir(filepath.Join(s.work, "dir"), 0o700), os.Symlink("dir", filepath.Join(s.work, "in")),
		os.WriteFile(filepath.Join(s.work, "dir", "f"), []byte("inside"), 0o600),
		os.Symlink("dir/f", filepath.Join(s.work, "flink")),
		syscall.Mkfifo(filepath.Join(s.work, "pipe"), 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"", "..", "../x", "a/../../x", "/etc/passwd",
		filepath.Join(s.work, "dir", "f"), "out/secret", "link", "pipe", "dir", ".",
		"a\x00b", "in/../../x", strings.Repeat("a/", 3000), "\xff", "out/new", "pipe/x"} {
		args, _ := json.Marshal(map[string]string{"path": path, "content": "x"})
		if path == "\xff" {
			args = []byte("{\"path\":\"\xff\",\"content\":\"x\"}")
		}
		began := time.Now()
		if text, err := readFile(t.Context(), s.work, args); err == nil {
			t.Errorf("read %q: %q", path, text)
		}
		if path != "\xff" {
			if text, err := writeFile(t.Context(), s.work, args); err == nil {
				t.Errorf("write %q: %q", path, text)
			}
		}
		if time.Since(began) > 5*time.Second {
			t.Errorf("%q waited", path)
		}
	}
	if text, err := readFile(t.Context(), s.work, json.RawMessage(`{"path":"in/f"}`)); err != nil ||
		text != "inside" {
		t.Errorf("a link within: %q", text)
	}
	if text, err := writeFile(t.Context(), s.work,
		json.RawMessage(`{"path":"flink","content":"x"}`)); err == nil {
		t.Errorf("a link is written to: %q", text)
	}
	entries, err := os.ReadDir(outside)
	data, _ := os.ReadFile(filepath.Join(outside, "secret"))
	if err != nil || len(entries) != 1 || string(data) != "secret" {
		t.Errorf("outside: %v, %q, %v", entries, data, err)
	}
	_ = filepath.WalkDir(s.work, func(path string, _ fs.DirEntry, _ error) error {
		if strings.Contains(path, ".acescope-") {
			t.Errorf("%s remains", path)
		}
		return nil
	})
}

func TestFileSizeLimits(t *testing.T) {
	s := newStage(t, "claude")
	if err := os.WriteFile(filepath.Join(s.work, "big"), []byte(strings.Repeat("x", 3*maxRead)),
		0o640); err != nil {
		t.Fatal(err)
	}
	text, err := readFile(t.Context(), s.work, json.RawMessage(`{"path":"big"}`))
	if err != nil || len(text) > maxRead+200 ||
		!strings.Contains(text, fmt.Sprintf("continue with offset %d", maxRead)) {
		t.Errorf("%d bytes, %s", len(text), text[len(text)-100:])
	}
	if text, _ := readFile(t.Context(), s.work,
		json.RawMessage(fmt.Sprintf(`{"path":"big","offset":%d}`, 3*maxRead-5))); text != "xxxxx" {
		t.Errorf("last part: %q", text)
	}
	huge, _ := json.Marshal(map[string]string{"path": "big", "content": strings.Repeat("y", maxWrite+1)})
	if text, err := writeFile(t.Context(), s.work, huge); err == nil {
		t.Error(text)
	}
	if text, err := writeFile(t.Context(), s.work,
		json.RawMessage(`{"path":"big","content":"new"}`)); err != nil {
		t.Error(text, err)
	}
	if info, err := os.Stat(filepath.Join(s.work, "big")); err != nil || info.Mode().Perm() != 0o640 ||
		info.Size() != 3 {
		t.Errorf("%v, %v", info, err)
	}
}

func TestCommands(t *testing.T) {
	t.Setenv("SOME_API_KEY", "topsecretvalue-123456")
	s := newStage(t, "claude")
	for _, c := range []struct {
		args, want string
		failed     bool
	}{
		{`{"command":"echo 'a b' c"}`, "a b c\n", false},
		{`{"argv":["printf","%s","$HOME; ls"]}`, "$HOME; ls", false},
		{`{"command":"sh -c 'echo out; echo err >&2; exit 3'"}`, "[exit code 3]", true},
		{`{"command":"env"}`, "PATH=", false},
		{`{"command":"no-such-program"}`, "program not found", true},
		{`{"command":"echo 'open"}`, "malformed quoting", true},
		{`{}`, "either command or argv", true},
		{`{"command":"a","argv":["b"]}`, "either command or argv", true},
		{`{"command":"sleep 60","timeout_seconds":1}`, "time limit of 1s", true},
		{`[]`, "malformed arguments", true},
	} {
		text, err := runCommand(t.Context(), s.work, json.RawMessage(c.args))
		if err != nil {
			text = err.Error()
		}
		if failed := err != nil; failed != c.failed || !strings.Contains(text, c.want) ||
			strings.Contains(text, "topsecretvalue") {
			t.Errorf("%s: %q, %v", c.args, text, err)
		}
	}
	text, failure := runCommand(t.Context(), s.work,
		json.RawMessage(`{"command":"sh -c 'yes | head -c 2000000'"}`))
	r, err := s.toolResult(t.Context(), text, failure != nil)
	if failure != nil || err != nil || len(text) > 2*outputKept+100 || r.Ref == nil ||
		r.Ref.Size != int64(len(text)) || len(r.Text) > 3000 {
		t.Errorf("%d bytes, %+v, %v", len(text), r.Ref, err)
	}
}

// TestSecrets plants keys in the environment, in the agent's output and in a file, and searches
// for them in everything that is stored.
func TestSecrets(t *testing.T) {
	key := "planted-Zx81-very-secret-value"
	t.Setenv("ANTHROPIC_API_KEY", key)
	s := newStage(t, "claude")
	if err := os.WriteFile(filepath.Join(s.work, ".env"), []byte("KEY="+key+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	in := s.input(1, `SCENARIO: env ANTHROPIC_API_KEY; secret; bash echo `+key+
		`; tool mcp__acescope__read_file {"path":".env"}; `+
		`tool mcp__acescope__write_file {"path":"copy","content":"`+key+`"}; say `+key)
	in.Served = ServedTools()
	r, err := s.run(in, 1)
	if err != nil || r.Status != session.TurnCompleted {
		t.Fatalf("%+v, %v", r, err)
	}
	if data, err := os.ReadFile(filepath.Join(s.work, "copy")); err != nil || string(data) != key {
		t.Errorf("the agent's own file: %q, %v", data, err)
	}
	for _, e := range s.agent.Did("host_tool") {
		if e.Tool == "mcp__acescope__write_file" && !strings.Contains(string(e.Args), key) {
			t.Errorf("args: %s", e.Args)
		}
	}
	stored, _ := json.Marshal(map[string]any{"result": r, "asked": s.asked})
	look := func(where string, data []byte) {
		for _, secret := range []string{key, "sk-ant-api03-", "AKIAQ7XJ4K2M5N8P3R6T", "hunter2secret",
			"abcDEF123456ghiJKL789012"} {
			if strings.Contains(string(data), secret) {
				t.Errorf("%s contains %q", where, secret)
			}
		}
	}
	look("the history", stored)
	files := 0
	if err := filepath.WalkDir(s.data, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		files++
		look(path, data)
		return err
	}); err != nil || files < 3 {
		t.Errorf("%d files, %v", files, err)
	}
}

func TestClaim(t *testing.T) {
	s := newStage(t, "claude")
	in := session.Input{SessionID: "s1", Agent: "claude", WorkingDir: s.work, Served: ServedTools()}
	got, err := s.claim(t.Context(), in)
	if err != nil || got.Queue != s.Queue() || got.Version != "2.1.329" || got.Name == "" {
		t.Errorf("%+v, %v", got, err)
	}
	s.agent.SetVersion("1.0.3")
	for _, c := range []struct {
		kind, says string
		change     func(*session.Input)
	}{
		{TypeAgentTooOld, got.Name + ": claude 1.0.3 is too old", func(*session.Input) {}},
		{TypeBadDirectory, "no such directory", func(in *session.Input) {
			in.WorkingDir = "/nowhere/at/all"
		}},
		{TypeRefused, "unknown served tool", func(in *session.Input) { in.Served = []string{"rm"} }},
		{TypeRefused, "policy", func(in *session.Input) { in.PermissionMode = "full" }},
		{TypeRefused, `permission mode "yolo" is not supported`, func(in *session.Input) {
			in.PermissionMode = "yolo"
		}},
		{TypeRefused, "does not support", func(in *session.Input) { in.Agent = "codex" }},
		{TypeAgentMissing, "npm install", func(in *session.Input) { in.Agent, in.Served = "codex", nil }},
	} {
		in := in
		c.change(&in)
		_, err := s.claim(t.Context(), in)
		var app *temporal.ApplicationError
		if !errors.As(err, &app) || app.Type() != c.kind ||
			app.NonRetryable() != (c.kind != TypeAgentMissing && c.kind != TypeAgentTooOld) ||
			!strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", c.kind, err)
		}
	}
}

// TestOrphan holds pitfall 1: a process that a dead host left has the session's lock. It is
// ended, with children that left its group, before another begins.
func TestOrphan(t *testing.T) {
	s := newStage(t, "claude")
	p := s.begin(s.input(1, "SCENARIO: children; gate g; say late"), 1)
	s.agent.Await("gate", 1)
	// Another host, as if this process had died: it knows nothing of the first.
	first := s.Host
	logs, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = logs.Close() })
	s.open(Options{Logger: slog.New(slog.NewTextHandler(logs, nil))})
	r, err := s.run(s.input(1, "x"), 2)
	if err != nil || !r.Continued || r.Status != session.TurnCompleted {
		t.Fatalf("%+v, %v", r, err)
	}
	p.wait(t)
	first.Close()
	for _, c := range s.agent.Did("child") {
		var pid int
		_, _ = fmt.Sscan(c.Text, &pid)
		if stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err == nil &&
			!strings.Contains(string(stat), ") Z ") {
			t.Errorf("child %d lives: %s", pid, stat)
		}
	}
	starts := s.agent.Did("start")
	if len(starts) != 2 || len(s.agent.Did("turn")) != 2 {
		t.Errorf("%d processes, %d turns", len(starts), len(s.agent.Did("turn")))
	}
	said, err := os.ReadFile(logs.Name())
	if want := fmt.Sprintf("orphaned process of the session\" session=s1 pid=%d",
		starts[0].PID); err != nil || !strings.Contains(string(said), want) {
		t.Errorf("the log does not name the process: %s, %v", said, err)
	}
}

// TestLockFile checks that the file of a session's lock stays while a process may hold it, and
// that it is removed with the session.
func TestLockFile(t *testing.T) {
	s := newStage(t, "claude")
	release, err := s.Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	in := s.input(1, "one")
	in.SessionID = "host" // like the name of the host lock
	if r, err := s.run(in, 1); err != nil || r.Status != session.TurnCompleted {
		t.Fatalf("%+v, %v", r, err)
	}
	locks := func() (names []string) {
		entries, err := os.ReadDir(filepath.Join(s.data, sessionsDir))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			names = append(names, e.Name())
		}
		return names
	}
	if got := locks(); !slices.Equal(got, []string{"host" + lockExt, hostLock}) {
		t.Errorf("while the process lives: %v", got)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := s.lockSession(ctx, "host"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the process has no lock: %v", err)
	}
	if err := s.closeSession(t.Context(), session.CloseInput{SessionID: "host"}); err != nil {
		t.Fatal(err)
	}
	if got := locks(); !slices.Equal(got, []string{hostLock}) {
		t.Errorf("when the session is closed: %v", got)
	}
}

func TestClose(t *testing.T) {
	s := newStage(t, "claude")
	s.good(1, "one")
	if err := s.closeSession(t.Context(), session.CloseInput{SessionID: "s1"}); err != nil {
		t.Fatal(err)
	}
	if len(s.agent.Did("end")) != 1 || len(s.slots.byID) != 0 {
		t.Errorf("ended %d times", len(s.agent.Did("end")))
	}
}

// TestMaxWarm checks that the process that was idle longest is ended and its session continues.
func TestMaxWarm(t *testing.T) {
	s := newStage(t, "claude")
	s.Host.Close()
	s.open(Options{MaxWarm: 1})
	s.good(1, "one")
	other := s.input(1, "other")
	other.SessionID, other.RunID, other.UUID = "s2", "run-2", session.UUID("other")
	if r, err := s.run(other, 1); err != nil || r.Status != session.TurnCompleted {
		t.Fatal(r, err)
	}
	s.agent.Await("end", 1)
	if r := s.good(2, "two"); r.Warm || r.Text != "reply 2 to: two" {
		t.Errorf("%+v", r)
	}
}

func TestMaxIdle(t *testing.T) {
	s := newStage(t, "claude")
	s.Host.Close()
	s.open(Options{MaxIdle: 50 * time.Millisecond})
	s.good(1, "one")
	s.agent.Await("end", 1)
	if r := s.good(2, "two"); r.Warm || r.Text != "reply 2 to: two" {
		t.Errorf("%+v", r)
	}
}

func TestOtherAgents(t *testing.T) {
	for _, cli := range []string{"codex", "gemini", "opencode"} {
		t.Run(cli, func(t *testing.T) {
			s := newStage(t, cli)
			first := s.good(1, "one")
			if first.AgentSessionID == "" || first.Log == nil {
				t.Fatalf("%+v", first)
			}
			in := s.input(2, "two")
			in.AgentSessionID, in.CostSeen, in.UsageSeen = first.AgentSessionID, first.CostSeen,
				first.UsageSeen
			second, err := s.run(in, 1)
			if err != nil || second.Status != session.TurnCompleted ||
				second.AgentSessionID != first.AgentSessionID || second.Warm {
				t.Fatalf("%+v, %v", second, err)
			}
			if first.Usage.InputTokens != second.Usage.InputTokens || first.Usage.InputTokens == 0 {
				t.Errorf("usage %+v, %+v", first.Usage, second.Usage)
			}
			if start := s.agent.Did("start"); len(start) != 2 ||
				!strings.Contains(start[1].Text, first.AgentSessionID) {
				t.Errorf("starts: %+v", start)
			}
			again := s.input(2, "two")
			again.AgentSessionID, again.CostSeen, again.UsageSeen = in.AgentSessionID, in.CostSeen,
				in.UsageSeen
			s.Host.Close()
			s.open(Options{})
			if r, err := s.run(again, 2); err != nil || !r.Recovered &&
				agentcli.CLI(cli) != agentcli.OpenCode || len(s.agent.Did("start")) > 3 {
				t.Errorf("%+v, %v", r, err)
			}
			gate := s.input(3, "SCENARIO: gate g; say x")
			gate.AgentSessionID = in.AgentSessionID
			p := s.begin(gate, 1)
			s.agent.Await("gate", 1)
			p.cancel(temporal.NewCanceledError())
			if r := p.wait(t); p.err != nil || r.Status != session.TurnInterrupted {
				t.Errorf("%+v, %v", r, p.err)
			}
		})
	}
}

// TestFullDisk checks that a failed write stops the turn.
func TestFullDisk(t *testing.T) {
	s := newStage(t, "claude")
	room := 2
	s.fault = func(path string) error {
		if room--; room < 0 {
			return &artifact.LogError{Path: path, Err: syscall.ENOSPC}
		}
		return nil
	}
	r, err := s.run(s.input(1, "SCENARIO: say a; gate never"), 1)
	if err != nil || r.Status != session.TurnFailed || r.Failed.Type != TypeLogBroken ||
		!strings.Contains(r.Failed.Message, "the disk is full") {
		t.Errorf("%+v, %v", r, err)
	}
	s.fault = nil
	if r := s.good(2, "two"); !r.Warm {
		t.Errorf("%+v", r)
	}
}

// TestLock checks that one host at a time serves a data directory.
func TestLock(t *testing.T) {
	s := newStage(t, "claude")
	release, err := s.Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	first := s.Host
	s.open(Options{})
	if s.Queue() != first.Queue() || !strings.HasPrefix(s.Queue(), "session.") {
		t.Errorf("queues %s, %s", s.Queue(), first.Queue())
	}
	got := make(chan error, 1)
	go func() {
		r, err := s.Lock(t.Context())
		if err == nil {
			defer r()
		}
		got <- err
	}()
	select {
	case err := <-got:
		t.Fatalf("both hosts have the lock: %v", err)
	case <-time.After(2 * lockRetry):
	}
	release()
	if err := <-got; err != nil {
		t.Error(err)
	}
}

// TestRuleMatrix holds agents × rule × tool: a rule decides on a tool by every name, or the
// session is refused.
func TestRuleMatrix(t *testing.T) {
	calls := map[string]string{
		"Bash":                       `{"command":"echo a"}`,
		"mcp__acescope__run_command": `{"command":"echo a"}`,
		"mcp__acescope__write_file":  `{"path":"f","content":"` + strings.Repeat("x", 40<<10) + `"}`,
	}
	// Of the agent's own tools, the agent is told beforehand that it may use Bash.
	rules := map[string][]string{ // and the tools that the rule denies
		"Bash(echo *)":               {"Bash"},
		"mcp__*":                     {"mcp__acescope__run_command", "mcp__acescope__write_file"},
		"mcp__acescope__run_command": {"mcp__acescope__run_command"},
		"run_command(echo *)":        {"mcp__acescope__run_command"},
		"write_file(f)":              {"mcp__acescope__write_file"},
		"bash":                       {"Bash"},
	}
	for _, agent := range ace.Agents() {
		adapter, err := agentcli.For(agentcli.CLI(agent))
		if err != nil || session.Asks(agent) != adapter.Features.Streaming {
			t.Errorf("%s: asks %t, %v", agent, session.Asks(agent), err)
		}
		for rule, denies := range rules {
			in := session.Input{SessionID: "s", Agent: agent, WorkingDir: "/w",
				Rules: []session.Rule{{Tool: "*", Action: session.Allow}, {Tool: rule, Action: session.Deny}}}
			if !session.Asks(agent) {
				if err := in.Check(); err == nil {
					t.Errorf("%s takes rule %s", agent, rule)
				}
				continue
			}
			t.Run(agent+" "+rule, func(t *testing.T) { checkRule(t, in.Rules, calls, denies) })
		}
	}
}

// checkRule makes the calls in a session that allows the tools to the agent beforehand.
func checkRule(t *testing.T, rules []session.Rule, calls map[string]string, denies []string) {
	s := newStage(t, "claude")
	s.answer = func(ctx context.Context, r session.ToolRequest) (session.ToolAnswer, error) {
		a := session.ToolAnswer{ID: r.ID, Action: r.PolicyDecision.Action, By: r.PolicyDecision.By}
		if r.Served && a.Action == session.Allow {
			result, err := s.executeCall(ctx, session.ToolCall{WorkingDir: s.work, ID: r.ID, Name: r.Name})
			a.Result = &result
			return a, err
		}
		return a, nil
	}
	text := "SCENARIO: "
	for tool, args := range calls {
		text += "tool " + tool + " " + args + "; "
	}
	in := s.input(1, text+"say end")
	in.Served, in.AllowedTools, in.Policy = ServedTools(), []string{"Bash"}, &session.Policy{Rules: rules}
	r, err := s.run(in, 1)
	if err != nil || r.Status != session.TurnCompleted {
		t.Fatalf("%+v, %v", r, err)
	}
	results := 0
	for _, o := range r.Messages {
		if o.Kind != session.OutToolResult {
			continue
		}
		results++
		by := fmt.Sprintf("rule %q", rules[1])
		if denied := strings.Contains(o.Text, by); denied != slices.Contains(denies, o.Tool) ||
			denied == *o.OK {
			t.Errorf("%s with %v: ok %t, %s", o.Tool, rules, *o.OK, o.Text)
		}
	}
	if results != len(calls) {
		t.Errorf("%d results", results)
	}
}

// TestAskRule checks that a rule makes the agent ask about a tool that it may use without asking.
func TestAskRule(t *testing.T) {
	s := newStage(t, "claude")
	in := s.input(1, `SCENARIO: bash echo a; bash ls; say end`)
	in.AllowedTools = []string{"Bash"}
	in.Policy = &session.Policy{Rules: []session.Rule{{Tool: "Bash(echo *)", Action: session.Ask}}}
	r, err := s.run(in, 1)
	if err != nil || r.Status != session.TurnCompleted || len(s.asked) != 1 ||
		s.asked[0].PolicyDecision.Action != session.Ask {
		t.Errorf("%+v, %v; asked %+v", r, err, s.asked)
	}
}

// TestInvalidArguments checks that a call with arguments outside of the tool's schema is neither
// asked about nor executed.
func TestInvalidArguments(t *testing.T) {
	s := newStage(t, "claude")
	bad := []string{`{"Command":"echo a > f"}`, `{"command":"echo","Command":"rm"}`,
		`{"command":"echo","x":1}`, `{"command":7}`,
		`{"argv":"echo"}`, `{}`, `{"command":"a","argv":["b"]}`, `{"command":"echo 'open"}`,
		`{"command":" "}`}
	in := s.input(1, "SCENARIO: tool mcp__acescope__run_command "+
		strings.Join(bad, "; tool mcp__acescope__run_command ")+"; say end")
	in.Served = ServedTools()
	r, err := s.run(in, 1)
	if err != nil || r.Status != session.TurnCompleted || len(s.asked) != 0 ||
		len(s.agent.Did("host_tool")) != len(bad) {
		t.Errorf("%+v, %v; asked %+v", r, err, s.asked)
	}
}
