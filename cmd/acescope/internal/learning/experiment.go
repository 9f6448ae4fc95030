// Package learning holds the commands about experiments, playbooks and triage.
package learning

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine"
	"acescope/sources/experiments"
	"acescope/tui/text"
	experimentsview "acescope/views/experiments"
)

// ExperimentCommand returns the command experiment.
func ExperimentCommand(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "experiment",
		Short: "List, show and compare experiments",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return cli.UsageError("missing subcommand: acescope experiment list, show or compare")
		},
	}
	cmd.AddCommand(experimentListCommand(a), experimentShowCommand(a), experimentCompareCommand(a))
	return cmd
}

func experimentListCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   fmt.Sprintf("List the newest %d experiments and their progress", experiments.MaxExperiments),
		Example: "acescope experiment list --json | jq -r '[.experiment_id, .accuracy] | @tsv'",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return experimentList(a, cmd.Context()) },
	}
}

func experimentList(a *cli.App, ctx context.Context) error {
	e, done, err := a.OpenReadOnly(ctx)
	if err != nil {
		return err
	}
	defer done()
	list, more, err := experiments.List(ctx, e.Client)
	if err != nil {
		return err
	}
	if err := experiments.ReadProgress(ctx, e.Client, list); err != nil {
		return err
	}
	if more > 0 {
		fmt.Fprintf(a.Err, "acescope: %d older experiments are not listed\n", more)
	}
	rows := make([]ExperimentRow, len(list))
	for i, e := range list {
		rows[i] = experimentRow(e)
	}
	header := "EXPERIMENT\tDATA SET\tMODEL\tSTATUS\tTASKS\tACC\tEVAL\tBULLETS\tCOST\tAGE"
	return cli.WriteRows(a, slices.Values(rows), header, func(r ExperimentRow) []any {
		eval := ""
		if n := len(r.Eval); n > 0 {
			eval = fmt.Sprintf("%.3f", r.Eval[0].Accuracy)
			if n > 1 {
				eval += fmt.Sprintf(" → %.3f", r.Eval[n-1].Accuracy)
			}
		}
		return []any{
			r.ExperimentID, r.DatasetID, r.Model, r.ExitStatus, fmt.Sprintf("%d/%d", r.Tasks, r.TotalTasks),
			rate(r.Accuracy), eval, r.Bullets, fmt.Sprintf("%.4f", r.CostUSD), text.Span(time.Since(r.Start)),
		}
	})
}

// rate formats a rate, "" for nil.
func rate(f *float64) string {
	if f == nil {
		return ""
	}
	return fmt.Sprintf("%.3f", *f)
}

// seriesFlags are the flags of experiment show.
type seriesFlags struct {
	tasks  bool
	metric string
	window int
	byTime bool
}

var metrics = []string{
	string(experiments.MetricAccuracy), string(experiments.MetricPlaybook), string(experiments.MetricOperations),
	string(experiments.MetricCost), string(experiments.MetricTokens),
}

func experimentShowCommand(a *cli.App) *cobra.Command {
	var f seriesFlags
	cmd := &cobra.Command{
		Use:   "show EXPERIMENT",
		Short: "Show an experiment and its learning curve",
		Example: "acescope experiment show finance-1 --metric playbook\n" +
			"acescope experiment show finance-1 --tasks --json | " +
			"jq -r 'select(.type == \"experiment_task\") | [.n, .rolling_accuracy] | @tsv'",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.CompleteIDs(true),
		RunE: func(cmd *cobra.Command, args []string) error {
			return experimentShow(a, cmd.Context(), args[0], f)
		},
	}
	cmd.Flags().BoolVar(&f.tasks, "tasks", false, "also write each closed task, in the order in which they closed")
	cmd.Flags().StringVar(&f.metric, "metric", metrics[0], "metric to plot: "+strings.Join(metrics, ", "))
	cmd.Flags().IntVar(&f.window, "window", experiments.DefaultWindow, "number of last tasks in a rolling rate, 0 for all")
	cmd.Flags().BoolVar(&f.byTime, "time", false, "plot over time instead of over tasks")
	return cmd
}

