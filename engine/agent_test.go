package engine_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"acescope/engine"
	"acescope/engine/ace"
	"acescope/engine/agents/agentcall"
	"acescope/engine/agents/agentcli"
	"acescope/engine/agents/agentcli/agentclitest"
	"acescope/engine/workflows"
)

// loopInput is the input of the example: an agent divides a plan into tasks and then receives
// them one by one, each in the session of the previous task.
type loopInput struct {
	Provider, Dir, Plan string
	Calls               []string // instructions, instead of a plan
}

type loopResult struct {
	Tasks  int
	Done   []ace.AgentResult
	Last   string // final message of the agent, from a recorded activity
	Failed string
}

// loopQueue is the queue of the example's own worker; agents are called on the contract's queue.
const loopQueue = "loop"

// loop is a foreign workflow that calls agents. It depends only on references, facts and logs
// that a recorded activity reads.
func loop(ctx workflow.Context, in loopInput) (r loopResult, err error) {
	ctx = workflows.WithAgentOptions(ctx, 0)
	calls := make([]ace.AgentCall, 0, len(in.Calls))
	for _, text := range in.Calls {
		calls = append(calls, ace.AgentCall{Instruction: text})
	}
	if in.Plan != "" {
		var b ace.BreakdownResult
		if err := workflow.ExecuteActivity(ctx, ace.ActivityBreakdown,
			ace.BreakdownInput{Phase: "implement", PlanContent: in.Plan,
				Provider: in.Provider, WorkingDir: in.Dir}).Get(ctx, &b); err != nil {
			return r, err
		}
		if !b.Success {
			r.Failed = b.ExitClass
			return r, nil
		}
		r.Tasks = b.Tasks
		for i := range b.Tasks {
			calls = append(calls, ace.AgentCall{Task: &ace.TaskPick{Breakdown: *b.Breakdown, Index: i}})
		}
	}
	session := ""
	for i, c := range calls {
		c.Provider, c.WorkingDir, c.SessionID, c.ActivityName, c.SequenceNumber = in.Provider, in.Dir,
			session, "do-task", &i
		var done ace.AgentResult
		if err := workflow.ExecuteActivity(ctx, ace.ActivityAgentCLI, c).Get(ctx, &done); err != nil {
			return r, err
		}
		r.Done = append(r.Done, done)
		if !done.Success {
			r.Failed = done.ExitClass
			return r, nil
		}
		session = done.SessionID
	}
	var content ace.LogContent
	err = workflow.ExecuteActivity(ctx, ace.ActivityReadLog, ace.ReadLogInput{Log: *r.Done[len(r.Done)-1].Log,
		Limit: 2}).Get(ctx, &content)
	r.Last = content.Result
	if err == nil && len(content.Page) != 2 {
		err = fmt.Errorf("page of %d events", len(content.Page))
	}
	return r, err
}

func registerLoop(r worker.WorkflowRegistry) {
	r.RegisterWorkflowWithOptions(loop, workflow.RegisterOptions{Name: "loop"})
}

// startLoop starts the example and its worker.
func startLoop(ctx context.Context, e *engine.Engine, id string, in loopInput) error {
	serveLoop(e)
	_, err := e.Client.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: id, TaskQueue: loopQueue}, "loop",
		in)
	return err
}

func serveLoop(e *engine.Engine) (stop func()) {
	w := worker.New(e.Client, loopQueue, worker.Options{})
	registerLoop(w)
	if err := w.Start(); err != nil {
		panic(err)
	}
	return w.Stop
}

// loopConfig configures a worker of the example that can be killed.
type loopConfig struct {
	Dir, Binary string
	Loop        loopInput
}

func loopProgram(config []byte) error {
	var in loopConfig
	if err := json.Unmarshal(config, &in); err != nil {
		return err
	}
	e, err := engine.Open(context.Background(), engine.Options{DataDir: in.Dir, Version: "test", Worker: true,
		Agents: claudeAt(in.Binary)})
	if err != nil {
		return err
	}
	if err := startLoop(context.Background(), e, "killed", in.Loop); err != nil {
		return err
	}
	select {}
}

func claudeAt(binary string) map[agentcli.CLI]agentcall.Agent {
	return map[agentcli.CLI]agentcall.Agent{agentcli.Claude: {Command: binary}}
}

// agents returns an engine with a stand-in for agents.
func agents(t *testing.T) (*engine.Engine, *agentclitest.Agent, string) {
	t.Helper()
	a := agentclitest.New(t, "claude")
	dir := t.TempDir()
	return openWith(t, engine.Options{DataDir: dir, Agents: claudeAt(a.Binary())}), a, dir
}

func loopOf(t *testing.T, e *engine.Engine, id string) (r loopResult, err error) {
	t.Helper()
	err = e.Client.GetWorkflow(t.Context(), id, "").Get(t.Context(), &r)
	return r, err
}

