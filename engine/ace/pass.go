package ace

import (
	"cmp"
	"fmt"
	"slices"
)

// PassKind says why a task is answered again.
type PassKind string

// Kinds of passes. The first answer of a task, which alone counts, is not a pass.
const (
	// PassLearn answers with the newest playbook, to learn from that answer; see [TaskInput.LearnFrom].
	PassLearn PassKind = "learn"
	// PassRound answers with the reflection on a wrong answer; see [Protocol.Rounds].
	PassRound PassKind = "round"
	// PassAfter answers with the playbook that the task has changed; see [Protocol.AnswerAfter].
	PassAfter PassKind = "after"
)

// AnswerState is an answer to a task, and the reflection on it.
type AnswerState struct {
	Plan        string      `json:"plan,omitempty"`
	Answer      string      `json:"answer,omitempty"`
	Correct     *bool       `json:"correct,omitempty"` // nil until it is graded
	Score       *float64    `json:"score,omitempty"`
	GradeReason string      `json:"grade_reason,omitempty"` // see ReflectorResult
	BulletIDs   []string    `json:"bullet_ids,omitempty"`
	Insights    string      `json:"insights,omitempty"` // "" without a reflection
	BulletTags  []BulletTag `json:"bullet_tags,omitempty"`
}

// set copies the result of a step. It returns false for a step that does not belong to an answer.
func (a *AnswerState) set(result any) bool {
	switch r := result.(type) {
	case *GeneratorResult:
		a.Plan = r.Plan
		a.Answer = r.Answer
		a.BulletIDs = r.BulletIDs
	case *SkillSessionResult:
		a.Answer = cmp.Or(r.Answer, a.Answer)
	case *ReflectorResult:
		a.Correct = r.Correct
		a.Score = r.Score
		a.GradeReason = r.GradeReason
		a.Insights = r.Insights
		a.BulletTags = r.BulletTags
	default:
		return false
	}
	return true
}

// Pass is a further answer to a task. Number is its number among the passes of its kind, from 1.
type Pass struct {
	Kind   PassKind `json:"kind"`
	Number int      `json:"number"`
	AnswerState
	Usage Usage `json:"usage"`
}

// Name returns a label for the answer, such as "round 2".
func (p *Pass) Name() string {
	switch p.Kind {
	case PassRound:
		return fmt.Sprintf("round %d", p.Number)
	case PassAfter:
		return "afterwards"
	}
	return "learned from"
}

// Graded returns the answer with its verdict and the reason for it.
func (p *Pass) Graded() string {
	if p.Correct == nil {
		return p.Answer
	}
	verdict := string(VerdictOf(true, p.Correct))
	if p.GradeReason != "" {
		verdict += ": " + p.GradeReason
	}
	return p.Answer + "  (" + verdict + ")"
}

// ReflectWhen says when the reflector asks its provider. Otherwise it only grades the answer.
type ReflectWhen string

// Values of [ReflectorInput.Reflect].
const (
	ReflectAlways ReflectWhen = ""
	ReflectWrong  ReflectWhen = "wrong" // only on a wrong answer
	ReflectNever  ReflectWhen = "never"
)

// Passes are the answers to a task after the first one, in their order.
type Passes []Pass

// last returns the latest pass, or nil if the task was answered only once.
func (p Passes) last() *Pass {
	if len(p) == 0 {
		return nil
	}
	return &p[len(p)-1]
}

// rounds returns the number of answers with a reflection.
func (p Passes) rounds() (n int) {
	for _, again := range p {
		if again.Kind == PassRound {
			n++
		}
	}
	return n
}

// verdict returns whether the last answer of a kind is correct, nil without one.
func (p Passes) verdict(kind PassKind) (correct *bool) {
	for _, again := range p {
		if again.Kind == kind {
			correct = again.Correct
		}
	}
	return correct
}

// TaskAnswers are the first answer to a task, which alone counts, and the passes after it.
type TaskAnswers struct {
	AnswerState
	TrajectoryID string
	Cause        string // see ReflectorResult
	Passes       Passes
}

// record copies the result of a step into the latest pass, and returns false if it belongs to the first
// answer or to no answer. It does not change the passes of clones.
func (a *TaskAnswers) record(result any, usage *Usage) (again bool) {
	if p := a.Passes.last(); p != nil {
		pass := *p
		if !pass.set(result) {
			return false
		}
		if usage != nil {
			pass.Usage = pass.Usage.Add(*usage)
		}
		a.Passes = append(slices.Clone(a.Passes[:len(a.Passes)-1]), pass)
		return true
	}
	a.set(result)
	switch r := result.(type) {
	case *GeneratorResult:
		a.TrajectoryID = r.TrajectoryID
	case *ReflectorResult:
		a.Cause = r.Cause
	}
	return false
}

