// Package learning holds the commands about experiments, playbooks and triage.
package learning

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine/ace"
	"acescope/engine/learning/stats"
	"acescope/sources/evaluations"
	"acescope/sources/experiments"
	"acescope/theme"
	"acescope/tui/text"
	"acescope/tui/widget"
	experimentsview "acescope/views/experiments"
)

func ExperimentCommand(a *cli.App) *cobra.Command {
	return cli.Group(&cobra.Command{Use: "experiment", Short: "List, show, compare and report experiments"},
		experimentListCommand(a), experimentShowCommand(a), experimentCompareCommand(a),
		experimentReportCommand(a))
}

func experimentListCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   fmt.Sprintf("List the newest %d experiments and their progress", experiments.MaxExperiments),
		Example: "acescope experiment list --json | jq -r '[.experiment_id, .accuracy] | @tsv'",
		RunE:    func(cmd *cobra.Command, _ []string) error { return experimentList(a, cmd.Context()) },
	}
}

func experimentList(a *cli.App, ctx context.Context) error {
	e, err := a.OpenReadOnly(ctx)
	if err != nil {
		return err
	}
	list, more, err := experiments.List(ctx, e.Client)
	if err != nil {
		return err
	}
	if err := experiments.ReadProgress(ctx, e.Client, list); err != nil {
		return err
	}
	experiments.CountBullets(e.Books, list, func() error { return e.Books.Sync(ctx) })
	if more > 0 {
		cli.Warn(a, "%s not listed", ace.Count(more, "older experiment"))
	}
	rows := cli.Mapped(list, func(e experiments.Experiment) ExperimentRow {
		return experimentRow(e, &ace.ExperimentInput{})
	})
	_, styles, _ := a.Canvas()
	g := styles.Glyphs
	header := "EXPERIMENT\tDATA SET\tMODEL\tSTATUS\tTASKS\tFAILED\tACC (95%)\tEVAL (95%)\tBULLETS\tCOST\tAGE"
	return cli.WriteRows(a, rows, header, func(r ExperimentRow) []any {
		eval := ""
		complete := slices.DeleteFunc(slices.Clone(r.Eval), func(e cli.EvalLine) bool { return e.Incomplete })
		if n := len(complete); n > 0 {
			eval = accuracy(complete[0].Correct, complete[0].Labeled(), g)
			if n > 1 {
				eval += " " + g.Arrow + " " + accuracy(complete[n-1].Correct, complete[n-1].Labeled(), g)
			}
		}
		tasks, failed := fmt.Sprintf("%d/%d", r.Tasks, r.TotalTasks*r.TotalEpochs), strconv.Itoa(r.Failed)
		bullets := strconv.Itoa(r.Bullets)
		if r.Note != "" && r.TotalTasks == 0 {
			tasks, failed = "", ""
		}
		if r.Note != "" && r.Bullets == 0 {
			bullets = "" // no branch has the name of the experiment
		}
		return []any{
			r.ExperimentID, r.DatasetID, r.Model, r.Status, tasks, failed,
			accuracy(r.Correct, r.labeled(), g), eval, bullets,
			r.Usage.Cost(), text.Span(time.Since(r.Start)),
		}
	})
}

// accuracy formats an accuracy with its interval, "" without labeled tasks.
func accuracy(correct, labeled int, g theme.Glyphs) string {
	if labeled == 0 {
		return ""
	}
	return widget.Accuracy(correct, labeled, g)
}

// labeled returns the number of closed tasks with a label.
func (r *ExperimentRow) labeled() int {
	_, _, labeled := experiments.Answers(&r.ExperimentProgress)
	return labeled
}

// rate formats a rate, "" for nil.
func rate(f *float64) string {
	if f == nil {
		return ""
	}
	return fmt.Sprintf("%.3f", *f)
}

type seriesFlags struct {
	tasks  bool
	metric experiments.Metric
	window int
	byTime bool
}

