package agentcli_test

import (
	"encoding/json"
	"io"
	"os/exec"
	"strings"
	"testing"

	"acescope/engine/agents/agentcli"
	"acescope/engine/agents/agentcli/agentclitest"
	"acescope/engine/internal/process"
)

// running is a stand-in that reads turns from standard input.
type running struct {
	t   *testing.T
	cmd *exec.Cmd
	in  io.WriteCloser
	r   *agentcli.Reader
	j   agentcli.Judge
}

func start(t *testing.T, a *agentclitest.Agent, c agentcli.Call) *running {
	t.Helper()
	adapter, err := agentcli.For(agentcli.Claude)
	if err != nil {
		t.Fatal(err)
	}
	c.Binary, c.Streaming, c.WorkingDir = a.Binary(), true, a.Dir()
	how, err := adapter.Command(c)
	if err != nil {
		t.Fatal(err)
	}
	w := &running{t: t, cmd: exec.CommandContext(t.Context(), how.Argv[0], how.Argv[1:]...)}
	w.cmd.Dir = how.Dir
	out, err := w.cmd.StdoutPipe()
	if err == nil {
		w.in, err = w.cmd.StdinPipe()
	}
	if err == nil {
		err = w.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	w.r = agentcli.NewReader(out, agentcli.Claude)
	return w
}

func (w *running) send(line []byte, err error) {
	w.t.Helper()
	if err == nil {
		_, err = w.in.Write(line)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// turn answers requests until the result of the turn.
func (w *running) turn(answer func(agentcli.Control)) agentcli.Outcome {
	w.t.Helper()
	w.j = agentcli.Judge{Meter: w.j.Meter}
	for !w.j.Ended() {
		e, err := w.r.Next()
		if err != nil {
			w.t.Fatal(err)
		}
		w.j.Add(e)
		if e.Kind != agentcli.KindControl {
			continue
		}
		c, err := agentcli.DecodeControl(e.Raw)
		if err != nil {
			w.t.Fatal(err)
		}
		if c.ID != "" && !c.Cancels {
			answer(c)
		}
	}
	return w.j.Outcome(process.Exit{}, "")
}

// stop closes standard input and returns the exit code.
func (w *running) stop() int {
	w.t.Helper()
	_ = w.in.Close()
	for {
		if _, err := w.r.Next(); err != nil {
			break
		}
	}
	_ = w.cmd.Wait()
	return w.cmd.ProcessState.ExitCode()
}

const session = "11111111-2222-4333-8444-555555555555"

// TestSession runs turns with tools over the control protocol and resumes the session. It covers
// a session ID in use, a repeated message and cumulative costs.
func TestSession(t *testing.T) {
	a := agentclitest.New(t, "claude")
	w := start(t, a, agentcli.Call{SessionID: session, HostServer: "host"})
	w.send([]byte(`{"type":"control_request","request_id":"i1","request":{"subtype":"initialize"}}`+"\n"),
		nil)
	var asked []string
	answer := func(r agentcli.Control) {
		asked = append(asked, r.Subtype)
		switch {
		case r.Tool != nil && r.Tool.Name == "Bash":
			w.send(agentcli.Deny(r.ID, "not today", false))
		case r.Tool != nil:
			w.send(agentcli.Allow(r.ID, r.Tool.Input))
		case r.MCP != nil:
			w.send(agentcli.MCPResponse(r.ID,
				json.RawMessage(`{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"seen"}]}}`)))
		}
	}
	w.send(agentcli.UserTurn("u1", `SCENARIO: tool mcp__host__look {"at":1}; bash rm x; say done`))
	first := w.turn(answer)
	if first.Class != agentcli.ClassDenied || first.Denials != 1 || first.Text != "done" ||
		first.SessionID != session {
		t.Errorf("%+v", first)
	}
	if n := len(a.Did("host_tool")); n != 1 || len(a.Did("tool")) != 0 || len(asked) != 6 {
		t.Errorf("%d host tools, requests %v", n, asked)
	}
	w.send(agentcli.UserTurn("u2", "again"))
	if o := w.turn(answer); o.Text != "reply 2 to: again" || o.Usage.CostUSD <= 0 ||
		o.Usage.CostUSD >= o.Result.Usage.CostUSD {
		t.Errorf("%+v", o)
	}
	w.send(agentcli.UserTurn("u3", "SCENARIO: hang"))
	a.Await("hang", 1)
	w.send(agentcli.Interrupt("i2"))
	if o := w.turn(answer); o.Class != agentcli.ClassInterrupted {
		t.Errorf("%+v", o)
	}
	meter := w.j.Meter
	if code := w.stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}

	if o := call(t, a, agentcli.Claude,
		agentcli.Call{Instruction: "x", SessionID: session}); o.Class != agentcli.ClassSessionInUse {
		t.Errorf("session ID in use: %+v", o.Outcome)
	}
	if o := call(t, a, agentcli.Claude,
		agentcli.Call{Instruction: "x",
			Resume: "22222222-2222-4333-8444-555555555555"}); o.Class != agentcli.ClassUnknownSession {
		t.Errorf("unknown session ID: %+v", o.Outcome)
	}
	w = start(t, a, agentcli.Call{Resume: session})
	w.j.Meter = meter
	w.send(agentcli.UserTurn("u2", "swallowed"))
	w.send(agentcli.UserTurn("u4", "after"))
	if o := w.turn(answer); o.Text != "reply 4 to: after" || o.Usage.CostUSD != 0.000828 ||
		len(a.Did("swallowed")) != 1 {
		t.Errorf("resumed: %+v", o)
	}
	w.send([]byte("not JSON\n"), nil)
	if code := w.stop(); code != 1 {
		t.Errorf("after invalid JSON: exit code %d", code)
	}
}

// TestMeter checks that the meter returns differences, and whole sums after a restart.
func TestMeter(t *testing.T) {
	var m agentcli.Meter
	for _, c := range []struct{ reported, want float64 }{{0.1, 0.1}, {0.3, 0.2}, {0.3, 0}, {0.05, 0.05},
		{0.15, 0.1}} {
		r := agentcli.Result{CostCumulative: true}
		r.Usage.CostUSD = c.reported
		if got := m.Advance(r); got.CostUSD != c.want {
			t.Errorf("%v: %v, want %v", c.reported, got.CostUSD, c.want)
		}
	}
	var tokens agentcli.Meter
	for _, c := range []struct{ reported, want int64 }{{10, 10}, {0, 0}, {25, 15}, {5, 5}} {
		r := agentcli.Result{Cumulative: true}
		r.Usage.OutputTokens = c.reported
		if got := tokens.Advance(r); got.OutputTokens != c.want {
			t.Errorf("%v: %v, want %v", c.reported, got.OutputTokens, c.want)
		}
	}
}

// TestKilledOutcome checks that a signal counts before what the process printed.
func TestKilledOutcome(t *testing.T) {
	for _, c := range []struct {
		cli    agentcli.CLI
		lines  string
		exit   process.Exit
		stderr string
		want   agentcli.Class
	}{
		{agentcli.Codex, `{"type":"item.completed","item":{"type":"error","message":"Model metadata for x not found"}}`,
			process.Exit{Class: process.Signaled, Code: -1, Signal: "killed"}, "", agentcli.ClassKilled},
		{agentcli.Codex, "", process.Exit{Class: process.Exited, Code: 137}, "error: unauthorized",
			agentcli.ClassKilled},
		{agentcli.Codex, `{"type":"error","message":"no"}`, process.Exit{Class: process.Exited, Code: 1}, "",
			agentcli.ClassFailed},
		{agentcli.OpenCode, `{"type":"error","sessionID":"s","error":{"message":"a warning"}}`,
			process.Exit{Class: process.Signaled, Code: -1, Signal: "killed"}, "", agentcli.ClassKilled},
		{agentcli.OpenCode, `{"type":"step_finish","sessionID":"s","part":{"reason":"stop"}}`,
			process.Exit{Class: process.Signaled, Code: -1, Signal: "killed"}, "", agentcli.ClassOK},
	} {
		var judge agentcli.Judge
		err := agentcli.NewReader(strings.NewReader(c.lines+"\n"), c.cli).All(func(e agentcli.Event) error {
			judge.Add(e)
			return nil
		})
		if o := judge.Outcome(c.exit, c.stderr); err != nil || o.Class != c.want ||
			o.Retry != (c.want == agentcli.ClassKilled) {
			t.Errorf("%s %s: %+v, %v", c.cli, c.lines, o, err)
		}
	}
}
