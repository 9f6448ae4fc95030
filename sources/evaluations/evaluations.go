// Package evaluations reads how the playbook versions of an experiment answered the items of its evaluations,
// and compares the versions item by item.
package evaluations

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	historypb "go.temporal.io/api/history/v1"

	"acescope/engine/ace"
	"acescope/engine/learning/ablation"
	"acescope/engine/learning/playbook"
	"acescope/engine/temporal/history"
	"acescope/sources/cluster"
)

// Version is an evaluation of a playbook version. Items are in the order of the data set; they are nil if a
// worker kept none.
type Version struct {
	ace.EvalResult
	Items []ace.EvalItem
	parts []ace.Ref // artifacts with the items
}

// Grid holds the evaluations of an experiment, oldest first, and its items.
type Grid struct {
	Input    ace.ExperimentInput
	Progress ace.ExperimentProgress
	Status   ace.Status // of the experiment
	Versions []Version
	Rows     []Row
	parts    []ace.Ref // artifacts with the items of all versions
}

// Mark is the result of a version on an item.
type Mark string

// Marks.
const (
	Correct Mark = "correct"
	Wrong   Mark = "wrong"
	Failed  Mark = "failed" // the answer or its grading failed
	Unknown Mark = ""       // not on record, or without a label
)

// Change is how the answers to an item changed over the versions.
type Change string

// Changes, in the order of the grid. A broken item was correct in an earlier version and is wrong in the
// last.
const (
	Broken      Change = "broken"
	LastFailed  Change = "failed"   // in the last version
	Unstable    Change = "unstable" // correct at first and at last, but not in between
	AlwaysWrong Change = "always wrong"
	Fixed       Change = "fixed"
	AlwaysRight Change = "always right"
	Unlabeled   Change = "unlabeled"
)

// Changes lists all changes in their order.
func Changes() []Change {
	return []Change{Broken, LastFailed, Unstable, AlwaysWrong, Fixed, AlwaysRight, Unlabeled}
}

// Row is an item over all versions.
type Row struct {
	Index  int // in the data set, from 0
	Change Change
	Marks  []Mark // by version
}

// newGrid folds the histories of an experiment's runs. The versions have no items yet.
func newGrid(runs [][]*historypb.HistoryEvent) (*Grid, error) {
	g := &Grid{}
	state := &ace.ExperimentState{}
	var parts []ace.Ref // of the evaluation so far
	missing := false
	for _, events := range runs {
		decoder := &history.ExperimentDecoder{}
		for _, e := range events {
			fact, ok, err := decoder.Fact(e)
			if err != nil {
				return nil, err
			}
			if !ok {
				continue
			}
			state.Apply(fact)
			if fact.Evaluated == nil {
				continue
			}
			if fact.Evaluated.Items != nil {
				parts = append(parts, *fact.Evaluated.Items)
				g.parts = append(g.parts, *fact.Evaluated.Items)
			} else {
				missing = true
			}
			list := state.Progress.Eval
			n := len(list)
			if n == 0 || n == len(g.Versions) && !list[n-1].Incomplete {
				continue
			}
			v := Version{EvalResult: list[n-1]}
			if !missing {
				v.parts = parts
			}
			g.Versions = append(g.Versions[:n-1], v) // further parts of an incomplete evaluation replace it
			if !v.Incomplete {
				parts, missing = nil, false
			}
		}
	}
	if e := state.OpenEval(); e != nil && !missing {
		g.Versions = append(g.Versions, Version{EvalResult: *e, parts: parts})
	}
	g.Input = state.Input
	g.Progress = state.Progress
	g.Status = state.Status()
	return g, nil
}

// load reads the items, except those that an earlier grid of the same experiment has, which may be nil.
func (g *Grid) load(ctx context.Context, get ablation.Get, earlier *Grid) (err error) {
	for i := range g.Versions {
		v := &g.Versions[i]
		if earlier != nil && i < len(earlier.Versions) && slices.Equal(v.parts, earlier.Versions[i].parts) {
			v.Items = earlier.Versions[i].Items
		} else if v.Items, err = get.Items(ctx, v.parts); err != nil {
			return fmt.Errorf("evaluation %d: %w", i+1, err)
		}
	}
	g.Rows = Rows(g.Versions)
	return nil
}

// answers returns the number of answers in evaluations and trials.
func (g *Grid) answers() (n int) {
	for _, v := range g.Versions {
		n += v.Tasks
	}
	if a := g.Progress.Ablation; a != nil {
		done, _ := a.Answers()
		n += done
	}
	return n
}

// Read reads the evaluations of an experiment.
func Read(ctx context.Context, d cluster.Deps, namespace, workflowID, runID string) (*Grid, error) {
	chain, err := cluster.ReadChain(ctx, d.Client, namespace, workflowID, runID, false, nil)
	if err != nil {
		return nil, err
	}
	g, err := newGrid(chain.Runs)
	if err != nil {
		return nil, err
	}
	return g, g.load(ctx, d.Artifact, nil)
}

