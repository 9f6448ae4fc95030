//go:build bench

package bench

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"acescope/engine"
	"acescope/engine/ace"
	"acescope/engine/learning/model"
	"acescope/engine/learning/playbook"
	embedded "acescope/engine/temporal/server"
)

const (
	// calls is how many tool calls a task makes. Each is two tool events.
	calls = 10
	// bareSteps is how many activities the bare task has. A task of acescope has five.
	bareSteps = 4
	// linger is how many milliseconds a session lasts after its calls in the second comparison:
	// long enough that acescope sends the events, as for real sessions. A shorter session leaves
	// them to its result.
	linger = 60
	// turn is how many tasks a child runs before it is the turn of the other one. Turns are short
	// so that other load of the machine affects both.
	turn = 100
	// group is how many tasks share an experiment, by which the list can be filtered.
	group = 1000
	// warmup is how many tasks run before the clock starts.
	warmup = 16
)

// noop is a provider whose steps do nothing, but whose sessions call tools.
type noop struct {
	calls  int
	before time.Duration // the calls
	each   time.Duration // duration of a call
	pause  time.Duration // after each call
	linger time.Duration // after all calls
	began  func()        // called by the first step; may be nil
}

func (*noop) Name() string         { return "noop" }
func (*noop) About() string        { return "does nothing, for measurements" }
func (*noop) DefaultModel() string { return "none" }

func (n *noop) Generate(context.Context, ace.GeneratorInput, *playbook.Playbook) (ace.GeneratorResult,
	error) {
	if n.began != nil {
		n.began()
	}
	used := ace.StepReport{Usage: &ace.Usage{InputTokens: 100, OutputTokens: 10}}
	return ace.GeneratorResult{Plan: "nothing", StepReport: used}, nil
}

func (n *noop) Skills(ctx context.Context, _ ace.SkillsInput, _ *playbook.Playbook, tools model.Toolbox) (
	ace.SkillSessionResult, error) {
	err := sleep(ctx, n.before)
	for i := 0; i < n.calls && err == nil; i++ {
		_, err = tools.Call(ctx, "calculate", map[string]int{"n": i}, func(ctx context.Context) (any, error) {
			return map[string]int{"value": i}, sleep(ctx, n.each)
		})
		if err == nil {
			err = sleep(ctx, n.pause)
		}
	}
	if err != nil {
		return ace.SkillSessionResult{}, err
	}
	return ace.SkillSessionResult{Answer: "42"}, sleep(ctx, n.linger)
}

func (*noop) Reflect(context.Context, ace.ReflectorInput, *playbook.Playbook) (ace.ReflectorResult, error) {
	correct := true
	return ace.ReflectorResult{Insights: "none", Correct: &correct}, nil
}

func (*noop) Curate(context.Context, ace.CuratorInput, *playbook.Playbook) (ace.CuratorResult, error) {
	return ace.CuratorResult{Rationale: "none"}, nil
}

// runner starts tasks. Start returns when the start is acknowledged; wait waits for the result.
type runner interface {
	start(ctx context.Context, n int) (wait func(context.Context) error, err error)
	close()
}

// ours runs tasks on acescope's engine.
type ours struct {
	*engine.Engine
	calls int // of each task
}

func openOurs(ctx context.Context, s spec, p *noop) runner {
	o := engine.Options{DataDir: s.Dir, Version: "bench", Worker: true, Providers: []model.Provider{p}}
	return ours{must(engine.Open(ctx, o)), p.calls}
}

func experimentOf(n int) string { return fmt.Sprintf("bench-%03d", n/group) }

func taskInput(n int) ace.TaskInput {
	label := "42"
	return ace.TaskInput{TaskID: fmt.Sprintf("bench-%06d", n), Prompt: "a task that does nothing",
		Label:   &label,
		Adapter: ace.Offline, Provider: "noop", Model: "none", ExperimentID: experimentOf(n),
		DatasetID: "bench"}
}

func (r ours) start(ctx context.Context, n int) (func(context.Context) error, error) {
	in := taskInput(n)
	runID, err := r.StartTask(ctx, in)
	return func(ctx context.Context) error {
		var result ace.TaskResult
		if err := r.Client.GetWorkflow(ctx, ace.WorkflowID(in.TaskID), runID).Get(ctx, &result); err != nil {
			return err
		}
		if result.ExitStatus != ace.ExitSuccess || result.Summary.Skills != r.calls {
			return fmt.Errorf("task %s: %s with %d tool calls", in.TaskID, result.ExitStatus,
				result.Summary.Skills)
		}
		return nil
	}, err
}

func (r ours) close() { stopIn(r.Close) }

const (
	bareQueue  = "bare"
	bareSignal = "tool_event"
	bareEvents = 2 * calls // signals of a bare task, one for each tool event
)

