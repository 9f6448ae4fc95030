package learning

import (
	"iter"
	"math"
	"slices"
	"time"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine/ace"
	"acescope/sources/experiments"
	"acescope/sources/runs"
)

// ExperimentRow is an experiment in a list. Its numbers are 0 where nothing tells them.
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

func experimentLine(r experiments.Experiment) ExperimentRow {
	l := ExperimentRow{Type: "experiment_row", ExperimentID: r.Name(), WorkflowID: r.WorkflowID, RunID: r.RunID, DatasetID: r.Dataset,
		Model: r.Model, Adapter: r.Adapter, ExitStatus: r.Exit, Start: r.Start}
	if !r.Open() {
		l.Close, l.DurationMS = &r.Close, cli.Millis(r.Close.Sub(r.Start))
	}
	if r.Progress != nil {
		l.progress(*r.Progress)
	}
	l.Eval = append([]ace.EvalResult{}, l.Eval...)
	return l
}

func (l *ExperimentRow) progress(p ace.ExperimentProgress) {
	l.Stage, l.Epoch, l.TotalEpochs, l.TotalTasks = p.Stage, p.Epoch, p.TotalEpochs, p.TotalTasks*p.TotalEpochs
	judged := 0
	for _, e := range p.Epochs {
		l.Tasks, l.Correct, judged = l.Tasks+e.Tasks, l.Correct+e.Correct, judged+e.Tasks-e.Unlabeled
	}
	l.Accuracy = number(float64(l.Correct) / float64(judged))
	l.Eval, l.Bullets, l.Accepted, l.Rejected = p.Eval, p.Bullets, p.Accepted, p.Rejected
	l.InputTokens, l.OutputTokens, l.CostUSD = p.Usage.InputTokens, p.Usage.OutputTokens, p.Usage.CostUSD
}

// number is a number as JSON can have it, nil for NaN.
func number(f float64) *float64 {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return nil
	}
	return &f
}

// ExperimentSeries is an experiment whole, but for its tasks.
type ExperimentSeries struct {
	ExperimentRow
	Settings       experimentSettings `json:"settings"`
	Epochs         []ace.EpochResult  `json:"epochs"`
	Runs           int                `json:"runs"`
	PlaybookBefore string             `json:"playbook_before"`
	PlaybookAfter  string             `json:"playbook_after"`
	CostPerRight   *float64           `json:"cost_per_right,omitempty"`
	TokensPerRight *float64           `json:"tokens_per_right,omitempty"`
	MeanTookMS     *float64           `json:"mean_task_ms,omitempty"`
	Dropped        int                `json:"tasks_dropped,omitempty"`
	Incomplete     string             `json:"incomplete,omitempty"`
	Failure        *ace.Failure       `json:"failure,omitempty"`
}

// experimentSettings is what an experiment was started with.
type experimentSettings struct {
	Provider     string   `json:"provider"`
	Dataset      ace.Ref  `json:"dataset"`
	EvalID       string   `json:"eval_id,omitempty"`
	Eval         *ace.Ref `json:"eval,omitempty"`
	Parallel     int      `json:"parallel"`
	Window       int      `json:"window,omitempty"`
	AllowedTools []string `json:"allowed_tools,omitempty"`
}

func seriesLine(s *experiments.Series) ExperimentSeries {
	in, p, t := s.Input, s.Progress, s.Totals()
	l := ExperimentSeries{Settings: experimentSettings{in.Provider, in.Dataset, in.EvalID, in.Eval, in.Parallel, in.Window, in.SkillsConfig.AllowedTools},
		Epochs: append([]ace.EpochResult{}, p.Epochs...), Runs: p.Runs, PlaybookBefore: p.Before, PlaybookAfter: p.After,
		CostPerRight: number(t.CostPerRight), TokensPerRight: number(t.TokensPerRight), MeanTookMS: number(t.MeanTookMS),
		Dropped: s.Dropped, Incomplete: s.Err, Failure: s.Failure}
	l.ExperimentRow = experimentLine(experiments.Experiment{Run: runs.Run{WorkflowID: s.WorkflowID, RunID: s.RunID, Dataset: in.DatasetID,
		Model: in.Model, Adapter: string(in.Adapter), Exit: s.Exit, Start: s.Start, Close: s.Close}, Progress: &p})
	l.Type = "experiment_series"
	return l
}

// TaskLine is a task of an experiment as it ended, with what the experiment had come to.
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
	CostPerRight    *float64       `json:"cost_per_right,omitempty"`
	RollingCost     *float64       `json:"rolling_cost_per_right,omitempty"`
	AtMS            float64        `json:"at_ms"`
	DurationMS      float64        `json:"duration_ms"`
}

