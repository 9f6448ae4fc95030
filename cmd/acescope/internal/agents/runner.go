package agents

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine"
	"acescope/engine/tasks/runner"
	"acescope/sources/cluster"
	"acescope/tui/text"
)

// RunnerCommand is about the runners that execute runs.
func RunnerCommand(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "runner",
		Short: "Runners: the processes that execute runs of agents and programs",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return cli.UsageError("runner what? start, list, show, drain or exec")
		},
	}
	cmd.AddCommand(runnerStartCommand(a), runnerListCommand(a), runnerShowCommand(a), runnerDrainCommand(a), runnerExecCommand(a))
	return cmd
}

// RunnerLine is a runner.
type RunnerLine struct {
	Type string `json:"type"` // runner
	runner.RunnerView
	// Of runner show.
	Queue        string     `json:"queue,omitempty"`
	SessionQueue string     `json:"session_queue,omitempty"`
	Registered   *time.Time `json:"registered,omitempty"`
	Reason       string     `json:"reason,omitempty"`
}

// RunnerQueueLine is one set of demands that runs wait with.
type RunnerQueueLine struct {
	Type string `json:"type"` // runner_queue
	runner.QueueView
}

// RunnersLine is what the dispatcher counts.
type RunnersLine struct {
	Type    string `json:"type"` // runners
	Runners int    `json:"runners"`
	Waiting int    `json:"waiting"`
	Running int    `json:"running"`
	Matched int64  `json:"matched"`
	Expired int64  `json:"expired"`
	Refused int64  `json:"refused"`
	Lost    int64  `json:"lost"`
}

func runnerListCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the runners, what they are doing, and the demands that runs wait with",
		Long: "Lists the runners that are registered: what each can do and is doing; and of the runs that wait for one, what they demand\n" +
			"and which runner comes nearest.",
		Example: "acescope runner list\nacescope runner list --json | jq -r 'select(.type == \"runner\" and .status == \"online\") | .runner_id'",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return runnerList(a, cmd.Context()) },
	}
}

// dispatch connects for a command that asks the workflows of runners, which somebody must
// serve: on a data directory of one's own this process does, if nobody else.
func dispatch(a *cli.App, ctx context.Context) (*engine.Engine, func(), error) {
	return a.Connect(ctx, engine.Options{Worker: a.Cluster() == nil, NoRunner: true})
}

// runnerWithin bounds how long the workflows of runners may take to answer.
const runnerWithin = 20 * time.Second

func runnerList(a *cli.App, ctx context.Context) error {
	var view runner.View
	if reachable(a) {
		e, done, err := dispatch(a, ctx)
		if err != nil {
			return err
		}
		defer done()
		short, cancel := context.WithTimeout(ctx, runnerWithin)
		defer cancel()
		if view, err = e.Runners(short, runner.ViewOptions{}); err != nil {
			return runnerUnheard("the dispatcher", err)
		}
	}
	if a.JSON {
		return runnersJSON(a, view)
	}
	if len(view.Runners) == 0 {
		fmt.Fprintln(a.Err, "acescope: no runners; acescope runner start starts one, and acescope serve brings one along")
	}
	return printRunners(a.Out, view, time.Now())
}

func runnersJSON(a *cli.App, v runner.View) error {
	out := cli.NewLines(a.Out)
	for _, r := range v.Runners {
		if err := out.Put(RunnerLine{Type: "runner", RunnerView: r}); err != nil {
			return err
		}
	}
	for _, q := range v.Queues {
		if err := out.Put(RunnerQueueLine{"runner_queue", q}); err != nil {
			return err
		}
	}
	return out.Write(RunnersLine{Type: "runners", Runners: len(v.Runners), Waiting: v.Waiting, Running: v.Running, Matched: v.Matched,
		Expired: v.Expired, Refused: v.Refused, Lost: v.Lost})
}

func printRunners(to io.Writer, v runner.View, now time.Time) error {
	if len(v.Runners) > 0 {
		w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
		fmt.Fprintln(w, "RUNNER\tSTATUS\tSINCE\tBUSY\tDONE\tEXECUTORS\tTAGS\tHOST\tPROJECT")
		for _, r := range v.Runners {
			c := r.Capabilities
			project := cli.SafeText(c.ProjectDir)
			if c.AnyProject {
				project = "any"
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%d/%d\t%d\t%s\t%s\t%s\t%s\n", cli.SafeText(r.ID), cli.SafeText(string(r.Status)), text.Span(now.Sub(r.Since)), r.Busy, c.Slots, r.Done,
				cli.SafeText(strings.Join(c.ExecutorTypes, ",")), cli.OrDash(cli.SafeText(strings.Join(c.Tags, ","))), cli.SafeText(c.Hostname), project)
		}
		if err := w.Flush(); err != nil {
			return err
		}
	}
	for _, q := range v.Queues {
		line := fmt.Sprintf("%d waiting for %s", q.Waiting, demandsWord(q.Requirements))
		switch {
		case q.Able == 1:
			line += ": 1 runner could, and has no slot free"
		case q.Able > 1:
			line += fmt.Sprintf(": %d runners could, and have no slot free", q.Able)
		case q.Nearest != "":
			line += ": " + q.Nearest
		}
		if _, err := fmt.Fprintln(to, cli.SafeText(line)); err != nil {
			return err
		}
	}
	return nil
}

// demandsWord is what is demanded, in one line.
func demandsWord(d runner.Requirements) string {
	var parts []string
	for _, p := range []struct{ name, value string }{{"executor", d.ExecutorType}, {"host", d.Hostname}, {"project", d.ProjectDir},
		{"tags", strings.Join(d.Tags, ",")}} {
		if p.value != "" {
			parts = append(parts, p.name+" "+p.value)
		}
	}
	if len(parts) == 0 {
		return "any runner"
	}
	return strings.Join(parts, ", ")
}

func runnerShowCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:               "show ID",
		Short:             "Show a runner: what it can do, its process, its runs",
		Long:              "Shows one runner, also one that is gone: what it can do, its process and queue, and the runs that it has.",
		Example:           "acescope runner show local\nacescope runner show local --json | jq .runs",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeRunners(a),
		RunE:              func(cmd *cobra.Command, args []string) error { return runnerShow(a, cmd.Context(), args[0]) },
	}
}

// withRunner asks the workflow of a runner.
func withRunner(a *cli.App, ctx context.Context, id string, do func(context.Context, *engine.Engine) error) error {
	if !reachable(a) {
		return runnerUnheard(id, fmt.Errorf("%w: %s", engine.ErrNoRunner, id))
	}
	e, done, err := dispatch(a, ctx)
	if err != nil {
		return err
	}
	defer done()
	ctx, cancel := context.WithTimeout(ctx, runnerWithin)
	defer cancel()
	return runnerUnheard("runner "+id, do(ctx, e))
}

// runnerUnheard is an error of asking about runners, with its exit code.
func runnerUnheard(what string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, engine.ErrNoRunner):
		return &cli.ExitError{Code: cli.ExitNotFound, Err: err}
	case errors.Is(err, context.Canceled):
		return cli.ErrInterrupted
	case errors.Is(err, context.DeadlineExceeded), cluster.Away(err):
		return &cli.ExitError{Code: cli.ExitUnreachable, Err: fmt.Errorf("%s did not answer within %s: is any worker running? acescope serve is one", what, runnerWithin)}
	}
	return err
}

func runnerShow(a *cli.App, ctx context.Context, id string) error {
	return withRunner(a, ctx, id, func(ctx context.Context, e *engine.Engine) error {
		info, err := e.Runner(ctx, id)
		if err != nil {
			return err
		}
		view, err := e.Runners(ctx, runner.ViewOptions{Pending: 1})
		if err != nil {
			return err
		}
		l := shownRunner(id, info, view)
		if a.JSON {
			return cli.NewLines(a.Out).Write(l)
		}
		return printRunner(a.Out, l, time.Now())
	})
}

// shownRunner is what the runner's own workflow and the dispatcher know together.
func shownRunner(id string, info runner.Info, view runner.View) RunnerLine {
	reg := info.Registration
	l := RunnerLine{Type: "runner", Queue: info.Lease.Queue, SessionQueue: reg.SessionQueue, Registered: timeOf(info.Registered), Reason: info.Reason,
		RunnerView: runner.RunnerView{ID: id, Epoch: info.Lease.Epoch, Status: info.Status, Since: info.Since, Capabilities: reg.Capabilities,
			PID: reg.PID, Version: reg.Version}}
	for _, r := range view.Runners {
		if r.ID == id {
			l.Busy, l.Runs, l.Done = r.Busy, r.Runs, r.Done
		}
	}
	return l
}

func printRunner(to io.Writer, l RunnerLine, now time.Time) error {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	c := l.Capabilities
	status := string(l.Status) + " for " + text.Span(now.Sub(l.Since))
	if l.Reason != "" {
		status += ": " + l.Reason
	}
	project := c.ProjectDir
	if c.AnyProject {
		project += ", and any other"
	}
	for _, f := range []struct{ name, value string }{
		{"runner", l.ID}, {"status", status}, {"busy", fmt.Sprintf("%d of %d slots, %d runs done", l.Busy, c.Slots, l.Done)},
		{"executors", strings.Join(c.ExecutorTypes, ", ")}, {"tags", strings.Join(c.Tags, ", ")}, {"host", c.Hostname},
		{"project", project}, {"process", fmt.Sprintf("%d, %s", l.PID, l.Version)}, {"queue", l.Queue}, {"sessions", l.SessionQueue},
		{"runs", strings.Join(l.Runs, ", ")}} {
		if f.value != "" {
			fmt.Fprintf(w, "%s\t%s\n", f.name, cli.SafeText(f.value))
		}
	}
	return w.Flush()
}

func runnerDrainCommand(a *cli.App) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:               "drain ID",
		Short:             "Have a runner take no more runs, and end when those under way have",
		Long:              "Has a runner take no more runs. Those under way go on; when they have ended, the runner's process ends. The local runner of\nan acescope that serves takes none either then, until that is started again.",
		Example:           "acescope runner drain lnch_0123456789ab --reason 'new kernel'",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeRunners(a),
		RunE:              func(cmd *cobra.Command, args []string) error { return runnerDrain(a, cmd.Context(), args[0], reason) },
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, for whoever looks")
	return cmd
}

// RunnerDrained says that a runner drains.
type RunnerDrained struct {
	Type     string        `json:"type"` // runner_drain
	RunnerID string        `json:"runner_id"`
	Status   runner.Status `json:"status"`
	Reason   string        `json:"reason,omitempty"`
}

func runnerDrain(a *cli.App, ctx context.Context, id, reason string) error {
	return withRunner(a, ctx, id, func(ctx context.Context, e *engine.Engine) error {
		info, err := e.DrainRunner(ctx, id, runner.Note{Reason: reason, By: Me()})
		if err != nil {
			return err
		}
		if a.JSON {
			return cli.NewLines(a.Out).Write(RunnerDrained{"runner_drain", id, info.Status, reason})
		}
		_, err = fmt.Fprintf(a.Out, "runner %s takes no more runs; it ends when those under way have\n", id)
		return err
	})
}
