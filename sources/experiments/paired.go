package experiments

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"acescope/engine/ace"
	"acescope/engine/learning/stats"
)

// Items of a [Paired].
const (
	PairedEvaluation = "evaluation" // the items of the evaluation data set
	PairedTasks      = "tasks"      // the aligned tasks of one epoch
)

// Paired compares the verdicts of two playbooks on the same labeled items, each counted once. P is the
// p-value of the exact McNemar test. If Partial is set, the results list only some of the wrong answers: then
// Fixed and Broken are 0, P is nil, and the interval of the difference of two independent proportions
// decides.
type Paired struct {
	Items           string   `json:"items"`
	EpochA          int      `json:"epoch_a"`
	EpochB          int      `json:"epoch_b"`
	Pairs           int      `json:"pairs"`
	Failed          int      `json:"failed_items,omitempty"` // left out, because an answer failed
	CorrectA        int      `json:"correct_a"`
	CorrectB        int      `json:"correct_b"`
	Fixed           int      `json:"fixed"`
	Broken          int      `json:"broken"`
	Partial         bool     `json:"partial,omitempty"`
	P               *float64 `json:"p,omitempty"`
	Low             *float64 `json:"difference_low,omitempty"`
	High            *float64 `json:"difference_high,omitempty"`
	Distinguishable bool     `json:"distinguishable"`
}

// test sets the result of the test.
func (p *Paired) test() {
	if p.Partial {
		i := stats.Newcombe(p.CorrectA, p.Pairs, p.CorrectB, p.Pairs)
		p.Low, p.High, p.Distinguishable = &i.Low, &i.High, !i.Contains(0)
		return
	}
	p.P = new(stats.McNemar(p.Fixed, p.Broken))
	p.Distinguishable = *p.P < stats.Alpha
}

// Where names the items: "evaluation after epoch 1".
func (p *Paired) Where() string {
	switch {
	case p.Items == PairedTasks:
		return fmt.Sprintf("tasks of epoch %d", p.EpochA)
	case p.EpochA != p.EpochB:
		return fmt.Sprintf("last evaluations, after epochs %d and %d", p.EpochA, p.EpochB)
	}
	return fmt.Sprintf("evaluation after epoch %d", p.EpochA)
}

// Result says in one sentence what the test shows: "4 fixed, 2 broken of 20: not distinguishable (p 0.69)".
func (p *Paired) Result() string { return p.text("B is more accurate", "A is more accurate") }

// Change is Result for two evaluations of one experiment.
func (p *Paired) Change() string { return p.text("more accurate", "less accurate") }

func (p *Paired) text(more, less string) string {
	counts, test := fmt.Sprintf("%d fixed, %d broken of %d", p.Fixed, p.Broken, p.Pairs), ""
	if p.Partial {
		counts = fmt.Sprintf("%d and %d of %d correct", p.CorrectA, p.CorrectB, p.Pairs)
		test = fmt.Sprintf("difference %+.1f to %+.1f pp", 100**p.Low, 100**p.High)
	} else {
		test = PText(*p.P)
	}
	if p.Failed > 0 {
		counts += fmt.Sprintf(" (%d failed)", p.Failed)
	}
	verdict := "not distinguishable"
	if p.Distinguishable {
		verdict = more
		if p.CorrectB < p.CorrectA {
			verdict = less
		}
	}
	return counts + ": " + verdict + " (" + test + ")"
}

// Headline says what the first test shows, or that nothing is comparable.
func (c *Comparison) Headline() string {
	switch {
	case len(c.NoVerdict) > 0:
		return c.Refusal()
	case len(c.Paired) == 0:
		return nothingComparable
	}
	return c.Paired[0].Where() + ": " + c.Paired[0].Result()
}

// PText formats a p-value with two digits: "p 0.69", or "p < 0.0001".
func PText(p float64) string {
	if p < 0.0001 {
		return "p < 0.0001"
	}
	return fmt.Sprintf("p %.2g", p)
}

// nothingComparable is the headline of experiments without common items.
const nothingComparable = "nothing is comparable: no task has a verdict in both, and there is no evaluation " +
	"of both on the same data set"

// pairs returns the comparisons of the last evaluations and of the aligned tasks of the last epoch that both
// have. Tasks of several epochs are not counted together, because the same item would count more than once.
func (c *Comparison) pairs() []Paired {
	out := []Paired{}
	if p := c.Eval.paired(); p != nil {
		out = append(out, *p)
	}
	byEpoch := map[int32]*Paired{}
	for _, p := range c.Pairs {
		if p.Flip == FlipUngraded {
			continue
		}
		of := byEpoch[p.Epoch]
		if of == nil {
			of = &Paired{Items: PairedTasks, EpochA: int(p.Epoch), EpochB: int(p.Epoch)}
			byEpoch[p.Epoch] = of
		}
		of.count(p.Flip)
	}
	if len(byEpoch) > 0 {
		last := byEpoch[slices.Max(slices.Collect(maps.Keys(byEpoch)))]
		last.test()
		out = append(out, *last)
	}
	return out
}

