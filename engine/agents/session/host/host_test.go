package host

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.uber.org/goleak"

	"acescope/engine/agents/agentcli"
	"acescope/engine/agents/agentcli/agentclitest"
	"acescope/engine/agents/session"
	"acescope/engine/store/artifact"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

// stage is a host with a fake agent and a fake workflow.
type stage struct {
	*Host
	t     *testing.T
	agent *agentclitest.Agent
	work  string
	data  string

	mu    sync.Mutex
	asked []session.ToolRequest

	past    []session.PastTurn // what the history has
	pastErr error
	again   []session.TurnAttempt
	// answer answers tool requests; nil allows them and executes served calls.
	answer func(context.Context, session.ToolRequest) (session.ToolAnswer, error)
}

func newStage(t *testing.T, cli string) *stage {
	t.Helper()
	s := &stage{t: t, agent: agentclitest.New(t, cli), work: t.TempDir(), data: t.TempDir()}
	t.Setenv("CLAUDE_CONFIG_DIR", s.agent.ConfigDir())
	t.Setenv("PATH", s.agent.Dir()+string(os.PathListSeparator)+os.Getenv("PATH"))
	s.open(Options{})
	return s
}

// open creates another host on the stage's data directory.
func (s *stage) open(o Options) {
	s.t.Helper()
	store, err := artifact.Open(filepath.Join(s.data, "artifacts"))
	if err != nil {
		s.t.Fatal(err)
	}
	o.DataDir, o.Artifacts, o.Workflows = s.data, store, s
	h, err := New(o)
	if err != nil {
		s.t.Fatal(err)
	}
	s.Host = h
	s.t.Cleanup(h.Close)
}

// RequestTool implements Workflows.
func (s *stage) RequestTool(ctx context.Context, _, _ string, r session.ToolRequest) (session.ToolAnswer,
	error) {
	s.mu.Lock()
	s.asked = append(s.asked, r)
	answer, h := s.answer, s.Host
	s.mu.Unlock()
	if answer != nil {
		return answer(ctx, r)
	}
	a := session.ToolAnswer{ID: r.ID, Action: session.Allow, By: "rule"}
	if r.Served {
		result, err := h.executeCall(ctx, session.ToolCall{SessionID: "s1", WorkingDir: s.work, ID: r.ID,
			Name: r.Name, Args: r.Args})
		if err != nil {
			return a, err
		}
		a.Result = &result
	}
	return a, nil
}

// TryAgain implements Workflows.
func (s *stage) TryAgain(_ context.Context, _, _ string, a session.TurnAttempt) error {
	s.again = append(s.again, a)
	return nil
}

// PastTurns implements Workflows.
func (s *stage) PastTurns(context.Context, string, string) ([]session.PastTurn, error) {
	return s.past, s.pastErr
}

func (s *stage) input(turn int, text string) session.TurnInput {
	in := session.TurnInput{SessionID: "s1", WorkflowID: "session/s1", RunID: "run-1", Turn: turn,
		Resume:   turn > 1,
		Messages: []session.Message{{ID: fmt.Sprint("m", turn), Text: text}},
		UUID:     session.UUID("turn", "s1", fmt.Sprint(turn)),
		Agent:    string(s.cli()), WorkingDir: s.work}
	if turn > 1 {
		in.AgentSessionID = session.UUID("agent", "run-1")
	}
	return in
}

func (s *stage) cli() agentcli.CLI { return agentcli.CLI(filepath.Base(s.agent.Binary())) }

// run runs an attempt of a turn.
func (s *stage) run(in session.TurnInput, attempt int32) (session.TurnResult, error) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	return s.turn(ctx, in, attempt, func(Heartbeat) {})
}

// good runs a turn that must complete.
func (s *stage) good(turn int, text string) session.TurnResult {
	s.t.Helper()
	r, err := s.run(s.input(turn, text), 1)
	if err != nil || r.Status != session.TurnCompleted {
		s.t.Fatalf("turn %d: %v, %+v, %v", turn, r.Status, r.Failed, err)
	}
	return r
}