func experimentShowCommand(a *cli.App) *cobra.Command {
	f := seriesFlags{metric: experiments.MetricAccuracy}
	cmd := &cobra.Command{
		Use:   "show EXPERIMENT|GROUP",
		Short: "Show an experiment, or the repeats of a group, and the learning curve",
		Example: "acescope experiment show finance-1 --metric playbook\n" +
			"acescope experiment show finance-1 --tasks --json | " +
			"jq -r 'select(.type == \"experiment_task\") | [.n, .rolling_accuracy] | @tsv'",
		RunE: func(cmd *cobra.Command, args []string) error {
			return experimentShow(a, cmd.Context(), args[0], f)
		},
	}
	cmd.Flags().BoolVar(&f.tasks, "tasks", false,
		"also write each closed task, in the order in which they closed")
	cmd.Flags().StringVar((*string)(&f.metric), "metric", string(f.metric),
		"metric to plot: "+cli.Join(experiments.Metrics()))
	cmd.Flags().IntVar(&f.window, "window", experiments.DefaultWindow,
		"number of last tasks in a rolling rate, 0 for all")
	cmd.Flags().BoolVar(&f.byTime, "time", false, "plot over time instead of over tasks")
	return cmd
}

func experimentShow(a *cli.App, ctx context.Context, id string, f seriesFlags) error {
	if !slices.Contains(experiments.Metrics(), f.metric) {
		return cli.UsageError("--metric %q: must be one of %s", f.metric, cli.Join(experiments.Metrics()))
	}
	if f.window < 0 {
		return cli.UsageError("--window %d: must be 0 or more", f.window)
	}
	e, err := a.OpenReadOnly(ctx)
	if err != nil {
		return err
	}
	s, group, err := experiments.ReadGroup(ctx, e.Client, id)
	if err != nil {
		return err
	}
	if group != nil {
		return groupShow(a, group, f)
	}
	baseline := readBaseline(ctx, e.Artifacts, &s.Input)
	line := seriesLine(s)
	line.Baseline = baseline
	err = cli.Show(a, line, func() error {
		width, styles, paint := a.Canvas()
		plot := plotOf([]*experiments.Series{s}, f).Draw(width, plotLines, styles)
		return a.Print(slices.Concat(seriesText(s, baseline, styles.Glyphs), []string{""}, plot), paint)
	})
	if err != nil || !f.tasks {
		return err
	}
	return writeTasks(a, taskLines(s, f.window))
}

// evalLines describes the first and the last evaluation of an experiment, and the answers after the first
// ones.
func evalLines(l ExperimentSeries, g theme.Glyphs) (lines []string) {
	evals := make([]string, 0, 2)
	for i, e := range l.Eval {
		switch {
		case i > 0 && i < len(l.Eval)-1:
		case e.Labeled() == 0:
			evals = append(evals, evaluations.When(e.EvalResult)+" "+ace.Count(e.Unlabeled, "unlabeled task"))
		default:
			evals = append(evals, evaluations.When(e.EvalResult)+" "+widget.Accuracy(e.Correct, e.Labeled(),
				g)+widget.MeanScore(e.MeanScore))
		}
	}
	if l.Learned != nil {
		evals = append(evals, "from the first to the last "+l.Learned.Change())
	}
	if n := len(l.Eval); n > 0 {
		lines = append(lines, ace.Count(n, "evaluation")+": "+strings.Join(evals, "; "))
	}
	for _, e := range l.Epochs {
		if text := e.AgainText(); text != "" {
			lines = append(lines, fmt.Sprintf("epoch %d: %s", e.Epoch, text))
		}
	}
	return lines
}

// canceledText returns ", 2 canceled", which follows the number of failed tasks, or "" for 0.
func canceledText(n int) string {
	if n == 0 {
		return ""
	}
	return ", " + ace.Number(n) + " canceled"
}