// taskLinesOf gives a line a task, in the order in which they ended.
func taskLinesOf(s *experiments.Series, window int) iter.Seq[TaskLine] {
	cost := func(i int) float64 { return s.Tasks.Cost[i] }
	all, rolling := s.Accuracy(0), s.Accuracy(window)
	allCost, rollingCost := s.PerRight(0, cost), s.PerRight(window, cost)
	return func(yield func(TaskLine) bool) {
		for i := range s.Tasks.Len() {
			t := s.Tasks.Row(i)
			l := TaskLine{Type: "experiment_task", N: i + 1, TaskID: t.TaskID, Epoch: t.Epoch, ExitStatus: t.Exit, Answer: t.Answer,
				Accuracy: number(all[i]), RollingAccuracy: number(rolling[i]), Bullets: t.Bullets, Accepted: t.Accepted, Rejected: t.Rejected,
				InputTokens: t.Usage.InputTokens, OutputTokens: t.Usage.OutputTokens, CostUSD: t.Usage.CostUSD,
				CostPerRight: number(allCost[i]), RollingCost: number(rollingCost[i]), AtMS: cli.Millis(t.At), DurationMS: cli.Millis(t.Took)}
			if t.Index >= 0 {
				l.Index = &t.Index
			}
			if t.Verdict != experiments.NotJudged {
				right := t.Verdict == experiments.AnsweredRight
				l.Correct = &right
			}
			if !yield(l) {
				return
			}
		}
	}
}

func seriesLines(a *cli.App, s *experiments.Series, f seriesFlags) error {
	out := cli.NewLines(a.Out)
	if err := out.Put(seriesLine(s)); err != nil {
		return err
	}
	if f.tasks {
		for l := range taskLinesOf(s, f.window) {
			if err := out.Put(l); err != nil {
				return err
			}
		}
	}
	return out.Flush()
}

// ComparisonLine is two experiments compared.
type ComparisonLine struct {
	Type      string                   `json:"type"` // comparison
	A         comparedLine             `json:"a"`
	B         comparedLine             `json:"b"`
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

type comparedLine struct {
	ExperimentID   string         `json:"experiment_id"`
	WorkflowID     string         `json:"workflow_id"`
	DatasetID      string         `json:"dataset_id"`
	ExitStatus     ace.ExitStatus `json:"exit_status"`
	Tasks          int            `json:"tasks"`
	Correct        int            `json:"correct"`
	Accuracy       *float64       `json:"accuracy,omitempty"`
	CostUSD        float64        `json:"cost_usd"`
	Tokens         int64          `json:"tokens"`
	CostPerRight   *float64       `json:"cost_per_right,omitempty"`
	TokensPerRight *float64       `json:"tokens_per_right,omitempty"`
	MeanTookMS     *float64       `json:"mean_task_ms,omitempty"`
	DurationMS     float64        `json:"duration_ms"`
	Bullets        int            `json:"bullets"`
	Accepted       int            `json:"operations_accepted"`
	Rejected       int            `json:"operations_rejected"`
	Incomplete     string         `json:"incomplete,omitempty"`
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

// FlipLine is a task that both experiments have answered.
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

func comparedSide(s *experiments.Series, t experiments.Totals) comparedLine {
	return comparedLine{ExperimentID: s.Name(), WorkflowID: s.WorkflowID, DatasetID: s.Input.DatasetID, ExitStatus: s.Exit, Tasks: t.Tasks,
		Correct: t.Right, Accuracy: number(t.Accuracy), CostUSD: t.Cost, Tokens: t.Tokens, CostPerRight: number(t.CostPerRight),
		TokensPerRight: number(t.TokensPerRight), MeanTookMS: number(t.MeanTookMS), DurationMS: cli.Millis(s.Took(time.Now())),
		Bullets: t.Bullets, Accepted: t.Accepted, Rejected: t.Rejected, Incomplete: s.Err}
}

// FlipLinesOf gives a line for each task that flipped, or with all for each that is
// aligned.
func FlipLinesOf(c *experiments.Comparison, all bool) iter.Seq[FlipLine] {
	return func(yield func(FlipLine) bool) {
		for _, p := range c.Pairs {
			if !all && !slices.Contains([]experiments.Flip{experiments.FlipFixed, experiments.FlipBroken}, p.Flip) {
				continue
			}
			a, b := c.A.Tasks.Row(p.A), c.B.Tasks.Row(p.B)
			if !yield(FlipLine{"flip", p.Flip, p.Epoch, p.IndexA, p.IndexB, a.TaskID, b.TaskID, a.Answer, b.Answer}) {
				return
			}
		}
	}
}

// ComparisonOf is what a comparison comes to.
func ComparisonOf(c *experiments.Comparison) ComparisonLine {
	l := ComparisonLine{Type: "comparison", A: comparedSide(c.A, c.TotalsA), B: comparedSide(c.B, c.TotalsB), SameData: c.SameData,
		AlignedBy: c.AlignedBy, Aligned: len(c.Pairs), AlignedA: number(c.AlignedA), AlignedB: number(c.AlignedB), OnlyA: c.OnlyA, OnlyB: c.OnlyB, Flips: map[experiments.Flip]int{}}
	for _, f := range experiments.Flips() {
		l.Flips[f] = c.Counts[f]
	}
	if e := c.Evaluations; e != nil {
		l.Eval = &evalLine{e.Dataset, e.A.Accuracy, e.B.Accuracy, append([]int{}, e.Fixed...), append([]int{}, e.Broken...), e.BothWrong, e.Partial}
	}
	return l
}

func comparisonLines(a *cli.App, c *experiments.Comparison, all bool) error {
	out := cli.NewLines(a.Out)
	if err := out.Put(ComparisonOf(c)); err != nil {
		return err
	}
	for f := range FlipLinesOf(c, all) {
		if err := out.Put(f); err != nil {
			return err
		}
	}
	return out.Flush()
}
