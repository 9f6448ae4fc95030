package ace

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// ExperimentInput is the input of [ExperimentWorkflow]. Dataset and Eval are artifacts of JSON
// lines {context, target}. Window is the number of tasks that an online experiment measures
// before it learns from them.
type ExperimentInput struct {
	ExperimentID string `json:"experiment_id"`
	DatasetID    string `json:"dataset_id"`
	Dataset      Ref    `json:"dataset"`
	Tasks        int    `json:"tasks"`
	EvaluationPlan
	Adapter      Adapter           `json:"adapter"`
	Provider     string            `json:"provider"`
	Model        string            `json:"model"`
	Steps        map[string]string `json:"steps,omitempty"`
	SkillsConfig SkillsConfig      `json:"skills_config"`
	PlaybookHash string            `json:"playbook_hash"`
	Epochs       int               `json:"epochs"` // 0 only evaluates PlaybookHash
	Parallel     int               `json:"parallel"`
	Window       int               `json:"window,omitempty"`
	PaceMS       int64             `json:"pace_ms,omitempty"`
	Grader       string            `json:"grader,omitempty"` // see TaskInput
	ExperimentBounds
	// Revision is the [TaskInput.Revision] of the experiment and its tasks. Earlier versions omit it: it is
	// then 1, or 0 without MaxFailed.
	Revision int `json:"revision,omitempty"`
	Repetition
	// Sequential makes an online experiment answer a task again with the newest playbook to learn from it.
	// The first answer, with the playbook before the window, is only measured. Parallel must be 1.
	Sequential bool `json:"sequential,omitempty"`
	// Preset is the name of the settings that the command started from, such as [PresetPaper].
	Preset string `json:"preset,omitempty"`
	// Ablation measures the bullets of PlaybookHash on Eval. Epochs must be 0.
	Ablation *Ablation `json:"ablation,omitempty"`
	Protocol
	// By is the user who started the experiment, such as user@host. Its tasks inherit it.
	By string `json:"by,omitempty"`
	// Run is set if the workflow continued as new: the ID of the first run, or of the one that a reset
	// started.
	Run string `json:"run,omitempty"`
	// Progress is set if the workflow continued as new.
	Progress *ExperimentProgress `json:"progress,omitempty"`
}

// EvaluationPlan says when an experiment evaluates its playbook and what follows from the results. Eval is
// nil without an evaluation data set.
type EvaluationPlan struct {
	EvalID    string `json:"eval_id,omitempty"`
	Eval      *Ref   `json:"eval,omitempty"`
	EvalTasks int    `json:"eval_tasks,omitempty"`
	// EvalEvery is the number of tasks after which an epoch evaluates again; 0 evaluates at its end only.
	EvalEvery int `json:"eval_every,omitempty"`
	// KeepBest creates the branch [BestBranch] with the best version at the end.
	KeepBest bool `json:"keep_best,omitempty"`
	// Answered are the parts of the first evaluation that an earlier run with the same input has answered.
	Answered []AnsweredPart `json:"answered,omitempty"`
	// Patience is the number of evaluations in a row without a new best accuracy after which the experiment
	// ends; 0 means never.
	Patience int `json:"patience,omitempty"`
}

// AnsweredPart is an artifact with the items of an [ActivityEvaluate] of a playbook that began with the task
// From.
type AnsweredPart struct {
	Playbook string `json:"playbook"`
	From     int    `json:"from"`
	Items    Ref    `json:"items"`
}

// ExperimentBounds end an experiment early.
type ExperimentBounds struct {
	// MaxFailed is the share of failed tasks, from 0 to 1, above which the experiment fails. It also fails if
	// all tasks failed. The same holds for the tasks of an evaluation. With nil, as in inputs of earlier
	// versions, failed tasks do not fail it.
	MaxFailed *float64 `json:"max_failed,omitempty"`
	// MaxCostUSD and MaxTokens bound the usage of its tasks and evaluations; 0 is no bound.
	MaxCostUSD float64 `json:"max_cost_usd,omitempty"`
	MaxTokens  int64   `json:"max_tokens,omitempty"`
}

