package ace

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
)

// ExperimentFact is one thing that became known of an experiment. Exactly one field is
// set.
type ExperimentFact struct {
	Input     *ExperimentInput
	Ended     *TaskResult     // a task that completed
	Failed    *Failure        // a task that did not; a cancelled one counts neither way
	Evaluated *EvaluateResult // a part of an evaluation
	Head      *HeadResult
	Closed    *Closing
}

// Closing is how the server closed an experiment.
type Closing struct {
	Exit    ExitStatus
	Failure *Failure
}

// ExperimentStartedFrom is the fact of an experiment's input, given as its JSON.
func ExperimentStartedFrom(data []byte) (ExperimentFact, error) {
	var in ExperimentInput
	if err := json.Unmarshal(data, &in); err != nil {
		return ExperimentFact{}, fmt.Errorf("experiment input: %w", err)
	}
	return ExperimentFact{Input: &in}, nil
}

// ExperimentState is what is known of an experiment: the value of its fold. As with
// [State], tasks that end together may be applied in any order.
type ExperimentState struct {
	Input    ExperimentInput
	Progress ExperimentProgress
	ClosedAs ExitStatus // "" while it is open
	Failure  *Failure

	seq     int   // of Progress.After in its branch
	nano    int64 // Progress.Usage.CostUSD in billionths: sums of floats depend on their order
	headed  bool
	partial EvalResult
}

// Apply folds one fact into the state. What it changes in Progress it replaces, so that
// copies of Progress stay as they are.
func (s *ExperimentState) Apply(f ExperimentFact) {
	switch {
	case f.Input != nil:
		s.start(*f.Input)
	case f.Ended != nil:
		s.ended(f.Ended)
	case f.Failed != nil:
		if f.Failed.Kind != Cancelled {
			s.count(-1, Failed, nil)
		}
	case f.Evaluated != nil:
		s.evaluated(f.Evaluated)
	case f.Head != nil:
		s.head(*f.Head)
	case f.Closed != nil:
		s.ClosedAs, s.Failure = f.Closed.Exit, f.Closed.Failure
	}
	s.advance()
}

// Clone is a deep enough copy: nothing that a later Apply changes is shared.
func (s *ExperimentState) Clone() *ExperimentState {
	c := *s
	c.partial.Wrong = slices.Clone(s.partial.Wrong)
	return &c
}

// ExitStatus is the outcome, Running while it is open.
func (s *ExperimentState) ExitStatus() ExitStatus {
	if s.ClosedAs != "" && s.Progress.ExitStatus == Running {
		return s.ClosedAs
	}
	return s.Progress.ExitStatus
}

// Done is how many tasks of the epoch under way have ended.
func (p *ExperimentProgress) Done() int {
	if len(p.Epochs) == 0 {
		return 0
	}
	return p.Epochs[len(p.Epochs)-1].Tasks
}

func (s *ExperimentState) start(in ExperimentInput) {
	s.Input = in
	if in.Progress != nil {
		s.Progress, s.headed = *in.Progress, true
		s.nano = nanos(s.Progress.Usage.CostUSD)
	} else {
		s.Progress = ExperimentProgress{ExperimentID: in.ExperimentID, TotalEpochs: in.Epochs, TotalTasks: in.Tasks, Epoch: 1,
			Epochs: []EpochResult{newEpoch(1, in.Tasks)}, Eval: []EvalResult{}, Before: in.PlaybookHash, After: in.PlaybookHash,
			ExitStatus: Running}
	}
	s.Progress.Runs++
}

// curvePoints is how many points a learning curve has at the most.
const curvePoints = 60

func newEpoch(epoch, tasks int) EpochResult {
	return EpochResult{Epoch: epoch, Bucket: max(10, (tasks+curvePoints-1)/curvePoints)}
}

func (s *ExperimentState) ended(r *TaskResult) {
	p := &s.Progress
	s.count(r.Index, r.ExitStatus, r.Correct)
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

func (s *ExperimentState) spend(u Usage) {
	p := &s.Progress
	s.nano += nanos(u.CostUSD)
	p.Usage = p.Usage.Add(u)
	p.Usage.CostUSD = dollars(s.nano)
	p.Summary.Usage = p.Usage
}

func nanos(usd float64) int64 { return int64(math.Round(usd * 1e9)) }
func dollars(n int64) float64 { return float64(n) / 1e9 }

// count adds a task's outcome to the epoch under way; index -1 is unknown.
func (s *ExperimentState) count(index int, exit ExitStatus, correct *bool) {
	p := &s.Progress
	if len(p.Epochs) == 0 {
		return
	}
	p.Epochs = slices.Clone(p.Epochs)
	e := &p.Epochs[len(p.Epochs)-1]
	right := exit == Success && correct != nil && *correct
	e.Tasks++
	switch {
	case exit != Success && exit != Wrong:
		e.Failed++
	case correct == nil:
		e.Unlabeled++
	case right:
		e.Correct++
	default:
		e.Wrong++
	}
	if judged := e.Tasks - e.Unlabeled; judged > 0 {
		e.Accuracy = float64(e.Correct) / float64(judged)
	}
	e.plot(index, right)
}

func (e *EpochResult) plot(index int, right bool) {
	if e.Bucket < 1 || index < 0 || index/e.Bucket >= curvePoints {
		return
	}
	at := index / e.Bucket
	e.Curve = slices.Clone(e.Curve)
	for len(e.Curve) <= at {
		e.Curve = append(e.Curve, CurvePoint{})
	}
	e.Curve[at].Tasks++
	if right {
		e.Curve[at].Correct++
	}
}

func (s *ExperimentState) evaluated(r *EvaluateResult) {
	t := &s.partial
	if t.Tasks == 0 {
		t.Epoch, t.Playbook = len(s.Progress.Eval), s.Progress.After
	}
	t.Tasks += r.Tasks
	t.Correct += r.Correct
	cost := nanos(t.Usage.CostUSD) + nanos(r.Usage.CostUSD)
	t.Usage = t.Usage.Add(r.Usage)
	t.Usage.CostUSD = dollars(cost)
	t.Wrong = append(t.Wrong, r.Wrong...)
	if t.Tasks < s.Input.EvalTasks || r.Tasks == 0 {
		return
	}
	t.Accuracy = float64(t.Correct) / float64(t.Tasks)
	slices.Sort(t.Wrong)
	t.Wrong = t.Wrong[:min(len(t.Wrong), MaxWrong)]
	s.Progress.Eval = append(slices.Clone(s.Progress.Eval), *t)
	s.spend(t.Usage)
	s.partial = EvalResult{}
}

func (s *ExperimentState) head(h HeadResult) {
	p := &s.Progress
	p.After, p.Bullets = h.PlaybookHash, h.Bullets
	if !s.headed {
		p.Before, s.headed = h.PlaybookHash, true
	}
}

// advance derives the stage and the epoch from what is known: an evaluation comes before
// the first epoch and after each.
func (s *ExperimentState) advance() {
	p := &s.Progress
	measured := len(p.Eval) - 1 // the epoch after which the last evaluation came
	if s.Input.Eval == nil {
		measured = p.Epoch
	}
	finished := p.Done() >= p.TotalTasks
	switch {
	case measured < 0, finished && measured < p.Epoch:
		p.Stage = StageEvaluating
	case !finished:
		p.Stage = StageLearning
	case p.Epoch < p.TotalEpochs:
		p.Epoch++
		p.Epochs = append(slices.Clone(p.Epochs), newEpoch(p.Epoch, p.TotalTasks))
		p.Stage = StageLearning
	default:
		p.Stage, p.ExitStatus = StageDone, Success
	}
}
