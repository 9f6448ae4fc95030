package learning

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine/ace"
	"acescope/engine/learning/dataset"
	"acescope/engine/learning/grade"
	"acescope/engine/learning/model/builtin"
	"acescope/engine/learning/stats"
	"acescope/engine/store/artifact"
	"acescope/sources/cluster"
	"acescope/sources/experiments"
	"acescope/sources/runs"
	"acescope/theme"
	"acescope/tui/widget"
)

// ExperimentRow is an experiment in a list. Unknown numbers are 0.
type ExperimentRow struct {
	Type       string `json:"type"` // experiment_row
	WorkflowID string `json:"workflow_id"`
	RunID      string `json:"run_id"`
	DatasetID  string `json:"dataset_id"`
	Model      string `json:"model"`
	Adapter    string `json:"adapter"`
	ace.ExperimentProgress
	Epochs   []cli.EpochLine `json:"epochs"`
	Eval     []cli.EvalLine  `json:"eval"`
	Tasks    int             `json:"tasks" jsonschema:"tasks that ended"`
	Correct  int             `json:"correct" jsonschema:"correct answers"`
	Failed   int             `json:"failed"`
	Canceled int             `json:"canceled,omitempty"`
	Accuracy *float64        `json:"accuracy,omitempty"`
	cli.AccuracyLimits
	Start      time.Time `json:"start"`
	Close      time.Time `json:"close,omitzero"`
	DurationMS float64   `json:"duration_ms,omitempty"`
	Note       string    `json:"note,omitempty" jsonschema:"says that it has no workflow, only tasks"`
}

// experimentRow returns the line of an experiment. The input is empty if it is not read.
func experimentRow(r experiments.Experiment, in *ace.ExperimentInput) ExperimentRow {
	l := ExperimentRow{
		Type: "experiment_row", WorkflowID: r.WorkflowID, RunID: r.RunID, DatasetID: r.Dataset,
		Model: r.Model, Adapter: r.Adapter, Start: r.Start, Close: r.Close, Note: r.Note,
	}
	if !r.Open() {
		l.DurationMS = cluster.Millis(r.Close.Sub(r.Start))
	}
	if r.Progress != nil {
		l.ExperimentProgress = *r.Progress
	}
	l.ExperimentID, l.Status = r.Name(), r.Status
	l.Epochs = cli.EpochLines(in, l.ExperimentProgress.Epochs)
	l.Eval = cli.EvalLines(in, l.ExperimentProgress.Eval)
	labeled := 0
	l.Tasks, l.Correct, labeled = experiments.Answers(&l.ExperimentProgress)
	l.Failed, _ = l.ExperimentProgress.Failed()
	l.Canceled = l.ExperimentProgress.Canceled()
	l.Accuracy, l.AccuracyLimits = cli.Number(stats.Share(l.Correct, labeled)),
		cli.LimitsOf(l.Correct, labeled)
	return l
}

// ExperimentSeries is an experiment without its tasks.
type ExperimentSeries struct {
	ExperimentRow
	Input            ace.ExperimentInput `json:"input" jsonschema:"settings of the experiment"`
	Learned          *experiments.Paired `json:"learned,omitempty"`
	MeanScore        *float64            `json:"mean_score,omitempty"`
	CostPerCorrect   *float64            `json:"cost_per_correct,omitempty"`
	CostLow          *float64            `json:"cost_per_correct_low,omitempty"`
	CostHigh         *float64            `json:"cost_per_correct_high,omitempty"`
	TokensPerCorrect *float64            `json:"tokens_per_correct,omitempty"`
	TokensLow        *float64            `json:"tokens_per_correct_low,omitempty"`
	TokensHigh       *float64            `json:"tokens_per_correct_high,omitempty"`
	MeanTaskMS       *float64            `json:"mean_task_ms,omitempty" jsonschema:"mean duration of a task"`
	Dropped          int                 `json:"tasks_dropped,omitempty"`
	Incomplete       string              `json:"incomplete,omitempty"`
	Failure          *ace.Failure        `json:"failure,omitempty"`
	Baseline         *Baseline           `json:"baseline,omitempty"`
}

func seriesLine(s *experiments.Series) ExperimentSeries {
	in, t := s.Input, s.Totals()
	run := runs.Run{
		WorkflowID: s.WorkflowID, RunID: s.RunID, Dataset: in.DatasetID, Model: in.Model,
		Adapter: string(in.Adapter), Status: s.Status, Start: s.Start, Close: s.Close,
	}
	row := experimentRow(experiments.Experiment{Run: run, Progress: &s.Progress, Note: s.Note}, &in)
	row.Type = "experiment_series"
	cost, tokens := s.CostInterval(), s.TokensInterval()
	return ExperimentSeries{
		ExperimentRow: row, Input: in, Learned: experiments.Learned(&s.Progress), MeanScore: s.MeanScore(),
		CostPerCorrect: cli.Number(t.CostPerCorrect), CostLow: cli.Number(cost.Low),
		CostHigh: cli.Number(cost.High), TokensPerCorrect: cli.Number(t.TokensPerCorrect),
		TokensLow: cli.Number(tokens.Low), TokensHigh: cli.Number(tokens.High),
		MeanTaskMS: cli.Number(t.MeanDurationMS), Dropped: s.Dropped, Incomplete: s.Err, Failure: s.Failure,
	}
}