// Repetition is the place of an experiment in a group of repeats.
type Repetition struct {
	// Group, Repeat and Repeats are set if several experiments have the same settings: the name of the group,
	// the number of this experiment, from 1, and the planned number of experiments. See [RepeatID].
	Group   string `json:"group,omitempty"`
	Repeat  int    `json:"repeat,omitempty"`
	Repeats int    `json:"repeats,omitempty"`
	// Shuffle is set if Dataset is a shuffled data set.
	Shuffle *Shuffle `json:"shuffle,omitempty"`
}

// Shuffle is the origin of a shuffled data set: the original and the seed.
type Shuffle struct {
	Seed    uint32 `json:"seed"`
	Dataset Ref    `json:"dataset"`
}

// RepeatID returns the id of a repeat, from 1, of a group of experiments.
func RepeatID(group string, repeat int) string { return fmt.Sprintf("%s-r%d", group, repeat) }

// SourceDataset returns the data set whose tasks the experiment runs, in their original order.
func (in *ExperimentInput) SourceDataset() Ref {
	if in.Shuffle != nil {
		return in.Shuffle.Dataset
	}
	return in.Dataset
}

// PartialCredit reports whether the grader gives scores between 0 and 1. Every grader that is a program
// counts as one.
func (in *ExperimentInput) PartialCredit() bool {
	return in.Grader == GraderTags || strings.HasPrefix(in.Grader, GraderProgram)
}

// MeanScore returns the mean score of labeled tasks from the sum of their scores. It returns nil without
// labeled tasks, and without partial credit, because the mean is then the accuracy.
func (in *ExperimentInput) MeanScore(sum float64, labeled int) *float64 {
	if !in.PartialCredit() || labeled == 0 {
		return nil
	}
	return new(sum / float64(labeled))
}

// DefaultMaxFailed is the default of [ExperimentInput.MaxFailed].
const DefaultMaxFailed = 0.5

// EpochResult counts the tasks of one epoch: Correct, Wrong, Unlabeled and Ungraded by the verdict on the
// first answer, which precedes what the playbook learns from the task, and Failed those that did not
// complete. Accuracy is the share of correct answers among the tasks with a label, including failed tasks; it
// means nothing if Labeled is 0. Curve has a point for every Bucket tasks, in the order of the data set.
type EpochResult struct {
	Epoch     int     `json:"epoch"`
	Tasks     int     `json:"tasks"`
	Correct   int     `json:"correct"`
	Wrong     int     `json:"wrong"`
	Failed    int     `json:"failed"`
	Accuracy  float64 `json:"accuracy"`
	Unlabeled int     `json:"unlabeled,omitempty"`
	Ungraded  int     `json:"ungraded,omitempty"`
	// Canceled counts the canceled tasks, which Tasks leaves out. It is 0 in experiments of a
	// [TaskInput.Revision] below 4.
	Canceled int          `json:"canceled,omitempty"`
	Bucket   int          `json:"bucket,omitempty"`
	Curve    []CurvePoint `json:"curve,omitempty"`
	// Score is the sum of the scores of the answers, 0 unless the experiment names a grader.
	Score float64 `json:"score,omitempty"`
	// Regenerated counts the tasks that were answered again with a reflection on a wrong answer, and After
	// the answers with the updated playbook.
	Regenerated Answers `json:"regenerated,omitzero"`
	After       Answers `json:"after,omitzero"`
}

// AgainText describes the answers after the first ones, or returns "".
func (e *EpochResult) AgainText() string {
	var parts []string
	if r := e.Regenerated; r.Answers > 0 {
		parts = append(parts, fmt.Sprintf("%d of %d wrong answers were correct after reflection", r.Correct,
			r.Answers))
	}
	if r := e.After; r.Answers > 0 {
		parts = append(parts, fmt.Sprintf("%d of %d answers correct with the updated playbook", r.Correct,
			r.Answers))
	}
	return strings.Join(parts, ", ")
}

