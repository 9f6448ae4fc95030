package agents

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
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
	"acescope/engine/ace"
	"acescope/engine/store/artifact"
	"acescope/engine/tasks/executor"
	"acescope/engine/tasks/run"
	"acescope/engine/tasks/runner"
	"acescope/engine/tasks/runner/host"
	"acescope/sources/runners"
	"acescope/tui/text"
)

func RunnerCommand(a *cli.App) *cobra.Command {
	return cli.Group(&cobra.Command{
		Use:   "runner",
		Short: "Runners: the processes that execute runs of agents and programs",
	},
		runnerStartCommand(a), runnerListCommand(a), runnerShowCommand(a), runnerDrainCommand(a),
		runnerExecCommand(a))
}

type RunnerLine struct {
	runner.RunnerView
	// Only in runner show:
	Queue        string    `json:"queue,omitempty" jsonschema:"task queue"`
	SessionQueue string    `json:"session_queue,omitempty" jsonschema:"task queue of its sessions"`
	Registered   time.Time `json:"registered,omitzero" jsonschema:"when it registered"`
	Reason       string    `json:"reason,omitempty"`
}

// RunnersLine holds the counts of the dispatcher.
type RunnersLine struct {
	Runners int   `json:"runners" jsonschema:"runners"`
	Waiting int   `json:"waiting" jsonschema:"runs that wait"`
	Running int   `json:"running" jsonschema:"runs under way"`
	Matched int64 `json:"matched" jsonschema:"runs that were matched"`
	Expired int64 `json:"expired" jsonschema:"runs that found no runner in time"`
	Refused int64 `json:"refused" jsonschema:"runs that were refused because too many waited"`
	Lost    int64 `json:"lost" jsonschema:"runs whose runner died"`
}

func runnerListCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the runners, their runs, and the requirements of waiting runs",
		Long: `Lists the registered runners with their capabilities and their load; and for the runs that wait for
a runner, their requirements and the runner that matches best.`,
		Example: `acescope runner list
acescope runner list --json | jq -r 'select(.type == "runner" and .status == "online") | .runner_id'`,
		RunE: func(cmd *cobra.Command, _ []string) error { return listRunners(a, cmd.Context()) },
	}
}

// withRunners connects to query the workflows of runners, which needs a worker: on a data directory without
// another one, this process is the worker.
func withRunners(a *cli.App, ctx context.Context, what string,
	do func(context.Context, *engine.Engine) error) error {
	e, err := a.Connect(ctx, engine.Options{Worker: a.Cluster() == nil, NoRunner: true, LookOnly: true})
	if err != nil {
		return err
	}
	if err := e.Withheld(); err != nil && e.Mode() == engine.Embedded {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	return answerError(what, do(ctx, e))
}

func listRunners(a *cli.App, ctx context.Context) error {
	var view runner.View
	if reachable(a) {
		err := withRunners(a, ctx, "the dispatcher", func(ctx context.Context, e *engine.Engine) (err error) {
			view, err = e.Runners(ctx, runner.ViewOptions{})
			return err
		})
		if err != nil {
			return err
		}
	}
	if a.JSON {
		return writeRunners(a, view)
	}
	if len(view.Runners) == 0 {
		cli.Warn(a, `no runners; start one with "acescope runner start", `+
			`or with "acescope serve" (on a cluster with --runner)`)
	}
	return printRunners(a, view, time.Now())
}

func writeRunners(a *cli.App, v runner.View) error {
	out := cli.NewLines(a)
	for _, r := range v.Runners {
		out.Put(RunnerLine{RunnerView: r})
	}
	for _, q := range v.Queues {
		out.Put(q)
	}
	return out.Write(RunnersLine{Runners: len(v.Runners), Waiting: v.Waiting,
		Running: v.Running, Matched: v.Matched, Expired: v.Expired, Refused: v.Refused, Lost: v.Lost})
}

func printRunners(a *cli.App, v runner.View, now time.Time) error {
	cells := func(r runner.RunnerView) []any {
		c := r.Capabilities
		project := c.ProjectDir
		if c.AnyProject {
			project = "any"
		}
		return []any{r.ID, r.Status, text.Span(now.Sub(r.Since)), fmt.Sprintf("%d/%d", r.Busy, c.Slots),
			r.Done,
			strings.Join(c.ExecutorTypes, ","), cmp.Or(strings.Join(c.Tags, ","), "-"), c.Hostname, project}
	}
	err := cli.WriteRows(a, slices.Values(v.Runners),
		"RUNNER\tSTATUS\tSINCE\tBUSY\tDONE\tEXECUTORS\tTAGS\tHOST\tPROJECT", cells)
	if err != nil {
		return err
	}
	for _, q := range v.Queues {
		reason := q.Nearest
		if q.Able > 0 {
			reason = ace.Count(q.Able, "matching runner") + " without a free slot"
		}
		requirements := runners.RequirementsText(q.Requirements)
		if requirements == "" {
			requirements = "any runner"
		}
		line := fmt.Sprintf("%d waiting for %s: %s", q.Waiting, requirements, reason)
		if _, err := fmt.Fprintln(a.Out, cli.SafeText(strings.TrimSuffix(line, ": "))); err != nil {
			return err
		}
	}
	return nil
}

func runnerShowCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "show RUNNER",
		Short: "Show a runner: its capabilities, process and runs",
		Long: `Shows a runner, even if its process has ended: its capabilities, its process and task queues, and
its current runs.`,
		Example: "acescope runner show local\nacescope runner show local --json | jq .runs",
		RunE: func(cmd *cobra.Command, args []string) error {
			return showRunner(a, cmd.Context(), args[0])
		},
	}
}

