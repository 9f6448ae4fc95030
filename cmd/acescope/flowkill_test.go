package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"acescope/engine"
	"acescope/engine/agents/agentcli/agentclitest"
	"acescope/engine/flow"
	flows "acescope/engine/flow/library"
	"acescope/engine/learning/model/llm/llmtest"
	"acescope/engine/learning/playbook"
	"acescope/engine/temporal/replay"
	"acescope/engine/workflows"
	"acescope/sources/cluster"
)

// flowKill is a run of a shipped flow whose worker is killed after each operation.
type flowKill struct {
	flow    string
	inputs  string // JSON
	files   map[string]string
	prepare func(*killEnv)
	answer  func() func(llmtest.Request) llmtest.Reply // of the model server
	approve bool                                       // a person approves, while no worker runs
	want    string                                     // output that the run must have
	calls   map[string]int                             // executions by program, agent and model
	kills   int
}

var flowKills = map[string]flowKill{
	"build": {
		flow:   "package-build",
		inputs: `{"prompt": "count words", "check": ["sh", "-c", "echo check >> programs.log; test -e done.txt"]}`,
		files: map[string]string{agentclitest.RulesFile: `is not finished => write done.txt yes
to scaffold the package => say {"tasks": [{"id": "s1", "title": "Lay the base", "instructions": "make files"}]}
to implement the package => say {"tasks": [{"id": "t2", "title": "Count", "instructions": "c", "needs": ["t1"]}, ` +
			`{"id": "t1", "title": "Parse", "instructions": "p"}]}
You plan a package => say first the base, then the rest
`},
		want:  `"succeeded":true`,
		calls: map[string]int{"check": 4, "agent": 7}, // a plan, two breakdowns, three tasks and a repair
		kills: 15,
	},
	"review by an agent": {
		flow:    "code-review",
		inputs:  `{}`,
		files:   map[string]string{agentclitest.RulesFile: "Review the change => say " + findings},
		prepare: (*killEnv).addChange,
		approve: true,
		want:    `"approved":true`,
		calls:   map[string]int{"git": 1, "agent": 1},
		kills:   3,
	},
	"review by a model": {
		flow:    "code-review",
		inputs:  `{"reviewer": "openai", "model": "m-1"}`,
		prepare: (*killEnv).addChange,
		answer: func() func(llmtest.Request) llmtest.Reply {
			return llmtest.Script(llmtest.Reply{Text: findings})
		},
		approve: true,
		want:    `"approved":true`,
		calls:   map[string]int{"git": 1, "model": 1},
		kills:   3,
	},
	// Two parts of tasks, and in each part two concurrent operations.
	"evaluation": {
		flow: "nightly-evaluation",
		inputs: `{"playbook": "night", "baseline": "none", "dataset": "tasks.jsonl", "provider": "openai",
			"model": "m-1"}`,
		files:   map[string]string{"tasks.jsonl": strings.Repeat(zork, 21)},
		prepare: (*killEnv).addPlaybooks,
		answer:  evaluated,
		want:    `"baseline_correct":0,`,
		// With the playbook: a plan, a tool call and an answer. Without: a plan and an answer.
		calls: map[string]int{"acescope": 4, "model": 21*3 + 21*2},
		kills: 6, // of 8 operations, of which twice two are concurrent
	},
	"learning": {
		flow:   "ace-loop",
		inputs: `{"dataset": "tasks.jsonl", "branch": "night", "provider": "openai", "model": "m-1"}`,
		files:  map[string]string{"tasks.jsonl": zork + zork},
		answer: curatedZork,
		want:   `"correct":1,`,
		// For each task a plan, an answer, a reflection and the curator's operations, and for the second a
		// tool call.
		calls: map[string]int{"acescope": 1, "model": 4 + 5},
		kills: 16,
	},
}

const (
	findings = `{"findings": [{"file": "bad.go", "line": 1, "problem": "it does nothing"}]}`
	zork     = `{"context": "What is the zork of 7?", "target": "22"}` + "\n"
)

