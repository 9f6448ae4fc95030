//go:build unix

package engine_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"acescope/engine"
	"acescope/engine/ace"
	"acescope/engine/tasks/blueprint"
	"acescope/engine/tasks/run"
	"acescope/engine/tasks/runner"
	"acescope/engine/tasks/runner/host"
	"acescope/engine/workflows"
)

// openBench opens an engine with a worker and without a runner.
func openBench(b *testing.B) *engine.Engine {
	b.Helper()
	o := engine.Options{DataDir: b.TempDir(), Version: "bench", Worker: true, NoRunner: true}
	e, err := engine.Open(b.Context(), o)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second)
		defer cancel()
		if err := e.Close(ctx); err != nil {
			b.Error(err)
		}
	})
	return e
}

// inParallel calls do with the numbers from first to first+count-1, atOnce at a time.
func inParallel(b *testing.B, atOnce, first, count int, do func(n int) error) {
	b.Helper()
	var next atomic.Int64
	var wg sync.WaitGroup
	errs := make([]error, atOnce)
	for w := range atOnce {
		wg.Go(func() {
			for n := int(next.Add(1)) - 1; n < count && errs[w] == nil; n = int(next.Add(1)) - 1 {
				errs[w] = do(first + n)
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			b.Fatal(err)
		}
	}
}

// noopPrograms starts a no-op program: as a run of a blueprint on 8 runners of this process, or in a
// bare activity. The program copies its parameters to a pipe, which tells when its first byte came.
type noopPrograms struct {
	*engine.Engine
	b        *testing.B
	runs     *engine.Runs
	template run.Input // of a completed run
	queues   []string  // of the runners
	pipe     string

	mu    sync.Mutex
	bytes map[int]chan time.Time
}

const (
	programsQueue   = "bench-noopPrograms"
	programsRunners = 8
)

func openPrograms(b *testing.B) *noopPrograms {
	dir := b.TempDir()
	p := &noopPrograms{Engine: openBench(b), b: b, pipe: filepath.Join(dir, "pipe"),
		bytes: map[int]chan time.Time{}}
	if err := syscall.Mkfifo(p.pipe, 0o600); err != nil {
		b.Fatal(err)
	}
	pipe, err := os.OpenFile(p.pipe, os.O_RDWR, 0)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { pipe.Close() })
	go p.listen(pipe)
	text, err := json.Marshal(map[string]any{"name": "noop", "type": "deterministic",
		"description": "Does nothing.",
		"command":     "tee " + p.pipe, "parameter_strategy": "stdin_json",
		"demands": map[string]any{"tags": []string{"bench"}}})
	if err != nil {
		b.Fatal(err)
	}
	at := filepath.Join(dir, "agents", "noop")
	if err := os.MkdirAll(at, 0o700); err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(at, "agent.json"), text, 0o600); err != nil {
		b.Fatal(err)
	}
	p.runs = p.Runs(library{blueprint.Library{Dirs: []string{filepath.Dir(at)}}})
	w := worker.New(p.Client, programsQueue, worker.Options{})
	w.RegisterWorkflow(bareProgram)
	w.RegisterActivityWithOptions(execProgram, activity.RegisterOptions{Name: "exec"})
	if err := w.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(w.Stop)
	p.startRunners(dir)
	p.template, err = p.runs.Start(b.Context(), run.Request{AgentName: "noop", Parameters: parameters(-1)})
	if err == nil {
		err = p.await(p.template.RunID)
	}
	if err != nil {
		b.Fatal(err)
	}
	return p
}

func (p *noopPrograms) startRunners(dir string) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	p.b.Cleanup(func() {
		cancel()
		wg.Wait()
	})
	leases := make(chan runner.Lease, programsRunners)
	onEvent := func(e host.Event) {
		if e.Kind == host.Registered {
			leases <- e.Lease
		}
	}
	capabilities := runner.Capabilities{ProjectDir: dir, ExecutorTypes: []string{runner.Deterministic},
		Tags: []string{"bench"}, Slots: 4}
	for i := range programsRunners {
		h, err := p.NewRunner(host.Options{ID: fmt.Sprint("bench-", i), OnEvent: onEvent,
			Capabilities: capabilities})
		if err != nil {
			p.b.Fatal(err)
		}
		wg.Go(func() { _ = h.Run(ctx, ctx.Done()) })
	}
	for range programsRunners {
		select {
		case l := <-leases:
			p.queues = append(p.queues, l.Queue)
		case <-time.After(time.Minute):
			p.b.Fatal("not all runners have registered")
		}
	}
}

// listen notes when the parameters of each program come.
func (p *noopPrograms) listen(pipe *os.File) {
	lines := bufio.NewScanner(pipe)
	lines.Split(func(data []byte, _ bool) (int, []byte, error) { // objects without nested ones
		end := bytes.IndexByte(data, '}') + 1
		if end == 0 {
			return 0, nil, nil
		}
		return end, data[:end], nil
	})
	for lines.Scan() {
		now := time.Now()
		var in struct{ N int }
		if json.Unmarshal(lines.Bytes(), &in) != nil {
			continue
		}
		p.mu.Lock()
		came := p.bytes[in.N]
		p.mu.Unlock()
		if came != nil {
			came <- now
		}
	}
}

