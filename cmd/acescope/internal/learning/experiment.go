// Package learning holds the commands on experiments, playbooks and triage.
package learning

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine"
	"acescope/sources/experiments"
	"acescope/tui/text"
	experimentsview "acescope/views/experiments"
)

func ExperimentCommand(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "experiment",
		Short: "Experiments: list them, show what one learnt, compare two task by task",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return cli.UsageError("say what: acescope experiment list, show or compare")
		},
	}
	cmd.AddCommand(experimentListCommand(a), experimentShowCommand(a), experimentCompareCommand(a))
	return cmd
}

func experimentListCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   fmt.Sprintf("List the newest experiments, at most %d, and how far they have come", experiments.MaxExperiments),
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
	rows, more, err := experiments.ListExperiments(ctx, e.Client)
	if err != nil {
		return err
	}
	if err := experiments.ReadProgress(ctx, e.Client, rows); err != nil {
		return err
	}
	if more > 0 {
		fmt.Fprintf(a.Err, "acescope: %d older experiments are not listed\n", more)
	}
	if !a.JSON {
		return experimentTable(a, rows)
	}
	out := cli.NewLines(a.Out)
	for _, r := range rows {
		if err := out.Put(experimentLine(r)); err != nil {
			return err
		}
	}
	return out.Flush()
}

func experimentTable(a *cli.App, rows []experiments.Experiment) error {
	w := tabwriter.NewWriter(a.Out, 0, 4, 2, ' ', 0)
	if len(rows) > 0 {
		fmt.Fprintln(w, "EXPERIMENT\tDATA SET\tMODEL\tSTATUS\tTASKS\tACC\tEVAL\tBULLETS\tCOST\tAGE")
	}
	for _, r := range rows {
		l := experimentLine(r)
		eval := ""
		if n := len(l.Eval); n > 0 {
			eval = fmt.Sprintf("%.3f", l.Eval[0].Accuracy)
			if n > 1 {
				eval += fmt.Sprintf(" → %.3f", l.Eval[n-1].Accuracy)
			}
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d/%d\t%s\t%s\t%d\t%.4f\t%s\n", cli.SafeText(l.ExperimentID), cli.SafeText(l.DatasetID), cli.SafeText(l.Model), l.ExitStatus,
			l.Tasks, l.TotalTasks, fixed(l.Accuracy), eval, l.Bullets, l.CostUSD, text.Span(time.Since(r.Start)))
	}
	return w.Flush()
}

