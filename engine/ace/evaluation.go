package ace

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
)

// EvaluateInput is the input of [ActivityEvaluate], which answers Count tasks from index From
// without learning. Steps overrides Task.Provider for single steps.
type EvaluateInput struct {
	Task    TaskContext       `json:"task"`
	Steps   map[string]string `json:"steps,omitempty"`
	Dataset Ref               `json:"dataset"`
	From    int               `json:"from"`
	Count   int               `json:"count"`
	Grader  string            `json:"grader,omitempty"` // see TaskInput
	// Trials, if set, is an artifact with a list of [Trial]. From and Count then select from the items of all
	// trials.
	Trials *Ref `json:"trials,omitempty"`
	// Models overrides Task.Model for single steps.
	Models  map[string]string `json:"models,omitempty"`
	Prompts Prompts           `json:"prompts,omitempty"` // see Protocol
	// NoSkills leaves out the skills phase.
	NoSkills bool `json:"no_skills,omitempty"`
	// Answered is an artifact with items that an earlier run has answered, see [EvaluationPlan]. Those
	// without an error are not answered again.
	Answered *Ref `json:"answered,omitempty"`
	// Task.Budget bounds the usage of all items. Those that would exceed it are not answered.
}

// ProviderOf returns the provider of a step.
func (in EvaluateInput) ProviderOf(step Phase) string {
	return cmp.Or(in.Steps[string(step)], in.Task.Provider)
}

// ModelOf returns the model of a step.
func (in EvaluateInput) ModelOf(step Phase) string {
	return cmp.Or(in.Models[string(step)], in.Task.Model)
}

// EvaluateResult is the result of [ActivityEvaluate]. Wrong lists the 0-based indexes of the
// tasks with a wrong answer, Unlabeled counts those without a label.
type EvaluateResult struct {
	Tasks     int   `json:"tasks"`
	Correct   int   `json:"correct"`
	Wrong     []int `json:"wrong,omitempty"`
	Unlabeled int   `json:"unlabeled,omitempty"`
	Usage     Usage `json:"usage"`
	// Score is the sum of the scores of the answers, 0 unless the input names a grader.
	Score float64 `json:"score,omitempty"`
	// Items is an artifact with an [EvalItem] per task, as JSON lines; nil from workers that keep none.
	Items *Ref `json:"items,omitempty"`
	// Stopped is set if the budget was spent before every task was answered.
	Stopped bool `json:"stopped,omitempty"`
	FailedItems
}

// FailedItems are the tasks of an evaluation that have no answer, because it failed. Tasks includes them, the
// other counts do not. List has at most MaxWrong 0-based indexes, ascending; Why is the error of the first.
type FailedItems struct {
	Failed int    `json:"failed,omitempty"`
	List   []int  `json:"failed_items,omitempty"`
	Why    string `json:"failed_why,omitempty"`
}

// Add returns the sum of the failed tasks of two parts.
func (f FailedItems) Add(g FailedItems) FailedItems {
	if f.Failed == 0 || g.Failed > 0 && g.List[0] < f.List[0] {
		f.Why = g.Why
	}
	list := slices.Concat(f.List, g.List)
	slices.Sort(list)
	return FailedItems{f.Failed + g.Failed, list[:min(len(list), MaxWrong)], f.Why}
}

// Text returns "2 of 50 failed", or "" if none failed.
func (f FailedItems) Text(of int) string {
	if f.Failed == 0 {
		return ""
	}
	return Number(f.Failed) + " of " + Number(of) + " failed"
}

// MaxWrong bounds [EvalResult.Wrong].
const MaxWrong = 1000

// EvalResult is the accuracy on the evaluation data set after an epoch; Epoch 0 is the result
// before the first one. Accuracy covers the tasks with a label; it means nothing if Labeled is 0.
type EvalResult struct {
	Epoch int `json:"epoch"`
	// Learned is the number of closed tasks of the epoch before the evaluation; 0 at the end of the epoch.
	Learned  int     `json:"learned,omitempty"`
	Tasks    int     `json:"tasks"`
	Correct  int     `json:"correct"`
	Accuracy float64 `json:"accuracy"`
	Playbook string  `json:"playbook"`
	Wrong    []int   `json:"wrong,omitempty"` // 0-based indexes of wrong tasks, at most MaxWrong
	// Unlabeled is the number of tasks without a label. Earlier versions counted them as wrong.
	Unlabeled int   `json:"unlabeled,omitempty"`
	Usage     Usage `json:"usage"`
	// Score is the sum of the scores of the answers, 0 unless the experiment names a grader.
	Score float64 `json:"score,omitempty"`
	// Incomplete is set if the budget was spent before every task was answered. The result is then not
	// compared with others.
	Incomplete bool `json:"incomplete,omitempty"`
	FailedItems
}

