package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/term"
	"github.com/spf13/cobra"

	"acescope/engine"
	"acescope/sources"
	"acescope/theme"
	"acescope/tui/text"
	"acescope/views"
)

func (a *app) experimentCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "experiment",
		Short: "Experiments: list them, show what one learnt, compare two task by task",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return usage("say what: acescope experiment list, show or compare")
		},
	}
	cmd.AddCommand(a.experimentListCommand(), a.experimentShowCommand(), a.experimentCompareCommand())
	return cmd
}

func (a *app) experimentListCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   fmt.Sprintf("List the newest experiments, at most %d, and how far they have come", sources.MaxExperiments),
		Example: "acescope experiment list --json | jq -r '[.experiment_id, .accuracy] | @tsv'",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.experimentList(cmd.Context()) },
	}
}

func (a *app) experimentList(ctx context.Context) error {
	e, done, err := a.look(ctx)
	if err != nil {
		return err
	}
	defer done()
	rows, more, err := sources.ListExperiments(ctx, e.Client)
	if err != nil {
		return err
	}
	if err := sources.ReadProgress(ctx, e.Client, rows); err != nil {
		return err
	}
	if more > 0 {
		fmt.Fprintf(a.err, "acescope: %d older experiments are not listed\n", more)
	}
	if !a.json {
		return a.experimentTable(rows)
	}
	out := newLines(a.out)
	for _, r := range rows {
		if err := out.put(experimentLine(r)); err != nil {
			return err
		}
	}
	return out.flush()
}

func (a *app) experimentTable(rows []sources.Experiment) error {
	w := tabwriter.NewWriter(a.out, 0, 4, 2, ' ', 0)
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
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d/%d\t%s\t%s\t%d\t%.4f\t%s\n", safe(l.ExperimentID), safe(l.DatasetID), safe(l.Model), l.ExitStatus,
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

func (a *app) experimentShowCommand() *cobra.Command {
	var f seriesFlags
	cmd := &cobra.Command{
		Use:   "show EXPERIMENT",
		Short: "Show an experiment and its learning curve; with --tasks each task as it ended",
		Example: "acescope experiment show finance-1 --metric playbook\n" +
			"acescope experiment show finance-1 --tasks --json | jq -r 'select(.type == \"experiment_task\") | [.n, .rolling_accuracy] | @tsv'",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeIDs(true),
		RunE:              func(cmd *cobra.Command, args []string) error { return a.experimentShow(cmd.Context(), args[0], f) },
	}
	cmd.Flags().BoolVar(&f.tasks, "tasks", false, "write each task too, in the order in which they ended")
	cmd.Flags().StringVar(&f.metric, "metric", string(sources.MetricAccuracy), "what is plotted: "+strings.Join(metricNames(), ", "))
	cmd.Flags().IntVar(&f.window, "window", sources.DefaultWindow, "over how many of the last tasks rolling rates go, 0 for all so far")
	cmd.Flags().BoolVar(&f.byTime, "time", false, "plot over time instead of over tasks")
	return cmd
}

func metricNames() []string {
	return []string{string(sources.MetricAccuracy), string(sources.MetricPlaybook), string(sources.MetricOperations), string(sources.MetricCost), string(sources.MetricTokens)}
}

func (a *app) experimentShow(ctx context.Context, id string, f seriesFlags) error {
	if !slices.Contains(metricNames(), f.metric) {
		return usage("--metric %q: give one of %s", f.metric, strings.Join(metricNames(), ", "))
	}
	if f.window < 0 {
		return usage("--window %d: give 0 or more", f.window)
	}
	e, done, err := a.look(ctx)
	if err != nil {
		return err
	}
	defer done()
	s, err := readExperiment(ctx, e, id)
	if err != nil {
		return err
	}
	if a.json {
		return a.seriesLines(s, f)
	}
	width, styles, paint := a.canvas()
	lines := views.ExperimentText(s, width, time.Now(), styles)
	lines = append(lines, "")
	lines = append(lines, views.ExperimentPlot([]*sources.Series{s}, sources.Metric(f.metric), f.window, f.byTime, width, plotLines, styles)...)
	if err := a.print(lines, paint); err != nil || !f.tasks {
		return err
	}
	return a.taskTable(s, f.window)
}

// plotLines is how many lines a plot takes in text.
const plotLines = 14

func readExperiment(ctx context.Context, e *engine.Engine, id string) (*sources.Series, error) {
	workflowID, err := sources.ResolveExperiment(ctx, e.Client, id)
	if err != nil {
		return nil, err
	}
	return sources.ReadSeries(ctx, e.Client, workflowID)
}

// canvas is how wide the output is, and how it is drawn: in colours on a terminal alone.
func (a *app) canvas() (width int, s theme.Styles, paint bool) {
	s = theme.FromEnv(true, os.Getenv)
	if f, ok := a.out.(*os.File); ok && term.IsTerminal(f.Fd()) {
		if w, _, err := term.GetSize(f.Fd()); err == nil && w >= 40 {
			return min(w, 190), s, true
		}
	}
	return 80, s, false
}

func (a *app) print(lines []string, paint bool) error {
	for _, l := range lines {
		if !paint {
			l = ansi.Strip(l)
		}
		if _, err := fmt.Fprintln(a.out, strings.TrimRight(l, " ")); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) taskTable(s *sources.Series, window int) error {
	w := tabwriter.NewWriter(a.out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "N\tTASK\tSTATUS\tCORRECT\tACC\tROLLING\tBULLETS\tACCEPTED\tREJECTED\tTOKENS\tCOST\tANSWER")
	for l := range taskLinesOf(s, window) {
		correct := ""
		if l.Correct != nil {
			correct = fmt.Sprint(*l.Correct)
		}
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\t%s\t%d\t%d\t%d\t%d\t%.4f\t%s\n", l.N, safe(l.TaskID), l.ExitStatus, correct, fixed(l.Accuracy),
			fixed(l.RollingAccuracy), l.Bullets, l.Accepted, l.Rejected, l.InputTokens+l.OutputTokens, l.CostUSD, safe(l.Answer))
	}
	return w.Flush()
}

func (a *app) experimentCompareCommand() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "compare A B",
		Short: "Compare two experiments: their numbers, and the tasks whose answers flipped between right and wrong",
		Example: "acescope experiment compare plain tuned\n" +
			"acescope experiment compare plain tuned --json | jq -r 'select(.flip == \"broken\") | .task_b'",
		Args:              cobra.ExactArgs(2),
		ValidArgsFunction: a.completeIDs(true),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.experimentCompare(cmd.Context(), args[0], args[1], all)
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "write every aligned task, not just those that flipped")
	return cmd
}

