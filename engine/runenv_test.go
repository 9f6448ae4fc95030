package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"acescope/engine"
	"acescope/engine/ace"
	"acescope/engine/agents/agentcli/agentclitest"
	"acescope/engine/agents/session"
	"acescope/engine/tasks/blueprint"
	"acescope/engine/tasks/run"
	"acescope/engine/tasks/runner"
	"acescope/engine/tasks/runner/host"
)

// runEnv is a data directory with everything that runs need, all real except stand-ins for
// agents: server, workflows, dispatcher, runners, executor and sessions. This process reads,
// makes requests, and has runners; another process, which may die, executes workflows.
type runEnv struct {
	e     *engine.Engine
	runs  *engine.Runs
	t     *testing.T
	dir   string
	work  string // the working directory of runs
	agent *agentclitest.Agent

	servers []*process // ended last, so that runners can leave

	mu      sync.Mutex
	started []run.Input
}

// testBlueprints are the blueprints of an environment.
var testBlueprints = map[string]string{
	"quick": `{"name":"quick","description":"Ends at once.","type":"deterministic","command":"echo '{\"ok\":true}'"}`,
	"gated": `{"name":"gated","description":"Waits for a file.","type":"deterministic","shell":true,
		"command":"echo $$ > $ACESCOPE_RUN_ID.pid; while [ ! -e $ACESCOPE_RUN_ID.go ]; do sleep 0.05; done; echo '{\"ok\":true}'"}`,
	"mover": `{"name":"mover","description":"Like gated, but may be repeated.","type":"deterministic","shell":true,"idempotent":true,"on_runner_loss":"move",
		"command":"echo $$ >> $ACESCOPE_RUN_ID.pid; while [ ! -e $ACESCOPE_RUN_ID.go ]; do sleep 0.05; done; echo '{\"ok\":true}'"}`,
	"deaf": `{"name":"deaf","description":"Ignores SIGTERM.","type":"deterministic","shell":true,
		"command":"trap '' TERM; echo $$ > $ACESCOPE_RUN_ID.pid; while [ ! -e $ACESCOPE_RUN_ID.go ]; do sleep 0.05; done"}`,
	"writer": `{"name":"writer","description":"Writes.","system_prompt":"Write."}`,
	"short":  `{"name":"short","description":"Times out after two seconds.","system_prompt":"Write.","timeout_seconds":2}`,
}

// library is a library of blueprints in files.
type library struct{ blueprint.Library }

func (l library) Load(name string) (run.Blueprint, func(json.RawMessage) (json.RawMessage, error), error) {
	b, err := l.Library.Load(name)
	if err != nil || b.Parameters == nil {
		return b.Blueprint, nil, err
	}
	return b.Blueprint, b.Parameters.Check, nil
}

// newRunEnv creates an environment whose server runs in this process unless another process is to host
// it.
func newRunEnv(t *testing.T, hosted bool) *runEnv {
	t.Helper()
	s := &runEnv{t: t, dir: t.TempDir(), work: t.TempDir(), agent: agentclitest.New(t, "claude")}
	t.Cleanup(func() {
		for _, p := range s.servers {
			p.end()
		}
	})
	if hosted {
		s.open(engine.Options{Takeover: true})
	}
	return s
}

// open connects this process.
func (s *runEnv) open(o engine.Options) {
	s.t.Helper()
	o.DataDir, o.Version, o.NoRunner = s.dir, "test", true
	e := openEngine(s.t, o)
	lib := s.t.TempDir()
	for name, text := range testBlueprints {
		if err := os.Mkdir(filepath.Join(lib, name), 0o700); err != nil {
			s.t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(lib, name, "agent.json"), []byte(text), 0o600); err != nil {
			s.t.Fatal(err)
		}
	}
	s.e, s.runs = e, e.Runs(library{blueprint.Library{Dirs: []string{lib}}})
}

// startWorker starts a process that executes workflows.
func (s *runEnv) startWorker(kill *killAt) *process {
	s.t.Helper()
	p := startProgram(s.t, s.agent, "member", member{Dir: s.dir, Serve: true, Kill: kill})
	s.servers = append(s.servers, p)
	if kill == nil {
		p.waitLine("serving")
	}
	return p
}

// startRunnerProcess starts a runner in a process of its own.
func (s *runEnv) startRunnerProcess(m member) *process {
	s.t.Helper()
	m.Dir, m.Work = s.dir, s.work
	return startProgram(s.t, s.agent, "member", m).waitLine("runner " + string(host.Registered))
}

