package builtin

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"acescope/engine/ace"
	"acescope/engine/learning/grade"
	"acescope/engine/learning/model"
	"acescope/engine/learning/playbook"
)

// Tags of a bullet.
const (
	helpful = "helpful"
	harmful = "harmful"
	neutral = "neutral"
)

// Reflect implements [model.Provider]. Without a label, it tags the used bullets as neutral.
func (learner) Reflect(ctx context.Context, in ace.ReflectorInput,
	book *playbook.Playbook) (ace.ReflectorResult, error) {
	if err := check(ctx, in.Prompt); err != nil {
		return ace.ReflectorResult{}, err
	}
	p := parseProblem(in.Prompt)
	r := reflection{p: p, in: in}
	correct, score, err := grade.Verdict(in)
	if err != nil {
		return ace.ReflectorResult{}, err
	}
	r.correct = correct
	switch {
	case in.Label == nil:
		r.say("There is no label to compare the answer %s with, so the answer is not graded.", clip(in.Answer))
		r.tagUsed(neutral)
	default:
		r.judge(book)
	}
	raw, err := json.Marshal(r.out)
	if err != nil {
		return ace.ReflectorResult{}, fmt.Errorf("reflect: encode the findings: %w", err)
	}
	return ace.ReflectorResult{Insights: r.text, Cause: r.cause, BulletTags: r.tags, Correct: r.correct,
		Score: score, Findings: raw,
		StepReport: ace.StepReport{Usage: countWords(in.Prompt+" "+in.Answer, r.text)}}, nil
}

// reflection is the state of one Reflect.
type reflection struct {
	p       problem
	in      ace.ReflectorInput
	out     findings
	tags    []ace.BulletTag
	correct *bool
	text    string
	cause   string // see ace.ReflectorResult
}

func (r *reflection) say(format string, args ...any) {
	if r.text != "" {
		r.text += " "
	}
	r.text += fmt.Sprintf(format, args...)
}

// tag tags a bullet, unless it has a tag.
func (r *reflection) tag(id, tag string) {
	if !slices.ContainsFunc(r.tags, func(t ace.BulletTag) bool { return t.ID == id }) {
		r.tags = append(r.tags, ace.BulletTag{ID: id, Tag: tag})
	}
}

func (r *reflection) tagUsed(tag string) {
	for _, id := range r.in.BulletIDs {
		r.tag(id, tag)
	}
}

func (r *reflection) used(id string) bool {
	return slices.Contains(r.in.BulletIDs, id)
}

// judge compares the answer with the label and looks for an explanation of the label.
func (r *reflection) judge(book *playbook.Playbook) {
	label := *r.in.Label
	correct := *r.correct
	r.out.Formula = r.p.Formula
	value, numeric := model.ParseNumber(label)
	tag := harmful
	if correct {
		tag = helpful
		r.say("The answer %s is correct.", clip(r.in.Answer))
	} else {
		r.say("The answer %s is wrong: the label is %s.", clip(r.in.Answer), clip(label))
	}
	if r.p.Formula == "" || !numeric {
		r.tagUsed(tag)
		r.cause = "no formula to learn: none is named, or the label is not a number"
		r.say("The prompt names no formula or the label is not a number, so there is no recipe to learn.")
		return
	}
	qs := quantities(r.p.Question)
	r.out.Question = len(qs)
	opts := options(recipesFor(book, r.p.Formula), qs)
	r.tagOptions(opts, value)
	explained := r.refine(opts, qs, value, correct)
	if correct && len(r.in.BulletIDs) > 0 || explained {
		return
	}
	r.cause = "no recipe was known for the formula"
	if len(opts) > 0 {
		r.cause = "the known recipes calculate something else"
	}
	r.explain(qs, value)
}

// tagOptions tags the recipes of the formula by what they would have answered. A recipe that was not
// used and leaves quantities out is not tagged harmful.
func (r *reflection) tagOptions(opts []option, label float64) {
	for _, o := range opts {
		switch {
		case model.SameAnswer(format(o.value), format(label)):
			r.tag(o.bullet.ID, helpful)
		case r.used(o.bullet.ID) || o.covers:
			r.tag(o.bullet.ID, harmful)
		}
	}
	r.tagUsed(neutral) // used, but not computable for this question
}

// minAffinity is the affinity below which a slot found its quantity by chance.
const minAffinity = 0.3