// curatedZork answers as a model that learns the rule of zork from the first task.
func curatedZork() func(llmtest.Request) llmtest.Reply {
	phases := modelLearner(map[string]string{"zork": "3*x+1"})
	curate := llmtest.Script(llmtest.Reply{Text: `{"reasoning": "new", "operations":
		[{"type": "ADD", "section": "Formulas & Calculations", "content": "zork of x: 3*x+1"}]}`},
		llmtest.Reply{Text: `{"reasoning": "known", "operations": []}`})
	return func(q llmtest.Request) llmtest.Reply {
		if strings.Contains(q.Last(), "You curate a playbook") {
			return curate(q)
		}
		return phases(q)
	}
}

// evaluated answers as a model that knows the rule of zork only from the playbook. The evaluations with the
// playbook and with the baseline proceed task by task, so that none ends before the other has begun.
func evaluated() func(llmtest.Request) llmtest.Reply {
	phases := modelLearner(nil)
	asked := map[bool]chan struct{}{true: make(chan struct{}), false: make(chan struct{})}
	return func(q llmtest.Request) llmtest.Reply {
		if roleOf(q) == "generator" {
			knows := strings.Contains(q.System, "zork of x")
			select {
			case asked[knows] <- struct{}{}:
			case <-asked[!knows]:
			case <-time.After(time.Minute):
				return llmtest.Reply{Status: 400, Text: "the other evaluation does not proceed"}
			}
		}
		return phases(q)
	}
}

// killEnv is a server in the process of the test, and what the workers of a run need.
type killEnv struct {
	*testing.T
	e      *engine.Engine
	data   string // directory
	agent  *agentclitest.Agent
	models *llmtest.Server // nil without a model server
	bin    string          // directory of programs
	work   string          // directory of the run
}

// addChange makes the directory of the run a Git repository with a change, and counts the calls of git in it.
func (s *killEnv) addChange() {
	git, err := exec.LookPath("git")
	if err != nil {
		s.Skip("git is not installed")
	}
	s.write(filepath.Join(s.work, "bad.go"), "package bad\n")
	for _, args := range [][]string{{"init", "-q", "-b", "main"},
		{"-c", "user.name=n", "-c", "user.email=e@example.org", "commit", "-q", "--allow-empty", "-m",
			"start"},
		{"add", "bad.go"}} {
		cmd := exec.Command(git, args...)
		cmd.Dir = s.work
		if out, err := cmd.CombinedOutput(); err != nil {
			s.Fatalf("git %q: %s", args, out)
		}
	}
	s.write(filepath.Join(s.bin, "git"), "#!/bin/sh\necho git >> "+programsLog+"\nexec "+git+` "$@"`+"\n")
}

// addPlaybooks adds a branch with the rule of zork and an empty one.
func (s *killEnv) addPlaybooks() {
	for branch, book := range map[string]*playbook.Playbook{"none": {},
		"night": {NextID: 2, Bullets: []playbook.Bullet{
			{ID: "calc-00001", Section: "Formulas & Calculations", Content: "zork of x: 3*x+1"}}}} {
		hash, err := s.e.Books.Put(s.Context(), book)
		if err == nil {
			_, err = s.e.Books.Start(s.Context(), branch, hash)
		}
		if err != nil {
			s.Fatal(err)
		}
	}
}

func (s *killEnv) write(path, text string) {
	s.Helper()
	if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
		s.Fatal(err)
	}
}

// newKillEnv prepares a run.
func newKillEnv(t *testing.T, c flowKill) *killEnv {
	s := &killEnv{T: t, agent: agentclitest.New(t, "claude"), bin: t.TempDir(), work: t.TempDir()}
	s.e, s.data = hostEngine(t, false)
	if c.answer != nil {
		s.models = llmtest.New(c.answer())
		t.Cleanup(s.models.Close)
	}
	for name, text := range c.files {
		s.write(filepath.Join(s.work, name), text)
	}
	if c.prepare != nil {
		c.prepare(s)
	}
	return s
}

