package observe

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"acescope/engine/ace"
	"acescope/engine/agents/observe/spool"
	"acescope/engine/agents/price"
)

// observedSession writes a session's transcript and decodes records of its hooks.
type observedSession struct {
	t       *testing.T
	path    string
	decoder hookDecoder
	state   ace.State
	input   ace.TaskInput
	n       int
}

var sessionStart = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

func newObservedSession(t *testing.T) *observedSession {
	s := &observedSession{t: t, path: filepath.Join(t.TempDir(),
		"5e551011-0000-4000-8000-000000000002.jsonl")}
	store := func(data []byte) json.RawMessage { return ace.Preview(data) }
	s.decoder = newHookDecoder(nil, store, func(b []byte) []byte {
		return []byte(strings.ReplaceAll(string(b), "s3cret", "[redacted]"))
	}, nil)
	return s
}

// hook decodes a record of a time in seconds since the start of the session.
func (s *observedSession) hook(second int, name, fields string) {
	s.t.Helper()
	s.n++
	payload := fmt.Sprintf(
		`{"session_id": "x", "transcript_path": %q, "cwd": "/p/web", "hook_event_name": %q%s}`, s.path, name,
		fields)
	at := sessionStart.Add(time.Duration(second) * time.Second)
	list, _ := s.decoder.decode(spool.Record{ID: fmt.Sprint("r", s.n), Kind: spool.Hook,
		Micros: at.UnixMicro(), Payload: []byte(payload)})
	for _, o := range list {
		if o.Input != nil {
			s.input, s.state = *o.Input, ace.State{}
			s.state.Apply(ace.Started(*o.Input))
		}
		s.state.Apply(ace.ToolEvents([]ace.ToolEvent{o.Event}))
	}
}

// write appends a message to a transcript.
func (s *observedSession) write(path string, second int, kind, message string) {
	s.t.Helper()
	s.n++
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		s.t.Fatal(err)
	}
	at := sessionStart.Add(time.Duration(second) * time.Second).Format(time.RFC3339Nano)
	fmt.Fprintf(f, `{"type": %q, "uuid": "u%d", "sessionId": "x", "timestamp": %q, "message": %s}`+"\n", kind,
		s.n, at, message)
	if err := f.Close(); err != nil {
		s.t.Fatal(err)
	}
}

