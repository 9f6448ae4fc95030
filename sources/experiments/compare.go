package experiments

import (
	"cmp"
	"slices"

	"acescope/engine/ace"
)

// Flip compares the answers of two experiments to the same task.
type Flip string

// Flips, from the first experiment to the second.
const (
	FlipFixed       Flip = "fixed"  // wrong, then correct
	FlipBroken      Flip = "broken" // correct, then wrong
	FlipBothWrong   Flip = "both_wrong"
	FlipBothCorrect Flip = "both_right"
	FlipUnjudged    Flip = "not_judged" // one of them has no verdict
)

// Flips returns all flips in display order.
func Flips() []Flip {
	return []Flip{FlipFixed, FlipBroken, FlipBothWrong, FlipBothCorrect, FlipUnjudged}
}

// Ways to align the tasks of two experiments.
const (
	AlignedByIndex  = "index"  // same data set: by epoch and index
	AlignedByPrompt = "prompt" // different data sets: by epoch and equal prompts
)

// Pair is a task that both experiments have answered.
type Pair struct {
	Epoch  int
	IndexA int
	IndexB int
	Flip   Flip
	A, B   int // rows in the series
}

// Comparison compares two experiments task by task. OnlyA and OnlyB count tasks without a counterpart.
type Comparison struct {
	A, B      *Series
	SameData  bool
	AlignedBy string
	Pairs     []Pair // by epoch and index of the first experiment
	Counts    map[Flip]int
	OnlyA     int
	OnlyB     int
	TotalsA   Totals
	TotalsB   Totals
	// AlignedA and AlignedB are the accuracies over the aligned tasks with two verdicts, NaN without any.
	AlignedA, AlignedB float64
	Evaluations        *EvalComparison // nil unless both were evaluated on the same set
}

// EvalComparison compares the last evaluations of two experiments on the same second data set. Fixed and Broken
// are 0-based indexes of its tasks. Partial means that one result lists only some of its wrong answers, so the
// indexes may be incomplete.
type EvalComparison struct {
	Dataset       string
	A, B          ace.EvalResult
	Fixed, Broken []int
	BothWrong     int
	Partial       bool
}

// Compare aligns two experiments and compares each task.
func Compare(a, b *Series) *Comparison {
	c := &Comparison{A: a, B: b, SameData: a.Input.Dataset.SHA256 != "" && a.Input.Dataset.SHA256 == b.Input.Dataset.SHA256,
		Counts: map[Flip]int{}, TotalsA: a.Totals(), TotalsB: b.Totals()}
	key := byPrompt
	if c.AlignedBy = AlignedByPrompt; c.SameData {
		key, c.AlignedBy = byIndex, AlignedByIndex
	}
	theirs := newRowFinder(&b.Tasks, key)
	for _, i := range inOrder(&a.Tasks) {
		j, ok := theirs.take(&a.Tasks, i)
		if !ok {
			continue
		}
		p := Pair{Epoch: int(a.Tasks.Epoch[i]), IndexA: int(a.Tasks.Index[i]), IndexB: int(b.Tasks.Index[j]), A: i, B: j,
			Flip: flipOf(a.Tasks.Verdict[i], b.Tasks.Verdict[j])}
		c.Pairs = append(c.Pairs, p)
		c.Counts[p.Flip]++
	}
	c.OnlyA, c.OnlyB = a.Tasks.Len()-len(c.Pairs), b.Tasks.Len()-len(c.Pairs)
	right := c.Counts[FlipBothCorrect]
	judged := len(c.Pairs) - c.Counts[FlipUnjudged]
	c.AlignedA = divide(float64(right+c.Counts[FlipBroken]), judged)
	c.AlignedB = divide(float64(right+c.Counts[FlipFixed]), judged)
	c.Evaluations = compareEval(a, b)
	return c
}

// byIndex and byPrompt return the key of a task; false if it is unknown.
func byIndex(t *TaskColumns, i int) (uint64, bool)  { return uint64(t.Index[i]), t.Index[i] >= 0 }
func byPrompt(t *TaskColumns, i int) (uint64, bool) { return t.Prompt[i], t.Prompt[i] != 0 }

// inOrder returns the rows in the order of the data set, epoch by epoch.
func inOrder(t *TaskColumns) []int {
	order := make([]int, t.Len())
	for i := range order {
		order[i] = i
	}
	compare := func(i, j int) int {
		return cmp.Or(cmp.Compare(t.Epoch[i], t.Epoch[j]), cmp.Compare(t.Index[i], t.Index[j]))
	}
	if !slices.IsSortedFunc(order, compare) {
		slices.SortStableFunc(order, compare)
	}
	return order
}

// rowFinder finds rows by the key of their task, each once, in the order of the data set.
type rowFinder struct {
	id   func(*TaskColumns, int) (uint64, bool)
	head map[taskKey]int
	next []int // row with the same key, or -1
}

type taskKey struct {
	epoch int32
	id    uint64
}

func newRowFinder(t *TaskColumns, id func(*TaskColumns, int) (uint64, bool)) *rowFinder {
	f := &rowFinder{id: id, head: make(map[taskKey]int, t.Len()), next: make([]int, t.Len())}
	for _, i := range slices.Backward(inOrder(t)) {
		if n, ok := id(t, i); ok {
			k := taskKey{t.Epoch[i], n}
			f.next[i] = -1
			if j, dup := f.head[k]; dup {
				f.next[i] = j
			}
			f.head[k] = i
		}
	}
	return f
}

// take returns the first row that is not taken of the task in row i of other columns.
func (f *rowFinder) take(t *TaskColumns, i int) (int, bool) {
	n, ok := f.id(t, i)
	if !ok {
		return 0, false
	}
	k := taskKey{t.Epoch[i], n}
	j, ok := f.head[k]
	if !ok || j < 0 {
		return 0, false
	}
	f.head[k] = f.next[j]
	return j, true
}

func flipOf(a, b Verdict) Flip {
	switch {
	case a == NotJudged || b == NotJudged:
		return FlipUnjudged
	case a == b && a == AnsweredRight:
		return FlipBothCorrect
	case a == b:
		return FlipBothWrong
	case b == AnsweredRight:
		return FlipFixed
	}
	return FlipBroken
}

func compareEval(a, b *Series) *EvalComparison {
	if a.Input.Eval == nil || b.Input.Eval == nil || a.Input.Eval.SHA256 != b.Input.Eval.SHA256 ||
		len(a.Progress.Eval) == 0 || len(b.Progress.Eval) == 0 {
		return nil
	}
	c := &EvalComparison{Dataset: a.Input.EvalID, A: a.Progress.Eval[len(a.Progress.Eval)-1], B: b.Progress.Eval[len(b.Progress.Eval)-1]}
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
	c.Partial = len(c.A.Wrong) < c.A.Tasks-c.A.Correct || len(c.B.Wrong) < c.B.Tasks-c.B.Correct
	return c
}
