package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"acescope/engine"
	"acescope/engine/ace"
	"acescope/engine/tasks/blueprint"
	enginerun "acescope/engine/tasks/run"
	enginerunner "acescope/engine/tasks/runner"
	runnerhost "acescope/engine/tasks/runner/host"
	"acescope/engine/workflows"
)

// programs runs no-op programs: as runs of a blueprint on runners of this process, and as
// bare activities. The program copies its parameters to a pipe, which tells when its first
// byte came.
type programs struct {
	e      *engine.Engine
	verbs  *engine.Runs
	w      worker.Worker
	end    context.CancelFunc
	hosts  sync.WaitGroup
	queues []string
	pipe   *os.File
	path   string

	mu   sync.Mutex
	came map[int]chan time.Time
}

// benchRunner is the tag of the runners that are measured.
const benchRunner = "bench"

// programsChild is one attempt of the section runs.
func programsChild(ctx context.Context, s spec) (err error) {
	p, err := openPrograms(ctx, s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	var m runsMark
	kinds := [2]struct {
		one        func(context.Context, int) error
		first, end *series
	}{{p.start, &m.First, &m.End}, {p.bare, &m.BareFirst, &m.BareEnd}}
	for n := range warmup + s.Events {
		for i := range kinds {
			k := kinds[(i+n)%2]
			first, end, err := p.time(ctx, 2*n+i, k.one)
			if err != nil {
				return err
			}
			if n >= warmup {
				*k.first, *k.end = append(*k.first, first), append(*k.end, end)
			}
		}
	}
	fixed := s.Variant == bare
	for i := range 2 {
		name := s.Name + map[bool]string{true: "-fixed", false: "-matched"}[fixed]
		took, cpu, err := p.all(ctx, s, name, fixed, (i+1)*1_000_000)
		if err != nil {
			return err
		}
		if fixed {
			m.Fixed, m.FixedCPU = took, cpu
		} else {
			m.Matched, m.MatchedCPU = took, cpu
		}
		fixed = !fixed
	}
	return tell(m)
}

func openPrograms(ctx context.Context, s spec) (*programs, error) {
	p := &programs{came: map[int]chan time.Time{}, path: filepath.Join(s.Dir, "pipe")}
	if err := syscall.Mkfifo(p.path, 0o600); err != nil {
		return nil, err
	}
	var err error
	if p.pipe, err = os.OpenFile(p.path, os.O_RDWR, 0); err != nil {
		return nil, err
	}
	go p.listen()
	lib, err := p.blueprints(s.Dir)
	if err != nil {
		return nil, err
	}
	if p.e, err = engine.Open(ctx, engine.Options{DataDir: filepath.Join(s.Dir, "data"), Version: "bench", Worker: true, NoRunner: true}); err != nil {
		return nil, err
	}
	p.verbs = p.e.Runs(shelf{lib})
	p.w = worker.New(p.e.Client, bareQueue, worker.Options{})
	p.w.RegisterWorkflow(bareProgram)
	p.w.RegisterActivityWithOptions(execProgram, activity.RegisterOptions{Name: "exec"})
	if err := p.w.Start(); err != nil {
		return nil, err
	}
	return p, p.serve(ctx, s.Dir)
}

// shelf gives runs the blueprints of a library.
type shelf struct{ blueprint.Library }

// Load implements [engine.Blueprints].
func (l shelf) Load(name string) (enginerun.Blueprint, func(json.RawMessage) (json.RawMessage, error), error) {
	b, err := l.Library.Load(name)
	return b.Blueprint, func(given json.RawMessage) (json.RawMessage, error) { return given, nil }, err
}

// blueprints writes the one blueprint that is run.
func (p *programs) blueprints(dir string) (blueprint.Library, error) {
	root := filepath.Join(dir, "agents")
	at := filepath.Join(root, "noop")
	if err := os.MkdirAll(at, 0o700); err != nil {
		return blueprint.Library{}, err
	}
	text, err := json.Marshal(map[string]any{"name": "noop", "type": "deterministic", "description": "does nothing", "command": "tee " + p.path,
		"parameter_strategy": "stdin_json", "demands": map[string]any{"tags": []string{benchRunner}}})
	if err != nil {
		return blueprint.Library{}, err
	}
	return blueprint.Library{Dirs: []string{root}}, os.WriteFile(filepath.Join(at, "agent.json"), text, 0o600)
}

// serve makes the runners work.
func (p *programs) serve(ctx context.Context, dir string) error {
	life, end := context.WithCancel(context.Background())
	p.end = end
	leases := make(chan enginerunner.Lease, runHosts)
	for i := range runHosts {
		h, err := p.e.NewRunner(runnerhost.Options{ID: fmt.Sprint("bench-", i), OnEvent: func(e runnerhost.Event) {
			if e.Kind == runnerhost.Registered {
				leases <- e.Lease
			}
		}, Capabilities: enginerunner.Capabilities{ProjectDir: dir, ExecutorTypes: []string{enginerunner.Deterministic}, Tags: []string{benchRunner}, Slots: runSlots}})
		if err != nil {
			return err
		}
		p.hosts.Go(func() {
			if err := h.Run(life, life.Done()); err != nil {
				fmt.Fprintln(os.Stderr, "acescope-bench: a runner has ended:", err)
			}
		})
	}
	for range runHosts {
		select {
		case l := <-leases:
			p.queues = append(p.queues, l.Queue)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// listen tells when the first byte of each program came.
func (p *programs) listen() {
	lines := bufio.NewScanner(p.pipe)
	lines.Split(scanObjects)
	for lines.Scan() {
		now := time.Now()
		var in struct{ N int }
		if json.Unmarshal(lines.Bytes(), &in) != nil {
			continue
		}
		p.mu.Lock()
		came := p.came[in.N]
		p.mu.Unlock()
		if came != nil {
			came <- now
		}
	}
}

// scanObjects splits text into objects without others in them.
func scanObjects(data []byte, _ bool) (int, []byte, error) {
	if end := bytes.IndexByte(data, '}') + 1; end > 0 {
		return end, data[:end], nil
	}
	return 0, nil, nil
}

// time runs one program and says after how many milliseconds its first byte came, and its
// result.
func (p *programs) time(ctx context.Context, n int, one func(context.Context, int) error) (first, end float64, err error) {
	came := make(chan time.Time, 1)
	p.mu.Lock()
	p.came[n] = came
	p.mu.Unlock()
	began := time.Now()
	if err := one(ctx, n); err != nil {
		return 0, 0, err
	}
	end = millis(time.Since(began))
	select {
	case at := <-came:
		return millis(at.Sub(began)), end, nil
	case <-ctx.Done():
		return 0, 0, ctx.Err()
	}
}

func parameters(n int) json.RawMessage { return json.RawMessage(fmt.Sprintf(`{"n":%d}`, n)) }

// start runs a program by the verbs.
func (p *programs) start(ctx context.Context, n int) error {
	in, err := p.verbs.Start(ctx, enginerun.Request{AgentName: "noop", Parameters: parameters(n)})
	if err != nil {
		return err
	}
	return p.result(ctx, in.RunID)
}

func (p *programs) result(ctx context.Context, runID string) error {
	r, err := p.verbs.Await(ctx, runID)
	if err == nil && r.Status != enginerun.Completed {
		err = fmt.Errorf("run %s: %s: %s", runID, r.Status, r.Error)
	}
	return err
}

// bare runs the same program by a workflow that does nothing else.
func (p *programs) bare(ctx context.Context, n int) error {
	r, err := p.e.Client.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: fmt.Sprint("bare-", n), TaskQueue: bareQueue}, bareProgram,
		[]string{"tee", p.path}, string(parameters(n)))
	if err != nil {
		return err
	}
	var out string
	return r.Get(ctx, &out)
}

// bareProgram is a workflow that runs a program in an activity.
func bareProgram(ctx workflow.Context, argv []string, input string) (out string, err error) {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Minute})
	err = workflow.ExecuteActivity(ctx, "exec", argv, input).Get(ctx, &out)
	return out, err
}

