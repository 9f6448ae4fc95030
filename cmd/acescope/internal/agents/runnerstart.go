package agents

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine"
	"acescope/engine/tasks/executor"
	"acescope/engine/tasks/run"
	"acescope/engine/tasks/runner"
	"acescope/engine/tasks/runner/host"
)

// runnerFlags are those of acescope runner start.
type runnerFlags struct {
	id         string
	tags       []string
	executors  []string
	paths      []string
	projectDir string
	anyProject bool
	slots      int
	drain      time.Duration
}

func runnerStartCommand(a *cli.App) *cobra.Command {
	var f runnerFlags
	cmd := &cobra.Command{
		Use:   "start",
		Short: "Run a runner: it registers, executes the runs that it can, and drains when it is interrupted",
		Long: "Runs a runner until it is interrupted. It registers with what it can do, and gets the runs whose demands that meets.\n" +
			"The first interrupt (or SIGTERM) lets the runs under way end, and takes no more; the second ends them.\n" +
			"Executors are deterministic, for programs, and claude-code, codex, gemini and opencode, for agents; with --executor-path,\n" +
			"a program of one's own, which is given an invocation (schema 2.2) and prints a result: its type is its directory's name.",
		Example: "acescope runner start --tags gpu,linux --project-dir ~/work --slots 2\n" +
			"acescope runner start --executor-path ./executors/my-agent/exec",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runnerStart(a, cmd.Context(), f) },
	}
	fl := cmd.Flags()
	fl.StringVar(&f.id, "id", "", "identity of the runner (default: of its host, directory and executors)")
	fl.StringSliceVar(&f.tags, "tags", nil, "tags that runs may demand, apart by commas; can be given again")
	fl.StringArrayVar(&f.executors, "executor", nil, "executor that acescope brings along; can be given again (default deterministic, and the agents that are installed)")
	fl.StringArrayVar(&f.paths, "executor-path", nil, "program that executes runs, of the type that its directory is named; can be given again")
	fl.StringVar(&f.projectDir, "project-dir", "", "directory that its runs work in (default the current one)")
	fl.BoolVar(&f.anyProject, "any-project", false, "its runs may work in any directory that they name")
	fl.IntVar(&f.slots, "slots", runtime.NumCPU(), "runs at a time")
	fl.DurationVar(&f.drain, "drain-timeout", 0, "how long runs under way are waited for (default as long as they take)")
	return cmd
}

// options are what the flags say, checked.
func (f runnerFlags) options() (o host.Options, err error) {
	if f.drain < 0 {
		return o, cli.UsageError("--drain-timeout %s: give a duration above 0, such as 5m", f.drain)
	}
	if f.slots < 1 || f.slots > host.MaxSlots {
		return o, cli.UsageError("--slots %d: give a number from 1 to %d", f.slots, host.MaxSlots)
	}
	if f.id != "" && !run.ValidName(f.id) {
		return o, cli.UsageError("--id %q: give letters, digits, dot, dash and underscore, 100 at most", f.id)
	}
	for _, tag := range f.tags {
		if !run.ValidName(strings.TrimSpace(tag)) {
			return o, cli.UsageError("--tags: %q is no tag: give letters, digits, dot, dash and underscore", tag)
		}
		o.Capabilities.Tags = append(o.Capabilities.Tags, strings.TrimSpace(tag))
	}
	for _, kind := range f.executors {
		if kind != runner.Deterministic && runner.Agent(kind) == "" {
			return o, cli.UsageError("--executor %q: there are deterministic, claude-code, codex, gemini and opencode; for a program of your own give --executor-path", kind)
		}
	}
	for _, path := range f.paths {
		x, err := executor.NewExternal(path)
		if err != nil {
			return o, cli.UsageError("--executor-path: %v", err)
		}
		o.External = append(o.External, x)
	}
	dir := f.projectDir
	if dir == "" {
		dir = "."
	}
	if dir, err = filepath.Abs(cli.Home(dir)); err != nil {
		return o, err
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return o, cli.UsageError("--project-dir %s: there is no such directory", dir)
	}
	o.ID, o.Drain = f.id, f.drain
	o.Capabilities.ProjectDir, o.Capabilities.AnyProject, o.Capabilities.Slots = dir, f.anyProject, f.slots
	o.Capabilities.ExecutorTypes = slices.Clone(f.executors)
	return o, nil
}

// RunnerEvent is something that happened to a runner.
type RunnerEvent struct {
	Type     string     `json:"type"` // runner_waits, runner_registered, runner_lease_lost, runner_run_began, runner_run_ended, runner_draining, runner_left
	At       time.Time  `json:"at"`
	RunnerID string     `json:"runner_id"`
	Epoch    int64      `json:"epoch,omitempty"`
	Queue    string     `json:"queue,omitempty"`
	Text     string     `json:"text,omitempty"`
	RunID    string     `json:"run_id,omitempty"`
	Name     string     `json:"name,omitempty"` // of the run's blueprint
	Status   run.Status `json:"status,omitempty"`
	Reason   run.Reason `json:"reason,omitempty"`
	Error    string     `json:"error,omitempty"`
	Seconds  *float64   `json:"duration_seconds,omitempty"`
}

