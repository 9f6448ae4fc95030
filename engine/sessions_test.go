package engine_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"acescope/engine"
	"acescope/engine/ace"
	"acescope/engine/agents/agentcli/agentclitest"
	"acescope/engine/agents/session"
	"acescope/engine/agents/session/host"
	"acescope/engine/store/artifact"
)

// sessionEnv is a data directory with a server in this process and workers in other processes.
type sessionEnv struct {
	*engine.Engine
	t     *testing.T
	dir   string
	work  string
	agent *agentclitest.Agent
}

func newSessionEnv(t *testing.T) *sessionEnv {
	t.Helper()
	h := &sessionEnv{t: t, dir: t.TempDir(), work: t.TempDir(), agent: agentclitest.New(t, "claude")}
	e := openEngine(t, engine.Options{DataDir: h.dir, Takeover: true})
	h.Engine = e
	return h
}

// startWorker starts a worker that kills itself at a step, or "" for never, and waits until it is
// ready or has ended.
func (h *sessionEnv) startWorker(kill string) *process {
	h.t.Helper()
	p := startProgram(h.t, h.agent, "worker", workerConfig{Dir: h.dir, Kill: kill})
	if kill == "" {
		return p.waitLine("serving")
	}
	p.output()
	return p
}

// waitSession waits for a state of the session.
func (h *sessionEnv) waitSession(id string, ok func(session.State) bool) session.State {
	h.t.Helper()
	var s session.State
	err := poll(func() (err error) {
		if s, err = h.Describe(h.t.Context(), id); err == nil && !ok(s) {
			err = errNotYet
		}
		return err
	})
	if err == nil {
		return s
	}
	data, _ := json.MarshalIndent(s, "", " ")
	logs, _ := os.ReadFile(filepath.Join(h.dir, workerLog))
	h.t.Fatalf("%v: %s\n%+v\n%s", err, data, h.agent.Journal(), logs)
	return s
}

func (h *sessionEnv) sendMessage(id, message, text string) {
	h.t.Helper()
	if _, err := h.Send(h.t.Context(), id, session.Message{ID: message, Text: text}); err != nil {
		h.t.Fatal(err)
	}
}

func turnsEnded(n int) func(session.State) bool {
	return func(s session.State) bool { return len(s.Recent) >= n && s.Current == nil }
}

const firstText = `SCENARIO: tool mcp__acescope__run_command {"command":"sh -c 'echo ran >> ran'"}; bash echo a; say one`

// startSession starts a session with two messages to answer.
func (h *sessionEnv) startSession(id string, change func(*session.Input)) {
	h.t.Helper()
	in := session.Input{SessionID: id, Agent: "claude", WorkingDir: h.work, Served: host.ServedTools(),
		Rules: []session.Rule{{Tool: "run_command", Action: session.Allow},
			{Tool: "Bash(echo *)", Action: session.Allow}},
		First: &session.Message{ID: "m1", Text: firstText}}
	if change != nil {
		change(&in)
	}
	if _, err := h.StartSession(h.t.Context(), in); err != nil {
		h.t.Fatal(err)
	}
}