// Labeled returns the number of tasks that Accuracy covers.
func (e *EvalResult) Labeled() int { return e.Tasks - e.Unlabeled - e.Failed }

// AtLeast is the accuracy if the failed tasks were wrong.
func (e *EvalResult) AtLeast() float64 {
	return float64(e.Correct) / float64(max(e.Labeled()+e.Failed, 1))
}

// ItemsMediaType is the media type of the artifact of [EvaluateResult.Items].
const ItemsMediaType = "application/vnd.acescope.evaluation+jsonl"

// EvalItem is the answer to one task of an evaluation.
type EvalItem struct {
	Index   int     `json:"index"` // of the task in the data set, from 0
	Answer  string  `json:"answer"`
	Label   *string `json:"label,omitempty"`
	Correct *bool   `json:"correct,omitempty"` // nil without a label
	// Score is from 0 to 1; nil unless the input names a grader.
	Score       *float64 `json:"score,omitempty"`
	GradeReason string   `json:"grade_reason,omitempty"` // see ReflectorResult
	Plan        string   `json:"plan,omitempty"`
	// BulletIDs are the bullets that the generator cited; it was shown the whole playbook.
	BulletIDs  []string     `json:"bullet_ids,omitempty"`
	ToolCalls  []Invocation `json:"tool_calls,omitempty"`
	Usage      *Usage       `json:"usage,omitempty"`
	DurationMS float64      `json:"duration_ms"`
	Calls      *CallLog     `json:"model_calls,omitempty"`
	Trial      int          `json:"trial,omitempty"` // of an ablation's round, from 1
	// why there is no verdict: the answer or its grading failed
	Error string `json:"error,omitempty"`
	// Reused is set if an earlier run gave the answer, and has its usage.
	Reused bool `json:"reused,omitempty"`
}

// ParseItems decodes an artifact with items.
func ParseItems(data []byte) (items []EvalItem, err error) {
	for line := range bytes.Lines(data) {
		var item EvalItem
		if err := json.Unmarshal(line, &item); err != nil {
			return nil, err
		}
		items = append(items, item)
	}
	return items, nil
}

// Best is the playbook version with the highest accuracy in the evaluations, the first if several are equal.
// Branch is the branch that holds it. Only experiments with KeepBest or Patience have one.
type Best struct {
	Evaluation int     `json:"evaluation"` // index in the list of evaluations
	Playbook   string  `json:"playbook"`
	Accuracy   float64 `json:"accuracy"`
	Branch     string  `json:"branch,omitempty"`
}

// BestBranch returns the name of the branch that holds the best version of an experiment.
func BestBranch(experiment string) string { return experiment + "-best" }

func (s *ExperimentState) addEvaluated(r *EvaluateResult) {
	if s.ablating() {
		s.addTried(r)
		return
	}
	if s.Input.Ablation != nil {
		s.changeAblation(func(p *AblationProgress) { p.Evaluated = addItems(p.Evaluated, r.Items) })
	}
	t := &s.partial
	if t.Tasks == 0 {
		t.Epoch, t.Learned = s.place()
		t.Playbook = s.Progress.After
	}
	t.Tasks += r.Tasks
	t.Correct += r.Correct
	t.Unlabeled += r.Unlabeled
	t.Score = AddScores(t.Score, r.Score)
	cost := nanos(t.Usage.CostUSD) + nanos(r.Usage.CostUSD)
	t.Usage = t.Usage.Add(r.Usage)
	t.Usage.CostUSD = dollars(cost)
	t.Wrong = append(t.Wrong, r.Wrong...)
	t.FailedItems = t.FailedItems.Add(r.FailedItems)
	s.spend(r.Usage)
	listed := t.Incomplete
	s.shareSpent = s.shareSpent || r.Stopped
	t.Incomplete = t.Tasks > 0 && t.Tasks < s.Input.EvalTasks &&
		(s.shareSpent || s.Input.Limits().Spent(s.Progress.Usage) != "")
	if !t.Incomplete && (t.Tasks < s.Input.EvalTasks || r.Tasks == 0) {
		return
	}
	if labeled := t.Labeled(); labeled > 0 {
		t.Accuracy = float64(t.Correct) / float64(labeled)
	}
	slices.Sort(t.Wrong)
	t.Wrong = t.Wrong[:min(len(t.Wrong), MaxWrong)]
	s.Progress.Eval = slices.Clone(s.Progress.Eval)
	if listed {
		s.Progress.Eval = s.Progress.Eval[:len(s.Progress.Eval)-1]
	}
	s.Progress.Eval = append(s.Progress.Eval, *t)
	if t.Incomplete { // parts that are under way may still report
		s.Progress.Eval[len(s.Progress.Eval)-1].Wrong = slices.Clone(t.Wrong)
		return
	}
	wanted := s.Input.KeepBest || s.Input.Patience > 0
	best := s.Progress.Best
	if wanted && t.Labeled() > 0 && (best == nil ||
		t.AtLeast() > s.Progress.Eval[best.Evaluation].AtLeast()) {
		s.Progress.Best = &Best{Evaluation: len(s.Progress.Eval) - 1, Playbook: t.Playbook,
			Accuracy: t.Accuracy}
	}
	s.partial = EvalResult{}
}

