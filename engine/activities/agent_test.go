package activities

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.uber.org/goleak"

	"acescope/engine/ace"
	"acescope/engine/agents/agentcall"
	"acescope/engine/agents/agentcli"
	"acescope/engine/agents/agentcli/agentclitest"
	"acescope/engine/internal/redact"
	"acescope/engine/learning/model"
	"acescope/engine/store/artifact"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

// newTestEnv returns an environment that executes activities without a server.
func newTestEnv(t *testing.T) (*testsuite.TestActivityEnvironment, *artifact.Store, string) {
	t.Helper()
	dir := t.TempDir()
	store, err := artifact.Open(filepath.Join(dir, "artifacts"))
	if err != nil {
		t.Fatal(err)
	}
	agent := agentclitest.New(t, "claude")
	t.Setenv("CLAUDE_CONFIG_DIR", agent.ConfigDir())
	a := &Activities{Artifacts: store, Agents: agentcall.New(agentcall.Options{DataDir: dir, Artifacts: store,
		Agents: map[agentcli.CLI]agentcall.Agent{agentcli.Claude: {Command: agent.Binary()},
			agentcli.Codex: {Command: "acescope-no-such-codex"}}})}
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestActivityEnvironment()
	a.register(env)
	return env, store, dir
}

func TestAgentCLI(t *testing.T) {
	env, store, dir := newTestEnv(t)
	call := func(in ace.AgentCall) (r ace.AgentResult, err error) {
		v, err := env.ExecuteActivity(ace.ActivityAgentCLI, in)
		if err == nil {
			err = v.Get(&r)
		}
		return r, err
	}
	_, missing := call(ace.AgentCall{Provider: "codex", Instruction: "x", WorkingDir: dir})
	if app, ok := errors.AsType[*temporal.ApplicationError](missing); !ok || app.NonRetryable() ||
		app.Type() != "missing" ||
		!strings.Contains(missing.Error(), "codex is not installed on this machine; to install it") {
		t.Errorf("without codex: %v", missing)
	}
	seq := 3
	r, err := call(ace.AgentCall{Instruction: "SCENARIO: tools; big 1 30; say the end", WorkingDir: dir,
		ActivityName: "../x", SequenceNumber: &seq})
	if err != nil || !r.Success || !strings.HasSuffix(r.LogPath, "/%2E.%2Fx-3-1.jsonl") ||
		r.Provider != "claude" || r.Version != "2.1.329" {
		t.Fatalf("%v, %+v", err, r)
	}
	data, err := json.Marshal(r)
	if err != nil || strings.Contains(string(data), "the end") {
		t.Errorf("result contains the text of the session: %s", data)
	}

	read := func(in ace.ReadLogInput) (c ace.LogContent, err error) {
		v, err := env.ExecuteActivity(ace.ActivityReadLog, in)
		if err == nil {
			err = v.Get(&c)
		}
		return c, err
	}
	c, err := read(ace.ReadLogInput{Log: *r.Log, From: 1, Limit: 3})
	if err != nil || c.Result != "the end" || c.CostUSD != r.CostUSD || c.DurationMS != r.DurationMS ||
		c.SessionID != r.SessionID ||
		c.Events != r.Events || len(c.Page) != 3 || c.Page[0].N != 1 || c.Next != 4 || !c.Success {
		t.Errorf("%v, %+v", err, c)
	}
	for what, ref := range map[string]ace.Ref{
		"a path":   {SHA256: "../../../../etc/passwd", Size: 3},
		"none":     {SHA256: strings.Repeat("0", 64), Size: 3},
		"its size": {SHA256: r.Log.SHA256, Size: r.Log.Size + 1},
		"no log":   put(t, store, "hello\n"),
		"an empty": put(t, store, ""),
	} {
		if _, err := read(ace.ReadLogInput{Log: ref}); !isPermanent(err) {
			t.Errorf("%s: %v", what, err)
		}
	}

	long, err := call(ace.AgentCall{Instruction: "SCENARIO: big 1 30", WorkingDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if c, err := read(ace.ReadLogInput{Log: *long.Log}); err != nil || c.ResultRef == nil ||
		len(c.Result) > ace.MaxLogResult+4 || c.Page != nil {
		t.Errorf("%v, %d bytes, %+v", err, len(c.Result), c.ResultRef)
	}

	if r, err := call(ace.AgentCall{Instruction: "SCENARIO: refusal", WorkingDir: dir}); err != nil ||
		r.Success || r.ExitClass != "refusal" || r.Log == nil {
		t.Errorf("%v, %+v", err, r)
	}
	_, err = call(ace.AgentCall{Instruction: "SCENARIO: overloaded", WorkingDir: dir})
	var app *temporal.ApplicationError
	var details ace.AgentResult
	if !as(err, &app) || app.NonRetryable() || app.Type() != "overloaded" || app.Details(&details) != nil ||
		details.Log == nil ||
		!strings.Contains(app.Error(), "(log: logs/runs/") {
		t.Errorf("%v, %+v", err, details)
	}
	for what, in := range map[string]ace.AgentCall{
		"no directory": {Instruction: "x"},
		"no task": {Task: &ace.TaskPick{Breakdown: put(t, store, `{"tasks": []}`), Index: 0},
			WorkingDir: dir},
		"a time": {Instruction: "x", WorkingDir: dir, TimeoutMS: -1},
	} {
		if _, err := call(in); !isPermanent(err) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func put(t *testing.T, s *artifact.Store, text string) ace.Ref {
	t.Helper()
	ref, err := s.PutBytes(t.Context(), []byte(text), "text/plain")
	if err != nil {
		t.Fatal(err)
	}
	return ref
}

func as(err error, to **temporal.ApplicationError) bool {
	return err != nil && errors.As(err, to)
}

func isPermanent(err error) bool {
	var app *temporal.ApplicationError
	return as(err, &app) && app.NonRetryable()
}

func TestCallRecorder(t *testing.T) {
	var events []ace.ToolEvent
	box := &toolbox{attempt: 1, secrets: redact.New(), record: func(e ...ace.ToolEvent) {
		events = append(events, e...)
	}}
	ctx := t.Context()
	box.Begun(ctx, "a", "Bash", json.RawMessage(`{"command":"ls"}`))
	box.Begun(ctx, "b", "Edit", nil)
	box.Begun(ctx, "a", "Bash", nil) // told of twice
	box.Ended(ctx, "b", model.CallEnd{Accepted: false, Error: "not granted"})
	box.Ended(ctx, "a", model.CallEnd{Accepted: true, OK: true, Result: json.RawMessage(`"x"`)})
	box.Ended(ctx, "never begun", model.CallEnd{Accepted: true, OK: true})
	calls := box.list()
	if len(calls) != 3 || len(events) != 6 {
		t.Fatalf("%+v\n%+v", calls, events)
	}
	if c := calls[0]; c.Name != "Bash" || !c.OK || !c.Accepted || string(c.Result) != `"x"` ||
		c.ID != "skills-1.1" {
		t.Errorf("%+v", c)
	}
	if c := calls[1]; c.OK || c.Accepted || c.Error != "not granted" {
		t.Errorf("%+v", c)
	}
	if e := events[3]; e.Kind != ace.KindToolResult || e.CallID != calls[0].ID || !*e.OK {
		t.Errorf("%+v", e)
	}
}