// commandRuns returns how often the command of the first message ran.
func (h *sessionEnv) commandRuns() int {
	data, err := os.ReadFile(filepath.Join(h.work, "ran"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		h.t.Fatal(err)
	}
	return strings.Count(string(data), "ran")
}

// countAnswers counts the answers of the model that the agent remembers.
func (h *sessionEnv) countAnswers(agentSession string) int {
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

// checkSession checks the invariants after any number of kills: both messages were answered once, no
// tool ran twice, the cost is correct, no output is lost, logs are complete, and no secret is
// stored.
func (h *sessionEnv) checkSession(id string, s session.State) {
	t := h.t
	t.Helper()
	agentSession := s.AgentSessionID
	for i, text := range []string{"one", "two"} {
		if len(s.Recent) != 2 || s.Recent[i].Status != session.TurnCompleted || s.Recent[i].Text != text &&
			!s.Recent[i].Continued {
			t.Errorf("turn %d: %+v", i+1, s.Recent)
		}
	}
	if h.commandRuns() > 1 {
		t.Errorf("the command was run %d times", h.commandRuns())
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
		t.Errorf("the agent lost %d messages", n)
	}
	// Each answer of the model is paid for once, whichever process received it.
	if cost, answers := s.Usage.CostUSD,
		h.countAnswers(agentSession); math.Abs(cost-price*float64(answers)) > 1e-9 || s.Usage.Unpriced {
		t.Errorf("cost %v, unpriced %t, and %d answers at %v", cost, s.Usage.Unpriced, answers, price)
	}
	if s.AgentSessionID != agentSession || s.Status != session.Ended || s.Exit != ace.Completed {
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

func (h *sessionEnv) checkLogs(s session.State) {
	h.t.Helper()
	for _, r := range s.Recent {
		if r.Log == nil || r.LogPath == "" {
			h.t.Errorf("turn %d has no log: %+v", r.Turn, r)
			continue
		}
		data, err := h.Artifacts.Get(h.t.Context(), *r.Log, 1<<20)
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
func (h *sessionEnv) checkFold(id string) {
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
	equalJSON(h.t, "session", live, folded)
}

func (h *sessionEnv) checkSecrets(id string) {
	h.t.Helper()
	for _, e := range eventsOf(h.t, h.Client, session.WorkflowID(id)).Events {
		if strings.Contains(e.String(), plantedKey) {
			h.t.Errorf("event %d contains the key", e.GetEventId())
		}
	}
	_ = filepath.WalkDir(h.dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			if data, err := os.ReadFile(path); err == nil && strings.Contains(string(data), plantedKey) {
				h.t.Errorf("%s contains the key", path)
			}
		}
		return nil
	})
}

// TestSessionKilled kills the worker at every step of a session. Another worker takes over:
// nothing is lost or repeated.
func TestSessionKilled(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		step string
		runs int // of the command, -1 if it varies
		// old simulates an agent that reports no cost when it is ended.
		old bool
	}{
		{"claim", 1, false}, {"turn", 1, false}, {"locked", 1, false}, {"started", 1, false},
		{"send", 1, false}, {"sent", -1, false},
		{"event", 0, false}, {"ask", 0, false}, {"tool", 0, false}, {"tool_ran", 1, false},
		{"answered", 1, false}, {"unwritten", 1, false},
		{"result", 1, false}, {"done", 1, false}, {"turn:2", 1, false}, {"sent:2", 1, false},
		{"result:2", 1, false}, {"close", 1, false},
		{"closed", 1, false},
		{"tool", 0, true}, {"answered", 1, true}, {"unwritten", 1, true}, {"done", 1, true},
		{"sent:2", 1, true}, {"result:2", 1, true},
	} {
		name := strings.ReplaceAll(c.step, ":", "-")
		if c.old {
			name += "-old"
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newSessionEnv(t)
			h.agent.SetOldCost(c.old)
			first := h.startWorker(c.step)
			h.startSession("s", nil)
			sent := make(chan error, 1)
			go func() { // either worker may accept it
				_, err := h.Send(t.Context(), "s",
					session.Message{ID: "m2", Text: "SCENARIO: bash echo b; say two"})
				sent <- err
			}()
			if strings.HasPrefix(c.step, "close") {
				h.waitSession("s", turnsEnded(2))
				h.stopSession("s")
			}
			first.await()
			h.startWorker("")
			if err := <-sent; err != nil {
				t.Fatal(err)
			}
			h.waitSession("s", turnsEnded(2))
			h.stopSession("s")
			s := h.waitSession("s", hasEnded)
			if c.runs >= 0 && h.commandRuns() != c.runs {
				t.Errorf("the command was run %d times", h.commandRuns())
			}
			h.checkSession("s", s)
			recordAs(t, h.Client, session.WorkflowID("s"), "session-killed-"+name)
		})
	}
}

func hasEnded(s session.State) bool { return s.Status == session.Ended }

// stopSession stops a session, possibly again.
func (h *sessionEnv) stopSession(id string) {
	h.t.Helper()
	if _, err := h.Stop(h.t.Context(), id, session.Note{Reason: "enough"}); err != nil &&
		!errors.Is(err, engine.ErrEnded) {
		logs, _ := os.ReadFile(filepath.Join(h.dir, workerLog))
		h.t.Fatalf("%v\n%s", err, logs)
	}
}

// TestSessionKilledWhile kills the worker during long operations.
func TestSessionKilledWhile(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, first string
		while       func(*sessionEnv)
	}{
		{"a-person-is-asked", `SCENARIO: tool Write {"file_path":"x"}; say one`, func(h *sessionEnv) {
			h.waitSession("s", func(s session.State) bool { return s.Status == session.Waiting })
		}},
		{"a-served-tool-runs", `SCENARIO: tool mcp__acescope__run_command {"command":"sh -c 'echo ran >> ran && exec sleep 1000'"}; say one`, func(h *sessionEnv) {
			h.waitSession("s", func(session.State) bool { return h.commandRuns() > 0 })
		}},
		{"the-agent-works", `SCENARIO: bash echo a; gate g; say one`, func(h *sessionEnv) {
			h.agent.Await("gate", 1)
		}},
		{"it-is-idle", `SCENARIO: bash echo a; say one`, func(h *sessionEnv) {
			h.waitSession("s", turnsEnded(1))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := newSessionEnv(t)
			first := h.startWorker("")
			h.startSession("s", func(in *session.Input) { in.First.Text = c.first })
			c.while(h)
			first.kill()
			h.startWorker("")
			h.sendMessage("s", "m2", "SCENARIO: bash echo b; say two")
			h.waitSession("s", turnsEnded(2))
			h.stopSession("s")
			s := h.waitSession("s", hasEnded)
			if len(s.Pending)+len(s.Running) > 0 {
				t.Errorf("open tool calls: %+v, %+v", s.Pending, s.Running)
			}
			h.checkSession("s", s)
			recordAs(t, h.Client, session.WorkflowID("s"), "session-killed-while-"+c.name)
		})
	}
}

// TestSessionTakenOver kills the process that hosts the server and executes the session; another
// process takes over both.
func TestSessionTakenOver(t *testing.T) {
	t.Parallel()
	h := &sessionEnv{t: t, dir: t.TempDir(), work: t.TempDir(), agent: agentclitest.New(t, "claude")}
	first := h.startWorker("")
	h.startWorker("")
	e := openEngine(t, engine.Options{DataDir: h.dir})
	h.Engine = e
	h.startSession("s", func(in *session.Input) { in.First.Text = `SCENARIO: bash echo a; gate g; say one` })
	h.agent.Await("gate", 1)
	first.kill()
	h.sendMessage("s", "m2", "SCENARIO: bash echo b; say two")
	h.waitSession("s", turnsEnded(2))
	h.stopSession("s")
	h.checkSession("s", h.waitSession("s", hasEnded))
}

// historyLength returns the history length of a session's run.
func (h *sessionEnv) historyLength(id string) int64 {
	h.t.Helper()
	d, err := h.Client.DescribeWorkflowExecution(h.t.Context(), session.WorkflowID(id), "")
	if err != nil {
		h.t.Fatal(err)
	}
	return d.GetWorkflowExecutionInfo().GetHistoryLength()
}

// growHistory sends a session signals that it ignores until its history has at least that many events. A
// signal adds at most 4 events.
func (h *sessionEnv) growHistory(id string, events int64) {
	h.t.Helper()
	for left := events - h.historyLength(id); left > 0; left = events - h.historyLength(id) {
		var all errgroup.Group
		all.SetLimit(8)
		for range left/4 + 1 {
			all.Go(func() error {
				return h.Client.SignalWorkflow(h.t.Context(), session.WorkflowID(id), "", "ignored", nil)
			})
		}
		if err := all.Wait(); err != nil {
			h.t.Fatal(err)
		}
	}
}

// TestSessionContinues kills the worker when a session continues as new.
func TestSessionContinues(t *testing.T) {
	t.Parallel()
	h := newSessionEnv(t)
	first := h.startWorker("")
	h.startSession("s", func(in *session.Input) { in.First.Text = `SCENARIO: bash echo a; say one` })
	before := h.waitSession("s", turnsEnded(1))
	receive := func() error {
		_, err := h.Receive(t.Context(), "s", session.Receive{})
		return err
	}
	// A session continues as new from 3,500 events on (maxHistory in engine/workflows).
	h.growHistory("s", 3380)
	const many = 60
	errs := make(chan error, many)
	for range many {
		go func() { errs <- receive() }()
	}
	for i := range many {
		if i == many/3 {
			first.kill()
			h.startWorker("")
		}
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if r, err := h.Send(t.Context(), "s", session.Message{ID: "m1", Text: "again"}); err != nil ||
		!r.Duplicate {
		t.Errorf("%+v, %v", r, err)
	}
	h.sendMessage("s", "m2", "SCENARIO: bash echo b; say two")
	s := h.waitSession("s", func(s session.State) bool { return turnsEnded(2)(s) && s.Runs == 2 })
	if s.Runs != 2 || s.Cursor <= before.Cursor || len(s.Out) <= len(before.Out) {
		t.Errorf("runs %d, cursor %d after %d", s.Runs, s.Cursor, before.Cursor)
	}
	h.stopSession("s")
	h.checkSession("s", h.waitSession("s", hasEnded))
}

// TestSessionUndisturbed is a session without failures: it asks the user, a turn is interrupted,
// and the output is received and acknowledged.
func TestSessionUndisturbed(t *testing.T) {
	t.Parallel()
	h := newSessionEnv(t)
	h.startWorker("")
	h.startSession("s", func(in *session.Input) {
		in.First.Text = `SCENARIO: tool Write {"file_path":"x"}; tool Write {"file_path":"y"}; say one`
	})
	decide := func(action session.Action) {
		s := h.waitSession("s", func(s session.State) bool { return s.Status == session.Waiting })
		if _, err := h.Decide(t.Context(), "s", session.Decision{ID: s.Pending[0].ID, Action: action,
			Reason: "because", By: "ada"}); err != nil {
			t.Fatal(err)
		}
		if _, err := h.Decide(t.Context(), "s",
			session.Decision{ID: s.Pending[0].ID, Action: action}); err == nil ||
			!strings.Contains(err.Error(), "answered already") {
			t.Errorf("second decision: %v", err)
		}
	}
	decide(session.Allow)
	decide(session.Deny)
	s := h.waitSession("s", turnsEnded(1))
	if len(h.agent.Did("tool")) != 1 ||
		s.Tools[0] != (session.ToolCount{Name: "Write", Asked: 2, Allowed: 1, Denied: 1}) {
		t.Errorf("tools: %+v, %+v", h.agent.Did("tool"), s.Tools)
	}
	got, err := h.Receive(t.Context(), "s", session.Receive{Limit: 2})
	if err != nil || len(got.Messages) != 2 || got.Next != got.Messages[1].Cursor {
		t.Fatalf("%+v, %v", got, err)
	}
	h.sendMessage("s", "m2", "SCENARIO: say begun; gate g; say two")
	h.agent.Await("gate", 1)
	if _, err := h.Interrupt(t.Context(), "s", session.Note{By: "ada"}); err != nil {
		t.Fatal(err)
	}
	s = h.waitSession("s", turnsEnded(2))
	if s.Recent[1].Status != session.TurnInterrupted || !s.Recent[1].Warm {
		t.Errorf("%+v", s.Recent[1])
	}
	wait := make(chan session.Received, 1)
	go func() {
		got, _ := h.Receive(t.Context(), "s", session.Receive{After: s.Cursor, Ack: got.Next, Wait: true})
		wait <- got
	}()
	h.sendMessage("s", "m3", "three")
	if r := <-wait; len(r.Messages) == 0 || r.Messages[0].Cursor != s.Cursor+1 {
		t.Errorf("%+v", r)
	}
	h.waitSession("s", turnsEnded(3))
	h.stopSession("s")
	s = h.waitSession("s", hasEnded)
	if s.Acked != got.Next || s.Exit != ace.Completed {
		t.Errorf("acked %d, %s", s.Acked, s.Exit)
	}
	if err := h.Client.GetWorkflow(t.Context(), session.WorkflowID("s"), "").Get(t.Context(),
		nil); err != nil {
		t.Error(err)
	}
	if ends := len(h.agent.Did("end")); ends != 1 {
		t.Errorf("the agent received %d requests to end", ends)
	}
	if _, err := h.Send(t.Context(), "s", session.Message{Text: "late"}); !errors.Is(err, engine.ErrEnded) {
		t.Errorf("after the end: %v", err)
	}
	if _, err := h.Send(t.Context(), "missing", session.Message{Text: "x"}); !errors.Is(err,
		engine.ErrNoSession) {
		t.Errorf("message to a missing session: %v", err)
	}
	h.checkFold("s")
	recordAs(t, h.Client, session.WorkflowID("s"), "session-talk")
}

// TestSessionNotTaken checks that a session in a missing directory fails with one sentence.
func TestSessionNotTaken(t *testing.T) {
	t.Parallel()
	h := newSessionEnv(t)
	h.startWorker("")
	h.startSession("s", func(in *session.Input) { in.WorkingDir = "/nowhere/at/all" })
	s := h.waitSession("s", hasEnded)
	if s.Exit != ace.Failed || s.Failure == nil ||
		!strings.Contains(s.Failure.Message, "/nowhere/at/all: no such directory on") {
		t.Errorf("%+v", s.Failure)
	}
	if err := h.Client.GetWorkflow(t.Context(), session.WorkflowID("s"), "").Get(t.Context(),
		nil); err == nil {
		t.Error("the workflow completed")
	}
	recordAs(t, h.Client, session.WorkflowID("s"), "session-not-taken")
}