// started counts the processes of the agent.
func (s *stage) started() int { return len(s.agent.Did("start")) }

// pending is a turn that runs concurrently with the test.
type pending struct {
	done   chan struct{}
	result session.TurnResult
	err    error
	cancel context.CancelCauseFunc
}

func (s *stage) begin(in session.TurnInput, attempt int32) *pending {
	ctx, cancel := context.WithCancelCause(context.Background())
	p := &pending{done: make(chan struct{}), cancel: cancel}
	go func() {
		defer close(p.done)
		p.result, p.err = s.turn(ctx, in, attempt, func(Heartbeat) {})
	}()
	return p
}

func (p *pending) wait(t *testing.T) session.TurnResult {
	t.Helper()
	select {
	case <-p.done:
	case <-time.After(time.Minute):
		t.Fatal("the turn does not end")
	}
	return p.result
}

// perAnswer is the price of one answer of the fake agent.
const perAnswer = 0.000828

func near(a, b float64) bool { return a-b < 1e-9 && b-a < 1e-9 }

func TestWarmTurns(t *testing.T) {
	s := newStage(t, "claude")
	first, second := s.good(1, "one"), s.good(2, "two")
	if s.started() != 1 || first.Warm || !second.Warm {
		t.Errorf("%d processes, warm %t %t", s.started(), first.Warm, second.Warm)
	}
	if second.Text != "reply 2 to: two" || !near(first.Usage.CostUSD, perAnswer) ||
		second.Usage.InputTokens != 120 {
		t.Errorf("second: %+v", second)
	}
	in := s.input(3, "three")
	in.CostSeen, in.UsageSeen = second.CostSeen+first.CostSeen, second.UsageSeen
	if want := "logs/runs/session%2Fs1/run-1/run_turn-2-1.jsonl"; second.LogPath != want ||
		second.Log == nil {
		t.Errorf("log %s, %+v", second.LogPath, second.Log)
	}
	data, err := s.o.Artifacts.Get(t.Context(), *second.Log, 1<<20)
	if err != nil || !strings.Contains(string(data), `"type":"result"`) ||
		!strings.Contains(string(data), "reply 2") {
		t.Errorf("%s, %v", data, err)
	}
	for line := range strings.Lines(string(data)) {
		if !json.Valid([]byte(line)) {
			t.Errorf("line %q", line)
		}
	}
}

// TestCost checks that totals become differences, also across processes.
func TestCost(t *testing.T) {
	s := newStage(t, "claude")
	total, calls := 0.0, 0
	seen := 0.0
	for turn := 1; turn <= 4; turn++ {
		in := s.input(turn, "SCENARIO: bash echo a; say b")
		in.CostSeen = seen
		if turn == 3 {
			s.Host.Close()
			s.open(Options{})
		}
		r, err := s.run(in, 1)
		if err != nil || r.Status != session.TurnCompleted {
			t.Fatal(r, err)
		}
		total, seen, calls = total+r.Usage.CostUSD, r.CostSeen, calls+2
	}
	if api := len(s.agent.Did("api_call")); api != calls || !near(total, perAnswer*float64(api)) {
		t.Errorf("%d calls, cost %v", api, total)
	}
	if s.started() != 2 {
		t.Errorf("%d processes", s.started())
	}
}

// TestCostPerProcess checks older versions, which report totals per process: the first turn of a
// process may cost more than all before it.
func TestCostPerProcess(t *testing.T) {
	s := newStage(t, "claude")
	s.agent.SetOldCost(true)
	total, seen := 0.0, 0.0
	for turn, text := range []string{"SCENARIO: say a", "SCENARIO: bash echo a; bash echo b; say c",
		"SCENARIO: say d", "SCENARIO: bash echo e; say f"} {
		in := s.input(turn+1, text)
		in.CostSeen = seen
		r, err := s.run(in, 1)
		if err != nil || r.Status != session.TurnCompleted {
			t.Fatal(r, err)
		}
		total, seen = total+r.Usage.CostUSD, r.CostSeen
		if turn != 1 {
			s.Host.Close()
			s.open(Options{})
		}
	}
	if api := len(s.agent.Did("api_call")); api != 7 || !near(total, perAnswer*float64(api)) {
		t.Errorf("%d calls, cost %v", api, total)
	}
}