// startRunner starts a runner in this process.
func (s *runEnv) startRunner(m member) {
	s.t.Helper()
	m.Work = s.work
	o := m.options()
	up := make(chan struct{}, 100)
	o.OnEvent = func(e host.Event) {
		if e.Kind == host.Registered {
			up <- struct{}{}
		}
	}
	h, err := s.e.NewRunner(o)
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- h.Run(ctx, ctx.Done()) }()
	s.t.Cleanup(func() { cancel(); <-done })
	select {
	case <-up:
	case <-time.After(time.Minute):
		s.t.Fatalf("the runner did not register: %s", s.logs())
	}
}

// waitFor waits for a condition.
func (s *runEnv) waitFor(ok func() error) {
	s.t.Helper()
	if err := poll(ok); err != nil {
		s.t.Fatalf("%v\n%+v\n%s", err, s.view(), s.logs())
	}
}

func (s *runEnv) logs() string {
	data, _ := os.ReadFile(filepath.Join(s.dir, workerLog))
	return string(data[max(0, len(data)-8000):])
}

// startRun starts a run with defaults for missing fields.
func (s *runEnv) startRun(q run.Request) run.Input {
	s.t.Helper()
	if q.Prompt == "" && q.Parameters == nil {
		q.Parameters = noParameters
	}
	if q.ParentSessionID != "" {
		q.Mode = run.AsyncCallback
	}
	var in run.Input
	s.waitFor(func() (err error) {
		if q.RunID == "" {
			q.RunID = fmt.Sprintf("%s-%d", q.AgentName, time.Now().UnixNano())
		}
		ctx, cancel := context.WithTimeout(s.t.Context(), 10*time.Second)
		defer cancel()
		in, err = s.runs.Start(ctx, q)
		return err
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.started = append(s.started, in)
	return in
}

func requireTags(tags ...string) runner.Requirements { return runner.Requirements{Tags: tags} }

// waitRun waits for a state of a run.
func (s *runEnv) waitRun(in run.Input, ok func(run.State) bool) (st run.State) {
	s.t.Helper()
	s.waitFor(func() (err error) {
		if st, err = s.runs.State(s.t.Context(), in.RunID); err == nil && !ok(st) {
			data, _ := json.Marshal(st)
			err = fmt.Errorf("run %s did not reach the expected state: %s", in.RunID, data)
		}
		return err
	})
	return st
}

func hasStatus(status run.Status) func(run.State) bool {
	return func(st run.State) bool { return st.Status == status }
}

// result returns the result of a run.
func (s *runEnv) result(in run.Input) run.Result {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	r, err := s.runs.Await(ctx, in.RunID)
	if err != nil {
		st, _ := s.runs.State(s.t.Context(), in.RunID)
		data, _ := json.Marshal(st)
		s.t.Fatalf("%v: %s\n%+v\n%s", err, data, s.view(), s.logs())
	}
	return r
}

// expectResult checks how a run ends.
func (s *runEnv) expectResult(in run.Input, status run.Status, reason run.Reason) run.Result {
	s.t.Helper()
	r := s.result(in)
	if r.Status != status || r.Reason != reason {
		s.t.Errorf("run %s: %s %s %s", in.RunID, r.Status, r.Reason, r.Error)
	}
	return r
}

// release makes the program of a run end.
func (s *runEnv) release(in run.Input) {
	s.t.Helper()
	if err := os.WriteFile(filepath.Join(s.work, in.RunID+".go"), nil, 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// pids returns the process IDs of the programs of a run, at least n.
func (s *runEnv) pids(in run.Input, n int) (pids []string) {
	s.t.Helper()
	s.waitFor(func() error {
		data, err := os.ReadFile(filepath.Join(s.work, in.RunID+".pid"))
		if pids = strings.Fields(string(data)); len(pids) < n {
			return fmt.Errorf("the program of run %s was started %d times: %v", in.RunID, len(pids), err)
		}
		return nil
	})
	return pids
}

// waitDead waits until a process has ended.
func waitDead(t *testing.T, pid string) {
	t.Helper()
	eventually(t, func() error {
		if isAlive(pid) {
			return fmt.Errorf("process %s is still running", pid)
		}
		return nil
	})
}

// isAlive reports whether a process exists.
func isAlive(pid string) bool {
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	return err == nil && !strings.Contains(string(stat), ") Z ")
}

func (s *runEnv) view() (v runner.View) {
	ctx, cancel := context.WithTimeout(s.t.Context(), 5*time.Second)
	defer cancel()
	v, _ = s.e.Runners(ctx, runner.ViewOptions{})
	return v
}

// startParent starts a session that can be called back and waits until it is idle.
func (s *runEnv) startParent(id string) {
	s.t.Helper()
	s.startSession(id, "SCENARIO: say one")
	s.waitSession(id, turnsEnded(1))
}

// startSession starts a session that works on an instruction.
func (s *runEnv) startSession(id, text string) {
	s.t.Helper()
	s.waitFor(func() error {
		ctx, cancel := context.WithTimeout(s.t.Context(), 10*time.Second)
		defer cancel()
		_, err := s.e.StartSession(ctx, session.Input{SessionID: id, Agent: "claude", WorkingDir: s.work,
			First: &session.Message{ID: "first", Text: text}})
		return err
	})
}

// waitSession waits for a state of a session.
func (s *runEnv) waitSession(id string, ok func(session.State) bool) (st session.State) {
	s.t.Helper()
	s.waitFor(func() (err error) {
		if st, err = s.e.Describe(s.t.Context(), id); err == nil && !ok(st) {
			data, _ := json.Marshal(st)
			err = fmt.Errorf("session %s did not reach the expected state: %s", id, data)
		}
		return err
	})
	return st
}

// checkSettled checks the invariants at the end: each run has one outcome on which all sources agree,
// the dispatcher holds no slot, and each parent was notified once of each of its runs.
func (s *runEnv) checkSettled() {
	s.t.Helper()
	s.mu.Lock()
	started := s.started
	s.mu.Unlock()
	for _, in := range started {
		r := s.result(in)
		st := s.waitRun(in, func(st run.State) bool { return st.Status.Over() })
		if !r.Status.Over() || st.Status != r.Status || st.Result.Reason != r.Reason {
			s.t.Errorf("run %s: its result is %s %s, its state %s %s", in.RunID, r.Status, r.Reason,
				st.Status, st.Result.Reason)
		}
	}
	s.waitFor(func() error {
		ctx, cancel := context.WithTimeout(s.t.Context(), 5*time.Second)
		defer cancel()
		v, err := s.e.Runners(ctx, runner.ViewOptions{})
		if err != nil {
			return err
		}
		for _, r := range v.Runners {
			if r.Busy != 0 || len(r.Runs) != 0 {
				return fmt.Errorf("runner %s is busy: %+v", r.ID, v)
			}
		}
		if v.Waiting != 0 || v.Running != 0 {
			return fmt.Errorf("the dispatcher is not idle: %+v", v)
		}
		return nil
	})
	for _, in := range started {
		if in.Mode == run.AsyncCallback {
			s.waitNotified(in)
		}
	}
	for _, in := range started { // no session received a second callback
		if n := s.callbacks(in); in.Mode == run.AsyncCallback && n != 1 {
			s.t.Errorf("the parent of run %s was notified %d times", in.RunID, n)
		}
	}
}

// waitNotified waits until the parent of a run was notified.
func (s *runEnv) waitNotified(in run.Input) {
	s.t.Helper()
	s.waitFor(func() error {
		if s.callbacks(in) == 0 {
			return fmt.Errorf("the parent of run %s was not notified", in.RunID)
		}
		return nil
	})
}

// callbacks returns how often the agent of a parent was notified of a run.
func (s *runEnv) callbacks(in run.Input) (n int) {
	for _, turn := range s.agent.Did("turn") {
		n += strings.Count(turn.Text, `run="`+in.RunID+`" agent`)
	}
	return n
}

// clientOptions are the options of a process that neither hosts the server nor executes workflows.
var clientOptions = engine.Options{}

var errNotYet = errors.New("the expected state was not reached")

func messageOf(text string) session.Message {
	return session.Message{ID: fmt.Sprintf("m%d", time.Now().UnixNano()), Text: text}
}

// fillDispatcher sends so many notices to the dispatcher that it continues as new.
func (s *runEnv) fillDispatcher() {
	s.t.Helper()
	for i := range 21 {
		var notices runner.Notices
		for n := range 500 {
			notices = append(notices, runner.Notice{Kind: runner.Withdraw,
				Run: fmt.Sprintf("unknown-%d-%d", i, n)})
		}
		if err := s.e.Client.SignalWorkflow(s.t.Context(), runner.DispatcherID(ace.TaskQueue), "",
			runner.SignalNotices, notices); err != nil {
			s.t.Fatal(err)
		}
	}
}