// startWorker starts a process that executes runs. One that is to be killed kills itself as soon as the
// server has the result of an operation.
func (s *killEnv) startWorker(killed bool) *killedProcess {
	s.Helper()
	config, err := json.Marshal(flowWorker{Dir: s.data, Killed: killed})
	if err != nil {
		s.Fatal(err)
	}
	cmd := exec.Command("acescope")
	path := strings.Join([]string{s.bin, s.agent.Dir(), os.Getenv("PATH")}, string(os.PathListSeparator))
	cmd.Env = append(os.Environ(), flowWorkerEnv+"="+string(config), "PATH="+path, "HOME="+s.data,
		"CLAUDE_CONFIG_DIR="+s.agent.ConfigDir(), programsLogEnv+"="+filepath.Join(s.work, programsLog))
	if s.models != nil {
		cmd.Env = append(cmd.Env, "OPENAI_BASE_URL="+s.models.URL+"/v1")
	}
	cmd.Stderr = os.Stderr
	if _, err := cmd.StdinPipe(); err != nil {
		s.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		s.Fatal(err)
	}
	p := &killedProcess{cmd: cmd, gone: make(chan struct{})}
	go func() {
		_ = cmd.Wait()
		close(p.gone)
	}()
	s.Cleanup(p.kill)
	return p
}

// killedProcess is a worker that is killed by itself or by the test.
type killedProcess struct {
	cmd  *exec.Cmd
	gone chan struct{}
}

func (p *killedProcess) kill() {
	_ = p.cmd.Process.Kill()
	<-p.gone
}

// start starts the run.
func (s *killEnv) start(c flowKill) {
	s.Helper()
	entry, err := flows.Library{}.Find(c.flow)
	if err != nil {
		s.Fatal(err)
	}
	inputs, err := entry.Flow.CheckInputs(json.RawMessage(c.inputs))
	if err != nil {
		s.Fatal(err)
	}
	in := flow.Input{Name: entry.Name, Digest: entry.Source.Digest(), Source: entry.Source,
		Language: flow.Language,
		Inputs:   inputs, Dir: s.work}
	o := client.StartWorkflowOptions{ID: killedRun, TaskQueue: s.e.TaskQueue,
		TypedSearchAttributes: workflows.FlowAttributes(in.Name),
		WorkflowTaskTimeout:   time.Second} // the worker that dies may have the next task already
	if _, err := s.e.Client.ExecuteWorkflow(s.Context(), o, flow.Workflow, in); err != nil {
		s.Fatal(err)
	}
}

const killedRun = flow.IDPrefix + "killed"

// await waits until the run is closed or waits for approval, or until the process has ended.
func (s *killEnv) await(p *killedProcess, approve bool) (closed, waits bool) {
	s.Helper()
	for limit := time.After(time.Minute); ; {
		select {
		case <-p.gone:
			return false, false
		case <-limit:
			s.Fatal("the run neither continues nor closes")
		case <-time.After(20 * time.Millisecond):
		}
		d, err := s.e.Client.DescribeWorkflowExecution(s.Context(), killedRun, "")
		if err == nil && d.GetWorkflowExecutionInfo().GetStatus() != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING {
			return true, false
		}
		if !approve {
			continue
		}
		if st, err := engine.FlowState(s.Context(), s.e, killedRun, ""); err == nil && len(st.Waiting()) > 0 {
			return false, true
		}
	}
}

