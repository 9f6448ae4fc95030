package experiments

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"acescope/engine/ace"
	"acescope/engine/learning/stats"
	"acescope/engine/temporal/compare"
)

// Flip compares the answers of two experiments to the same task.
type Flip string

// Flips, from the first experiment to the second.
const (
	FlipFixed       Flip = "fixed"  // wrong, then correct
	FlipBroken      Flip = "broken" // correct, then wrong
	FlipBothWrong   Flip = "both_wrong"
	FlipBothCorrect Flip = "both_correct"
	FlipUngraded    Flip = "ungraded" // one of them has no verdict
)

// Flips returns all flips in display order.
func Flips() []Flip {
	return []Flip{FlipFixed, FlipBroken, FlipBothWrong, FlipBothCorrect, FlipUngraded}
}

// Ways to align the tasks of two experiments.
const (
	AlignedByIndex  = "index"  // same data set in the same order: by epoch and index
	AlignedByPrompt = "prompt" // otherwise: by epoch and equal prompts
)

// Pair is a task that both experiments have answered.
type Pair struct {
	Flip  Flip  `json:"flip"`
	Epoch int32 `json:"epoch"`
	A     *Task `json:"a"`
	B     *Task `json:"b"`
}

// Comparison compares two experiments task by task. OnlyA and OnlyB count tasks without a counterpart.
type Comparison struct {
	A         *Series         `json:"-"`
	B         *Series         `json:"-"`
	SameData  bool            `json:"same_dataset"`
	AlignedBy string          `json:"aligned_by"`
	Pairs     []Pair          `json:"-"` // by epoch and index of the first experiment
	Counts    map[Flip]int    `json:"flips"`
	OnlyA     int             `json:"only_a"`
	OnlyB     int             `json:"only_b"`
	Eval      *EvalComparison `json:"eval,omitempty"` // nil unless comparable
	Conditions
	Paired []Paired `json:"paired"` // tests on the same items; the first is the headline

	perCorrect [2]stats.Interval // of A and B: tokens if there is no cost
}

// EvalComparison compares the last evaluations of two experiments on the same second data set. Fixed and
// Broken are 0-based indexes of its tasks. A and B leave out the tasks that failed in either. Partial means
// that one result lists only some of its wrong answers, so the indexes may be incomplete.
type EvalComparison struct {
	Dataset   string         `json:"dataset_id"`
	A         ace.EvalResult `json:"a"`
	B         ace.EvalResult `json:"b"`
	Fixed     []int          `json:"fixed"`
	Broken    []int          `json:"broken"`
	BothWrong int            `json:"both_wrong"`
	Partial   bool           `json:"partial,omitempty"`
}

// Compare aligns two experiments and compares each task.
func Compare(a, b *Series) *Comparison {
	c := &Comparison{A: a, B: b, AlignedBy: AlignedByPrompt, Counts: map[Flip]int{}}
	for _, f := range Flips() {
		c.Counts[f] = 0
	}
	if data := a.Input.SourceDataset().SHA256; data != "" && data == b.Input.SourceDataset().SHA256 {
		c.SameData = true
	}
	if data := a.Input.Dataset.SHA256; data != "" && data == b.Input.Dataset.SHA256 {
		c.AlignedBy = AlignedByIndex
	}
	theirs := map[taskKey][]*Task{}
	for _, t := range inOrder(b.Tasks) {
		if k, ok := c.keyOf(t); ok {
			theirs[k] = append(theirs[k], t)
		}
	}
	for _, t := range inOrder(a.Tasks) {
		k, ok := c.keyOf(t)
		if same := theirs[k]; ok && len(same) > 0 {
			theirs[k] = same[1:]
			flip := flipOf(t, same[0])
			c.Pairs = append(c.Pairs, Pair{flip, t.Epoch, t, same[0]})
			c.Counts[flip]++
		}
	}
	c.OnlyA, c.OnlyB = len(a.Tasks)-len(c.Pairs), len(b.Tasks)-len(c.Pairs)
	c.Unlike, c.Settings, c.Paired = c.unlike(), c.settings(), []Paired{}
	c.NoVerdict = c.noVerdict(a.Unfinished(), b.Unfinished())
	if len(c.NoVerdict) == 0 {
		c.Eval = compareEval(a, b)
		c.Paired = c.pairs()
	}
	for i, s := range []*Series{a, b} {
		if WithoutCost(a, b) {
			c.perCorrect[i] = s.TokensInterval()
		} else {
			c.perCorrect[i] = s.CostInterval()
		}
	}
	return c
}