// seriesText describes an experiment in a few lines.
func seriesText(s *experiments.Series, baseline *Baseline, g theme.Glyphs) []string {
	l, t := seriesLine(s), s.Totals()
	rates := "accuracy " + widget.Accuracy(t.Correct, t.Graded, g) + widget.MeanScore(l.MeanScore)
	if len(s.Tasks) > 0 {
		correct, graded := s.Recent(experiments.DefaultWindow)
		rates += fmt.Sprintf(", last %d ", min(len(s.Tasks), experiments.DefaultWindow)) +
			widget.Accuracy(correct, graded, g)
	}
	perCorrect := widget.Quantity(t.CostPerCorrect, "USD", g) +
		widget.InParentheses(widget.Range(s.CostInterval(), "USD", g))
	if experiments.WithoutCost(s) {
		perCorrect = widget.Quantity(t.TokensPerCorrect, "", g) + " tokens" +
			widget.InParentheses(widget.Range(s.TokensInterval(), "", g))
	}
	lines := []string{
		fmt.Sprintf("%s  %s, epoch %d of %d, %s/%s, %s failed%s, in %s, a task %s", l.Status, l.Stage,
			l.Epoch, l.TotalEpochs, ace.Number(l.Tasks), ace.Count(l.TotalTasks*l.TotalEpochs, "task"),
			ace.Number(l.Failed), canceledText(l.Canceled), text.Duration(s.Duration(time.Now())),
			widget.Quantity(t.MeanDurationMS, "ms", g)),
		rates,
	}
	lines = append(lines, evalLines(l, g)...)
	lines = append(lines, "in parentheses: 95% intervals")
	lines = append(lines, baseline.lines(g)...)
	lines = append(lines,
		fmt.Sprintf("playbook %s, operations %s accepted, %s rejected",
			ace.Count(l.Bullets, "bullet"), ace.Number(l.Accepted), ace.Number(l.Rejected)),
		fmt.Sprintf("cost %s, %s, per correct answer %s", l.Usage.Cost(), ace.Count(t.Tokens, "token"),
			perCorrect),
		fmt.Sprintf("data set %s, model %s, %s, %d at a time", l.DatasetID, l.Model, l.Adapter,
			max(l.Input.Parallel, 1)),
	)
	add := func(label, text string) {
		if text != "" {
			lines = append(lines, label+text)
		}
	}
	add("", l.Input.SettingsText())
	add("", l.Input.PresetText())
	add("stopped: ", l.Stopped)
	add("only ", strings.Join(l.Input.SkillsConfig.AllowedTools, ", "))
	if s.Failure != nil {
		add("failed: ", s.Failure.Message)
	}
	add("incomplete: ", s.Err)
	add("", s.Note)
	if s.Dropped > 0 {
		lines = append(lines, ace.Count(s.Dropped, "later task")+" counted but not plotted")
	}
	for i, line := range lines {
		lines[i] = " " + cli.SafeText(line)
	}
	return lines
}

func plotOf(list []*experiments.Series, f seriesFlags) widget.Plot {
	return experimentsview.ChartPlot(experiments.NewChart(list, f.metric, f.window, f.byTime), f.byTime)
}

const plotLines = 14

func writeTasks(a *cli.App, tasks []TaskLine) error {
	header := "N\tTASK\tSTATUS\tVERDICT\tACC\tROLLING\tBULLETS\tACCEPTED\tREJECTED\tTOKENS\tCOST\tANSWER"
	return cli.WriteRows(a, slices.Values(tasks), header, func(l TaskLine) []any {
		return []any{
			l.N, l.TaskID, l.Status, l.Verdict, rate(l.Accuracy), rate(l.RollingAccuracy), l.Bullets,
			l.Accepted, l.Rejected, l.Input + l.Output, ace.Dollars(l.Cost), l.Answer,
		}
	})
}

func experimentCompareCommand(a *cli.App) *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "compare EXPERIMENT EXPERIMENT",
		Short: "Compare two experiments and list the tasks that only one of them answered correctly",
		Long: "Compare two experiments on the tasks that both have, and list those that only one of them answered correctly.\n" +
			"If A or B is a group of repeats (\"acescope run --repeats\"), compare the means over the repeats.",
		Example: "acescope experiment compare plain tuned\n" +
			"acescope experiment compare plain tuned --json | jq -r 'select(.flip == \"broken\") | .b.task_id'",
		RunE: func(cmd *cobra.Command, args []string) error {
			return experimentCompare(a, cmd.Context(), args[0], args[1], all)
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "list every task that both experiments answered")
	return cmd
}