func execProgram(ctx context.Context, argv []string, input string) (string, error) {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Stdin = bytes.NewReader([]byte(input))
	out, err := cmd.Output()
	return string(out), err
}

// all runs many programs and says how many seconds that took, and how many milliseconds of
// CPU each.
func (p *programs) all(ctx context.Context, s spec, name string, fixed bool, from int) (seconds, cpuMS float64, err error) {
	model, err := p.verbs.Start(ctx, enginerun.Request{AgentName: "noop", Parameters: parameters(from - 1)})
	if err == nil {
		err = p.result(ctx, model.RunID)
	}
	if err != nil {
		return 0, 0, err
	}
	r := &queued{p, model, fixed}
	if err := many(ctx, r, runAtOnce, from, warmup); err != nil {
		return 0, 0, err
	}
	stop, err := profile(s, name)
	if err != nil {
		return 0, 0, err
	}
	defer stop()
	at, cpu := time.Now(), ownCPU()
	err = many(ctx, r, runAtOnce, from+warmup, s.Tasks)
	return time.Since(at).Seconds(), (ownCPU() - cpu).Seconds() * 1000 / float64(s.Tasks), err
}

// queued are runs that are started without the verbs, so that nothing but the task queue
// makes the difference.
type queued struct {
	*programs
	model enginerun.Input
	fixed bool
}

func (q *queued) one(ctx context.Context, n int) error {
	in := q.model
	in.RunID, in.SessionID = fmt.Sprintf("run_%012d", n), fmt.Sprintf("ses_%012d", n)
	in.Parameters, in.CreatedAt = parameters(n), time.Now().UTC()
	if q.fixed {
		in.Queue = q.queues[n%len(q.queues)]
	}
	_, err := q.e.Client.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: enginerun.WorkflowID(in.RunID), TaskQueue: ace.TaskQueue,
		TypedSearchAttributes: workflows.RunAttributes(in), Memo: map[string]any{enginerun.MemoKey: enginerun.Memo{SessionID: in.SessionID, Type: in.Type, AgentName: in.Name()}}},
		enginerun.Workflow, in)
	if err != nil {
		return err
	}
	return q.result(ctx, in.RunID)
}

func (p *programs) close() error {
	if p.end != nil {
		p.end()
	}
	p.hosts.Wait()
	p.w.Stop()
	ctx, cancel := context.WithTimeout(context.Background(), stopPatience)
	defer cancel()
	return errors.Join(p.e.Close(ctx), p.pipe.Close())
}