// TestAgentLoop runs the example with a plan of two tasks, and replays it.
func TestAgentLoop(t *testing.T) {
	t.Parallel()
	e, a, dir := agents(t)
	work := t.TempDir()
	plan := `SCENARIO: say Here it is: {"outline": "two", "tasks": [{"id": "a", "description": "SCENARIO: bash echo one"}, {"description": "SCENARIO: say the second"}]} as asked; exit 0`
	t.Cleanup(serveLoop(e))
	if _, err := e.Client.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: "plan",
		TaskQueue: loopQueue}, "loop",
		loopInput{Provider: "claude", Dir: work, Plan: plan}); err != nil {
		t.Fatal(err)
	}
	r, err := loopOf(t, e, "plan")
	if err != nil || r.Tasks != 2 || len(r.Done) != 2 || r.Last != "the second" || r.Failed != "" {
		t.Fatalf("%v, %+v", err, r)
	}
	if one, two := r.Done[0], r.Done[1]; one.SessionID != two.SessionID || one.CostUSD <= 0 ||
		one.Log == nil || !one.LogComplete ||
		one.LogPath == two.LogPath || one.Attempt != 1 ||
		one.Summary != "CLI execution completed successfully (0 chars)" {
		t.Errorf("%+v\n%+v", one, two)
	}
	if n := len(a.Did("turn")); n != 3 {
		t.Errorf("%d turns", n)
	}
	history := eventsOf(t, e.Client, "plan")
	replayLoop(t, history)
	if calls, _ := activitiesOf(history); strings.Join(calls,
		" ") != "request_task_breakdown execute_agent_cli execute_agent_cli read_cli_log" {
		t.Errorf("activities are %v", calls)
	}
	if _, err := os.Stat(filepath.Join(dir, filepath.FromSlash(r.Done[1].LogPath))); err != nil {
		t.Error(err)
	}
	for plan, class := range map[string]string{"SCENARIO: say no tasks here; exit 0": "bad_breakdown",
		"SCENARIO: refusal; x": "refusal"} {
		if _, err := e.Client.ExecuteWorkflow(t.Context(),
			client.StartWorkflowOptions{ID: class, TaskQueue: loopQueue}, "loop",
			loopInput{Provider: "claude", Dir: work, Plan: plan}); err != nil {
			t.Fatal(err)
		}
		if r, err := loopOf(t, e, class); err != nil || r.Failed != class {
			t.Errorf("%s: %v, %+v", class, err, r)
		}
	}
}

func replayLoop(t *testing.T, history *historypb.History) {
	t.Helper()
	r := worker.NewWorkflowReplayer()
	registerLoop(r)
	if err := r.ReplayWorkflowHistory(nil, history); err != nil {
		t.Error(err)
	}
}

// TestAgentCanceled cancels a workflow while its agent works: the agent ends, and its log is
// stored.
func TestAgentCanceled(t *testing.T) {
	t.Parallel()
	e, a, dir := agents(t)
	if err := startLoop(t.Context(), e, "stop", loopInput{Provider: "claude", Dir: t.TempDir(),
		Calls: []string{"SCENARIO: bash echo one; hang"}}); err != nil {
		t.Fatal(err)
	}
	pid := a.Await("hang", 1)[0].PID
	if err := e.Cancel(t.Context(), "stop", ""); err != nil {
		t.Fatal(err)
	}
	_, err := loopOf(t, e, "stop")
	var canceled *temporal.CanceledError
	if !errors.As(err, &canceled) {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("the agent is still running: %v", err)
	}
	// one for each attempt
	logs, err := filepath.Glob(filepath.Join(dir, "logs/runs/stop/*/do-task-0-*.jsonl"))
	if err != nil || len(logs) == 0 {
		t.Fatal(logs, err)
	}
	if data, err := os.ReadFile(logs[len(logs)-1]); err != nil ||
		!bytes.Contains(data, []byte(`"exit_class":"cancelled"`)) {
		t.Errorf("%v: %s", err, data)
	}
}

// TestAgentWorkerKilled kills the worker and the server while an agent works. The next worker
// resumes the session.
func TestAgentWorkerKilled(t *testing.T) {
	t.Parallel()
	a := agentclitest.New(t, "claude")
	dir := t.TempDir()
	first := startProgram(t, nil, "loop", loopConfig{dir, a.Binary(),
		loopInput{Provider: "claude", Dir: t.TempDir(),
			Calls: []string{"SCENARIO: bash echo one; gate open; say done"}}})
	pid := a.Await("gate", 1)[0].PID
	first.kill()
	a.Open("open")
	e := openWith(t, engine.Options{DataDir: dir, Agents: claudeAt(a.Binary())})
	t.Cleanup(serveLoop(e))
	r, err := loopOf(t, e, "killed")
	if err != nil || len(r.Done) != 1 || r.Done[0].Attempt < 2 || r.Last != "done" {
		t.Fatalf("%v, %+v", err, r)
	}
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("the first agent is still running: %v", err)
	}
	turns := a.Did("turn")
	for i, turn := range turns[1:] {
		if turn.Session != turns[0].Session ||
			!strings.HasPrefix(turn.Text, "The program that runs you was interrupted") {
			t.Errorf("turn %d: %+v", i+2, turn)
		}
	}
	if d := r.Done[0]; !d.Continued && !d.Recovered || d.SessionID != turns[0].Session {
		t.Errorf("%+v", d)
	}
	replayLoop(t, eventsOf(t, e.Client, "killed"))
}

