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
	Type         string           `json:"type"` // experiment_row
	ExperimentID string           `json:"experiment_id"`
	WorkflowID   string           `json:"workflow_id"`
	RunID        string           `json:"run_id"`
	DatasetID    string           `json:"dataset_id"`
	Model        string           `json:"model"`
	Adapter      string           `json:"adapter"`
	ExitStatus   ace.ExitStatus   `json:"exit_status"`
	Stage        string           `json:"stage,omitempty"`
	Tasks        int              `json:"tasks"`
	TotalTasks   int              `json:"total_tasks"`
	Epoch        int              `json:"epoch"`
	TotalEpochs  int              `json:"total_epochs"`
	Correct      int              `json:"correct"`
	Accuracy     *float64         `json:"accuracy,omitempty"`
	Eval         []ace.EvalResult `json:"eval"`
	Bullets      int              `json:"bullets"`
	Accepted     int              `json:"operations_accepted"`
	Rejected     int              `json:"operations_rejected"`
	InputTokens  int64            `json:"input_tokens"`
	OutputTokens int64            `json:"output_tokens"`
	CostUSD      float64          `json:"cost_usd"`
	Start        time.Time        `json:"start"`
	Close        *time.Time       `json:"close,omitempty"`
	DurationMS   float64          `json:"duration_ms,omitempty"`
}

func experimentRow(r experiments.Experiment) ExperimentRow {
	l := ExperimentRow{
		Type: "experiment_row", ExperimentID: r.Name(), WorkflowID: r.WorkflowID, RunID: r.RunID, DatasetID: r.Dataset,
		Model: r.Model, Adapter: r.Adapter, ExitStatus: r.Exit, Start: r.Start,
	}
	if !r.Open() {
		l.Close, l.DurationMS = &r.Close, cli.Millis(r.Close.Sub(r.Start))
	}
	if r.Progress != nil {
		l.setProgress(*r.Progress)
	}
	l.Eval = append([]ace.EvalResult{}, l.Eval...)
	return l
}

func (l *ExperimentRow) setProgress(p ace.ExperimentProgress) {
	l.Stage, l.Epoch, l.TotalEpochs, l.TotalTasks = p.Stage, p.Epoch, p.TotalEpochs, p.TotalTasks*p.TotalEpochs
	labeled := 0
	for _, e := range p.Epochs {
		l.Tasks += e.Tasks
		l.Correct += e.Correct
		labeled += e.Tasks - e.Unlabeled
	}
	l.Accuracy = number(float64(l.Correct) / float64(labeled))
	l.Eval, l.Bullets, l.Accepted, l.Rejected = p.Eval, p.Bullets, p.Accepted, p.Rejected
	l.InputTokens, l.OutputTokens, l.CostUSD = p.Usage.InputTokens, p.Usage.OutputTokens, p.Usage.CostUSD
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
	Epochs           []ace.EpochResult   `json:"epochs"`
	Runs             int                 `json:"runs"`
	PlaybookBefore   string              `json:"playbook_before"`
	PlaybookAfter    string              `json:"playbook_after"`
	CostPerCorrect   *float64            `json:"cost_per_correct,omitempty"`
	TokensPerCorrect *float64            `json:"tokens_per_correct,omitempty"`
	MeanTaskMS       *float64            `json:"mean_task_ms,omitempty"`
	Dropped          int                 `json:"tasks_dropped,omitempty"`
	Incomplete       string              `json:"incomplete,omitempty"`
	Failure          *ace.Failure        `json:"failure,omitempty"`
}

func seriesLine(s *experiments.Series) ExperimentSeries {
	in, p, t := s.Input, s.Progress, s.Totals()
	run := runs.Run{
		WorkflowID: s.WorkflowID, RunID: s.RunID, Dataset: in.DatasetID, Model: in.Model, Adapter: string(in.Adapter),
		Exit: s.Exit, Start: s.Start, Close: s.Close,
	}
	row := experimentRow(experiments.Experiment{Run: run, Progress: &p})
	row.Type = "experiment_series"
	return ExperimentSeries{
		ExperimentRow: row, Input: in, Epochs: append([]ace.EpochResult{}, p.Epochs...), Runs: p.Runs,
		PlaybookBefore: p.Before, PlaybookAfter: p.After,
		CostPerCorrect: number(t.CostPerCorrect), TokensPerCorrect: number(t.TokensPerRight),
		MeanTaskMS: number(t.MeanDurationMS), Dropped: s.Dropped, Incomplete: s.Err, Failure: s.Failure,
	}
}

// TaskLine is a closed task of an experiment, with the totals of the experiment up to it.
type TaskLine struct {
	Type            string         `json:"type"` // experiment_task
	N               int            `json:"n"`
	TaskID          string         `json:"task_id"`
	Epoch           int            `json:"epoch"`
	Index           *int           `json:"index,omitempty"`
	ExitStatus      ace.ExitStatus `json:"exit_status"`
	Correct         *bool          `json:"correct,omitempty"`
	Answer          string         `json:"answer"`
	Accuracy        *float64       `json:"accuracy,omitempty"`
	RollingAccuracy *float64       `json:"rolling_accuracy,omitempty"`
	Bullets         int            `json:"bullets"`
	Accepted        int            `json:"operations_accepted"`
	Rejected        int            `json:"operations_rejected"`
	InputTokens     int64          `json:"input_tokens"`
	OutputTokens    int64          `json:"output_tokens"`
	CostUSD         float64        `json:"cost_usd"`
	CostPerCorrect  *float64       `json:"cost_per_correct,omitempty"`
	RollingCost     *float64       `json:"rolling_cost_per_correct,omitempty"`
	AtMS            float64        `json:"at_ms"`
	DurationMS      float64        `json:"duration_ms"`
}