// bareEvent is the payload of a signal.
type bareEvent struct {
	ID   int
	Name string
	Args map[string]int
	OK   bool
	At   time.Time
}

// bare runs tasks as a first attempt would: activities in a row, the second of which reports every
// tool event with a signal of its own.
type bare struct {
	client.Client
	worker worker.Worker
	stop   func() error // the server
	noop   *noop
}

// openBare runs bare tasks on acescope's embedded server.
func openBare(ctx context.Context, s spec, p *noop) runner {
	node := must(embedded.Join(ctx, embedded.Options{Dir: s.Dir, Version: "bench"}))
	c := must(node.Dial(ctx, node.ClientOptions()))
	return startBare(c, p, func() error { return node.Close(context.Background()) })
}

func startBare(c client.Client, p *noop, stop func() error) runner {
	r := &bare{Client: c, worker: worker.New(c, bareQueue, worker.Options{}), stop: stop, noop: p}
	r.worker.RegisterWorkflow(bareWorkflow)
	r.worker.RegisterActivityWithOptions(r.step, activity.RegisterOptions{Name: "step"})
	r.worker.RegisterActivityWithOptions(r.skills, activity.RegisterOptions{Name: "skills"})
	check(r.worker.Start())
	return r
}

func bareWorkflow(ctx workflow.Context) (int, error) {
	var events []bareEvent
	workflow.Go(ctx, func(ctx workflow.Context) {
		signals := workflow.GetSignalChannel(ctx, bareSignal)
		for {
			var e bareEvent
			signals.Receive(ctx, &e)
			events = append(events, e)
		}
	})
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Minute})
	for i := range bareSteps {
		name := "step"
		if i == 1 {
			name = "skills"
		}
		if err := workflow.ExecuteActivity(ctx, name).Get(ctx, nil); err != nil {
			return 0, err
		}
	}
	err := workflow.Await(ctx, func() bool { return len(events) >= bareEvents })
	return len(events), err
}

func (r *bare) step(context.Context) error {
	if r.noop.began != nil {
		r.noop.began()
	}
	return nil
}

func (r *bare) skills(ctx context.Context) error {
	run := activity.GetInfo(ctx).WorkflowExecution
	for i := range bareEvents {
		e := bareEvent{ID: i, Name: "calculate", Args: map[string]int{"n": i}, OK: true, At: time.Now()}
		if err := r.SignalWorkflow(ctx, run.ID, run.RunID, bareSignal, e); err != nil {
			return err
		}
	}
	return sleep(ctx, r.noop.linger)
}

func (r *bare) start(ctx context.Context, n int) (func(context.Context) error, error) {
	o := client.StartWorkflowOptions{ID: fmt.Sprintf("bare-%06d", n), TaskQueue: bareQueue}
	run, err := r.ExecuteWorkflow(ctx, o, bareWorkflow)
	return func(ctx context.Context) error {
		var events int
		if err := run.Get(ctx, &events); err != nil {
			return err
		}
		if events != bareEvents {
			return fmt.Errorf("bare task %d: %d events", n, events)
		}
		return nil
	}, err
}

func (r *bare) close() {
	r.worker.Stop()
	r.Close()
	check(r.stop())
}

// mark is what a load child used for some tasks. The CPU is of the process, which contains the
// server, the worker and the client.
type mark struct {
	Tasks   int     `json:"tasks"`
	Seconds float64 `json:"seconds"`
	CPU     float64 `json:"cpu"` // seconds
	PeakMB  float64 `json:"peak_mb"`
}

func (m mark) add(next mark) mark {
	next.Tasks, next.Seconds, next.CPU = m.Tasks+next.Tasks, m.Seconds+next.Seconds, m.CPU+next.CPU
	return next
}

func (m mark) perSecond() float64 { return float64(m.Tasks) / m.Seconds }
func (m mark) cpuMS() float64     { return m.CPU * 1000 / float64(m.Tasks) }

// loadChild runs tasks and answers with a mark after each turn. After s.Alone tasks it waits for a
// line of input before each turn.
func loadChild(ctx context.Context, s spec) {
	open, atOnce := openOurs, 8
	if s.Bare {
		open = openBare
	}
	if s.Linger > 0 {
		atOnce = 24 // with 8, waiting would bound the throughput
	}
	r := open(ctx, s, &noop{calls: calls, linger: time.Duration(s.Linger) * time.Millisecond})
	defer r.close()
	check(runTasks(ctx, r, atOnce, 900_000, warmup))
	turns := bufio.NewReader(os.Stdin)
	for from := 0; from < s.Tasks; from += turn {
		if from >= s.Alone {
			must(turns.ReadString('\n'))
		}
		began := time.Now()
		before, _ := ownUsage()
		check(runTasks(ctx, r, atOnce, from, turn))
		cpu, peak := ownUsage()
		answer(mark{Tasks: turn, Seconds: time.Since(began).Seconds(), CPU: (cpu - before).Seconds(),
			PeakMB: peak})
	}
	s.profileHeap()
}

