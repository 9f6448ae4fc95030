package agents

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
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

func runnerStartCommand(a *cli.App) *cobra.Command {
	var o host.Options
	var paths []string
	c := &o.Capabilities
	cmd := &cobra.Command{
		Use:   "start",
		Short: "Run a runner, which registers and executes runs until it is interrupted",
		Long: `Runs a runner until it is interrupted. It registers its capabilities and gets the runs whose
requirements they meet. After the first interrupt (or SIGTERM) it accepts no more runs and ends
after its current ones; the second interrupt stops them. The executors are deterministic, for
programs, and claude-code, codex, gemini and opencode, for agents. --executor-path adds a custom
program, which gets an invocation (schema 2.2) and prints a result; its type is the name of its
directory.`,
		Example: `acescope runner start --tags gpu,linux --project-dir ~/work --slots 2
acescope runner start --executor-path ./executors/my-agent/exec`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkRunner(&o, paths); err != nil {
				return err
			}
			return startRunner(a, cmd.Context(), o)
		},
	}
	fs := cmd.Flags()
	nameVar(fs, &o.ID, "id", "id of the runner (default: derived from its host, directory and executors)")
	fs.StringSliceVar(&c.Tags, "tags", nil,
		"tags that runs may require, separated by commas; can be repeated")
	fs.StringArrayVar(&c.ExecutorTypes, "executor", nil,
		"built-in executor; can be repeated (default: deterministic and the installed agents)")
	fs.StringArrayVar(&paths, "executor-path", nil,
		"program that executes runs; its type is the name of its directory; can be repeated")
	fs.StringVar(&c.ProjectDir, "project-dir", "",
		"working directory of its runs (default: the current directory)")
	fs.BoolVar(&c.AnyProject, "any-project", false, "let runs use other working directories")
	c.Slots = runtime.NumCPU()
	intVar(fs, &c.Slots, "slots", 1, host.MaxSlots, "maximum number of concurrent runs")
	fs.DurationVar(&o.Drain, "drain-timeout", 0,
		"how long to wait for current runs (default: until they end)")
	return cmd
}

// checkRunner completes and checks the options that the flags have set.
func checkRunner(o *host.Options, paths []string) (err error) {
	c := &o.Capabilities
	if o.Drain < 0 {
		return cli.UsageError("--drain-timeout %s: must not be negative", o.Drain)
	}
	for i, tag := range c.Tags {
		c.Tags[i] = strings.TrimSpace(tag)
		if !run.ValidName(c.Tags[i]) {
			return cli.UsageError(
				"--tags: %q is not a tag: use letters, digits, dots, dashes and underscores", tag)
		}
	}
	for _, kind := range c.ExecutorTypes {
		if kind != runner.Deterministic && runner.Agent(kind) == "" {
			return cli.UsageError(
				"--executor %q: must be deterministic, claude-code, codex, gemini or opencode; "+
					"add a custom program with --executor-path", kind)
		}
	}
	for _, path := range paths {
		x, err := executor.NewExternal(path)
		if err != nil {
			return cli.UsageError("--executor-path: %v", err)
		}
		o.External = append(o.External, x)
	}
	c.ProjectDir, err = existingDir("--project-dir", c.ProjectDir)
	return err
}

type RunnerEvent struct {
	Type     string     `json:"type"` // see [RunnerEvents]
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

func RunnerEvents() (names []string) {
	for _, k := range []host.EventKind{host.Waiting, host.Registered, host.LeaseLost, host.RunStarted,
		host.RunEnded, host.Draining, host.Left} {
		names = append(names, "runner_"+string(k))
	}
	return names
}

func startRunner(a *cli.App, ctx context.Context, o host.Options) error {
	local := a.Cluster() == nil
	// The engine stays open after the first interrupt, for the current runs.
	e, err := a.Connect(ctx, engine.Options{Worker: local, NoRunner: true, Takeover: local})
	if err != nil {
		return err
	}
	if o.Capabilities.ExecutorTypes, err = executorTypes(a, e, o); err != nil {
		return err
	}
	log := &runnerLog{a: a}
	o.OnEvent = log.write
	h, err := e.NewRunner(o)
	if err != nil {
		return cli.UsageError("%v", err)
	}
	log.id = h.ID()
	force := make(chan struct{})
	stop := onSecondInterrupt(ctx, func() {
		cli.Warn(a, "stopping the current runs")
		close(force)
	})
	defer stop()
	err = h.Run(ctx, force)
	if errors.Is(err, host.ErrTaken) {
		return fmt.Errorf("runner %s: %w", h.ID(), err)
	}
	return err
}

// executorTypes returns the executors that the flags name, by default the installed ones. Agents' sessions
// exist only on a data directory, so a runner of a cluster has no agents.
func executorTypes(a *cli.App, e *engine.Engine, o host.Options) ([]string, error) {
	types := o.Capabilities.ExecutorTypes
	isAgent := func(kind string) bool { return runner.Agent(kind) != "" }
	remote := a.Cluster() != nil
	switch {
	case remote && slices.ContainsFunc(types, isAgent):
		return nil, cli.UsageError(
			"--executor: a runner of a cluster executes only programs and custom executors; " +
				"agents' sessions need a data directory")
	case len(types) > 0 || len(o.External) > 0:
		return types, nil
	case remote:
		return []string{runner.Deterministic}, nil
	}
	return e.ExecutorTypes(), nil
}

// onSecondInterrupt calls do at the next interrupt after the one that ended ctx.
func onSecondInterrupt(ctx context.Context, do func()) (stop func()) {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	over := make(chan struct{})
	go func() {
		<-ctx.Done()
		for range 2 {
			select {
			case <-over:
				return
			case <-signals:
			}
		}
		do()
	}()
	return func() { signal.Stop(signals); close(over) }
}

type runnerLog struct {
	a  *cli.App
	id string
	mu sync.Mutex
}

func (w *runnerLog) write(e host.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	l := RunnerEvent{Type: "runner_" + string(e.Kind), At: time.Now().UTC(), RunnerID: w.id,
		Epoch: e.Lease.Epoch, Queue: e.Lease.Queue, Text: e.Text}
	if e.Run != nil {
		l.RunID, l.Name = e.Run.RunID, e.Run.Name()
	}
	if r := e.Result; r != nil {
		l.Status, l.Reason, l.Error, l.Seconds = r.Status, r.Reason, r.Error, &r.DurationSeconds
	}
	// Runs continue even if the output can no longer be written.
	_ = cli.Report(w.a, l, "%s  %s", l.At.Local().Format(time.TimeOnly), l.text(e.Kind))
}

func (l RunnerEvent) text(kind host.EventKind) string {
	switch kind {
	case host.Waiting:
		return "waiting: " + l.Text
	case host.Registered:
		return fmt.Sprintf("runner %s registered on %s", l.RunnerID, l.Queue)
	case host.RunStarted:
		return fmt.Sprintf("run %s of %s started", l.RunID, l.Name)
	case host.RunEnded:
		ended := fmt.Sprintf("run %s of %s %s after %.1fs", l.RunID, l.Name, l.Status, *l.Seconds)
		if l.Error != "" {
			ended += ": " + l.Error
		}
		return ended
	case host.Left:
		return "runner " + l.RunnerID + " unregistered"
	}
	return l.Text
}