// withRunner is withRunners for a registered runner, which an unused data directory does not have.
func withRunner(a *cli.App, ctx context.Context, id string,
	do func(context.Context, *engine.Engine) error) error {
	if !reachable(a) {
		return engine.ErrNoRunner.Of(id)
	}
	return withRunners(a, ctx, "runner "+id, do)
}

func showRunner(a *cli.App, ctx context.Context, id string) error {
	return withRunner(a, ctx, id, func(ctx context.Context, e *engine.Engine) error {
		info, err := e.Runner(ctx, id)
		if err != nil {
			return err
		}
		view, err := e.Runners(ctx, runner.ViewOptions{Pending: 1})
		if err != nil {
			return err
		}
		l := newRunnerLine(id, info, view)
		return cli.Show(a, l, func() error { return runnerDetails(l, time.Now()).print(a.Out) })
	})
}

// newRunnerLine combines the answers of the runner's workflow and of the dispatcher.
func newRunnerLine(id string, info runner.Info, view runner.View) RunnerLine {
	reg := info.Registration
	l := RunnerLine{Queue: info.Lease.Queue, SessionQueue: reg.SessionQueue,
		Registered: info.Registered.UTC(), Reason: info.Reason,
		RunnerView: runner.RunnerView{ID: id, Epoch: info.Lease.Epoch, Status: info.Status, Since: info.Since,
			Capabilities: reg.Capabilities, PID: reg.PID, Version: reg.Version}}
	for _, r := range view.Runners {
		if r.ID == id {
			l.Busy, l.Runs, l.Done = r.Busy, r.Runs, r.Done
		}
	}
	return l
}

func runnerDetails(l RunnerLine, now time.Time) (d details) {
	c := l.Capabilities
	d.add("runner", "%s", l.ID)
	status := fmt.Sprintf("%s for %s", l.Status, text.Span(now.Sub(l.Since)))
	if l.Reason != "" {
		status += ": " + l.Reason
	}
	d.add("status", "%s", status)
	d.add("busy", "%d of %s, %s done", l.Busy, ace.Count(c.Slots, "slot"), ace.Count(l.Done, "run"))
	d.add("executors", "%s", strings.Join(c.ExecutorTypes, ", "))
	d.add("tags", "%s", strings.Join(c.Tags, ", "))
	d.add("host", "%s", c.Hostname)
	project := c.ProjectDir
	if c.AnyProject {
		project += ", and any other"
	}
	d.add("project", "%s", project)
	d.add("process", "%d, %s", l.PID, l.Version)
	d.add("queue", "%s", l.Queue)
	d.add("sessions", "%s", l.SessionQueue)
	d.add("runs", "%s", strings.Join(l.Runs, ", "))
	return d
}

