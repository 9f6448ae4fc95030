package histories

import (
	"context"
	"slices"
	"strconv"
	"time"

	"go.temporal.io/sdk/client"

	"acescope/engine/ace"
	"acescope/sources/cluster"
	runspkg "acescope/sources/runs"
)

// Bounds of a lineage: its runs, and those of them whose results are read, one by one.
const (
	MaxLineage        = 1000
	MaxLineageAnswers = 200
)

// LineageTree is a run with all forks of it, and the forks of those. It is immutable.
type LineageTree struct {
	Root string // workflow id of the run that all come from
	// Nodes are the runs, each behind the one that it was forked or reset from, in the order
	// in which they were started.
	Nodes   []LineageNode
	Dropped int       // of the newest, beyond MaxLineage
	Err     string    // why the newest reading failed, "" if it did not
	Updated time.Time // when it was last read
}

// LineageNode is a run in the tree. Depth is 0 for the root's runs, and for forks whose
// original is no longer kept.
type LineageNode struct {
	Run   runspkg.Run
	Depth int
	// Last tells that no run behind it has the same original; More, by depth, whether one
	// comes behind the run's ancestor there. They are for drawing lines.
	Last bool
	More []bool
	// Original is the number in the tree of the run that it was forked or reset from, -1
	// where there is none.
	Original int
	Number   int      // in the order of their starts, from 0: it stays when others come
	Nth      int      // of several runs under its id, from 1 in the order of their starts; 0 for the only one
	Outcome  *Outcome // nil while it has none, and where it cannot be read
	Effect   Effect
}

// Outcome is what a run answered in the end.
type Outcome struct {
	Answer  string
	Correct *bool // nil where there was no label
}

// Effect is what became better or worse beside the original: what a fork is made to find
// out.
type Effect string

// Effects. A run that failed is worse than one that answered wrong, and that is worse than
// one that answered right.
const (
	EffectUnknown Effect = "" // one of the two has no outcome, or there is no original
	EffectBetter  Effect = "better"
	EffectWorse   Effect = "worse"
	EffectSame    Effect = "same"  // the same answer, or both failed
	EffectOther   Effect = "other" // another answer, as right or wrong as the original's
)

// Forks tells whether there is more to the lineage than runs that stand beside each other.
func (t *LineageTree) Forks() bool {
	return t != nil && slices.ContainsFunc(t.Nodes, func(n LineageNode) bool { return n.Original >= 0 || n.Run.Fork != nil })
}

// Count is how many of the runs were forked from another.
func (t *LineageTree) Count() int {
	n := 0
	for i := range t.Nodes {
		if t.Nodes[i].Run.Fork != nil {
			n++
		}
	}
	return n
}

// Find is the number of a run in the tree, -1 where it is not in it.
func (t *LineageTree) Find(runID string) int {
	if t == nil {
		return -1
	}
	return slices.IndexFunc(t.Nodes, func(n LineageNode) bool { return n.Run.RunID == runID })
}

// Started is the n-th run of the tree in the order of their starts, nil where there are
// fewer.
func (t *LineageTree) Started(n int) *LineageNode {
	for i := range t.Nodes {
		if t.Nodes[i].Number == n {
			return &t.Nodes[i]
		}
	}
	return nil
}