// TestIdentity checks that a conversation starts with the derived id and is resumed once it has a
// transcript, whatever the input says.
func TestIdentity(t *testing.T) {
	s := newStage(t, "claude")
	r := s.good(1, "one")
	id := session.UUID("agent", "run-1")
	if r.AgentSessionID != id || !strings.Contains(s.agent.Did("start")[0].Text, "--session-id="+id) {
		t.Errorf("%s: %+v", r.AgentSessionID, s.agent.Did("start"))
	}
	s.Host.Close()
	s.open(Options{})
	in := s.input(1, "again")
	in.UUID = session.UUID("another")
	if r, err := s.run(in, 1); err != nil || r.Text != "reply 2 to: again" {
		t.Errorf("%+v, %v", r, err)
	}
	if start := s.agent.Did("start")[1].Text; !strings.Contains(start, "--resume="+id) ||
		strings.Contains(start, "--session-id") {
		t.Errorf("start: %s", start)
	}
}

// TestMessageNotReceived checks that a message that the agent never had is sent again.
func TestMessageNotReceived(t *testing.T) {
	s := newStage(t, "claude")
	s.good(1, "one")
	s.Host.Close()
	s.open(Options{})
	r, err := s.run(s.input(2, "two"), 2)
	if err != nil || r.Continued || r.Recovered || r.Text != "reply 2 to: two" {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestRecoversFromLog checks a process that died after it logged the end of a turn.
func TestRecoversFromLog(t *testing.T) {
	s := newStage(t, "claude")
	done := s.good(1, "SCENARIO: tools")
	s.Host.Close()
	s.open(Options{})
	r, err := s.run(s.input(1, "SCENARIO: tools"), 2)
	if err != nil || !r.Recovered || r.Text != done.Text || !near(r.Usage.CostUSD, done.Usage.CostUSD) ||
		r.CostSeen != done.CostSeen {
		t.Errorf("%+v, %v; it was %+v", r, err, done)
	}
	if len(r.Messages) != len(done.Messages) || r.Log == nil || *r.Log != *done.Log {
		t.Errorf("%d messages, %+v", len(r.Messages), r.Log)
	}
	if n := len(s.agent.Did("turn")); n != 1 || s.started() != 1 {
		t.Errorf("%d turns, %d processes", n, s.started())
	}
}

// TestRecoversFromTranscript checks a turn that the agent ended before the host read it.
func TestRecoversFromTranscript(t *testing.T) {
	s := newStage(t, "claude")
	done := s.good(1, "SCENARIO: bash echo a; say b")
	s.Host.Close()
	if err := os.RemoveAll(filepath.Join(s.data, "logs")); err != nil {
		t.Fatal(err)
	}
	s.open(Options{})
	r, err := s.run(s.input(1, "SCENARIO: bash echo a; say b"), 2)
	if err != nil || !r.Recovered || r.Text != done.Text || r.Usage.InputTokens != done.Usage.InputTokens ||
		r.Usage.OutputTokens != done.Usage.OutputTokens {
		t.Errorf("%+v, %v; it was %+v", r, err, done)
	}
	if len(r.Messages) != len(done.Messages) {
		t.Errorf("messages: %+v, were %+v", r.Messages, done.Messages)
	}
	if !near(r.Usage.CostUSD, done.Usage.CostUSD) || r.Usage.Unpriced || !near(r.CostSeen, done.CostSeen) {
		t.Errorf("cost: %+v, was %+v", r, done)
	}
	next := s.input(2, "two")
	next.CostSeen = r.CostSeen
	if n, err := s.run(next, 1); err != nil || !near(n.Usage.CostUSD, perAnswer) {
		t.Errorf("then %+v, %v", n, err)
	}
}

// TestContinuesStartedTurn checks that a started turn continues with a message of another uuid.
func TestContinuesStartedTurn(t *testing.T) {
	s := newStage(t, "claude")
	p := s.begin(s.input(1, "SCENARIO: bash echo a; gate g; say late"), 1)
	s.agent.Await("gate", 1)
	s.Host.Close() // as a worker's end does
	if p.wait(t); p.err == nil {
		t.Fatalf("given up: %+v", p.result)
	}
	s.open(Options{})
	r, err := s.run(s.input(1, "SCENARIO: bash echo a; gate g; say late"), 2)
	if err != nil || !r.Continued || r.Status != session.TurnCompleted {
		t.Fatalf("%+v, %v", r, err)
	}
	if r.Usage.InputTokens != 240 || r.Usage.OutputTokens != 34 {
		t.Errorf("usage of both attempts: %+v", r.Usage)
	}
	turns := s.agent.Did("turn")
	if len(turns) != 2 || turns[0].UUID == turns[1].UUID ||
		!strings.Contains(turns[1].Text, "Go on where you stopped") {
		t.Errorf("turns: %+v", turns)
	}
	if len(s.agent.Did("swallowed")) != 0 || len(s.agent.Did("tool")) != 1 {
		t.Errorf("swallowed %d, tools %d", len(s.agent.Did("swallowed")), len(s.agent.Did("tool")))
	}
}

// TestNextAttemptWaitsForTurn checks that a turn continues after its activity attempt was given up.
func TestNextAttemptWaitsForTurn(t *testing.T) {
	s := newStage(t, "claude")
	in := s.input(1, "SCENARIO: gate g; say done")
	p := s.begin(in, 1)
	s.agent.Await("gate", 1)
	p.cancel(fmt.Errorf("the server was away"))
	if p.wait(t); p.err == nil {
		t.Fatalf("%+v", p.result)
	}
	again := s.begin(in, 2)
	s.agent.Open("g")
	if r := again.wait(t); again.err != nil || r.Text != "done" || len(s.agent.Did("turn")) != 1 {
		t.Errorf("%+v, %v", r, again.err)
	}
	if r, err := s.run(in, 3); err != nil || r.Text != "done" || len(s.agent.Did("turn")) != 1 {
		t.Errorf("after its end: %+v, %v", r, err)
	}
}

func TestInterrupt(t *testing.T) {
	s := newStage(t, "claude")
	p := s.begin(s.input(1, "SCENARIO: say begun; hang"), 1)
	s.agent.Await("hang", 1)
	p.cancel(temporal.NewCanceledError())
	if r := p.wait(t); p.err != nil || r.Status != session.TurnInterrupted || r.Failed != nil ||
		len(r.Messages) != 1 {
		t.Fatalf("%+v, %v", r, p.err)
	}
	if r := s.good(2, "two"); !r.Warm || s.started() != 1 {
		t.Errorf("the process does not stay: %+v, %d processes", r, s.started())
	}
}

// TestInterruptKills checks that an agent that ignores signals is killed.
func TestInterruptKills(t *testing.T) {
	if testing.Short() {
		t.Skip("takes ten seconds")
	}
	s := newStage(t, "claude")
	p := s.begin(s.input(1, "SCENARIO: say begun; ignoreterm"), 1)
	s.agent.Await("hang", 1)
	p.cancel(temporal.NewCanceledError())
	r := p.wait(t)
	if p.err != nil || r.Status != session.TurnInterrupted || !near(r.Usage.CostUSD, perAnswer) ||
		r.Usage.OutputTokens != 17 {
		t.Fatalf("%+v, %v", r, p.err)
	}
	in := s.input(2, "two")
	in.CostSeen = r.CostSeen
	if r, err := s.run(in, 1); err != nil || r.Warm || s.started() != 2 || !near(r.Usage.CostUSD, perAnswer) {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestAgentFails checks that a failure reported by the agent is a result and not retried.
func TestAgentFails(t *testing.T) {
	s := newStage(t, "claude")
	for i, c := range []struct {
		step  string
		class agentcli.Class
	}{{"overloaded", agentcli.ClassOverloaded}, {"ratelimit", agentcli.ClassRateLimited},
		{"refusal", agentcli.ClassRefusal},
		{"maxturns", agentcli.ClassMaxTurns}, {"budget", agentcli.ClassBudget},
		{"maxtokens", agentcli.ClassMaxTokens},
		{"error", agentcli.ClassFailed}, {"apierror", agentcli.ClassAPIError},
		{"notloggedin", agentcli.ClassNotLoggedIn}} {
		r, err := s.run(s.input(i+1, "SCENARIO: "+c.step), 1)
		if err != nil || r.Status != session.TurnFailed || r.Failed.Type != string(c.class) {
			t.Errorf("%s: %v %+v, %v", c.step, r.Status, r.Failed, err)
		}
	}
	if s.started() != 1 {
		t.Errorf("%d processes", s.started())
	}
}

// TestAgentDies checks that an agent that dies without a result is retried at first.
func TestAgentDies(t *testing.T) {
	s := newStage(t, "claude")
	in := s.input(1, "SCENARIO: bash echo a; kill")
	if _, err := s.run(in, 1); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("error %v", err)
	}
	r, err := s.run(in, 2)
	if err != nil || r.Status != session.TurnCompleted || !r.Continued ||
		!near(r.Usage.CostUSD, 2*perAnswer) {
		t.Errorf("%+v, %v", r, err)
	}
	in = s.input(2, "SCENARIO: bash echo a; kill")
	in.CostSeen = r.CostSeen
	r, err = s.run(in, maxCrashes)
	if err != nil || r.Status != session.TurnFailed || r.Failed.Type != string(agentcli.ClassKilled) ||
		!near(r.Usage.CostUSD, perAnswer) || r.Usage.OutputTokens != 17 {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestMalformedOutput(t *testing.T) {
	s := newStage(t, "claude")
	for i, text := range []string{"SCENARIO: garbage; unknown; noise 300; say fine",
		"SCENARIO: big 200 10; say fine", "SCENARIO: subagent; say fine", "SCENARIO: slow 3 1; say fine"} {
		r := s.good(i+1, text)
		if r.Text != "fine" || len(r.Messages) > session.MaxRecent || r.Log == nil {
			t.Errorf("%s: %+v", text, r)
		}
		data, err := s.o.Artifacts.Get(t.Context(), *r.Log, 64<<20)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(data)) {
			if !json.Valid([]byte(line)) {
				t.Fatalf("%s: line %q", text, line)
			}
		}
	}
}

func TestStartFails(t *testing.T) {
	s := newStage(t, "claude")
	in := s.input(1, "hello")
	in.PermissionMode = "full"
	if r, err := s.run(in, 1); err != nil || r.Failed == nil || r.Failed.Type != TypeRefused {
		t.Errorf("%+v, %v", r, err)
	}
	in = s.input(2, "hello")
	in.WorkingDir = filepath.Join(s.work, "gone")
	if r, err := s.run(in, 1); err != nil || r.Failed == nil || r.Failed.Type != TypeBadDirectory {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestDirectoryRemoved checks that a turn whose working directory is missing leaves its messages in
// the queue, with a warm process and after a crash, and that the next turn works when it is back.
func TestDirectoryRemoved(t *testing.T) {
	s := newStage(t, "claude")
	s.good(1, "hello")
	p := s.begin(s.input(2, "SCENARIO: gate g; say late"), 1)
	s.agent.Await("gate", 1)
	s.Host.Close() // as a worker's end does
	p.wait(t)
	s.open(Options{})
	refused := func(turn int, attempt int32) {
		t.Helper()
		if err := os.Remove(s.work); err != nil {
			t.Fatal(err)
		}
		r, err := s.run(s.input(turn, "SCENARIO: gate g; say late"), attempt)
		if err != nil || r.Failed == nil || r.Failed.Type != TypeBadDirectory || !r.Undelivered {
			t.Errorf("turn %d: %+v, %v", turn, r, err)
		}
		if err := os.Mkdir(s.work, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	refused(2, 2)
	s.good(3, "hello again")
	before := s.started()
	refused(4, 1)
	s.good(5, "and now?")
	if s.started() != before+1 {
		t.Errorf("%d processes, had %d: the old one works in the removed directory", s.started(), before)
	}
}
