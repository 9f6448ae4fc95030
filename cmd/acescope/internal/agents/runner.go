package agents

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine"
	"acescope/engine/ace"
	"acescope/engine/store/artifact"
	"acescope/engine/tasks/executor"
	"acescope/engine/tasks/run"
	"acescope/engine/tasks/runner"
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
	Queue        string    `json:"queue,omitempty"`
	SessionQueue string    `json:"session_queue,omitempty"`
	Registered   time.Time `json:"registered,omitzero"`
	Reason       string    `json:"reason,omitempty"`
}

// RunnersLine holds the counts of the dispatcher.
type RunnersLine struct {
	Runners int   `json:"runners"`
	Waiting int   `json:"waiting"`
	Running int   `json:"running"`
	Matched int64 `json:"matched"`
	Expired int64 `json:"expired"`
	Refused int64 `json:"refused"`
	Lost    int64 `json:"lost"`
}

func runnerListCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the runners, their runs, and the requirements of waiting runs",
		Long: `Lists the registered runners with their capabilities and their load; and for the runs that wait for
a runner, their requirements and the runner that matches best.`,
		Example: `acescope runner list
acescope runner list --json | jq -r 'select(.type == "runner" and .status == "online") | .runner_id'`,
		Args: cobra.NoArgs,
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
		Args:    cobra.ExactArgs(1),
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
		if a.JSON {
			return cli.NewLines(a).Write(l)
		}
		return runnerDetails(l, time.Now()).print(a.Out)
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
		Args:    cobra.ExactArgs(1),
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
		Args: cobra.NoArgs,
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