func (p *Paired) count(f Flip) {
	p.Pairs++
	switch f {
	case FlipFixed:
		p.Fixed++
		p.CorrectB++
	case FlipBroken:
		p.Broken++
		p.CorrectA++
	case FlipBothCorrect:
		p.CorrectA++
		p.CorrectB++
	}
}

// paired returns nil without the same number of labels, above 0.
func (e *EvalComparison) paired() *Paired {
	if e == nil || e.A.Labeled() == 0 || e.A.Labeled() != e.B.Labeled() {
		return nil
	}
	p := &Paired{Failed: e.A.Failed, Items: PairedEvaluation, EpochA: e.A.Epoch, EpochB: e.B.Epoch,
		Pairs:    e.A.Labeled(),
		CorrectA: e.A.Correct, CorrectB: e.B.Correct, Partial: e.Partial}
	if !p.Partial {
		p.Fixed, p.Broken = len(e.Fixed), len(e.Broken)
	}
	p.test()
	return p
}

// Learned compares the first and the last evaluation of an experiment: B is the last. It returns nil unless
// there are two with labels.
func Learned(p *ace.ExperimentProgress) *Paired {
	list := p.Eval
	if len(list) < 2 {
		return nil
	}
	return Between(list[0], list[len(list)-1])
}

// Between compares two evaluations of one experiment. It returns nil unless both are complete and have
// labels.
func Between(first, last ace.EvalResult) *Paired {
	if first.Incomplete || last.Incomplete {
		return nil
	}
	return compareEvals("", first, last).paired()
}

// settings returns which settings of the experiments differ: the conditions that the comparison is about.
// Those of an experiment without a workflow are not known, except the model.
func (c *Comparison) settings() []string {
	out := []string{}
	a, b := c.A.Input, c.B.Input
	differ := func(name, a, b string) {
		if a != b {
			out = append(out, fmt.Sprintf("%s %s and %s", name, cmp.Or(a, "default"), cmp.Or(b, "default")))
		}
	}
	differ("model", a.Model, b.Model)
	if c.A.Note != "" || c.B.Note != "" {
		return out
	}
	differ("provider", a.Provider, b.Provider)
	phases := maps.Clone(a.Steps)
	if phases == nil {
		phases = map[string]string{}
	}
	maps.Copy(phases, b.Steps)
	for _, phase := range slices.Sorted(maps.Keys(phases)) {
		differ("provider of the "+phase, cmp.Or(a.Steps[phase], a.Provider),
			cmp.Or(b.Steps[phase], b.Provider))
	}
	for _, phase := range ace.PromptedPhases() {
		differ("prompt of the "+string(phase), a.Prompts.Of(phase).String(), b.Prompts.Of(phase).String())
	}
	a.Prompts = nil // they are listed already
	b.Prompts = nil
	differ("task order", orderOf(a), orderOf(b))
	differ("first playbook", firstPlaybook(c.A), firstPlaybook(c.B))
	tools := func(in ace.ExperimentInput) string {
		return cmp.Or(strings.Join(slices.Sorted(slices.Values(in.SkillsConfig.AllowedTools)), "+"), "all")
	}
	differ("tools", tools(a), tools(b))
	differ("permission mode", a.SkillsConfig.PermissionMode, b.SkillsConfig.PermissionMode)
	differ("parallel", fmt.Sprint(max(a.Parallel, 1)), fmt.Sprint(max(b.Parallel, 1)))
	only := func(side string, list, other []string) {
		for _, setting := range list {
			if !slices.Contains(other, setting) {
				out = append(out, "only "+side+": "+setting)
			}
		}
	}
	only("A", a.Settings(), b.Settings())
	only("B", b.Settings(), a.Settings())
	return out
}

// orderOf names the order of the tasks.
func orderOf(in ace.ExperimentInput) string {
	if in.Shuffle == nil {
		return "unshuffled"
	}
	return fmt.Sprintf("shuffled with seed %d", in.Shuffle.Seed)
}

// firstPlaybook returns the start of the hash of the playbook with which an experiment began.
func firstPlaybook(s *Series) string {
	hash := cmp.Or(s.Progress.Before, s.Input.PlaybookHash, "empty")
	return hash[:min(len(hash), 12)]
}