// Answers counts graded answers.
type Answers struct {
	Answers int `json:"answers"`
	Correct int `json:"correct"`
}

func (a *Answers) add(correct *bool) {
	if correct == nil {
		return
	}
	a.Answers++
	if *correct {
		a.Correct++
	}
}

// CurvePoint counts the answers in one bucket of tasks.
type CurvePoint struct {
	Tasks   int `json:"tasks"`
	Correct int `json:"correct"`
}

// Labeled returns the number of tasks that Accuracy covers.
func (e *EpochResult) Labeled() int { return e.Tasks - e.Unlabeled }

// ExperimentProgress is the progress of an experiment: the answer of [QueryExperiment] and the
// workflow's result.
type ExperimentProgress struct {
	ExperimentID string        `json:"experiment_id"`
	TotalEpochs  int           `json:"total_epochs"`
	TotalTasks   int           `json:"total_tasks"` // in one epoch
	Epoch        int           `json:"epoch"`       // current or last epoch, 1-based
	Epochs       []EpochResult `json:"epochs"`
	Eval         []EvalResult  `json:"eval"`
	Best         *Best         `json:"best,omitempty"`    // nil without labeled evaluations
	Stopped      string        `json:"stopped,omitempty"` // why it ended before the last epoch
	Before       string        `json:"playbook_before"`
	After        string        `json:"playbook_after"`
	Bullets      int           `json:"bullets"`
	Usage        Usage         `json:"usage"`
	Accepted     int           `json:"operations_accepted"`
	Rejected     int           `json:"operations_rejected"`
	Summary      Summary       `json:"summary"` // sum over all tasks
	Status       Status        `json:"status"`  // with which the experiment itself will close
	Stage        string        `json:"stage"`   // learning, evaluating, ablating, done or stopped
	Runs         int           `json:"runs"`    // Temporal runs of the continue-as-new chain
	Budget       *Budget       `json:"budget,omitempty"`
	// Ablation is set if the input asks for one and its evaluation has begun.
	Ablation *AblationProgress `json:"ablation,omitempty"`
}

// LastEval returns the last evaluation that is complete, or nil.
func (p *ExperimentProgress) LastEval() *EvalResult {
	for i := range slices.Backward(p.Eval) {
		if !p.Eval[i].Incomplete {
			return &p.Eval[i]
		}
	}
	return nil
}

// Stages of an experiment.
const (
	StageLearning   = "learning"
	StageEvaluating = "evaluating"
	StageAblating   = "ablating"
	StageDone       = "done"
	// StageStopped is the stage of an experiment that closed without completing. Runs of a
	// [TaskInput.Revision] below 5 leave the last stage in the attribute [AttrPhase].
	StageStopped = "stopped"
)

// LoadTasksInput is the input of [ActivityLoadTasks], which returns at most Count tasks from the
// 0-based index From: as many as fit into a payload, but at least one.
type LoadTasksInput struct {
	Dataset Ref `json:"dataset"`
	From    int `json:"from"`
	Count   int `json:"count"`
}

// Task is one problem of a data set.
type Task struct {
	Index     int     `json:"index"`
	Prompt    string  `json:"prompt,omitempty"`
	PromptRef *Ref    `json:"prompt_ref,omitempty"`
	Subject   string  `json:"subject,omitempty"` // see TaskInput
	Label     *string `json:"label,omitempty"`
}

// HeadInput is the input of [ActivityHead], which returns the latest version of a branch. It
// creates a missing branch at Initial.
type HeadInput struct {
	Branch  string `json:"branch"`
	Initial string `json:"initial"`
}

// HeadResult is the result of [ActivityHead].
type HeadResult struct {
	PlaybookHash string `json:"playbook_hash"`
	Bullets      int    `json:"bullets"`
	Branch       string `json:"branch,omitempty"` // of the input; workers of earlier versions omit it
}

