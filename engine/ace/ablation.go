package ace

import (
	"slices"
	"strings"
)

// Ablation asks an experiment without epochs to answer items again without parts of the playbook, after its
// evaluation of the whole playbook. It always leaves out each cited bullet.
type Ablation struct {
	Sections bool `json:"sections,omitempty"` // also leave out each section
	Twins    bool `json:"twins,omitempty"`    // also leave out each group of near-duplicates
	Halves   int  `json:"halves,omitempty"`   // pairs of random halves of the playbook
	Control  bool `json:"control,omitempty"`  // also answer again with the whole playbook
	// Budget is the largest number of answers besides the evaluation.
	Budget int `json:"budget"`
	// Seed makes the random halves and the random choice of held-out items reproducible.
	Seed  uint64 `json:"seed,omitempty"`
	Prune *Prune `json:"prune,omitempty"`
}

// Prune asks for a playbook without the bullets that do not help. Items that are held out of the ablation
// test whether it keeps the accuracy.
type Prune struct {
	// HeldOutFrom is the index of the first held-out item; 0 means that a random half is held out.
	HeldOutFrom int `json:"held_out_from,omitempty"`
	// MinEffect is the largest effect on the accuracy, from 0 to 1, with which a bullet is left out.
	MinEffect float64 `json:"min_effect,omitempty"`
	// Margin is the largest tolerated loss of accuracy on the held-out items, from 0 to 1. The pruned
	// playbook is kept if the 95 % interval excludes a larger loss.
	Margin float64 `json:"margin"`
}

// TrialKind says which part of the playbook a trial leaves out.
type TrialKind string

// Kinds of trials.
const (
	TrialBullet  TrialKind = "bullet"
	TrialSection TrialKind = "section"
	TrialTwins   TrialKind = "twins"
	TrialHalf    TrialKind = "half"
	TrialControl TrialKind = "control"
	TrialPruned  TrialKind = "pruned"
	TrialProof   TrialKind = "proof" // the pruned playbook on the held-out items
)

// Trial answers items with a playbook without some bullets.
type Trial struct {
	Kind     TrialKind `json:"kind"`
	Name     string    `json:"name"`              // the bullet, section or group; the pair of a half, from 1
	Without  []string  `json:"without,omitempty"` // bullet IDs
	Playbook string    `json:"playbook"`          // the hash of the rest
	Items    []int     `json:"items"`             // 0-based indexes in the data set
}

// AblationRound is a round of trials.
type AblationRound struct {
	Trials  Ref   `json:"trials"`          // an artifact with a JSON list of [Trial]
	Count   int   `json:"count"`           // of trials
	Answers int   `json:"answers"`         // the items of all trials
	Done    int   `json:"done"`            // answered items
	Items   []Ref `json:"items,omitempty"` // artifacts with an [EvalItem] per answer, sorted by digest
	FailedItems
}

// AblationProgress is the progress of an ablation.
type AblationProgress struct {
	Evaluated []Ref           `json:"evaluated,omitempty"` // artifacts with the items of the evaluation
	Rounds    []AblationRound `json:"rounds,omitempty"`
	Done      bool            `json:"done,omitempty"`
	Skipped   int             `json:"skipped,omitempty"` // trials that the budget did not allow
	Pruned    *Pruned         `json:"pruned,omitempty"`
}

// Answers returns how many items of the planned trials are answered, and how many there are.
func (p *AblationProgress) Answers() (done, planned int) {
	for _, r := range p.Rounds {
		done += r.Done
		planned += r.Answers
	}
	return done, planned
}

// Pruned is a playbook without the bullets that were not shown to help. Fixed and Broken count the held-out
// items that only the pruned playbook, or only the whole one, answers correctly. Low and High bound the 95 %
// interval of the gain in accuracy.
type Pruned struct {
	Playbook string  `json:"playbook"`
	Branch   string  `json:"branch,omitempty"` // "" unless it keeps the accuracy
	Before   int     `json:"bullets_before"`
	Bullets  int     `json:"bullets"`
	HeldOut  int     `json:"held_out"` // labeled items
	Correct  int     `json:"correct"`  // of them, by the pruned playbook
	Fixed    int     `json:"fixed"`
	Broken   int     `json:"broken"`
	Low      float64 `json:"low"`
	High     float64 `json:"high"`
	Kept     bool    `json:"kept"` // Low is at least -Margin
}

// PrunedBranch returns the name of the branch that holds the pruned playbook of an experiment.
func PrunedBranch(experiment string) string { return experiment + "-pruned" }

// PlanTrialsInput is the input of [ActivityPlanTrials].
type PlanTrialsInput struct {
	Task     TaskContext      `json:"task"` // with the whole playbook
	Ablation Ablation         `json:"ablation"`
	Progress AblationProgress `json:"progress"`
}

// PlanTrialsResult is the next round of an ablation, or its end.
type PlanTrialsResult struct {
	Round   *AblationRound `json:"round,omitempty"` // nil at the end
	Skipped int            `json:"skipped,omitempty"`
	Pruned  *Pruned        `json:"pruned,omitempty"`
}

// ablating reports whether the experiment has trials to plan or to run.
func (s *ExperimentState) ablating() bool {
	p := s.Progress.Ablation
	return s.Input.Ablation != nil && len(s.Progress.Eval) > 0 && (p == nil || !p.Done)
}

// Round returns the round with open trials, or nil.
func (p *AblationProgress) Round() *AblationRound {
	if p == nil || len(p.Rounds) == 0 {
		return nil
	}
	last := &p.Rounds[len(p.Rounds)-1]
	if last.Done >= last.Answers {
		return nil
	}
	return last
}

// changeAblation changes a copy of the progress of the ablation.
func (s *ExperimentState) changeAblation(change func(*AblationProgress)) {
	var p AblationProgress
	if s.Progress.Ablation != nil {
		p = *s.Progress.Ablation
	}
	p.Rounds = slices.Clone(p.Rounds)
	change(&p)
	s.Progress.Ablation = &p
}

func (s *ExperimentState) addTrials(r *PlanTrialsResult) {
	s.changeAblation(func(p *AblationProgress) {
		p.Skipped += r.Skipped
		if r.Round == nil {
			p.Done, p.Pruned = true, r.Pruned
			return
		}
		p.Rounds = append(p.Rounds, *r.Round)
	})
}

// addTried counts answers of trials.
func (s *ExperimentState) addTried(r *EvaluateResult) {
	s.shareSpent = s.shareSpent || r.Stopped
	s.changeAblation(func(p *AblationProgress) {
		round := p.Round()
		if round == nil {
			return
		}
		round.Done += r.Tasks
		round.Items = addItems(round.Items, r.Items)
		round.FailedItems = round.FailedItems.Add(r.FailedItems)
		if r.Tasks == 0 { // a worker that answered nothing ends the round instead of repeating it forever
			round.Done = round.Answers
		}
	})
	s.spend(r.Usage)
}

// addItems adds an artifact in an order that does not depend on when its activity ended.
func addItems(list []Ref, more *Ref) []Ref {
	if more == nil {
		return list
	}
	list = append(slices.Clone(list), *more)
	slices.SortFunc(list, func(a, b Ref) int { return strings.Compare(a.SHA256, b.SHA256) })
	return list
}