func experimentShow(a *cli.App, ctx context.Context, id string, f seriesFlags) error {
	if !slices.Contains(metrics, f.metric) {
		return cli.UsageError("--metric %q: must be one of %s", f.metric, strings.Join(metrics, ", "))
	}
	if f.window < 0 {
		return cli.UsageError("--window %d: must be 0 or more", f.window)
	}
	e, done, err := a.OpenReadOnly(ctx)
	if err != nil {
		return err
	}
	defer done()
	s, err := readExperiment(ctx, e, id)
	if err != nil {
		return err
	}
	if a.JSON {
		err = cli.NewLines(a.Out).Write(seriesLine(s))
	} else {
		width, styles, paint := a.Canvas()
		lines := append(experimentsview.Text(s, width, time.Now(), styles), "")
		plot := experimentsview.Plot([]*experiments.Series{s}, experiments.Metric(f.metric), f.window, f.byTime,
			width, plotLines, styles)
		err = a.Print(append(lines, plot...), paint)
	}
	if err != nil || !f.tasks {
		return err
	}
	return writeTasks(a, taskLines(s, f.window))
}

// plotLines is the height of a plot.
const plotLines = 14

func readExperiment(ctx context.Context, e *engine.Engine, id string) (*experiments.Series, error) {
	workflowID, err := experiments.Resolve(ctx, e.Client, id)
	if err != nil {
		return nil, err
	}
	return experiments.ReadSeries(ctx, e.Client, workflowID)
}

func writeTasks(a *cli.App, tasks iter.Seq[TaskLine]) error {
	header := "N\tTASK\tSTATUS\tCORRECT\tACC\tROLLING\tBULLETS\tACCEPTED\tREJECTED\tTOKENS\tCOST\tANSWER"
	return cli.WriteRows(a, tasks, header, func(l TaskLine) []any {
		correct := ""
		if l.Correct != nil {
			correct = fmt.Sprint(*l.Correct)
		}
		return []any{
			l.N, l.TaskID, l.ExitStatus, correct, rate(l.Accuracy), rate(l.RollingAccuracy), l.Bullets, l.Accepted,
			l.Rejected, l.InputTokens + l.OutputTokens, fmt.Sprintf("%.4f", l.CostUSD), l.Answer,
		}
	})
}

func experimentCompareCommand(a *cli.App) *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "compare A B",
		Short: "Compare two experiments and list the tasks that only one of them answered correctly",
		Example: "acescope experiment compare plain tuned\n" +
			"acescope experiment compare plain tuned --json | jq -r 'select(.flip == \"broken\") | .task_b'",
		Args:              cobra.ExactArgs(2),
		ValidArgsFunction: a.CompleteIDs(true),
		RunE: func(cmd *cobra.Command, args []string) error {
			return experimentCompare(a, cmd.Context(), args[0], args[1], all)
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "list every task that both experiments answered")
	return cmd
}

func experimentCompare(a *cli.App, ctx context.Context, first, second string, all bool) error {
	e, done, err := a.OpenReadOnly(ctx)
	if err != nil {
		return err
	}
	defer done()
	var both [2]*experiments.Series
	for i, id := range []string{first, second} {
		if both[i], err = readExperiment(ctx, e, id); err != nil {
			return err
		}
	}
	c := experiments.Compare(both[0], both[1])
	if a.JSON {
		err = cli.NewLines(a.Out).Write(ComparisonOf(c))
	} else {
		err = printComparison(a, c)
	}
	if err != nil {
		return err
	}
	return cli.WriteRows(a, FlipLinesOf(c, all), "", func(l FlipLine) []any {
		return []any{l.Flip, l.TaskA, l.AnswerA, l.TaskB, l.AnswerB}
	})
}

func printComparison(a *cli.App, c *experiments.Comparison) error {
	width, styles, paint := a.Canvas()
	lines := append(experimentsview.ComparisonText(c, width, time.Now(), styles), "")
	lines = append(lines, experimentsview.Plot([]*experiments.Series{c.A, c.B}, experiments.MetricAccuracy,
		experiments.DefaultWindow, false, width, plotLines, styles)...)
	counts := ""
	for _, flip := range experiments.Flips() {
		counts += fmt.Sprintf("%s %d  ", flip, c.Counts[flip])
	}
	lines = append(lines, "", counts)
	if e := c.Evaluations; e != nil {
		for _, i := range e.Fixed {
			lines = append(lines, fmt.Sprintf("%s  evaluation %d", experiments.FlipFixed, i))
		}
		for _, i := range e.Broken {
			lines = append(lines, fmt.Sprintf("%s  evaluation %d", experiments.FlipBroken, i))
		}
	}
	return a.Print(lines, paint)
}
