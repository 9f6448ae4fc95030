package engine_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"acescope/engine"
	"acescope/engine/ace"
	"acescope/engine/agents/agentcli/agentclitest"
	"acescope/engine/agents/session"
	"acescope/engine/agents/session/host"
	"acescope/engine/store/artifact"
)

// house is a data directory with a server in this process and workers in other processes.
type house struct {
	*engine.Engine
	t     *testing.T
	dir   string
	work  string
	agent *agentclitest.Agent
}

func newHouse(t *testing.T) *house {
	t.Helper()
	h := &house{t: t, dir: t.TempDir(), work: t.TempDir(), agent: agentclitest.New(t, "claude")}
	e, err := engine.Open(t.Context(), engine.Options{DataDir: h.dir, Version: "test", Takeover: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = e.Close(ctx)
	})
	h.Engine = e
	return h
}

// child is a worker in a process of its own.
type child struct {
	*exec.Cmd
	t    *testing.T
	in   io.Closer
	gone chan struct{}
}

// worker starts a worker that kills itself at a step, or "" for never, and waits until it is
// ready.
func (h *house) worker(kill string) *child {
	h.t.Helper()
	self, err := os.Executable()
	if err != nil {
		h.t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), workerDir+"="+h.dir, workerKill+"="+kill, "CLAUDE_CONFIG_DIR="+h.agent.ConfigDir(),
		"PATH="+h.agent.Dir()+string(os.PathListSeparator)+os.Getenv("PATH"), "ANTHROPIC_API_KEY="+plantedKey)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		h.t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		h.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
	c := &child{cmd, h.t, in, make(chan struct{})}
	h.t.Cleanup(func() { _ = cmd.Process.Kill(); <-c.gone })
	lines := bufio.NewScanner(out)
	if !lines.Scan() || lines.Text() != "serving" {
		go func() { _ = cmd.Wait(); close(c.gone) }()
		if kill == "" {
			h.t.Fatalf("the worker says %q", lines.Text())
		}
		return c
	}
	go func() {
		for lines.Scan() {
		}
		_ = cmd.Wait()
		close(c.gone)
	}()
	return c
}

func (c *child) kill() {
	c.t.Helper()
	_ = c.Process.Kill()
	c.await()
}

// await waits for the end of the process.
func (c *child) await() {
	c.t.Helper()
	select {
	case <-c.gone:
	case <-time.After(60 * time.Second):
		c.t.Fatal("the worker lives")
	}
}

const plantedKey = "planted-Zx81-very-secret-value"

// until waits for a state of the session.
func (h *house) until(id string, ok func(session.State) bool) session.State {
	h.t.Helper()
	var s session.State
	for end := time.Now().Add(90 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		var err error
		if s, err = h.Describe(h.t.Context(), id); err == nil && ok(s) {
			return s
		}
	}
	data, _ := json.MarshalIndent(s, "", " ")
	logs, _ := os.ReadFile(filepath.Join(h.dir, workerLog))
	h.t.Fatalf("the session is not as it should be: %s\n%+v\n%s", data, h.agent.Journal(), logs)
	return s
}

func (h *house) send(id, message, text string) {
	h.t.Helper()
	if _, err := h.Send(h.t.Context(), id, session.Message{ID: message, Text: text}); err != nil {
		h.t.Fatal(err)
	}
}

func turnsEnded(n int) func(session.State) bool {
	return func(s session.State) bool { return len(s.Recent) >= n && s.Current == nil }
}

const firstText = `SCENARIO: tool mcp__acescope__run_command {"command":"sh -c 'echo ran >> ran'"}; bash echo a; say one`

// start starts a session with two messages to answer.
func (h *house) start(id string, change func(*session.Input)) {
	h.t.Helper()
	in := session.Input{SessionID: id, Agent: "claude", WorkingDir: h.work, Served: host.ServedTools(),
		Rules: []session.Rule{{Tool: "run_command", Action: session.Allow}, {Tool: "Bash(echo *)", Action: session.Allow}},
		First: &session.Message{ID: "m1", Text: firstText}}
	if change != nil {
		change(&in)
	}
	if _, err := h.StartSession(h.t.Context(), in); err != nil {
		h.t.Fatal(err)
	}
}