// OpenEval returns the evaluation that is under way, or was when the experiment ended. It is nil if every
// evaluation is in Progress.
func (s *ExperimentState) OpenEval() *EvalResult {
	if s.partial.Tasks == 0 || s.partial.Incomplete {
		return nil
	}
	e := s.partial
	e.Incomplete = true
	if labeled := e.Labeled(); labeled > 0 {
		e.Accuracy = float64(e.Correct) / float64(labeled)
	}
	return &e
}

// FailedItems returns the failed tasks of the newest evaluation or round of trials, and the number of
// answered tasks and of all.
func (s *ExperimentState) FailedItems() (failed FailedItems, answered, all int) {
	if a := s.Progress.Ablation; a != nil && len(a.Rounds) > 0 {
		r := &a.Rounds[len(a.Rounds)-1]
		return r.FailedItems, r.Done, r.Answers
	}
	e := s.partial
	if n := len(s.Progress.Eval); e.Tasks == 0 && n > 0 {
		e = s.Progress.Eval[n-1]
	}
	return e.FailedItems, e.Tasks, s.Input.EvalTasks
}

// place returns the epoch of an evaluation that begins now, and the number of closed tasks of the epoch; 0 at
// the end of the epoch and before the first epoch.
func (s *ExperimentState) place() (epoch, learned int) {
	p := &s.Progress
	if len(p.Eval) == 0 {
		return 0, 0
	}
	if done := p.Closed(); done < p.TotalTasks {
		return p.Epoch, done
	}
	return p.Epoch, 0
}

// evaluationIsDue reports whether the playbook is to be evaluated before it learns more: before the first
// epoch, after each [ExperimentInput.EvalEvery] tasks, and at the end of each epoch.
func (s *ExperimentState) evaluationIsDue(finished bool) bool {
	p := &s.Progress
	if s.Input.Eval == nil {
		return false
	}
	if len(p.Eval) == 0 {
		return true
	}
	last := p.Eval[len(p.Eval)-1]
	switch every := s.Input.EvalEvery; {
	case p.TotalEpochs == 0:
		return false
	case finished:
		return last.Epoch < p.Epoch || last.Learned > 0 && last.Learned < p.Closed()
	case every == 0 || p.Closed() == 0 || p.Closed()%every != 0:
		return false
	}
	return last.Epoch < p.Epoch || last.Learned < p.Closed()
}

// saturated reports whether the last evaluations were no better than an earlier one.
func (s *ExperimentState) saturated() bool {
	p := &s.Progress
	return s.Input.Patience > 0 && p.Best != nil && len(p.Eval)-1-p.Best.Evaluation >= s.Input.Patience
}

// Summary returns the sum over the tasks for a list of runs. Metered is the usage of the evaluations, because
// tasks report their own usage. It is nil if an agent's CLI executed a phase of the evaluations or judged
// their answers, because its transcripts have the usage.
func (s *ExperimentState) Summary() Summary {
	sum := s.Progress.Summary
	in := EvaluateInput{Task: TaskContext{Provider: s.Input.Provider}, Steps: s.Input.Steps}
	byAgent := IsAgent(in.ProviderOf(PhaseGenerator)) || IsAgent(in.ProviderOf(PhaseSkills)) ||
		s.Input.Grader == GraderJudge && IsAgent(in.ProviderOf(PhaseReflector))
	if s.Input.Revision < 2 || byAgent {
		return sum
	}
	u := sum.Usage // without tasks, all of it is of evaluations and trials
	if s.Progress.TotalEpochs > 0 {
		u = Usage{}
		cost := int64(0)
		for _, e := range s.Progress.Eval {
			u = u.Add(e.Usage)
			cost += nanos(e.Usage.CostUSD)
		}
		u.CostUSD = dollars(cost)
	}
	if u != (Usage{}) {
		sum.Metered = &ModelUsage{cmp.Or(s.Input.Models[string(PhaseGenerator)], s.Input.Model): u}
	}
	return sum
}