// fixed is a rate with three decimals, "" where there is none.
func fixed(f *float64) string {
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

func experimentShowCommand(a *cli.App) *cobra.Command {
	var f seriesFlags
	cmd := &cobra.Command{
		Use:   "show EXPERIMENT",
		Short: "Show an experiment and its learning curve; with --tasks each task as it ended",
		Example: "acescope experiment show finance-1 --metric playbook\n" +
			"acescope experiment show finance-1 --tasks --json | jq -r 'select(.type == \"experiment_task\") | [.n, .rolling_accuracy] | @tsv'",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.CompleteIDs(true),
		RunE:              func(cmd *cobra.Command, args []string) error { return experimentShow(a, cmd.Context(), args[0], f) },
	}
	cmd.Flags().BoolVar(&f.tasks, "tasks", false, "write each task too, in the order in which they ended")
	cmd.Flags().StringVar(&f.metric, "metric", string(experiments.MetricAccuracy), "what is plotted: "+strings.Join(metricNames(), ", "))
	cmd.Flags().IntVar(&f.window, "window", experiments.DefaultWindow, "over how many of the last tasks rolling rates go, 0 for all so far")
	cmd.Flags().BoolVar(&f.byTime, "time", false, "plot over time instead of over tasks")
	return cmd
}

func metricNames() []string {
	return []string{string(experiments.MetricAccuracy), string(experiments.MetricPlaybook), string(experiments.MetricOperations), string(experiments.MetricCost), string(experiments.MetricTokens)}
}

func experimentShow(a *cli.App, ctx context.Context, id string, f seriesFlags) error {
	if !slices.Contains(metricNames(), f.metric) {
		return cli.UsageError("--metric %q: give one of %s", f.metric, strings.Join(metricNames(), ", "))
	}
	if f.window < 0 {
		return cli.UsageError("--window %d: give 0 or more", f.window)
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
		return seriesLines(a, s, f)
	}
	width, styles, paint := a.Canvas()
	lines := experimentsview.ExperimentText(s, width, time.Now(), styles)
	lines = append(lines, "")
	lines = append(lines, experimentsview.ExperimentPlot([]*experiments.Series{s}, experiments.Metric(f.metric), f.window, f.byTime, width, plotLines, styles)...)
	if err := a.Print(lines, paint); err != nil || !f.tasks {
		return err
	}
	return taskTable(a, s, f.window)
}

// plotLines is how many lines a plot takes in text.
const plotLines = 14

func readExperiment(ctx context.Context, e *engine.Engine, id string) (*experiments.Series, error) {
	workflowID, err := experiments.ResolveExperiment(ctx, e.Client, id)
	if err != nil {
		return nil, err
	}
	return experiments.ReadSeries(ctx, e.Client, workflowID)
}

func taskTable(a *cli.App, s *experiments.Series, window int) error {
	w := tabwriter.NewWriter(a.Out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "N\tTASK\tSTATUS\tCORRECT\tACC\tROLLING\tBULLETS\tACCEPTED\tREJECTED\tTOKENS\tCOST\tANSWER")
	for l := range taskLinesOf(s, window) {
		correct := ""
		if l.Correct != nil {
			correct = fmt.Sprint(*l.Correct)
		}
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\t%s\t%d\t%d\t%d\t%d\t%.4f\t%s\n", l.N, cli.SafeText(l.TaskID), l.ExitStatus, correct, fixed(l.Accuracy),
			fixed(l.RollingAccuracy), l.Bullets, l.Accepted, l.Rejected, l.InputTokens+l.OutputTokens, l.CostUSD, cli.SafeText(l.Answer))
	}
	return w.Flush()
}

func experimentCompareCommand(a *cli.App) *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "compare A B",
		Short: "Compare two experiments: their numbers, and the tasks whose answers flipped between right and wrong",
		Example: "acescope experiment compare plain tuned\n" +
			"acescope experiment compare plain tuned --json | jq -r 'select(.flip == \"broken\") | .task_b'",
		Args:              cobra.ExactArgs(2),
		ValidArgsFunction: a.CompleteIDs(true),
		RunE: func(cmd *cobra.Command, args []string) error {
			return experimentCompare(a, cmd.Context(), args[0], args[1], all)
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "write every aligned task, not just those that flipped")
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
		return comparisonLines(a, c, all)
	}
	width, styles, paint := a.Canvas()
	lines := append(experimentsview.ComparisonText(c, width, time.Now(), styles), "")
	lines = append(lines, experimentsview.ExperimentPlot(both[:], experiments.MetricAccuracy, experiments.DefaultWindow, false, width, plotLines, styles)...)
	if err := a.Print(append(lines, ""), paint); err != nil {
		return err
	}
	return flipTable(a, c, all)
}

func flipTable(a *cli.App, c *experiments.Comparison, all bool) error {
	for _, flip := range experiments.Flips() {
		fmt.Fprintf(a.Out, "%s %d  ", flip, c.Counts[flip])
	}
	fmt.Fprintln(a.Out)
	w := tabwriter.NewWriter(a.Out, 0, 4, 2, ' ', 0)
	for l := range FlipLinesOf(c, all) {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", l.Flip, cli.SafeText(l.TaskA), cli.SafeText(l.AnswerA), cli.SafeText(l.TaskB), cli.SafeText(l.AnswerB))
	}
	if e := c.Evaluations; e != nil {
		for _, i := range e.Fixed {
			fmt.Fprintf(w, "%s\tevaluation %d\n", experiments.FlipFixed, i)
		}
		for _, i := range e.Broken {
			fmt.Fprintf(w, "%s\tevaluation %d\n", experiments.FlipBroken, i)
		}
	}
	return w.Flush()
}