// taskLines returns the closed tasks in the order in which they closed.
func taskLines(s *experiments.Series, window int) iter.Seq[TaskLine] {
	cost := func(i int) float64 { return s.Tasks.Cost[i] }
	all, rolling := s.Accuracy(0), s.Accuracy(window)
	allCost, rollingCost := s.PerCorrect(0, cost), s.PerCorrect(window, cost)
	return func(yield func(TaskLine) bool) {
		for i := range s.Tasks.Len() {
			t := s.Tasks.Row(i)
			l := TaskLine{
				Type: "experiment_task", N: i + 1, TaskID: t.TaskID, Epoch: t.Epoch, ExitStatus: t.Exit, Answer: t.Answer,
				Accuracy: number(all[i]), RollingAccuracy: number(rolling[i]),
				Bullets: t.Bullets, Accepted: t.Accepted, Rejected: t.Rejected,
				InputTokens: t.Usage.InputTokens, OutputTokens: t.Usage.OutputTokens, CostUSD: t.Usage.CostUSD,
				CostPerCorrect: number(allCost[i]), RollingCost: number(rollingCost[i]),
				AtMS: cli.Millis(t.At), DurationMS: cli.Millis(t.Took),
			}
			if t.Index >= 0 {
				l.Index = &t.Index
			}
			if t.Verdict != experiments.NotJudged {
				correct := t.Verdict == experiments.AnsweredRight
				l.Correct = &correct
			}
			if !yield(l) {
				return
			}
		}
	}
}

// ComparisonLine is the comparison of two experiments.
type ComparisonLine struct {
	Type      string                   `json:"type"` // comparison
	A         ExperimentSeries         `json:"a"`
	B         ExperimentSeries         `json:"b"`
	SameData  bool                     `json:"same_dataset"`
	AlignedBy string                   `json:"aligned_by"`
	Aligned   int                      `json:"aligned"`
	AlignedA  *float64                 `json:"aligned_accuracy_a,omitempty"`
	AlignedB  *float64                 `json:"aligned_accuracy_b,omitempty"`
	OnlyA     int                      `json:"only_a"`
	OnlyB     int                      `json:"only_b"`
	Flips     map[experiments.Flip]int `json:"flips"`
	Eval      *evalLine                `json:"eval,omitempty"`
}

type evalLine struct {
	DatasetID string  `json:"dataset_id"`
	AccuracyA float64 `json:"accuracy_a"`
	AccuracyB float64 `json:"accuracy_b"`
	Fixed     []int   `json:"fixed"`
	Broken    []int   `json:"broken"`
	BothWrong int     `json:"both_wrong"`
	Partial   bool    `json:"partial,omitempty"`
}

// FlipLine is a task that both experiments answered.
type FlipLine struct {
	Type    string           `json:"type"` // flip
	Flip    experiments.Flip `json:"flip"`
	Epoch   int              `json:"epoch"`
	IndexA  int              `json:"index_a"`
	IndexB  int              `json:"index_b"`
	TaskA   string           `json:"task_a"`
	TaskB   string           `json:"task_b"`
	AnswerA string           `json:"answer_a"`
	AnswerB string           `json:"answer_b"`
}

// FlipLinesOf returns the tasks that only one experiment answered correctly, or all tasks that both answered.
func FlipLinesOf(c *experiments.Comparison, all bool) iter.Seq[FlipLine] {
	return func(yield func(FlipLine) bool) {
		for _, p := range c.Pairs {
			if !all && p.Flip != experiments.FlipFixed && p.Flip != experiments.FlipBroken {
				continue
			}
			a, b := c.A.Tasks.Row(p.A), c.B.Tasks.Row(p.B)
			line := FlipLine{"flip", p.Flip, p.Epoch, p.IndexA, p.IndexB, a.TaskID, b.TaskID, a.Answer, b.Answer}
			if !yield(line) {
				return
			}
		}
	}
}

// ComparisonOf returns the line of a comparison.
func ComparisonOf(c *experiments.Comparison) ComparisonLine {
	l := ComparisonLine{
		Type: "comparison", A: seriesLine(c.A), B: seriesLine(c.B), SameData: c.SameData,
		AlignedBy: c.AlignedBy, Aligned: len(c.Pairs), AlignedA: number(c.AlignedA), AlignedB: number(c.AlignedB),
		OnlyA: c.OnlyA, OnlyB: c.OnlyB, Flips: map[experiments.Flip]int{},
	}
	for _, f := range experiments.Flips() {
		l.Flips[f] = c.Counts[f]
	}
	if e := c.Evaluations; e != nil {
		l.Eval = &evalLine{
			e.Dataset, e.A.Accuracy, e.B.Accuracy, append([]int{}, e.Fixed...), append([]int{}, e.Broken...), e.BothWrong,
			e.Partial,
		}
	}
	return l
}