func parameters(n int) json.RawMessage { return json.RawMessage(fmt.Sprintf(`{"n":%d}`, n)) }

func (p *noopPrograms) await(runID string) error {
	r, err := p.runs.Await(p.b.Context(), runID)
	if err == nil && r.Status != run.Completed {
		err = fmt.Errorf("run %s: %s: %s", runID, r.Status, r.Error)
	}
	return err
}

// blueprintRun starts a run of the blueprint and waits for its result.
func (p *noopPrograms) blueprintRun(n int) error {
	in, err := p.runs.Start(p.b.Context(), run.Request{AgentName: "noop", Parameters: parameters(n)})
	if err != nil {
		return err
	}
	return p.await(in.RunID)
}

// bareActivity starts the program from a workflow that does nothing else.
func (p *noopPrograms) bareActivity(n int) error {
	o := client.StartWorkflowOptions{ID: fmt.Sprint("bare-", n), TaskQueue: programsQueue}
	r, err := p.Client.ExecuteWorkflow(p.b.Context(), o, bareProgram, []string{"tee", p.pipe},
		string(parameters(n)))
	if err != nil {
		return err
	}
	var out string
	return r.Get(p.b.Context(), &out)
}

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

// BenchmarkBlueprintRun measures one program after another, from its start to its first byte and to
// its result.
func BenchmarkBlueprintRun(b *testing.B) {
	for name, start := range map[string]func(*noopPrograms, int) error{
		"run": (*noopPrograms).blueprintRun, "activity": (*noopPrograms).bareActivity,
	} {
		b.Run(name, func(b *testing.B) {
			p := openPrograms(b)
			inParallel(b, 1, 900_000, 16, func(n int) error { return start(p, n) }) // warm up
			var first, end []float64
			n := 0
			for b.Loop() {
				n++
				came := make(chan time.Time, 1)
				p.mu.Lock()
				p.bytes[n] = came
				p.mu.Unlock()
				began := time.Now()
				if err := start(p, n); err != nil {
					b.Fatal(err)
				}
				end = append(end, time.Since(began).Seconds()*1000)
				first = append(first, (<-came).Sub(began).Seconds()*1000)
			}
			slices.Sort(first)
			slices.Sort(end)
			b.ReportMetric(first[len(first)/2], "first-p50-ms")
			b.ReportMetric(first[len(first)*95/100], "first-p95-ms")
			b.ReportMetric(end[len(end)/2], "end-p50-ms")
		})
	}
}

// BenchmarkManyRuns measures 16 runs at a time: matched to runners by the dispatcher, or with a
// fixed task queue.
func BenchmarkManyRuns(b *testing.B) {
	for _, fixed := range []bool{false, true} {
		b.Run(map[bool]string{false: "matched", true: "fixed"}[fixed], func(b *testing.B) {
			p := openPrograms(b)
			do := func(n int) error { return p.queuedRun(n, fixed) }
			inParallel(b, 16, 900_000, 16, do) // warm up
			cpu := cpuTime()
			b.ResetTimer()
			inParallel(b, 16, 0, b.N, do)
			b.StopTimer()
			b.ReportMetric(b.Elapsed().Seconds(), "total-s")
			b.ReportMetric((cpuTime()-cpu).Seconds()*1000/float64(b.N), "cpu-ms/run")
		})
	}
}

// queuedRun starts the workflow of a run without the checks of Start, so that only the task queue
// differs.
func (p *noopPrograms) queuedRun(n int, fixed bool) error {
	in := p.template
	in.RunID, in.SessionID = fmt.Sprintf("run_%012d", n), fmt.Sprintf("ses_%012d", n)
	in.Parameters, in.CreatedAt = parameters(n), time.Now().UTC()
	if fixed {
		in.Queue = p.queues[n%len(p.queues)]
	}
	memo := run.Memo{SessionID: in.SessionID, Type: in.Type, AgentName: in.Name()}
	o := client.StartWorkflowOptions{ID: run.WorkflowID(in.RunID), TaskQueue: ace.TaskQueue,
		TypedSearchAttributes: workflows.RunAttributes(in), Memo: map[string]any{run.MemoKey: memo}}
	if _, err := p.Client.ExecuteWorkflow(p.b.Context(), o, run.Workflow, in); err != nil {
		return err
	}
	return p.await(in.RunID)
}

// cpuTime returns the CPU time of this process.
func cpuTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// waitingRuns are the notices of a dispatcher with more runs than runners. IDs have nothing in
// common, as those of real runs, so that the state does not compress better than theirs.
type waitingRuns struct{}

func (waitingRuns) id(n int) string {
	return fmt.Sprintf("run_%012x", uint64(n+1)*0x9e3779b97f4a7c15>>16)
}