// ReadPlaybookInput is the input of [ActivityReadPlaybook].
type ReadPlaybookInput struct {
	PlaybookHash string `json:"playbook_hash"` // "" is the empty playbook
}

// ExperimentFact is one change of an experiment, the input of its fold. Exactly one field is set.
type ExperimentFact struct {
	Input     *ExperimentInput
	Completed *TaskResult     // a completed task
	Failed    *Failure        // a failed or canceled task
	Evaluated *EvaluateResult // a part of an evaluation or of the trials of an ablation
	Planned   *PlanTrialsResult
	Head      *HeadResult
	Closed    *ExperimentClosed
}

// ExperimentClosed is the status with which the server closed an experiment.
type ExperimentClosed struct {
	Status  Status
	Failure *Failure
}

// ExperimentStartedFrom decodes the JSON input of an experiment.
func ExperimentStartedFrom(data []byte) (ExperimentFact, error) {
	var in ExperimentInput
	if err := json.Unmarshal(data, &in); err != nil {
		return ExperimentFact{}, fmt.Errorf("experiment input: %w", err)
	}
	return ExperimentFact{Input: &in}, nil
}

// ExperimentState is the value of the fold of an experiment. Like a [State], it does not depend
// on the order of tasks that end together.
type ExperimentState struct {
	Input    ExperimentInput
	Progress ExperimentProgress
	ClosedAs Status // "" while it is open
	Failure  *Failure

	seq     int   // number of Progress.After in its branch
	nano    int64 // Progress.Usage.CostUSD in billionths, because a sum of floats depends on their order
	headed  bool  // the branch's head is known
	partial EvalResult
	// shareSpent is set if a task or evaluation spent its share of the budget.
	shareSpent bool
}

// Apply folds one fact into the state. It never modifies a slice of Progress in place, so copies
// of Progress remain valid.
func (s *ExperimentState) Apply(f ExperimentFact) {
	switch {
	case f.Input != nil:
		s.start(*f.Input)
	case f.Completed != nil:
		s.completed(f.Completed)
	case f.Failed != nil:
		s.failed(f.Failed.Kind)
		if f.Failed.Usage != nil {
			s.spend(*f.Failed.Usage)
		}
	case f.Evaluated != nil:
		s.addEvaluated(f.Evaluated)
	case f.Planned != nil:
		s.addTrials(f.Planned)
	case f.Head != nil:
		s.head(*f.Head)
	case f.Closed != nil:
		s.close(*f.Closed)
		return
	}
	s.advance()
}

// close records the server's status. The stage no longer says what would have come next.
func (s *ExperimentState) close(c ExperimentClosed) {
	p := &s.Progress
	s.ClosedAs, s.Failure, p.Status = c.Status, c.Failure, c.Status
	if c.Status == Completed || c.Status == ContinuedAsNew {
		return
	}
	p.Stage = StageStopped
	if n := len(p.Epochs); n > 1 && p.Epochs[n-1].closed() == 0 && p.Epochs[n-2].Canceled > 0 {
		p.Epochs = p.Epochs[: n-1 : n-1] // the canceled tasks were the last of the previous epoch
		p.Epoch = p.Epochs[n-2].Epoch
	}
}

// Clone returns a copy that later calls of Apply on s do not change.
func (s *ExperimentState) Clone() *ExperimentState {
	c := *s
	c.partial.Wrong = slices.Clone(s.partial.Wrong)
	return &c
}

// Status returns the server's record of the experiment: Running until it is closed.
func (s *ExperimentState) Status() Status { return cmp.Or(s.ClosedAs, Running) }

// Failed returns the number of failed tasks and of closed tasks except canceled ones, in all epochs.
func (p *ExperimentProgress) Failed() (failed, closed int) {
	for _, e := range p.Epochs {
		failed += e.Failed
		closed += e.Tasks
	}
	return failed, closed
}