// ran returns how often the command of the first message ran.
func (h *house) ran() int {
	data, err := os.ReadFile(filepath.Join(h.work, "ran"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		h.t.Fatal(err)
	}
	return strings.Count(string(data), "ran")
}

// said counts the answers of the model that the agent remembers.
func (h *house) said(agentSession string) int {
	h.t.Helper()
	data, err := os.ReadFile(h.agent.Transcript(h.work, agentSession))
	if err != nil {
		h.t.Fatal(err)
	}
	ids := map[string]bool{}
	for line := range strings.Lines(string(data)) {
		var l struct {
			Type    string
			Message struct{ ID string }
		}
		if json.Unmarshal([]byte(line), &l) == nil && l.Type == "assistant" {
			ids[l.Message.ID] = true
		}
	}
	return len(ids)
}

const price = 0.000828 // of an answer of the stand-in

// check checks the invariants after any number of kills: both messages were answered once, no
// tool ran twice, the cost is correct, no output is lost, logs are complete, and no secret is
// stored.
func (h *house) check(id string, s session.State) {
	t := h.t
	t.Helper()
	agentSession := session.UUID("agent", id)
	for i, text := range []string{"one", "two"} {
		if len(s.Recent) != 2 || s.Recent[i].Status != session.TurnCompleted || s.Recent[i].Text != text && !s.Recent[i].Continued {
			t.Errorf("turn %d: %+v", i+1, s.Recent)
		}
	}
	if h.ran() > 1 {
		t.Errorf("the command was run %d times", h.ran())
	}
	seen := map[string]int{}
	for _, e := range h.agent.Did("tool") {
		seen[string(e.Args)]++
	}
	for args, n := range seen {
		if n > 1 {
			t.Errorf("the agent ran %s %d times", args, n)
		}
	}
	if n := len(h.agent.Did("swallowed")); n > 0 {
		t.Errorf("%d messages were swallowed", n)
	}
	// What is said is paid for once, whichever process said it, as if none had been killed.
	if cost, said := s.Usage.CostUSD, h.said(agentSession); math.Abs(cost-price*float64(said)) > 1e-9 || s.Usage.Unpriced {
		t.Errorf("cost %v, unpriced %t, and %d answers at %v", cost, s.Usage.Unpriced, said, price)
	}
	if s.AgentSessionID != agentSession || s.Status != session.Ended || s.Exit != ace.Success {
		t.Errorf("session %s, %s, %s", s.AgentSessionID, s.Status, s.Exit)
	}
	for i, o := range s.Out {
		if o.Cursor != s.Cursor-int64(len(s.Out)-1-i) {
			t.Errorf("cursor %d at %d of %d", o.Cursor, i, len(s.Out))
		}
	}
	h.checkLogs(s)
	h.checkFold(id)
	h.checkSecrets(id)
}

func (h *house) checkLogs(s session.State) {
	h.t.Helper()
	for _, r := range s.Recent {
		if r.Log == nil || r.LogPath == "" {
			h.t.Errorf("turn %d has no log: %+v", r.Turn, r)
			continue
		}
		data, err := h.Artifacts.Get(*r.Log, 1<<20)
		live, ferr := os.ReadFile(artifact.NewLogs(h.dir, h.Artifacts).Path(r.LogPath))
		if err != nil || ferr != nil || string(live) != string(data) {
			h.t.Errorf("the log of turn %d: %v, %v", r.Turn, err, ferr)
		}
		for line := range strings.Lines(string(data)) {
			if !json.Valid([]byte(line)) {
				h.t.Errorf("the log of turn %d: %q", r.Turn, line)
			}
		}
	}
}

// checkFold checks that the query returns the fold of the history.
func (h *house) checkFold(id string) {
	h.t.Helper()
	v, err := h.Client.QueryWorkflow(h.t.Context(), session.WorkflowID(id), "", session.QuerySession)
	if err != nil {
		h.t.Fatal(err)
	}
	var live session.State
	if err := v.Get(&live); err != nil {
		h.t.Fatal(err)
	}
	folded, err := h.Describe(h.t.Context(), id)
	if err != nil {
		h.t.Fatal(err)
	}
	same(h.t, "session", live, folded)
}

func (h *house) checkSecrets(id string) {
	h.t.Helper()
	for _, e := range eventsOf(h.t, h.Client, session.WorkflowID(id)).Events {
		if strings.Contains(e.String(), plantedKey) {
			h.t.Errorf("event %d holds the key", e.GetEventId())
		}
	}
	_ = filepath.WalkDir(h.dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			if data, err := os.ReadFile(path); err == nil && strings.Contains(string(data), plantedKey) {
				h.t.Errorf("%s holds the key", path)
			}
		}
		return nil
	})
}

