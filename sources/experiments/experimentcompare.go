package experiments

import (
	"cmp"
	"slices"

	"acescope/engine/ace"
)

// Flip is how the answers of two experiments to the same task relate.
type Flip string

// Flips, from the first experiment to the second.
const (
	FlipFixed     Flip = "fixed"  // wrong, then right
	FlipBroken    Flip = "broken" // right, then wrong
	FlipBothWrong Flip = "both_wrong"
	FlipBothRight Flip = "both_right"
	FlipUnjudged  Flip = "not_judged" // one of them has no verdict
)

// Flips lists every flip in the order in which screens show them.
func Flips() []Flip { return []Flip{FlipFixed, FlipBroken, FlipBothWrong, FlipBothRight, FlipUnjudged} }

// Ways to align two experiments.
const (
	AlignedByIndex  = "index"  // the data set is the same file: epoch and index
	AlignedByPrompt = "prompt" // data sets differ: epoch and equal prompts
)

// Pair is a task that both experiments have answered.
type Pair struct {
	Epoch  int
	IndexA int
	IndexB int
	Flip   Flip
	A, B   int // rows in the series
}

// Comparison is two experiments, task by task. OnlyA and OnlyB count tasks that the
// other has not, or has not reached.
type Comparison struct {
	A, B      *Series
	SameData  bool
	AlignedBy string
	Pairs     []Pair // by epoch and index of the first
	Counts    map[Flip]int
	OnlyA     int
	OnlyB     int
	TotalsA   Totals
	TotalsB   Totals
	// AlignedA and AlignedB are the accuracies over the aligned tasks that both have a
	// verdict of, NaN where there is none.
	AlignedA, AlignedB float64
	Evaluations        *EvalComparison // nil where not both were measured on the same set
}

// EvalComparison compares the last measurements of two experiments on the same second
// data set. Fixed and Broken are 0-based indexes of tasks in it; Partial means that one
// result lists only part of its wrong answers, so that they may be incomplete.
type EvalComparison struct {
	Dataset       string
	A, B          ace.EvalResult
	Fixed, Broken []int
	BothWrong     int
	Partial       bool
}

// Compare aligns two experiments and says what became of each task from the first to
// the second.
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
	right := c.Counts[FlipBothRight]
	judged := len(c.Pairs) - c.Counts[FlipUnjudged]
	c.AlignedA = divide(float64(right+c.Counts[FlipBroken]), judged)
	c.AlignedB = divide(float64(right+c.Counts[FlipFixed]), judged)
	c.Evaluations = compareEval(a, b)
	return c
}

// byIndex and byPrompt are what identifies a task; false where that is not known.
func byIndex(t *TaskColumns, i int) (uint64, bool)  { return uint64(t.Index[i]), t.Index[i] >= 0 }
func byPrompt(t *TaskColumns, i int) (uint64, bool) { return t.Prompt[i], t.Prompt[i] != 0 }

// inOrder lists rows as their tasks stand in the data set, epoch by epoch, whichever
// ended first.
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

// rowFinder finds rows by what identifies their task, each once. Of equal prompts the one
// that stands first in the data set is the first.
type rowFinder struct {
	id   func(*TaskColumns, int) (uint64, bool)
	head map[taskKey]int
	next []int // row with the same key, -1 for none
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

// take is the first row, not yet taken, of the task in row i of other columns.
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
		return FlipBothRight
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