// refine looks for a known recipe that explains the label, possibly with other operands, and
// rewords it so that it will find them. It reports whether there is one.
func (r *reflection) refine(opts []option, qs []quantity, label float64, correct bool) bool {
	for _, o := range opts {
		if model.SameNumber(o.value, label) {
			switch {
			case correct && r.used(o.bullet.ID):
				r.reword(o, qs, o.binding, "found its operands by luck: words near them added")
			case !correct:
				r.cause = "another known recipe gives the label"
				r.say("[%s] would have given it.", o.bullet.ID)
			}
			return true
		}
	}
	for _, o := range opts {
		if b, ok := bindTo(o.recipe, qs, label); ok {
			r.reword(o, qs, b, "right calculation, wrong operands: words near the right ones added")
			r.cause = "right calculation, wrong operands"
			r.say("[%s] has the right calculation but took the wrong operands.", o.bullet.ID)
			return true
		}
	}
	return false
}

// reword adds to the slots of a recipe words with which it would have found b.
func (r *reflection) reword(o option, qs []quantity, b binding, why string) {
	better := o.recipe.clone()
	ranks := ranksOf(qs)
	for i, j := range b.at {
		s := &better.slots[i]
		wrong := o.binding.at[i]
		if wrong == j && (affinity(*s, qs[j]) >= minAffinity || len(qs) == 1) {
			continue
		}
		if wrong != j {
			if s.Ordinal != ranks[j] {
				s.Ordinal = 0
			}
			s.Cues = slices.DeleteFunc(s.Cues, func(c string) bool {
				return misleading(c, qs, wrong, j, b.at)
			})
		}
		added := 0
		for _, w := range nearestWords(qs, j, b.at) {
			if longer := addCue(s.Cues, w); len(longer) > len(s.Cues) && added < learnedCues {
				s.Cues = longer
				added++
			}
		}
	}
	if after := better.String(); after != o.bullet.Content {
		r.out.Refine = append(r.out.Refine, refined{o.bullet.ID, o.bullet.Content, after, why})
	}
}

// misleading reports whether a cue is near the wrong quantity and not near the right one, or nearer
// to another operand.
func misleading(cue string, qs []quantity, wrong, right int, at []int) bool {
	_, nearWrong := distance(qs[wrong], cue)
	_, nearRight := distance(qs[right], cue)
	if nearRight {
		return nearerElsewhere(qs, right, at, cue)
	}
	return nearWrong
}

// explain searches for new recipes.
func (r *reflection) explain(qs []quantity, label float64) {
	s := searchRecipes(r.p, qs, label)
	r.out.Trials, r.out.Capped = s.trials, s.capped
	for _, h := range s.best {
		h.Recipe = h.recipe.String()
		r.out.Candidates = append(r.out.Candidates, h.finding)
	}
	if len(s.best) == 0 {
		r.cause = "no calculation tried gives the label"
		r.say("None of %d calculations tried with the question's %d quantities gives the label.", s.trials,
			len(qs))
		return
	}
	r.say("Of %d calculations tried the most plausible that gives the label is %s, from %s.",
		s.trials, s.best[0].recipe.expr, s.best[0].Source)
}

// clip quotes and shortens text for a sentence.
func clip(s string) string {
	const most = 60
	if len(s) <= most {
		return fmt.Sprintf("%q", s)
	}
	return fmt.Sprintf("%q…", s[:most])
}

// maxFindings is the number of bytes that a curator reads.
const maxFindings = 256 << 10

// findings are the reflector's results for the curator.
type findings struct {
	Formula    string    `json:"formula"`
	Question   int       `json:"quantities"` // number of quantities in the question
	Candidates []finding `json:"candidates,omitempty"`
	Refine     []refined `json:"refine,omitempty"`
	Trials     int       `json:"trials"`
	Capped     bool      `json:"capped,omitempty"`
}

// finding is a recipe that produces the label.
type finding struct {
	Recipe string  `json:"recipe"`
	Value  float64 `json:"value"`
	Score  float64 `json:"score"`
	Unused int     `json:"unused,omitempty"`
	Source string  `json:"source"`
}

// refined is a better wording of a recipe in the playbook.
type refined struct {
	BulletID string `json:"bullet_id"`
	Before   string `json:"before"`
	After    string `json:"after"`
	Why      string `json:"why"`
}

func readFindings(raw json.RawMessage) findings {
	var f findings
	if len(raw) == 0 || len(raw) > maxFindings || json.Unmarshal(raw, &f) != nil {
		return findings{}
	}
	return f
}