// Unfinished says why the experiment has no final result: "is running (36 of 480 tasks)". It is "" if it
// completed within its budget.
func (s *Series) Unfinished() string {
	why := strings.ReplaceAll(string(s.Status), "_", " ")
	switch {
	case s.Progress.OverBudget():
		why = "was stopped by its budget"
	case s.Status == ace.Completed:
		return ""
	case s.Status == ace.Running:
		why = "is running"
	case s.Status == ace.Canceled, s.Status == ace.Terminated:
		why = "was " + why
	}
	planned := s.Progress.TotalTasks * s.Progress.TotalEpochs
	if planned == 0 { // it only evaluates
		return why
	}
	closed, _, _ := Answers(&s.Progress)
	return fmt.Sprintf("%s (%s of %s)", why, ace.Number(closed), ace.Count(planned, "task"))
}

// noVerdict returns why no test may compare the experiments, or two groups of them. a and b say why they have
// no final result.
func (c *Comparison) noVerdict(a, b string) []string {
	out := []string{}
	for i, why := range []string{a, b} {
		if why != "" {
			out = append(out, fmt.Sprintf("%c %s", 'A'+i, why))
		}
	}
	if a, b := c.graders(); a != b {
		out = append(out, "the graders differ ("+a+" and "+b+")")
	}
	return out
}

// graders returns the graders of both experiments, which are equal if one is unknown.
func (c *Comparison) graders() (a, b string) {
	if c.A.Note+c.B.Note != "" {
		return "", ""
	}
	return cmp.Or(c.A.Input.Grader, "exact"), cmp.Or(c.B.Input.Grader, "exact")
}

// unlike returns how the work of the experiments differs, so that their accuracies over all tasks do not
// compare.
func (c *Comparison) unlike() []string {
	out := []string{}
	a, b := c.A.Input, c.B.Input
	for _, x := range []struct {
		name string
		a, b int
	}{
		{"epochs", max(a.Epochs, 1), max(b.Epochs, 1)}, {"tasks", a.Tasks, b.Tasks},
		{"window", a.Window, b.Window},
	} {
		if x.a != x.b {
			out = append(out, fmt.Sprintf("%s %d and %d", x.name, x.a, x.b))
		}
	}
	if a.Adapter != b.Adapter {
		out = append(out, fmt.Sprintf("adapter %s and %s", a.Adapter, b.Adapter))
	}
	if a, b := c.graders(); a != b {
		out = append(out, fmt.Sprintf("graders %s and %s", a, b))
	}
	if !c.SameData {
		out = append(out, "data sets")
	}
	if len(out) == 0 && c.OnlyA+c.OnlyB > 0 {
		out = append(out, fmt.Sprintf("answered tasks %d and %d", len(c.A.Tasks), len(c.B.Tasks)))
	}
	return out
}

// Conditions are the differences between two experiments apart from their answers. If Unlike is not empty,
// only the same items are comparable: aligned tasks and evaluations. Settings, such as the model, leave all
// tasks comparable: their effect is what a comparison measures. NoVerdict says why no test compares them: one
// has no final result, or the graders differ. All may be empty.
type Conditions struct {
	Unlike    []string `json:"unlike"`
	NoVerdict []string `json:"no_verdict"`
	Settings  []string `json:"settings"`
}