// TooManyFailed reports whether so many of all tasks failed that the experiment fails, or all that are
// closed.
func (b ExperimentBounds) TooManyFailed(failed, closed, all int) bool {
	return b.MaxFailed != nil && failed > 0 &&
		(failed == closed || float64(failed) > *b.MaxFailed*float64(all))
}

// Canceled returns the number of canceled tasks, in all epochs.
func (p *ExperimentProgress) Canceled() (canceled int) {
	for _, e := range p.Epochs {
		canceled += e.Canceled
	}
	return canceled
}

// Done returns the number of closed tasks of the current epoch that were not canceled.
func (p *ExperimentProgress) Done() int { return p.current().Tasks }

// Closed returns the number of closed tasks of the current epoch, including canceled tasks.
func (p *ExperimentProgress) Closed() int { return p.current().closed() }

func (p *ExperimentProgress) current() EpochResult {
	if len(p.Epochs) == 0 {
		return EpochResult{}
	}
	return p.Epochs[len(p.Epochs)-1]
}

func (e EpochResult) closed() int { return e.Tasks + e.Canceled }

func (s *ExperimentState) start(in ExperimentInput) {
	s.Input = in
	if in.Progress != nil {
		s.Progress = *in.Progress
		s.Progress.Status = Running
		s.headed = true
		s.nano = nanos(s.Progress.Usage.CostUSD)
	} else {
		s.Progress = ExperimentProgress{
			ExperimentID: in.ExperimentID, TotalEpochs: in.Epochs, TotalTasks: in.Tasks, Epoch: 1,
			Epochs: []EpochResult{newEpoch(1, in.Tasks)}, Eval: []EvalResult{},
			Before: in.PlaybookHash, After: in.PlaybookHash, Status: Running,
		}
		if in.Epochs == 0 {
			s.Progress.Epoch = 0
			s.Progress.Epochs = []EpochResult{}
		}
	}
	s.Progress.Budget = in.Limits()
	s.Progress.Runs++
}

// curvePoints bounds the number of points of a learning curve.
const curvePoints = 60

func newEpoch(epoch, tasks int) EpochResult {
	return EpochResult{Epoch: epoch, Bucket: max(10, (tasks+curvePoints-1)/curvePoints)}
}

func (s *ExperimentState) completed(r *TaskResult) {
	p := &s.Progress
	s.shareSpent = s.shareSpent || r.Stopped != ""
	if r.Counts() {
		s.count(r.Index, r.Graded())
	}
	if n := len(p.Epochs); n > 0 && r.Counts() {
		e := &p.Epochs[n-1] // count made a copy
		if r.Score != nil {
			e.Score = AddScores(e.Score, *r.Score)
		}
		e.Regenerated.add(r.Regenerated)
		e.After.add(r.After)
	}
	s.spend(r.Summary.Usage)
	sum := r.Summary
	sum.Usage = Usage{}
	p.Summary = p.Summary.Add(sum)
	p.Accepted += r.Summary.Accepted()
	p.Rejected += r.Summary.Rejected
	if r.PlaybookHash != "" && r.Seq >= s.seq {
		p.After, p.Bullets, s.seq = r.PlaybookHash, r.Bullets, r.Seq
	}
}

// failed counts a task without a result. Revisions below 4 do not count a canceled task and start it again.
func (s *ExperimentState) failed(kind Status) {
	switch {
	case kind != Canceled:
		s.count(-1, "")
	case s.Input.Revision > 3 && len(s.Progress.Epochs) > 0:
		s.Progress.Epochs = slices.Clone(s.Progress.Epochs)
		s.Progress.Epochs[len(s.Progress.Epochs)-1].Canceled++
	}
}

func (s *ExperimentState) spend(u Usage) {
	p := &s.Progress
	s.nano += nanos(u.CostUSD)
	p.Usage = p.Usage.Add(u)
	p.Usage.CostUSD = dollars(s.nano)
	p.Summary.Usage = p.Usage
}