// TestSessionKilled kills the worker at every step of a session. Another worker takes over:
// nothing is lost or repeated.
func TestSessionKilled(t *testing.T) {
	for _, c := range []struct {
		step string
		runs int // of the command, where that is certain
		// old is an agent that tells nothing when it is ended, as all do that are killed.
		old bool
	}{
		{"claim", 1, false}, {"turn", 1, false}, {"locked", 1, false}, {"started", 1, false}, {"send", 1, false}, {"sent", -1, false},
		{"event", 0, false}, {"ask", 0, false}, {"tool", 0, false}, {"tool_ran", 1, false}, {"answered", 1, false}, {"unwritten", 1, false},
		{"result", 1, false}, {"done", 1, false}, {"turn:2", 1, false}, {"sent:2", 1, false}, {"result:2", 1, false}, {"close", 1, false},
		{"closed", 1, false},
		{"tool", 0, true}, {"answered", 1, true}, {"unwritten", 1, true}, {"done", 1, true}, {"sent:2", 1, true}, {"result:2", 1, true},
	} {
		name := strings.ReplaceAll(c.step, ":", "-")
		if c.old {
			name += "-old"
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t)
			h.agent.SetOldCost(c.old)
			first := h.worker(c.step)
			h.start("s", nil)
			sent := make(chan error, 1)
			go func() { // it is taken by one worker or the other
				_, err := h.Send(t.Context(), "s", session.Message{ID: "m2", Text: "SCENARIO: bash echo b; say two"})
				sent <- err
			}()
			if strings.HasPrefix(c.step, "close") {
				h.until("s", turnsEnded(2))
				h.stop("s")
			}
			first.await()
			h.worker("")
			if err := <-sent; err != nil {
				t.Fatal(err)
			}
			h.until("s", turnsEnded(2))
			h.stop("s")
			s := h.until("s", over)
			if c.runs >= 0 && h.ran() != c.runs {
				t.Errorf("the command was run %d times", h.ran())
			}
			h.check("s", s)
			recordAs(t, h.Client, session.WorkflowID("s"), "session-killed-"+name)
		})
	}
}

func over(s session.State) bool { return s.Status == session.Ended }

// stop stops a session, possibly again.
func (h *house) stop(id string) {
	h.t.Helper()
	if _, err := h.Stop(h.t.Context(), id, session.Note{Reason: "enough"}); err != nil && !errors.Is(err, engine.ErrEnded) {
		logs, _ := os.ReadFile(filepath.Join(h.dir, workerLog))
		h.t.Fatalf("%v\n%s", err, logs)
	}
}