// RunnerEvents are the types of [runnerEvent].
func RunnerEvents() (names []string) {
	for _, k := range []host.EventKind{host.Waiting, host.Registered, host.LeaseLost, host.RunStarted, host.RunEnded, host.Draining, host.Left} {
		names = append(names, "runner_"+string(k))
	}
	return names
}

func runnerStart(a *cli.App, ctx context.Context, f runnerFlags) error {
	o, err := f.options()
	if err != nil {
		return err
	}
	// The engine must outlive the first interrupt: the runs under way do.
	e, done, err := a.Connect(ctx, engine.Options{Worker: a.Cluster() == nil, NoRunner: true, Takeover: a.Cluster() == nil})
	if err != nil {
		return err
	}
	defer done()
	if err := chooseExecutors(a, e, f, &o.Capabilities); err != nil {
		return err
	}
	says := &runnerSays{a: a}
	o.OnEvent = says.tell
	h, err := e.NewRunner(o)
	if err != nil {
		return cli.UsageError("%v", err)
	}
	says.id = h.ID()
	force := make(chan struct{})
	stop := secondInterrupt(a, ctx, force)
	defer stop()
	err = h.Run(ctx, force)
	if errors.Is(err, host.ErrTaken) {
		return &cli.ExitError{Code: cli.ExitFailed, Err: fmt.Errorf("runner %s: %w", h.ID(), err)}
	}
	return err
}

// chooseExecutors takes those that are there, where the flags say none. The sessions of agents
// live where a data directory is served, so a runner of a cluster has none.
func chooseExecutors(a *cli.App, e *engine.Engine, f runnerFlags, c *runner.Capabilities) error {
	remote := a.Cluster() != nil
	switch {
	case len(f.executors) == 0 && len(f.paths) == 0 && remote:
		c.ExecutorTypes = []string{runner.Deterministic}
	case len(f.executors) == 0 && len(f.paths) == 0:
		c.ExecutorTypes = e.ExecutorTypes()
	case remote && slices.ContainsFunc(f.executors, func(kind string) bool { return runner.Agent(kind) != "" }):
		return cli.UsageError("--executor: a runner of a cluster executes programs, and what --executor-path names; agents' sessions need a data directory that is served")
	}
	return nil
}

// secondInterrupt closes force when an interrupt comes after the context is done.
func secondInterrupt(a *cli.App, ctx context.Context, force chan struct{}) (stop func()) {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	over := make(chan struct{})
	go func() {
		<-ctx.Done()
		for first := true; ; first = false {
			select {
			case <-over:
				return
			case <-signals:
				if !first {
					fmt.Fprintln(a.Err, "acescope: the runs under way are ended")
					close(force)
					return
				}
			}
		}
	}()
	return func() { signal.Stop(signals); close(over) }
}

// runnerSays tells what happens to a runner.
type runnerSays struct {
	a  *cli.App
	id string
	mu sync.Mutex
}

func (s *runnerSays) tell(e host.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := RunnerEvent{Type: "runner_" + string(e.Kind), At: time.Now().UTC(), RunnerID: s.id, Epoch: e.Lease.Epoch, Queue: e.Lease.Queue, Text: e.Text}
	if e.Run != nil {
		l.RunID, l.Name = e.Run.RunID, e.Run.Name()
	}
	if r := e.Result; r != nil {
		l.Status, l.Reason, l.Error, l.Seconds = r.Status, r.Reason, r.Error, &r.DurationSeconds
	}
	if s.a.JSON {
		_ = cli.NewLines(s.a.Out).Write(l) // nobody may read it any more; runs go on
		return
	}
	fmt.Fprintf(s.a.Out, "%s  %s\n", l.At.Local().Format(time.TimeOnly), cli.SafeText(l.words()))
}

// words is the event in one line.
func (l RunnerEvent) words() string {
	switch strings.TrimPrefix(l.Type, "runner_") {
	case string(host.Waiting):
		return "waits: " + l.Text
	case string(host.Registered):
		return fmt.Sprintf("runner %s is registered, on %s", l.RunnerID, l.Queue)
	case string(host.RunStarted):
		return fmt.Sprintf("run %s of %s begins", l.RunID, l.Name)
	case string(host.RunEnded):
		words := fmt.Sprintf("run %s of %s %s after %.1fs", l.RunID, l.Name, l.Status, *l.Seconds)
		if l.Error != "" {
			words += ": " + l.Error
		}
		return words
	case string(host.Left):
		return "runner " + l.RunnerID + " has left"
	}
	return l.Text
}