// Latest returns the latest answer with its verdict, and the bullets it cited.
func (a *TaskAnswers) Latest() AnswerState {
	if p := a.Passes.last(); p != nil {
		return p.AnswerState
	}
	return a.AnswerState
}

// Playbook returns the version that the current step reads.
func (s *State) Playbook() string {
	switch p := s.Passes.last(); {
	case p == nil:
		return s.Input.PlaybookHash
	case p.Kind == PassAfter:
		return s.Delta.PlaybookAfter
	}
	return cmp.Or(s.Input.LearnFrom, s.Input.PlaybookHash)
}

// WhenToReflect returns when the reflector asks its provider about the latest answer.
func (s *State) WhenToReflect() ReflectWhen {
	switch p := s.Passes.last(); {
	case p == nil && s.Input.learnsFromAnother(), p != nil && p.Kind == PassAfter:
		return ReflectNever
	case p == nil || p.Kind == PassLearn:
		return ReflectAlways
	case s.Passes.rounds() < s.Input.Rounds:
		return ReflectWrong
	}
	return ReflectNever
}

// Reflection returns the insights that the generator receives: those on the wrong answer before. It is ""
// outside [PassRound].
func (a *TaskAnswers) Reflection() string {
	n := len(a.Passes)
	switch {
	case n == 0 || a.Passes[n-1].Kind != PassRound:
		return ""
	case n == 1:
		return a.Insights
	}
	return a.Passes[n-2].Insights
}

// Lesson returns the curator's input: the insights of the last reflection, the tags of all reflections, and
// the verdict on the last answer with a reflection.
func (a *TaskAnswers) Lesson() (insights string, tags []BulletTag, correct *bool) {
	insights, tags, correct = a.Insights, a.BulletTags, a.Correct
	for _, p := range a.Passes {
		tags = append(tags[:len(tags):len(tags)], p.BulletTags...)
		if p.Insights != "" || p.Kind == PassLearn {
			insights, correct = p.Insights, p.Correct
		}
	}
	return insights, tags, correct
}

// CuratesNow reports whether the curator asks its provider about the task. If not, only tags are merged.
func (in TaskInput) CuratesNow() bool { return in.CurateEvery < 2 || (in.Index+1)%in.CurateEvery == 0 }

// TagOperations returns the operations that count tags: one for each bullet, in the order of their first
// tags.
func TagOperations(tags []BulletTag) (ops []Operation) {
	at := map[string]int{}
	for _, t := range tags {
		i, ok := at[t.ID]
		if !ok {
			i = len(ops)
			at[t.ID] = i
			ops = append(ops, Operation{Type: OpTag, BulletID: t.ID, Metadata: map[string]int{}})
		}
		ops[i].Metadata[t.Tag]++
	}
	return ops
}

// learnsFromAnother reports whether the first answer only measures a frozen playbook.
func (in TaskInput) learnsFromAnother() bool {
	return in.LearnFrom != "" && in.LearnFrom != in.PlaybookHash
}

// after returns the phase after a step, and begins a pass if the task is to be answered again.
func (s *State) after(step Phase) Phase {
	kind := PassKind("")
	switch p := s.Passes.last(); {
	case step == PhaseReflector && p == nil && s.Input.learnsFromAnother():
		kind = PassLearn
	case step == PhaseReflector && p != nil && p.Kind == PassAfter:
		return PhaseDone
	case step == PhaseReflector && s.Passes.rounds() < s.Input.Rounds &&
		VerdictOf(true, s.Latest().Correct) == Wrong:
		kind = PassRound
	case step == PhasePersist && s.Input.AnswerAfter:
		kind = PassAfter
	}
	if kind == "" {
		if next := step.next(); next != PhaseSkills || !s.Input.NoSkills {
			return next
		}
		return PhaseReflector
	}
	pass := Pass{Kind: kind, Number: 1}
	if kind == PassRound {
		pass.Number = s.Passes.rounds() + 1
	}
	s.Passes = append(s.Passes[:len(s.Passes):len(s.Passes)], pass)
	return PhaseGenerator
}