func (s *observedSession) answer(path string, second, output int) {
	s.write(path, second, "assistant",
		oneLine(fmt.Sprintf(`{"id": "m%d", "model": "claude-sonnet-4-5-20250929",
		"stop_reason": "end_turn", "content": [{"type": "text", "text": "ok"}], "usage": {"input_tokens": 10, "output_tokens": %d}}`,
			s.n, output)))
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// TestHooksUsage checks that a run has the model, the usage and the times of its part of the session.
func TestHooksUsage(t *testing.T) {
	s := newObservedSession(t)
	s.answer(s.path, -60, 1000) // of an earlier run of the session
	s.hook(0, "SessionStart", `, "source": "resume"`)
	s.hook(5, "UserPromptSubmit", `, "prompt": "hello"`)
	if s.input.Model != "" || s.input.ExperimentID != "observed" {
		t.Errorf("input %+v", s.input)
	}
	s.answer(s.path, 6, 20)
	agents := filepath.Join(strings.TrimSuffix(s.path, ".jsonl"), "subagents")
	if err := os.MkdirAll(agents, 0o700); err != nil {
		t.Fatal(err)
	}
	s.answer(filepath.Join(agents, "agent-a1.jsonl"), 7, 300)
	s.answer(s.path, 50, 4000) // of a later turn; the records arrive late
	s.hook(10, "Stop", `, "last_assistant_message": "ok"`)
	u := s.state.Usage
	if s.state.Input.Model != "claude-sonnet-4-5-20250929" || u.InputTokens != 20 || u.OutputTokens != 320 ||
		u.CostUSD <= 0 || u.Unpriced {
		t.Errorf("model %q, usage %+v", s.state.Input.Model, u)
	}
	s.hook(60, "SessionEnd", `, "reason": "other"`)
	s.state.Input.Revision = ace.Revision // as the observer sets it
	sum := s.state.Summary()
	if sum.Metered != nil {
		t.Errorf("usage in the transcript counts with the run too: %v", *sum.Metered)
	}
	if sum.Usage.OutputTokens != 4320 || !sum.EndedAt.Equal(sessionStart.Add(time.Minute)) ||
		sum.PhaseMS.Skills != 60_000 {
		t.Errorf("summary %+v", sum)
	}
	if step := s.state.Steps[1]; step.Status != ace.StatusDone || step.Time == nil ||
		!step.Time.StartedAt.Equal(sessionStart) {
		t.Errorf("step %+v", step)
	}
}

// TestHooksRefusedCall checks that no call stays pending in a run that has ended.
func TestHooksRefusedCall(t *testing.T) {
	s := newObservedSession(t)
	s.hook(0, "UserPromptSubmit", `, "prompt": "remove it"`)
	for _, id := range []string{"c1", "c2", "c3"} {
		s.hook(1, "PreToolUse", fmt.Sprintf(`, "tool_name": "Bash", "tool_input": {}, "tool_use_id": %q`, id))
	}
	s.write(s.path, 2, "user", oneLine(
		`{"content": [{"type": "tool_result", "tool_use_id": "c1", "is_error": true,
		"content": "Claude requested permissions to use Bash, but you haven't granted it yet. s3cret"}]}`))
	s.hook(3, "PostToolUse", `, "tool_name": "Bash", "tool_response": {"n": 1}, "tool_use_id": "c3"`)
	s.hook(4, "SessionEnd", `, "reason": "other"`)
	var got []string
	for _, c := range s.state.Calls() {
		got = append(got, fmt.Sprint(c.ID, " ", c.Pending, c.Accepted, c.OK, " ", c.DurationMS, " ", c.Error))
	}
	want := []string{
		"c1 false false false 0 Claude requested permissions to use Bash, but you haven't granted it yet. [redacted]",
		"c2 false true false 0 the session ended without a result",
		"c3 false true true 2000 ",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("calls:\n%s", strings.Join(got, "\n"))
	}
}

// TestHooksCommands checks that slash commands are named, and that a path is no command.
func TestHooksCommands(t *testing.T) {
	s := newObservedSession(t)
	for i, prompt := range []string{"/review 17", "/review", "/mcp:files:list\nthen more",
		"/etc/hosts is wrong", "/"} {
		s.hook(i, "UserPromptSubmit", fmt.Sprintf(`, "prompt": %q`, prompt))
	}
	if got := fmt.Sprint(s.state.SkillUsage().Commands); got != "map[/mcp:files:list:1 /review:2]" {
		t.Errorf("commands %s", got)
	}
}

// TestHooksExperiment checks that the environment of an agent names the experiment of its sessions.
func TestHooksExperiment(t *testing.T) {
	payload := spool.WithExperiment(
		[]byte(`{"session_id": "y", "hook_event_name": "UserPromptSubmit", "prompt": "hi"}`), `q"4`)
	d := newHookDecoder(nil, nil, nil, nil)
	list, _ := d.decode(spool.Record{ID: "r", Kind: spool.Hook, Micros: 1, Payload: payload})
	if len(list) == 0 || list[0].Input.ExperimentID != "q_4" {
		t.Errorf("%s: %+v", payload, list)
	}
}

// TestHooksOwnPrices checks that the user's price of a model outranks its list price.
func TestHooksOwnPrices(t *testing.T) {
	s := newObservedSession(t)
	prices, err := price.Shipped().With([]price.Price{{Models: []string{"claude-sonnet-4-5"}, Output: 1e6}})
	if err != nil {
		t.Fatal(err)
	}
	s.decoder.prices = prices
	s.hook(0, "UserPromptSubmit", `, "prompt": "hello"`)
	s.answer(s.path, 6, 20)
	s.hook(10, "Stop", `, "last_assistant_message": "ok"`)
	if u := s.state.Usage; u.CostUSD != 20 || u.Unpriced {
		t.Errorf("usage %+v", u)
	}
}