// TaskLine is a closed task of an experiment, with the totals of the experiment up to it.
type TaskLine struct {
	N int `json:"n" jsonschema:"place in the series"`
	experiments.Task
	Accuracy *float64 `json:"accuracy,omitempty"`
	cli.AccuracyLimits
	RollingAccuracy *float64 `json:"rolling_accuracy,omitempty" jsonschema:"accuracy over the last tasks"`
	RollingLow      *float64 `json:"rolling_accuracy_low,omitempty"`
	RollingHigh     *float64 `json:"rolling_accuracy_high,omitempty" jsonschema:"upper limit"`
	CostPerCorrect  *float64 `json:"cost_per_correct,omitempty" jsonschema:"cost per correct answer so far"`
	RollingCost     *float64 `json:"rolling_cost_per_correct,omitempty"`
}

// taskLines returns the closed tasks in the order in which they closed.
func taskLines(s *experiments.Series, window int) []TaskLine {
	all, rolling := s.Accuracy(0), s.Accuracy(window)
	allIntervals, rollingIntervals := s.AccuracyIntervals(0), s.AccuracyIntervals(window)
	allCost, rollingCost := s.CostPerCorrect(0), s.CostPerCorrect(window)
	lines := make([]TaskLine, len(s.Tasks))
	for i, t := range s.Tasks {
		lines[i] = TaskLine{
			N: i + 1, Task: t, Accuracy: cli.Number(all[i]), AccuracyLimits: cli.Limits(allIntervals[i]),
			RollingAccuracy: cli.Number(rolling[i]), RollingLow: cli.Number(rollingIntervals[i].Low),
			RollingHigh: cli.Number(rollingIntervals[i].High), CostPerCorrect: cli.Number(allCost[i]),
			RollingCost: cli.Number(rollingCost[i]),
		}
	}
	return lines
}

type ComparisonLine struct {
	A        ExperimentSeries `json:"a"`
	B        ExperimentSeries `json:"b"`
	Headline string           `json:"headline"`
	Aligned  int              `json:"aligned" jsonschema:"tasks in both"`
	AlignedA *float64         `json:"aligned_accuracy_a,omitempty"`
	AlignedB *float64         `json:"aligned_accuracy_b,omitempty"`
	*experiments.Comparison
}

func ComparisonOf(c *experiments.Comparison) ComparisonLine {
	a, b, of := c.Aligned()
	return ComparisonLine{
		A: seriesLine(c.A), B: seriesLine(c.B), Aligned: len(c.Pairs), Headline: c.Headline(),
		AlignedA: cli.Number(stats.Share(a, of)), AlignedB: cli.Number(stats.Share(b, of)), Comparison: c,
	}
}

// FlipsOf returns the tasks that only one experiment answered correctly, or all tasks that both answered.
func FlipsOf(c *experiments.Comparison, all bool) []experiments.Pair {
	return slices.DeleteFunc(slices.Clone(c.Pairs), func(p experiments.Pair) bool {
		return !all && p.Flip != experiments.FlipFixed && p.Flip != experiments.FlipBroken
	})
}

// Baseline is a comparison for the accuracy of the built-in learner: the accuracy of a program that learns
// nothing and answers with the formulas that the prompts state, and the number of built-in forms of
// calculation.
type Baseline struct {
	DatasetID string `json:"dataset_id" jsonschema:"evaluation data set, or else that of the tasks"`
	Labeled   int    `json:"labeled" jsonschema:"items with a label"`
	Correct   int    `json:"correct"`
	Shapes    int    `json:"shapes"`
	Err       string `json:"error,omitempty" jsonschema:"why the data set cannot be read"`
}

// readBaseline measures the baseline on the evaluation data set of an experiment, or else on that of its
// tasks. It returns nil if the built-in learner does not answer.
func readBaseline(ctx context.Context, store *artifact.Store, in *ace.ExperimentInput) *Baseline {
	if cmp.Or(in.Steps[string(ace.PhaseSkills)], in.Provider) != builtin.New().Name() {
		return nil
	}
	b := &Baseline{DatasetID: in.DatasetID, Shapes: builtin.Shapes()}
	set, count := in.SourceDataset(), in.Tasks
	if in.Eval != nil {
		b.DatasetID, set, count = in.EvalID, *in.Eval, in.EvalTasks
	}
	for from := 0; from < count; {
		tasks, err := dataset.Load(ctx, store, set, from, count-from)
		if err != nil {
			b.Err = cli.OneLine(err)
			return b
		}
		from += len(tasks)
		for _, t := range tasks {
			answer, _ := builtin.Stated(t.Prompt)
			correct, _, err := grade.Verdict(ace.ReflectorInput{Answer: answer, Label: t.Label,
				Grader: in.Grader})
			if err != nil {
				b.Err = cli.OneLine(err)
				return b
			}
			if correct == nil {
				continue
			}
			b.Labeled++
			if *correct {
				b.Correct++
			}
		}
	}
	return b
}

func (b *Baseline) lines(g theme.Glyphs) []string {
	if b == nil {
		return nil
	}
	figure := "unknown: " + b.Err
	if b.Err == "" {
		figure = "accuracy " + widget.Accuracy(b.Correct, b.Labeled, g)
	}
	return []string{
		fmt.Sprintf("baseline without learning: the formulas that the prompts of %s state, %s",
			cmp.Or(b.DatasetID, "the data set"), figure),
		fmt.Sprintf("prior knowledge: %d built-in shapes of calculations, among which the learner searches",
			b.Shapes),
	}
}