// Likeness says how the work of the experiments differs, or "".
func (c *Conditions) Likeness() string {
	if len(c.Unlike) == 0 {
		return ""
	}
	return "different " + strings.Join(c.Unlike, ", ") +
		": compare only aligned tasks and the last evaluation"
}

// Refusal says why there is no verdict.
func (c *Conditions) Refusal() string { return "no verdict: " + strings.Join(c.NoVerdict, "; ") }

// Differing says which settings differ, or "".
func (c *Conditions) Differing() string {
	if len(c.Settings) == 0 {
		return ""
	}
	return "settings: " + strings.Join(c.Settings, ", ")
}

// Aligned returns how many of the aligned tasks with two verdicts A and B each answered correctly, and the
// number of these tasks.
func (c *Comparison) Aligned() (a, b, of int) {
	right := c.Counts[FlipBothCorrect]
	return right + c.Counts[FlipBroken], right + c.Counts[FlipFixed], len(c.Pairs) - c.Counts[FlipUngraded]
}

// Alignment says how the tasks are aligned.
func (c *Comparison) Alignment() string {
	from, to := cmp.Or(c.A.Input.DatasetID, "unknown"), cmp.Or(c.B.Input.DatasetID, "unknown")
	switch {
	case c.SameData && c.AlignedBy == AlignedByIndex:
		return "same data set " + from + ": aligned by epoch and index"
	case c.SameData:
		return "same data set " + from + " in another order: aligned by epoch and equal prompts"
	case from == to:
		return "data sets differ: aligned by equal prompts (both named " + from + ")"
	}
	return "data sets differ: aligned by equal prompts (" + from + ", " + to + ")"
}

// Metrics returns the numbers of both experiments. A rate is NaN if it is unknown.
func (c *Comparison) Metrics(now time.Time) []compare.Metric {
	a, b := c.A.Totals(), c.B.Totals()
	var list []compare.Metric
	add := func(name, unit string, a, b float64) {
		list = append(list, compare.Metric{Name: name, Unit: unit, A: a, B: b})
	}
	accuracy := rates("accuracy", a.Correct, a.Graded, b.Correct, b.Graded)
	accuracy.Unlike = len(c.Unlike)+len(c.NoVerdict) > 0
	if accuracy.Unlike {
		alignedA, alignedB, of := c.Aligned()
		list = append(list, rates("accuracy, aligned", alignedA, of, alignedB, of))
		list[0].Unlike = len(c.NoVerdict) > 0
		accuracy.Name = "accuracy, all tasks"
	} else {
		list = append(list, accuracy)
	}
	if e := c.Eval; e != nil {
		list = append(list, rates("last evaluation", e.A.Correct, e.A.Labeled(), e.B.Correct, e.B.Labeled()))
	}
	if accuracy.Unlike {
		list = append(list, accuracy)
	}
	if WithoutCost(c.A, c.B) {
		add("tokens per correct", "", a.TokensPerCorrect, b.TokensPerCorrect)
	} else {
		add("cost", "USD", a.Cost, b.Cost)
		add("cost per correct", "USD", a.CostPerCorrect, b.CostPerCorrect)
	}
	last := &list[len(list)-1]
	last.RangeA, last.RangeB = limits(c.perCorrect[0]), limits(c.perCorrect[1])
	last.Unlike = accuracy.Unlike
	add("tokens", "", float64(a.Tokens), float64(b.Tokens))
	add("mean task time", "ms", a.MeanDurationMS, b.MeanDurationMS)
	add("total time", "ms", float64(c.A.Duration(now).Milliseconds()),
		float64(c.B.Duration(now).Milliseconds()))
	add("bullets", "", float64(a.Bullets), float64(b.Bullets))
	add("operations accepted", "", float64(a.Accepted), float64(b.Accepted))
	add("operations rejected", "", float64(a.Rejected), float64(b.Rejected))
	return list
}

// rates returns the accuracies of both with their intervals.
func rates(name string, correctA, labeledA, correctB, labeledB int) compare.Metric {
	return compare.Metric{
		Name: name, Unit: "rate", A: stats.Share(correctA, labeledA), B: stats.Share(correctB, labeledB),
		RangeA: limits(stats.Wilson(correctA, labeledA)), RangeB: limits(stats.Wilson(correctB, labeledB)),
	}
}