func experimentCompare(a *cli.App, ctx context.Context, first, second string, all bool) error {
	e, err := a.OpenReadOnly(ctx)
	if err != nil {
		return err
	}
	var both [2]*experiments.Series
	var groups [2]*experiments.Group
	for i, id := range []string{first, second} {
		if both[i], groups[i], err = experiments.ReadGroup(ctx, e.Client, id); err != nil {
			return err
		}
	}
	if groups[0] != nil || groups[1] != nil {
		return groupCompare(a, asGroup(both[0], groups[0]), asGroup(both[1], groups[1]))
	}
	c := experiments.Compare(both[0], both[1])
	if err := cli.Show(a, ComparisonOf(c), func() error { return printComparison(a, c) }); err != nil {
		return err
	}
	return cli.WriteRows(a, slices.Values(FlipsOf(c, all)), "", func(l experiments.Pair) []any {
		return []any{l.Flip, l.A.TaskID, l.A.Answer, l.B.TaskID, l.B.Answer}
	})
}

func printComparison(a *cli.App, c *experiments.Comparison) error {
	width, styles, paint := a.Canvas()
	lines := append(ComparisonText(c, width, styles), "")
	f := seriesFlags{metric: experiments.MetricAccuracy, window: experiments.DefaultWindow}
	lines = append(lines, plotOf([]*experiments.Series{c.A, c.B}, f).Draw(width, plotLines, styles)...)
	lines = append(lines, "", FlipCounts(c))
	if e := c.Eval; e != nil {
		for _, i := range e.Fixed {
			lines = append(lines, fmt.Sprintf("%s  evaluation %d", experiments.FlipFixed, i))
		}
		for _, i := range e.Broken {
			lines = append(lines, fmt.Sprintf("%s  evaluation %d", experiments.FlipBroken, i))
		}
	}
	return a.Print(lines, paint)
}

// FlipCounts returns the number of tasks by flip.
func FlipCounts(c *experiments.Comparison) string {
	var counts []string
	for _, flip := range experiments.Flips() {
		counts = append(counts, fmt.Sprint(flip, " ", c.Counts[flip]))
	}
	return strings.Join(counts, "  ")
}

// ComparisonText returns the numbers of two experiments and how their tasks are aligned, as painted lines.
func ComparisonText(c *experiments.Comparison, width int, s theme.Styles) []string {
	w := &widget.Writer{Doc: &widget.Document{}, S: s, Width: width, Now: time.Now(), Loc: time.Local}
	experimentsview.WriteComparison(w, c)
	return w.Lines
}

type GroupLine struct {
	Type    string             `json:"type"` // experiment_group
	Group   string             `json:"group" jsonschema:"name of the group"`
	Planned int                `json:"planned" jsonschema:"repeats that were asked for"`
	Repeats []string           `json:"repeats" jsonschema:"experiments that have started"`
	Closed  int                `json:"completed" jsonschema:"completed repeats, which the bands cover"`
	Bands   []experiments.Band `json:"bands" jsonschema:"spread of numbers over the completed repeats"`
}

func repeatsLine(g *experiments.Group) GroupLine {
	l := GroupLine{Type: "experiment_group", Group: g.Name, Planned: g.Planned, Repeats: []string{},
		Closed: len(g.Closed()), Bands: g.Bands()}
	for _, s := range g.Repeats {
		l.Repeats = append(l.Repeats, s.Name())
	}
	return l
}

type GroupComparisonLine struct {
	A        GroupLine `json:"a" jsonschema:"A; an experiment is a group of one"`
	B        GroupLine `json:"b"`
	Headline string    `json:"headline"`
	*experiments.GroupComparison
}