// Best returns the first version with the highest accuracy, or -1.
func (g *Grid) Best() int {
	best := -1
	for i, v := range g.Versions {
		if !v.Incomplete && v.Labeled() > 0 && (best < 0 || v.AtLeast() > g.Versions[best].AtLeast()) {
			best = i
		}
	}
	return best
}

// When says at which point of its experiment an evaluation was made, and how many of its items failed.
func When(e ace.EvalResult) string {
	if failed := e.FailedItems.Text(e.Tasks); failed != "" {
		e.FailedItems = ace.FailedItems{}
		return When(e) + ", " + failed
	}
	if e.Incomplete {
		e.Incomplete = false
		return When(e) + ", incomplete"
	}
	switch {
	case e.Epoch == 0:
		return "initial playbook"
	case e.Learned > 0:
		return fmt.Sprintf("epoch %d, %s", e.Epoch, ace.Count(e.Learned, "task"))
	}
	return fmt.Sprintf("after epoch %d", e.Epoch)
}

// Answered returns the parts of the first evaluation with answers, for another run with the same input: see
// [ace.EvaluationPlan]. It is nil unless the experiment has closed before its first task, and the evaluation
// has items without an answer.
func (g *Grid) Answered(ctx context.Context, get ablation.Get) (parts []ace.AnsweredPart, err error) {
	finished := len(g.Versions) == 1 && g.Versions[0].Failed == 0 && !g.Versions[0].Incomplete
	if g.Status == ace.Running || g.Progress.Closed() > 0 || g.Input.Ablation != nil || finished {
		return nil, nil
	}
	for _, part := range g.parts {
		items, err := get.Items(ctx, []ace.Ref{part})
		if err != nil {
			return nil, err
		}
		if len(items) > 0 {
			parts = append(parts, ace.AnsweredPart{Playbook: g.Progress.After, From: items[0].Index,
				Items: part})
		}
	}
	return parts, nil
}

// Effects returns the effects of the bullets that the ablation has measured so far, and the number of labeled
// items that it measures them on.
func (g *Grid) Effects(ctx context.Context, books *playbook.Store, get ablation.Get) ([]ablation.Effect, int,
	error) {
	book := &playbook.Playbook{}
	if hash := g.Input.PlaybookHash; hash != "" {
		var err error
		if book, err = books.Get(ctx, hash); err != nil {
			return nil, 0, err
		}
	}
	base, rounds, err := get.Load(ctx, book, *g.Input.Ablation, g.Progress.Ablation)
	if err != nil {
		return nil, 0, err
	}
	return base.Effects(slices.Concat(rounds...)), base.Labeled(), nil
}

// Rows returns the items of versions, those that were broken first.
func Rows(versions []Version) (list []Row) {
	at := map[int]int{}
	for v, version := range versions {
		for _, item := range version.Items {
			n, ok := at[item.Index]
			if !ok {
				n = len(list)
				at[item.Index] = n
				list = append(list, Row{Index: item.Index, Marks: make([]Mark, len(versions))})
			}
			switch {
			case item.Error != "":
				list[n].Marks[v] = Failed
			case item.Correct != nil && *item.Correct:
				list[n].Marks[v] = Correct
			case item.Correct != nil:
				list[n].Marks[v] = Wrong
			}
		}
	}
	for i := range list {
		list[i].Change = changeOf(list[i].Marks)
	}
	order := Changes()
	slices.SortFunc(list, func(a, b Row) int {
		return cmp.Or(cmp.Compare(slices.Index(order, a.Change), slices.Index(order, b.Change)),
			cmp.Compare(a.Index, b.Index))
	})
	return list
}

func changeOf(marks []Mark) Change {
	if marks[len(marks)-1] == Failed {
		return LastFailed
	}
	known := slices.DeleteFunc(slices.Clone(marks), func(m Mark) bool { return m == Unknown || m == Failed })
	if len(known) == 0 {
		return Unlabeled
	}
	right := slices.Contains(known, Correct)
	wrong := slices.Contains(known, Wrong)
	switch last := known[len(known)-1]; {
	case !wrong:
		return AlwaysRight
	case !right:
		return AlwaysWrong
	case last == Wrong:
		return Broken
	case known[0] == Wrong:
		return Fixed
	}
	return Unstable
}

// Item returns how a version answered an item, or nil.
func (v *Version) Item(index int) *ace.EvalItem {
	n, ok := slices.BinarySearchFunc(v.Items, index, func(item ace.EvalItem, index int) int {
		return cmp.Compare(item.Index, index)
	})
	if !ok {
		return nil
	}
	return &v.Items[n]
}

// Flips returns the items that the version after answers correctly and the version before does not, and the
// reverse.
func (g *Grid) Flips(before, after int) (fixed, broken []int) {
	for _, r := range g.Rows {
		switch a, b := r.Marks[before], r.Marks[after]; {
		case a == Wrong && b == Correct:
			fixed = append(fixed, r.Index)
		case a == Correct && b == Wrong:
			broken = append(broken, r.Index)
		}
	}
	slices.Sort(fixed)
	slices.Sort(broken)
	return fixed, broken
}