// limits returns the limits of an interval, zero if it is unknown.
func limits(i stats.Interval) [2]float64 {
	if !i.Known() {
		return [2]float64{}
	}
	return [2]float64{i.Low, i.High}
}

// taskKey identifies a task by its index or the hash of its prompt.
type taskKey struct {
	epoch int32
	id    uint64
}

// keyOf returns the key of a task; false if it is unknown.
func (c *Comparison) keyOf(t *Task) (taskKey, bool) {
	if c.AlignedBy == AlignedByIndex {
		return taskKey{t.Epoch, uint64(t.Index)}, t.Index >= 0
	}
	return taskKey{t.Epoch, t.Prompt}, t.Prompt != 0
}

// inOrder returns the tasks in the order of the data set, epoch by epoch.
func inOrder(tasks []Task) []*Task {
	order := make([]*Task, len(tasks))
	for i := range tasks {
		order[i] = &tasks[i]
	}
	slices.SortStableFunc(order, func(a, b *Task) int {
		return cmp.Or(cmp.Compare(a.Epoch, b.Epoch), cmp.Compare(a.Index, b.Index))
	})
	return order
}

func flipOf(a, b *Task) Flip {
	was, is := a.Verdict == ace.Correct, b.Verdict == ace.Correct
	switch {
	case !a.Graded() || !b.Graded():
		return FlipUngraded
	case was && is:
		return FlipBothCorrect
	case !was && !is:
		return FlipBothWrong
	case is:
		return FlipFixed
	}
	return FlipBroken
}

func compareEval(a, b *Series) *EvalComparison {
	lastA, lastB := a.Progress.LastEval(), b.Progress.LastEval()
	if a.Input.Eval == nil || b.Input.Eval == nil || a.Input.Eval.SHA256 != b.Input.Eval.SHA256 ||
		lastA == nil || lastB == nil {
		return nil
	}
	return compareEvals(a.Input.EvalID, *lastA, *lastB)
}

// common returns an evaluation without the items that failed in another one on the same data set. It returns
// false if they cannot be told from the others.
func common(e, other ace.EvalResult) (ace.EvalResult, bool) {
	gone := slices.DeleteFunc(slices.Clone(other.List), func(i int) bool {
		return slices.Contains(e.List, i)
	})
	if len(gone) == 0 {
		return e, other.Failed == len(other.List)
	}
	wrong := slices.DeleteFunc(slices.Clone(e.Wrong), func(i int) bool { return slices.Contains(gone, i) })
	listed := other.Failed == len(other.List) && len(e.Wrong) == e.Labeled()-e.Correct
	e.Correct -= len(gone) - (len(e.Wrong) - len(wrong))
	e.Failed, e.Wrong = e.Failed+len(gone), wrong
	return e, listed && e.Unlabeled == 0
}

// compareEvals compares two evaluations on the same data set by the items that failed in neither. It returns
// nil if they are not known.
func compareEvals(dataset string, first, last ace.EvalResult) *EvalComparison {
	a, listed := common(first, last)
	b, also := common(last, first)
	if !listed || !also {
		return nil
	}
	c := &EvalComparison{Dataset: dataset, A: a, B: b, Fixed: []int{}, Broken: []int{}}
	wrong := map[int]bool{}
	for _, i := range c.A.Wrong {
		wrong[i] = true
	}
	for _, i := range c.B.Wrong {
		if wrong[i] {
			c.BothWrong++
			delete(wrong, i)
		} else {
			c.Broken = append(c.Broken, i)
		}
	}
	for i := range wrong {
		c.Fixed = append(c.Fixed, i)
	}
	slices.Sort(c.Fixed)
	c.Partial = len(a.Wrong) < a.Labeled()-a.Correct || len(b.Wrong) < b.Labeled()-b.Correct
	return c
}
