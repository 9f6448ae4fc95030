package sources

import (
	"cmp"
	"context"
	"slices"
	"strconv"

	"go.temporal.io/sdk/client"

	"acescope/engine/ace"
)

// MaxLineage bounds the runs of a lineage.
const MaxLineage = 1000

// LineageTree is a run with all forks of it, and the forks of those.
type LineageTree struct {
	Root string // workflow id of the run that all come from
	// Nodes are the runs, each behind the one that it was forked from, in the order in which
	// they were started.
	Nodes   []LineageNode
	Dropped int // of the newest, beyond MaxLineage
}

// LineageNode is a run in the tree. Depth is 0 for the root's runs, and for forks whose
// original is no longer kept.
type LineageNode struct {
	Run   Run
	Depth int
	// Last tells that no run behind it has the same original; More, by depth, whether one
	// comes behind the run's ancestor there. They are for drawing lines.
	Last bool
	More []bool
}

// ReadLineage reads the lineage that a run belongs to: from the list alone, since a fork's
// id begins with its root's and its memo says where it comes from.
func ReadLineage(ctx context.Context, c client.Client, workflowID string) (*LineageTree, error) {
	root, _ := ace.ForkRoot(workflowID)
	t := &LineageTree{Root: root}
	var runs []Run
	for _, query := range []string{"WorkflowId = " + strconv.Quote(root), "WorkflowId STARTS_WITH " + strconv.Quote(ace.ForkPrefix(root))} {
		err := List(ctx, c, query, 0, func(r Run) error {
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
	t.Nodes = lineageOf(runs)
	return t, nil
}

// lineageOf puts runs into the order of their tree.
func lineageOf(runs []Run) []LineageNode {
	slices.SortFunc(runs, func(a, b Run) int {
		_, i := ace.ForkRoot(a.WorkflowID)
		_, j := ace.ForkRoot(b.WorkflowID)
		return cmp.Or(i-j, a.Start.Compare(b.Start))
	})
	here := map[string]bool{}
	newest := map[string]string{} // run id by workflow id
	for _, r := range runs {
		here[r.RunID], newest[r.WorkflowID] = true, r.RunID
	}
	children := map[string][]Run{}
	for _, r := range runs {
		from := ""
		if f := r.Fork; f != nil {
			if from = f.RunID; !here[from] {
				from = newest[f.WorkflowID] // the run itself is gone, not its name
			}
			if from == r.RunID {
				from = ""
			}
		}
		children[from] = append(children[from], r)
	}
	var nodes []LineageNode
	seen := map[string]bool{}
	var walk func(from string, depth int, more []bool)
	walk = func(from string, depth int, more []bool) {
		list := children[from]
		for i, r := range list {
			if seen[r.RunID] {
				continue
			}
			seen[r.RunID] = true
			last := i == len(list)-1
			nodes = append(nodes, LineageNode{Run: r, Depth: depth, Last: last, More: slices.Clone(more)})
			walk(r.RunID, depth+1, append(slices.Clone(more), !last))
		}
	}
	walk("", 0, nil)
	return nodes
}