// ReadLineage reads the lineage that a run belongs to: from the list alone, since a fork's
// id begins with its root's and its memo says where it comes from. Outcomes that an earlier
// reading had, which may be nil, are not read again.
func ReadLineage(ctx context.Context, c client.Client, workflowID string, before *LineageTree) (*LineageTree, error) {
	root, _ := ace.ForkRoot(workflowID)
	t := &LineageTree{Root: root}
	var runs []runspkg.Run
	for _, query := range []string{"WorkflowId = " + strconv.Quote(root), "WorkflowId STARTS_WITH " + strconv.Quote(ace.ForkPrefix(root))} {
		err := runspkg.List(ctx, c, query, 0, func(r runspkg.Run) error {
			if of, _ := ace.ForkRoot(r.WorkflowID); of != root {
				return nil // a run that is called so by chance
			}
			if len(runs) >= MaxLineage {
				t.Dropped++
				return nil
			}
			runs = append(runs, r)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	if err := readResets(ctx, c, runs, before); err != nil {
		return nil, err
	}
	t.Nodes = lineageOf(runs)
	if err := t.outcomes(ctx, c, before); err != nil {
		return nil, err
	}
	t.compare()
	return t, nil
}

// readResets finds out which of the runs of one id was reset from which: each tells the one
// that it was last reset as. Nothing is asked where there is one run of an id, nor again of
// runs that are known.
func readResets(ctx context.Context, c client.Client, runs []runspkg.Run, before *LineageTree) error {
	under := map[string][]*runspkg.Run{}
	for i := range runs {
		r := &runs[i]
		if had := before.Find(r.RunID); had >= 0 {
			r.ResetFrom = before.Nodes[had].Run.ResetFrom
		}
		under[r.WorkflowID] = append(under[r.WorkflowID], r)
	}
	asked := 0
	for _, list := range under {
		unknown := slices.ContainsFunc(list, func(r *runspkg.Run) bool { return before.Find(r.RunID) < 0 })
		for _, r := range list {
			if len(list) == 1 || !unknown {
				break
			}
			if asked++; asked > MaxLineageAnswers {
				return nil
			}
			d, err := c.DescribeWorkflowExecution(ctx, r.WorkflowID, r.RunID)
			if cluster.NotFound(err) {
				continue
			}
			if err != nil {
				return err
			}
			as := d.GetWorkflowExtendedInfo().GetResetRunId()
			if i := slices.IndexFunc(list, func(o *runspkg.Run) bool { return o.RunID == as }); as != "" && i >= 0 {
				list[i].ResetFrom = r.RunID
			}
		}
	}
	return nil
}

// outcomes reads what the runs answered. One whose history is gone has none.
func (t *LineageTree) outcomes(ctx context.Context, c client.Client, before *LineageTree) error {
	read := 0
	for i := range t.Nodes {
		n := &t.Nodes[i]
		if n.Run.Exit != ace.Success && n.Run.Exit != ace.Wrong {
			continue
		}
		if had := before.Find(n.Run.RunID); had >= 0 && before.Nodes[had].Outcome != nil {
			n.Outcome = before.Nodes[had].Outcome
			continue
		}
		if read++; read > MaxLineageAnswers {
			return nil
		}
		var result ace.TaskResult
		err := c.GetWorkflow(ctx, n.Run.WorkflowID, n.Run.RunID).Get(ctx, &result)
		switch {
		case err == nil:
			n.Outcome = &Outcome{Answer: result.Answer, Correct: result.Correct}
		case !cluster.NotFound(err):
			return err
		}
	}
	return nil
}

// compare works out what forks changed for better or worse.
func (t *LineageTree) compare() {
	for i := range t.Nodes {
		if n := &t.Nodes[i]; n.Original >= 0 {
			n.Effect = effectOf(&t.Nodes[n.Original], n)
		}
	}
}

func effectOf(of, n *LineageNode) Effect {
	was, is := grade(of), grade(n)
	judged := was != unjudged && is != unjudged || was == failure || is == failure
	switch {
	case was == 0 || is == 0:
		return EffectUnknown
	case judged && is > was:
		return EffectBetter
	case judged && is < was:
		return EffectWorse
	case is == failure || of.Outcome.Answer == n.Outcome.Answer:
		return EffectSame
	}
	return EffectOther
}

// Grades of a run, the worst first; 0 where there is none to give yet.
const (
	failure = 1 + iota
	mistaken
	unjudged
	right
)

func grade(n *LineageNode) int {
	switch exit := n.Run.Exit; {
	case exit == ace.Failed || exit == ace.Timeout:
		return failure
	case n.Outcome == nil:
		return 0
	case n.Outcome.Correct == nil:
		return unjudged
	case *n.Outcome.Correct:
		return right
	}
	return mistaken
}