// TestAgentSecrets plants secrets in the environment and in an agent's output and searches all
// stored data for them.
func TestAgentSecrets(t *testing.T) {
	t.Parallel()
	e, _, dir := agents(t)
	work := t.TempDir()
	t.Cleanup(serveLoop(e))
	if _, err := e.Client.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: "secret",
		TaskQueue: loopQueue}, "loop", loopInput{
		Provider: "claude", Dir: work, Calls: []string{"SCENARIO: env ANTHROPIC_API_KEY; secret",
			"SCENARIO: env ANTHROPIC_API_KEY"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := loopOf(t, e, "secret"); err != nil {
		t.Fatal(err)
	}
	in := agentTask("secret-task", "SCENARIO: env ANTHROPIC_API_KEY; secret; tools; "+sayAll("42")+"; exit 0")
	if _, err := result(t, e, in); err != nil {
		t.Fatal(err)
	}
	recorded, err := json.Marshal([]any{eventsOf(t, e.Client, "secret"),
		eventsOf(t, e.Client, ace.WorkflowID("secret-task"))})
	if err != nil {
		t.Fatal(err)
	}
	search := func(where string, data []byte) {
		for _, secret := range []string{plantedKey, "AKIAQ7XJ4K2M5N8P3R6T", "hunter2secret",
			"abcDEF123456ghiJKL789012"} {
			if bytes.Contains(data, []byte(secret)) {
				t.Errorf("%s is in %s", secret, where)
			}
		}
	}
	search("a history", recorded)
	seen := 0
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		search(path, data)
		seen++
		return err
	})
	if err != nil || seen < 10 {
		t.Errorf("%d files, %v", seen, err)
	}
}

// sayAll makes the stand-in give an answer that every ACE step can parse.
func sayAll(answer string) string {
	return `say {"reasoning": "so it is", "bullet_ids": [], "final_answer": "` + answer +
		`", "key_insight": "look twice", "error_identification": "none",` +
		` "bullet_tags": [], "operations": [{"type": "ADD", "section": "OTHERS", "content": "look twice"}]}`
}

func agentTask(id, prompt string) ace.TaskInput {
	in := task(id, prompt, "42")
	in.Provider, in.Model, in.SkillsConfig = "claude", "default",
		ace.SkillsConfig{PermissionMode: "acceptEdits"}
	return in
}

// TestAgentSteps executes a task with an agent: its tool calls are those of the run, live, and
// each step writes a log.
func TestAgentSteps(t *testing.T) {
	t.Parallel()
	e, a, dir := agents(t)
	in := agentTask("by-agent", "What is it? SCENARIO: tools; gate look; badtool; denied; "+sayAll("42")+
		"; exit 0")
	runID, err := e.StartTask(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	a.Await("gate", 1) // of the generator
	a.Open("look")
	var r ace.TaskResult
	if err := e.Client.GetWorkflow(t.Context(), ace.WorkflowID(in.TaskID), runID).Get(t.Context(),
		&r); err != nil {
		t.Fatal(err)
	}
	if r.ExitStatus != ace.ExitSuccess || r.Answer != "42" || r.Summary.Skills != 3 ||
		r.Summary.SkillsOK != 1 || r.Summary.Added != 1 || r.Summary.Usage.CostUSD <= 0 {
		t.Errorf("%+v", r)
	}
	_, skills, _ := answers(t, e.Client, ace.WorkflowID(in.TaskID))
	data, err := json.Marshal(skills)
	if err != nil || !bytes.Contains(data, []byte(`"Bash"`)) {
		t.Errorf("%v: %s", err, data)
	}
	checkFold(t, e, in.TaskID)
	for _, step := range []string{"run_generator", "run_skills_session", "run_reflector", "run_curator"} {
		path := filepath.Join(dir, filepath.FromSlash(ace.RunLogsDir(ace.WorkflowID(in.TaskID), runID)),
			step+"-0-1.jsonl")
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o400 {
			t.Errorf("%s: %v", path, err)
		}
	}
	starts := 0
	for _, s := range a.Did("start") {
		if strings.Contains(s.Text, "--permission-mode=acceptEdits") {
			starts++
		}
	}
	if starts != 1 {
		t.Errorf("%d calls were allowed to edit; only the skills session may", starts)
	}

	full := agentTask("full", "x")
	full.SkillsConfig.PermissionMode = "full"
	full.Prompt = "SCENARIO: " + sayAll("42") + "; exit 0"
	_, err = result(t, e, full)
	var app *temporal.ApplicationError
	if !errors.As(err, &app) || !app.NonRetryable() ||
		!strings.Contains(app.Message(), "full permission is not allowed by policy") {
		t.Errorf("%v", err)
	}
}