// TestSessionKilledWhile kills the worker during long operations.
func TestSessionKilledWhile(t *testing.T) {
	for _, c := range []struct {
		name, first string
		while       func(*house)
	}{
		{"a-person-is-asked", `SCENARIO: tool Write {"file_path":"x"}; say one`, func(h *house) {
			h.until("s", func(s session.State) bool { return s.Status == session.Waiting })
		}},
		{"a-served-tool-runs", `SCENARIO: tool mcp__acescope__run_command {"command":"sh -c 'echo ran >> ran && exec sleep 1000'"}; say one`, func(h *house) {
			h.until("s", func(session.State) bool { return h.ran() > 0 })
		}},
		{"the-agent-works", `SCENARIO: bash echo a; gate g; say one`, func(h *house) { h.agent.Await("gate", 1) }},
		{"it-is-idle", `SCENARIO: bash echo a; say one`, func(h *house) { h.until("s", turnsEnded(1)) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t)
			first := h.worker("")
			h.start("s", func(in *session.Input) { in.First.Text = c.first })
			c.while(h)
			first.kill()
			h.worker("")
			h.send("s", "m2", "SCENARIO: bash echo b; say two")
			h.until("s", turnsEnded(2))
			h.stop("s")
			s := h.until("s", over)
			if len(s.Pending)+len(s.Running) > 0 {
				t.Errorf("calls are left: %+v, %+v", s.Pending, s.Running)
			}
			h.check("s", s)
			recordAs(t, h.Client, session.WorkflowID("s"), "session-killed-while-"+c.name)
		})
	}
}

// TestSessionTakenOver kills the process that hosts the server and executes the session; another
// process takes over both.
func TestSessionTakenOver(t *testing.T) {
	t.Parallel()
	h := &house{t: t, dir: t.TempDir(), work: t.TempDir(), agent: agentclitest.New(t, "claude")}
	first := h.worker("")
	h.worker("")
	e, err := engine.Open(t.Context(), engine.Options{DataDir: h.dir, Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close(context.Background()) })
	h.Engine = e
	h.start("s", func(in *session.Input) { in.First.Text = `SCENARIO: bash echo a; gate g; say one` })
	h.agent.Await("gate", 1)
	first.kill()
	h.send("s", "m2", "SCENARIO: bash echo b; say two")
	h.until("s", turnsEnded(2))
	h.stop("s")
	h.check("s", h.until("s", over))
}

// events returns the history length of a session's run.
func (h *house) events(id string) int64 {
	h.t.Helper()
	d, err := h.Client.DescribeWorkflowExecution(h.t.Context(), session.WorkflowID(id), "")
	if err != nil {
		h.t.Fatal(err)
	}
	return d.GetWorkflowExecutionInfo().GetHistoryLength()
}