// run executes the run, and returns its result and the number of killed workers.
func (s *killEnv) run(c flowKill, killed bool) (r flow.Result, kills int) {
	s.Helper()
	s.start(c)
	p := s.startWorker(killed)
	for approve := c.approve; ; {
		closed, waits := s.await(p, approve)
		if closed {
			break
		}
		if killed {
			p.kill()
			kills++
		}
		if waits {
			approve = false
			d := flow.Decision{Approved: true, By: "Ann"}
			if _, err := engine.DecideFlow(s.Context(), s.e, killedRun, "", d); err != nil {
				s.Fatal(err)
			}
		}
		if killed {
			p = s.startWorker(killed)
		}
	}
	if err := s.e.Client.GetWorkflow(s.Context(), killedRun, "").Get(s.Context(), &r); err != nil {
		s.Fatal(err)
	}
	return r, kills
}

// executed returns how often programs, agents and models were called.
func (s *killEnv) executed() map[string]int {
	s.Helper()
	count := map[string]int{}
	data, err := os.ReadFile(filepath.Join(s.work, programsLog))
	if err != nil && !os.IsNotExist(err) {
		s.Fatal(err)
	}
	for _, name := range strings.Fields(string(data)) {
		count[name]++
	}
	if n := len(s.agent.Did("turn")); n > 0 {
		count["agent"] = n
	}
	if s.models != nil {
		count["model"] = len(s.models.Seen())
	}
	return count
}

// checkHistory checks that each operation was executed once, and that the run is deterministic.
func (s *killEnv) checkHistory(operations int) {
	s.Helper()
	events, err := cluster.ReadHistory(s.Context(), s.e.Client, s.e.Namespace(), killedRun, "")
	if err != nil {
		s.Fatal(err)
	}
	ids := map[int64]string{}
	for _, e := range events {
		if a := e.GetActivityTaskScheduledEventAttributes(); a != nil {
			ids[e.GetEventId()] = a.GetActivityId()
		}
		if a := e.GetActivityTaskStartedEventAttributes(); a.GetAttempt() > 1 {
			s.Errorf("%s was executed %d times, last after: %s", ids[a.GetScheduledEventId()], a.GetAttempt(),
				a.GetLastFailure().GetMessage())
		}
	}
	if len(ids) != operations {
		s.Errorf("%d operations in the result, in the history %v", operations, ids)
	}
	for _, strict := range []bool{false, true} {
		v := &replay.Verifier{Register: workflows.Register, Strict: strict}
		if got := v.Verify(s.Context(), events); got.Outcome != replay.Deterministic {
			s.Errorf("strict %v: %s %s %+v", strict, got.Outcome, got.Why, got.Divergence)
		}
	}
}

// TestFlowsKilledAfterEachStep kills the worker of each shipped flow after each operation whose result the
// server has, and while the run waits for approval: the next worker continues, and nothing is executed twice.
// The run has the outputs of one whose worker is not killed, and is deterministic.
func TestFlowsKilledAfterEachStep(t *testing.T) {
	t.Parallel()
	for name, c := range flowKills {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var outputs [2]map[string]any
			for i, killed := range []bool{false, true} {
				s := newKillEnv(t, c)
				r, kills := s.run(c, killed)
				if killed && kills != c.kills || !killed && kills > 0 {
					t.Errorf("killed %v: %d kills, %d operations", killed, kills, r.Operations)
				}
				s.checkHistory(r.Operations)
				outputs[i] = stable(r.Outputs)
				text, _ := json.Marshal(r.Outputs)
				if !strings.Contains(string(text), c.want) {
					t.Errorf("killed %v: outputs %s", killed, text)
				}
				if got := s.executed(); !reflect.DeepEqual(got, c.calls) {
					t.Errorf("killed %v: executed %v, want %v", killed, got, c.calls)
				}
			}
			if !reflect.DeepEqual(outputs[0], outputs[1]) {
				t.Errorf("outputs %v of a run that was killed, and %v of one that was not", outputs[1],
					outputs[0])
			}
		})
	}
}

// stable returns outputs without random values: the session and the paths of logs.
func stable(outputs map[string]any) map[string]any {
	delete(outputs, "session_id")
	tasks, _ := outputs["tasks"].([]any)
	for _, task := range tasks {
		delete(task.(map[string]any), "log")
	}
	return outputs
}