type RunnerDrained struct {
	RunnerID string        `json:"runner_id"`
	Status   runner.Status `json:"status"`
	Reason   string        `json:"reason,omitempty"`
}

func runnerDrainCommand(a *cli.App) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "drain RUNNER",
		Short: "Let a runner finish its runs and accept no more",
		Long: `Drains a runner: it accepts no new runs, and its process exits when its current runs have ended.
A drained local runner accepts runs again after its acescope process is restarted.`,
		Example: "acescope runner drain lnch_0123456789ab --reason 'new kernel'",
		RunE: func(cmd *cobra.Command, args []string) error {
			id := args[0]
			return withRunner(a, cmd.Context(), id, func(ctx context.Context, e *engine.Engine) error {
				info, err := e.DrainRunner(ctx, id, runner.Note{Reason: reason, By: ace.User()})
				if err != nil {
					return err
				}
				return cli.Report(a, RunnerDrained{id, info.Status, reason},
					"runner %s accepts no more runs and ends after its current runs", id)
			})
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "reason, shown with the runner")
	return cmd
}

func runnerExecCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "exec",
		Short: "Execute one invocation from standard input and print its result as JSON",
		Long: `Reads an invocation of mode execute (schema 2.1 or 2.2) from standard input, executes its program
without a server, and prints the result as one line of JSON. The exit code is 0 if the run has
completed, otherwise 1, so the command can be the executor of another runner. Only output that does
not fit into the result is stored, in the data directory.`,
		Example: `echo '{"schema_version":"2.1","mode":"execute","session_id":"ses_1","parameters":{"n":1},` +
			`"task_blueprint":{"name":"x","command":"cat"}}' | acescope runner exec`,
		RunE: func(cmd *cobra.Command, _ []string) error { return executeInvocation(a, cmd.Context()) },
	}
}

func executeInvocation(a *cli.App, ctx context.Context) error {
	in, err := executor.ReadInvocation(os.Stdin)
	if err != nil {
		return cli.UsageError("%v", err)
	}
	if in.Mode != executor.Execute {
		return cli.UsageError(
			"invocation: $.mode: %s is for the executor of an agent; this one executes programs", in.Mode)
	}
	dir, err := a.OpenDataDir()
	if err != nil {
		return err
	}
	store, err := artifact.Open(filepath.Join(dir, "artifacts"))
	if err != nil {
		return err
	}
	job := executor.Job{RunID: invocationRunID(in), SessionID: in.SessionID, Blueprint: *in.Task,
		Parameters: in.Parameters, ProjectDir: in.ProjectDir}
	r := executor.New(executor.Options{Artifacts: store}).Run(ctx, job)
	if err := cli.NewLines(a).Write(r); err != nil {
		return err
	}
	return resultError(run.Input{RunID: r.RunID}, r)
}

// invocationRunID returns the run id in the invocation's metadata, or a new one.
func invocationRunID(in executor.Invocation) string {
	var meta struct {
		RunID string `json:"run_id"`
	}
	if json.Unmarshal(in.Metadata, &meta) == nil && run.ValidName(meta.RunID) {
		return meta.RunID
	}
	id := make([]byte, 6)
	_, _ = rand.Read(id) // never fails
	return "exec_" + hex.EncodeToString(id)
}

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
	At       time.Time  `json:"at" jsonschema:"time"`
	RunnerID string     `json:"runner_id"`
	Epoch    int64      `json:"epoch,omitempty" jsonschema:"registration number"`
	Queue    string     `json:"queue,omitempty" jsonschema:"task queue of the runner"`
	Text     string     `json:"text,omitempty"`
	RunID    string     `json:"run_id,omitempty" jsonschema:"ID of the blueprint run, not of Temporal's run"`
	Name     string     `json:"name,omitempty"` // of the run's blueprint
	Status   run.Status `json:"status,omitempty" jsonschema:"status of the ended run"`
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