// AddScores returns the sum of two scores in whole millionths, so that a sum does not depend on their order.
func AddScores(a, b float64) float64 { return math.Round((a+b)*1e6) / 1e6 }

func nanos(usd float64) int64 { return int64(math.Round(usd * 1e9)) }
func dollars(n int64) float64 { return float64(n) / 1e9 }

// count adds a closed task to the current epoch. The verdict of a failed task is "". Index -1 means unknown.
func (s *ExperimentState) count(index int, verdict Verdict) {
	p := &s.Progress
	if len(p.Epochs) == 0 {
		return
	}
	p.Epochs = slices.Clone(p.Epochs)
	e := &p.Epochs[len(p.Epochs)-1]
	e.Tasks++
	switch verdict {
	case Correct:
		e.Correct++
	case Wrong:
		e.Wrong++
	case Unlabeled:
		e.Unlabeled++
	case Ungraded:
		e.Ungraded++
	default:
		e.Failed++
	}
	if labeled := e.Labeled(); labeled > 0 {
		e.Accuracy = float64(e.Correct) / float64(labeled)
	}
	e.plot(index, verdict == Correct)
}

func (e *EpochResult) plot(index int, correct bool) {
	if e.Bucket < 1 || index < 0 || index/e.Bucket >= curvePoints {
		return
	}
	at := index / e.Bucket
	e.Curve = slices.Clone(e.Curve)
	if missing := at + 1 - len(e.Curve); missing > 0 {
		e.Curve = append(e.Curve, make([]CurvePoint, missing)...)
	}
	e.Curve[at].Tasks++
	if correct {
		e.Curve[at].Correct++
	}
}

func (s *ExperimentState) head(h HeadResult) {
	p := &s.Progress
	if p.Best != nil && h.Branch == BestBranch(s.Input.ExperimentID) {
		best := *p.Best
		best.Branch = h.Branch
		p.Best = &best
		return
	}
	if p.Ablation != nil && p.Ablation.Pruned != nil && h.Branch == PrunedBranch(s.Input.ExperimentID) {
		s.changeAblation(func(p *AblationProgress) {
			pruned := *p.Pruned
			pruned.Branch = h.Branch
			p.Pruned = &pruned
		})
		return
	}
	p.After, p.Bullets = h.PlaybookHash, h.Bullets
	if !s.headed {
		p.Before, s.headed = h.PlaybookHash, true
	}
}

// advance derives the stage and the epoch.
func (s *ExperimentState) advance() {
	p := &s.Progress
	finished := p.Closed() >= p.TotalTasks || p.Stopped != ""
	switch {
	case s.needsMore(finished) && s.stopForBudget():
		s.finish()
	case s.evaluationIsDue(finished):
		p.Stage = StageEvaluating
	case s.ablating():
		p.Stage = StageAblating
	case s.saturated():
		p.Stopped = "no better accuracy in " + strconv.Itoa(s.Input.Patience) + " evaluations"
		s.finish()
	case !finished:
		p.Stage = StageLearning
	case p.Epoch < p.TotalEpochs && p.Stopped == "":
		p.Epoch++
		p.Epochs = append(slices.Clone(p.Epochs), newEpoch(p.Epoch, p.TotalTasks))
		p.Stage = StageLearning
	default:
		s.finish()
	}
}

// needsMore reports whether the experiment will send further requests to models.
func (s *ExperimentState) needsMore(finished bool) bool {
	return s.partial.Incomplete || !finished || s.Progress.Epoch < s.Progress.TotalEpochs ||
		s.evaluationIsDue(finished) || s.ablating()
}

func (s *ExperimentState) finish() {
	p := &s.Progress
	p.Stage = StageDone
	p.Status = Completed
	if failed, closed := p.Failed(); s.Input.TooManyFailed(failed, closed, closed) {
		p.Status = Failed
	}
}