// runTasks runs count tasks, numbered from first, atOnce at a time.
func runTasks(ctx context.Context, r runner, atOnce, first, count int) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var wg sync.WaitGroup
	for range atOnce {
		wg.Go(func() {
			for n := int(next.Add(1)) - 1; n < count && ctx.Err() == nil; n = int(next.Add(1)) - 1 {
				wait, err := r.start(ctx, first+n)
				if err == nil {
					err = wait(ctx)
				}
				if err != nil {
					cancel(fmt.Errorf("task %d: %w", first+n, err))
				}
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}

// load is a load child and the sum of its turns.
type load struct {
	*process
	sum mark
}

// turn runs one turn of the child.
func (l *load) turn() {
	must(fmt.Fprintln(l.in, "go"))
	var m mark
	l.read(&m)
	l.sum = l.sum.add(m)
}

// takeTurns lets two children take turns until they have run their tasks.
func takeTurns(a, b *load, turns int) {
	for range turns {
		a.turn()
		b.turn()
	}
	a.wait()
	b.wait()
}

// tasks compares the throughput of acescope's tasks with that of a bare worker.
func tasks(b *bench) {
	for _, ms := range []int{0, linger} {
		what := "20 tool events, short sessions"
		if ms > 0 {
			what = fmt.Sprintf("20 tool events, sessions of %d ms", ms)
		}
		b.compareBoth(b.size.runs, []figure{
			{what: what, unit: "tasks/s", target: "≥ 1.8×"},
			{what: what, unit: "ms CPU a task", speedup: true},
		}, func() (_, _ []float64) {
			s := spec{Kind: "load", Dir: b.tempDir(), Linger: ms, Tasks: b.size.tasks}
			ours := &load{process: b.child(s)}
			s.Dir, s.Bare = b.tempDir(), true
			peer := &load{process: b.child(s)}
			takeTurns(ours, peer, b.size.tasks/turn)
			return []float64{ours.sum.perSecond(), ours.sum.cpuMS()},
				[]float64{peer.sum.perSecond(), peer.sum.cpuMS()}
		})
	}
}

// growth runs many tasks on one data directory. The last tenth takes turns with the first tasks of
// an empty directory, so that other load of the machine affects both.
func growth(b *bench) {
	what := fmt.Sprintf("last %d of %d tasks against an empty directory, in turns", b.size.growth/10,
		b.size.growth)
	b.compareBoth(1, []figure{
		{what: what, unit: "tasks/s", target: "≥ 0.8×"},
		{what: what, unit: "ms CPU a task", speedup: true},
		{what: "last tenth against the first, minutes apart", unit: "tasks/s"},
		{what: "last tenth against the first, minutes apart", unit: "ms CPU a task", speedup: true},
		{what: "peak resident, at the end against after a tenth", unit: "MB"},
	}, func() (_, _ []float64) {
		first, last, fresh := b.fill(b.size.growth)
		return []float64{last.perSecond(), last.cpuMS(), last.perSecond(), last.cpuMS(), last.PeakMB},
			[]float64{fresh.perSecond(), fresh.cpuMS(), first.perSecond(), first.cpuMS(), first.PeakMB}
	})
}

// fill creates the data directory with count closed runs, for the sections that need it. It returns
// what the first and the last tenth used, and a tenth on an empty directory.
func (b *bench) fill(count int) (first, last, fresh mark) {
	dir, tenth := b.filled(count), count/10
	check(os.RemoveAll(dir))
	tmp := b.tempDir()
	full := &load{process: b.child(spec{Kind: "load", Dir: tmp, Tasks: count, Alone: count - tenth})}
	for done := tenth; done < count; done += tenth {
		var sum mark
		for range tenth / turn {
			var m mark
			full.read(&m)
			sum = sum.add(m)
		}
		b.progress("  %6d tasks: %5.1f tasks/s, %5.1f ms CPU a task, peak %4.0f MB",
			done, sum.perSecond(), sum.cpuMS(), sum.PeakMB)
		if done == tenth {
			first = sum
		}
	}
	empty := &load{process: b.child(spec{Kind: "load", Dir: b.tempDir(), Tasks: tenth})}
	takeTurns(full, empty, tenth/turn)
	check(os.Rename(tmp, dir))
	return first, full.sum, empty.sum
}

func (b *bench) filled(count int) string { return filepath.Join(b.dir, fmt.Sprintf("runs-%d", count)) }

// ensureFilled returns the directory with closed runs and creates it if it is missing.
func (b *bench) ensureFilled() string {
	dir := b.filled(b.size.list)
	if !exists(dir) {
		b.progress("  creating %d closed runs in %s, once", b.size.list, dir)
		b.fill(b.size.list)
	}
	return dir
}