func (waitingRuns) registered(n int) runner.Notice {
	id := fmt.Sprintf("lnch_%012d", n)
	return runner.Notice{Kind: runner.Registered, Runner: id, Epoch: 1, Queue: "runner." + id + ".1",
		Registration: &runner.Registration{ID: id, Token: "bench", Capabilities: runner.Capabilities{
			Hostname: fmt.Sprint("host-", n), ProjectDir: "/srv", Slots: 1,
			ExecutorTypes: []string{runner.Deterministic},
			Tags:          []string{"linux", fmt.Sprint("tag-", n%20)}}}}
}

func (w waitingRuns) enqueued(n int, now time.Time) runner.Notice {
	needs := runner.Requirements{ExecutorType: runner.Deterministic, Tags: []string{fmt.Sprint("tag-", n%20)}}
	return runner.Notice{Kind: runner.Enqueue, Run: w.id(n), Request: &runner.Request{RunID: w.id(n), Try: 1,
		Name: "crawler", Asked: now, Deadline: now.Add(time.Hour), Requirements: needs}}
}

// BenchmarkDispatcher measures the dispatcher on a server with 200 busy runners and 5 waiting runs
// per iteration. In an iteration a run ends, and its runner gets another run.
func BenchmarkDispatcher(b *testing.B) {
	const runners, bySignal, endsBySignal = 200, 500, 20
	e := openBench(b)
	var w waitingRuns
	// Workflows that nothing executes take the signals to the runs.
	inParallel(b, 8, 0, runners+b.N, func(n int) error {
		o := client.StartWorkflowOptions{ID: run.WorkflowID(w.id(n)), TaskQueue: "bench-unserved"}
		_, err := e.Client.ExecuteWorkflow(b.Context(), o, "unserved")
		return err
	})
	send := func(notices runner.Notices) {
		o := client.StartWorkflowOptions{ID: runner.DispatcherID(ace.TaskQueue), TaskQueue: ace.TaskQueue}
		if _, err := e.Client.SignalWithStartWorkflow(b.Context(), runner.DispatcherID(ace.TaskQueue),
			runner.SignalNotices, notices, o,
			runner.DispatcherWorkflow); err != nil {
			b.Fatal(err)
		}
	}
	awaitMatched := func(count int) {
		for view := (runner.View{}); view.Matched < int64(count); time.Sleep(5 * time.Millisecond) {
			v, err := e.Client.QueryWorkflow(b.Context(), runner.DispatcherID(ace.TaskQueue), "",
				runner.QueryDispatcher,
				runner.ViewOptions{})
			if err == nil {
				err = v.Get(&view)
			}
			if err != nil {
				b.Fatal(err)
			}
		}
	}
	var all runner.Notices
	now := time.Now().UTC()
	for n := range runners {
		all = append(all, w.registered(n))
	}
	for n := range runners + 5*b.N {
		all = append(all, w.enqueued(n, now))
	}
	for part := range slices.Chunk(all, bySignal) {
		send(part)
	}
	awaitMatched(runners)
	b.ResetTimer()
	for n := 0; n < b.N; n += endsBySignal {
		var ended runner.Notices
		for i := n; i < min(n+endsBySignal, b.N); i++ {
			ended = append(ended, runner.Notice{Kind: runner.Withdraw, Run: w.id(i)})
		}
		send(ended)
		if n%runners == 0 { // a run can only end after it was matched
			awaitMatched(min(n+endsBySignal, b.N) + runners)
		}
	}
	awaitMatched(runners + b.N)
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "runs/s")
	reportDispatcher(b, e.Client, runners+b.N)
}

// reportDispatcher reports the histories of all runs of the dispatcher.
func reportDispatcher(b *testing.B, c client.Client, matched int) {
	var events, most, continued int64
	var mostBytes int64
	for runID := ""; ; continued++ {
		d, err := c.DescribeWorkflowExecution(b.Context(), runner.DispatcherID(ace.TaskQueue), runID)
		if err != nil {
			b.Fatal(err)
		}
		info := d.GetWorkflowExecutionInfo()
		events += info.GetHistoryLength()
		most, mostBytes = max(most, info.GetHistoryLength()), max(mostBytes, info.GetHistorySizeBytes())
		q := &workflowservice.GetWorkflowExecutionHistoryRequest{Namespace: ace.DefaultNamespace,
			MaximumPageSize: 1,
			Execution: &commonpb.WorkflowExecution{WorkflowId: runner.DispatcherID(ace.TaskQueue),
				RunId: info.GetExecution().GetRunId()}}
		got, err := c.WorkflowService().GetWorkflowExecutionHistory(b.Context(), q)
		if err != nil {
			b.Fatal(err)
		}
		first := got.GetHistory().GetEvents()[0]
		if first.GetEventType() != enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED {
			b.Fatalf("the first event of run %s is %s", runID, first.GetEventType())
		}
		if runID = first.GetWorkflowExecutionStartedEventAttributes().GetContinuedExecutionRunId(); runID == "" {
			break
		}
	}
	b.ReportMetric(float64(most), "max-events")
	b.ReportMetric(float64(mostBytes)/(1<<20), "max-MB")
	b.ReportMetric(float64(events)/float64(matched), "events/run")
	b.ReportMetric(float64(continued), "continued")
}