// TestSessionContinues kills the worker when a session continues as new.
func TestSessionContinues(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	first := h.worker("")
	h.start("s", func(in *session.Input) { in.First.Text = `SCENARIO: bash echo a; say one` })
	before := h.until("s", turnsEnded(1))
	receive := func() error {
		_, err := h.Receive(t.Context(), "s", session.Receive{})
		return err
	}
	// A session continues as new from 3,500 events on (maxHistory in engine/workflows).
	for h.events("s") < 3380 {
		for range 10 {
			if err := receive(); err != nil {
				t.Fatal(err)
			}
		}
	}
	const many = 60
	errs := make(chan error, many)
	for range many {
		go func() { errs <- receive() }()
	}
	for i := range many {
		if i == many/3 {
			first.kill()
			h.worker("")
		}
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if r, err := h.Send(t.Context(), "s", session.Message{ID: "m1", Text: "again"}); err != nil || !r.Duplicate {
		t.Errorf("%+v, %v", r, err)
	}
	h.send("s", "m2", "SCENARIO: bash echo b; say two")
	s := h.until("s", func(s session.State) bool { return turnsEnded(2)(s) && s.Runs == 2 })
	if s.Runs != 2 || s.Cursor <= before.Cursor || len(s.Out) <= len(before.Out) {
		t.Errorf("runs %d, cursor %d after %d", s.Runs, s.Cursor, before.Cursor)
	}
	h.stop("s")
	h.check("s", h.until("s", over))
}

// TestSessionUndisturbed is a session without failures: it asks the user, a turn is interrupted,
// and the output is received and acknowledged.
func TestSessionUndisturbed(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.worker("")
	h.start("s", func(in *session.Input) {
		in.First.Text = `SCENARIO: tool Write {"file_path":"x"}; tool Write {"file_path":"y"}; say one`
	})
	decide := func(action session.Action) {
		s := h.until("s", func(s session.State) bool { return s.Status == session.Waiting })
		if _, err := h.Decide(t.Context(), "s", session.Decision{ID: s.Pending[0].ID, Action: action, Reason: "because", By: "ada"}); err != nil {
			t.Fatal(err)
		}
		if _, err := h.Decide(t.Context(), "s", session.Decision{ID: s.Pending[0].ID, Action: action}); err == nil || !strings.Contains(err.Error(), "answered already") {
			t.Errorf("twice: %v", err)
		}
	}
	decide(session.Allow)
	decide(session.Deny)
	s := h.until("s", turnsEnded(1))
	if len(h.agent.Did("tool")) != 1 || s.Tools[0] != (session.ToolCount{Name: "Write", Asked: 2, Allowed: 1, Denied: 1}) {
		t.Errorf("tools: %+v, %+v", h.agent.Did("tool"), s.Tools)
	}
	got, err := h.Receive(t.Context(), "s", session.Receive{Limit: 2})
	if err != nil || len(got.Messages) != 2 || got.Next != got.Messages[1].Cursor {
		t.Fatalf("%+v, %v", got, err)
	}
	h.send("s", "m2", "SCENARIO: say begun; gate g; say two")
	h.agent.Await("gate", 1)
	if _, err := h.Interrupt(t.Context(), "s", session.Note{By: "ada"}); err != nil {
		t.Fatal(err)
	}
	s = h.until("s", turnsEnded(2))
	if s.Recent[1].Status != session.TurnInterrupted || !s.Recent[1].Warm {
		t.Errorf("%+v", s.Recent[1])
	}
	wait := make(chan session.Received, 1)
	go func() {
		got, _ := h.Receive(t.Context(), "s", session.Receive{After: s.Cursor, Ack: got.Next, Wait: true})
		wait <- got
	}()
	h.send("s", "m3", "three")
	if r := <-wait; len(r.Messages) == 0 || r.Messages[0].Cursor != s.Cursor+1 {
		t.Errorf("%+v", r)
	}
	h.until("s", turnsEnded(3))
	h.stop("s")
	s = h.until("s", over)
	if s.Acked != got.Next || s.Exit != ace.Success {
		t.Errorf("acked %d, %s", s.Acked, s.Exit)
	}
	if err := h.Client.GetWorkflow(t.Context(), session.WorkflowID("s"), "").Get(t.Context(), nil); err != nil {
		t.Error(err)
	}
	if ends := len(h.agent.Did("end")); ends != 1 {
		t.Errorf("the agent was asked to end %d times", ends)
	}
	if _, err := h.Send(t.Context(), "s", session.Message{Text: "late"}); !errors.Is(err, engine.ErrEnded) {
		t.Errorf("after the end: %v", err)
	}
	if _, err := h.Send(t.Context(), "nobody", session.Message{Text: "x"}); !errors.Is(err, engine.ErrNoSession) {
		t.Errorf("to nobody: %v", err)
	}
	h.checkFold("s")
	recordAs(t, h.Client, session.WorkflowID("s"), "session-talk")
}

// TestSessionNotTaken: what is wrong is one sentence.
func TestSessionNotTaken(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.worker("")
	h.start("s", func(in *session.Input) { in.WorkingDir = "/nowhere/at/all" })
	s := h.until("s", over)
	if s.Exit != ace.Failed || s.Failure == nil || !strings.Contains(s.Failure.Message, "/nowhere/at/all: no such directory on") {
		t.Errorf("%+v", s.Failure)
	}
	if err := h.Client.GetWorkflow(t.Context(), session.WorkflowID("s"), "").Get(t.Context(), nil); err == nil {
		t.Error("the workflow went well")
	}
	recordAs(t, h.Client, session.WorkflowID("s"), "session-not-taken")
}