// asGroup returns group, or an experiment as a group of one.
func asGroup(one *experiments.Series, group *experiments.Group) *experiments.Group {
	if group == nil {
		group = &experiments.Group{Name: one.Name(), Planned: 1, Repeats: []*experiments.Series{one}}
	}
	return group
}

// groupShow writes the spread of the repeats, each of them, and the learning curve with its band.
func groupShow(a *cli.App, g *experiments.Group, f seriesFlags) error {
	if f.tasks || f.byTime {
		return cli.UsageError("--tasks and --time show one experiment: name a repeat, such as %s",
			g.Repeats[0].Name())
	}
	if a.JSON {
		out := cli.NewLines(a)
		out.Put(repeatsLine(g))
		for _, s := range g.Repeats {
			out.Put(seriesLine(s))
		}
		return out.Flush()
	}
	width, styles, paint := a.Canvas()
	lines := append(groupText(g, styles.Glyphs), "")
	chart := experiments.BandChart(g.Repeats, f.metric, f.window)
	plot := experimentsview.ChartPlot(chart, false).Draw(width, plotLines, styles)
	return a.Print(append(lines, plot...), paint)
}

func groupText(g *experiments.Group, glyphs theme.Glyphs) []string {
	lines := []string{fmt.Sprintf(
		"%d of %s completed; mean (95%% interval of the mean), lowest to highest",
		len(g.Closed()), ace.Count(g.Planned, "repeat"))}
	for _, b := range g.Bands() {
		number := func(f float64) string { return widget.Quantity(f, b.Unit, glyphs) }
		interval := ""
		if b.Low != nil {
			interval = widget.InParentheses(widget.Range(stats.Interval{Low: *b.Low, High: *b.High}, b.Unit,
				glyphs))
		}
		lines = append(lines, fmt.Sprintf("%-18s %s%s, %s to %s", b.Name, number(b.Mean), interval,
			number(b.Lowest), number(b.Highest)))
	}
	for _, s := range g.Repeats {
		t, eval := s.Totals(), ""
		if last := s.Progress.LastEval(); last != nil {
			eval = ", last evaluation " + widget.Accuracy(last.Correct, last.Labeled(), glyphs)
		}
		order := ""
		if s.Input.Shuffle != nil {
			order = fmt.Sprintf(", shuffled with seed %d", s.Input.Shuffle.Seed)
		}
		lines = append(lines, fmt.Sprintf("%s: %s, accuracy %s%s%s", s.Name(), s.Status,
			widget.Accuracy(t.Correct, t.Graded, glyphs), eval, order))
	}
	for i, line := range lines {
		lines[i] = " " + cli.SafeText(line)
	}
	return lines
}

// groupCompare writes the comparison of two groups.
func groupCompare(a *cli.App, first, second *experiments.Group) error {
	c := experiments.CompareGroups(first, second)
	if a.JSON {
		line := GroupComparisonLine{repeatsLine(first), repeatsLine(second), c.Headline(), c}
		return cli.NewLines(a).Write(line)
	}
	width, s, paint := a.Canvas()
	w := &widget.Writer{Doc: &widget.Document{}, S: s, Width: width, Now: time.Now(), Loc: time.Local}
	repeats := func(g *experiments.Group) string {
		return fmt.Sprintf("%s, %d of %d completed", g.Name, len(g.Closed()), g.Planned)
	}
	w.Say(s.Strong, cli.SafeText(" A "+repeats(first)+"  "+s.Glyphs.Arrow+"  B "+repeats(second)))
	w.Prose(" ", s.Strong, c.Headline())
	w.Prose(" ", s.Muted, "means over the repeats; the intervals cover their variation, not that of the items")
	for _, text := range slices.DeleteFunc([]string{c.Likeness(), c.Differing()},
		func(t string) bool { return t == "" }) {
		w.Prose(" ", s.Warning, text)
	}
	var metrics []widget.Metric
	for _, m := range c.Metrics() {
		metrics = append(metrics, widget.Metric(m))
	}
	w.Metrics(metrics)
	return a.Print(w.Lines, paint)
}
