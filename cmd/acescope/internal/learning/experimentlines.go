package learning

import (
	"iter"
	"math"
	"time"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine/ace"
	"acescope/sources/experiments"
	"acescope/sources/runs"
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
	Tasks      int       `json:"tasks"`
	Correct    int       `json:"correct"`
	Failed     int       `json:"failed"`
	Accuracy   *float64  `json:"accuracy,omitempty"`
	Start      time.Time `json:"start"`
	Close      time.Time `json:"close,omitzero"`
	DurationMS float64   `json:"duration_ms,omitempty"`
	Note       string    `json:"note,omitempty" jsonschema:"says that it has no workflow, only tasks"`
}

func experimentRow(r experiments.Experiment) ExperimentRow {
	l := ExperimentRow{
		Type: "experiment_row", WorkflowID: r.WorkflowID, RunID: r.RunID, DatasetID: r.Dataset, Model: r.Model,
		Adapter: r.Adapter, Start: r.Start, Close: r.Close, Note: r.Note,
	}
	if !r.Open() {
		l.DurationMS = cli.Millis(r.Close.Sub(r.Start))
	}
	if r.Progress != nil {
		l.ExperimentProgress = *r.Progress
	}
	l.ExperimentID, l.Status = r.Name(), r.Status
	l.Epochs, l.Eval = append([]ace.EpochResult{}, l.Epochs...), append([]ace.EvalResult{}, l.Eval...)
	labeled := 0
	l.Tasks, l.Correct, labeled = experiments.Answers(&l.ExperimentProgress)
	l.Failed, _ = l.ExperimentProgress.Failed()
	l.Accuracy = number(float64(l.Correct) / float64(labeled))
	return l
}

// number returns nil for a number that JSON does not have.
func number(f float64) *float64 {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return nil
	}
	return &f
}

// ExperimentSeries is an experiment without its tasks.
type ExperimentSeries struct {
	ExperimentRow
	Input            ace.ExperimentInput `json:"input"`
	CostPerCorrect   *float64            `json:"cost_per_correct,omitempty"`
	TokensPerCorrect *float64            `json:"tokens_per_correct,omitempty"`
	MeanTaskMS       *float64            `json:"mean_task_ms,omitempty"`
	Dropped          int                 `json:"tasks_dropped,omitempty"`
	Incomplete       string              `json:"incomplete,omitempty"`
	Failure          *ace.Failure        `json:"failure,omitempty"`
}

func seriesLine(s *experiments.Series) ExperimentSeries {
	in, t := s.Input, s.Totals()
	run := runs.Run{
		WorkflowID: s.WorkflowID, RunID: s.RunID, Dataset: in.DatasetID, Model: in.Model, Adapter: string(in.Adapter),
		Status: s.Status, Start: s.Start, Close: s.Close,
	}
	row := experimentRow(experiments.Experiment{Run: run, Progress: &s.Progress, Note: s.Note})
	row.Type = "experiment_series"
	return ExperimentSeries{
		ExperimentRow: row, Input: in, CostPerCorrect: number(t.CostPerCorrect),
		TokensPerCorrect: number(t.TokensPerCorrect), MeanTaskMS: number(t.MeanDurationMS), Dropped: s.Dropped,
		Incomplete: s.Err, Failure: s.Failure,
	}
}

// TaskLine is a closed task of an experiment, with the totals of the experiment up to it.
type TaskLine struct {
	Type string `json:"type"` // experiment_task
	N    int    `json:"n"`
	experiments.Task
	Accuracy        *float64 `json:"accuracy,omitempty"`
	RollingAccuracy *float64 `json:"rolling_accuracy,omitempty"`
	CostPerCorrect  *float64 `json:"cost_per_correct,omitempty"`
	RollingCost     *float64 `json:"rolling_cost_per_correct,omitempty"`
}

// taskLines returns the closed tasks in the order in which they closed.
func taskLines(s *experiments.Series, window int) iter.Seq[TaskLine] {
	all, rolling := s.Accuracy(0), s.Accuracy(window)
	allCost, rollingCost := s.CostPerCorrect(0), s.CostPerCorrect(window)
	return func(yield func(TaskLine) bool) {
		for i, t := range s.Tasks {
			l := TaskLine{
				Type: "experiment_task", N: i + 1, Task: t, Accuracy: number(all[i]), RollingAccuracy: number(rolling[i]),
				CostPerCorrect: number(allCost[i]), RollingCost: number(rollingCost[i]),
			}
			if !yield(l) {
				return
			}
		}
	}
}

// ComparisonLine is the comparison of two experiments.
type ComparisonLine struct {
	Type     string           `json:"type"` // comparison
	A        ExperimentSeries `json:"a"`
	B        ExperimentSeries `json:"b"`
	Aligned  int              `json:"aligned"`
	AlignedA *float64         `json:"aligned_accuracy_a,omitempty"`
	AlignedB *float64         `json:"aligned_accuracy_b,omitempty"`
	*experiments.Comparison
}

// ComparisonOf returns the line of a comparison.
func ComparisonOf(c *experiments.Comparison) ComparisonLine {
	a, b := c.Aligned()
	return ComparisonLine{
		Type: "comparison", A: seriesLine(c.A), B: seriesLine(c.B), Aligned: len(c.Pairs), AlignedA: number(a),
		AlignedB: number(b), Comparison: c,
	}
}

// FlipLine is a task that both experiments answered.
type FlipLine struct {
	Type string `json:"type"` // flip
	experiments.Pair
}

// FlipLinesOf returns the tasks that only one experiment answered correctly, or all tasks that both answered.
func FlipLinesOf(c *experiments.Comparison, all bool) iter.Seq[FlipLine] {
	return func(yield func(FlipLine) bool) {
		for _, p := range c.Pairs {
			if !all && p.Flip != experiments.FlipFixed && p.Flip != experiments.FlipBroken {
				continue
			}
			if !yield(FlipLine{"flip", p}) {
				return
			}
		}
	}
}