func (a *app) experimentCompare(ctx context.Context, first, second string, all bool) error {
	e, done, err := a.look(ctx)
	if err != nil {
		return err
	}
	defer done()
	var both [2]*sources.Series
	for i, id := range []string{first, second} {
		if both[i], err = readExperiment(ctx, e, id); err != nil {
			return err
		}
	}
	c := sources.Compare(both[0], both[1])
	if a.json {
		return a.comparisonLines(c, all)
	}
	width, styles, paint := a.canvas()
	lines := append(views.ComparisonText(c, width, time.Now(), styles), "")
	lines = append(lines, views.ExperimentPlot(both[:], sources.MetricAccuracy, sources.DefaultWindow, false, width, plotLines, styles)...)
	if err := a.print(append(lines, ""), paint); err != nil {
		return err
	}
	return a.flipTable(c, all)
}

func (a *app) flipTable(c *sources.Comparison, all bool) error {
	for _, flip := range sources.Flips() {
		fmt.Fprintf(a.out, "%s %d  ", flip, c.Counts[flip])
	}
	fmt.Fprintln(a.out)
	w := tabwriter.NewWriter(a.out, 0, 4, 2, ' ', 0)
	for l := range flipLinesOf(c, all) {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", l.Flip, safe(l.TaskA), safe(l.AnswerA), safe(l.TaskB), safe(l.AnswerB))
	}
	if e := c.Evaluations; e != nil {
		for _, i := range e.Fixed {
			fmt.Fprintf(w, "%s\tevaluation %d\n", sources.FlipFixed, i)
		}
		for _, i := range e.Broken {
			fmt.Fprintf(w, "%s\tevaluation %d\n", sources.FlipBroken, i)
		}
	}
	return w.Flush()
}
