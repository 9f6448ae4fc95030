package histories

import (
	"cmp"
	"slices"

	"acescope/engine/ace"
	runspkg "acescope/sources/runs"
)

// lineageOf puts runs into the order of their tree.
func lineageOf(runs []runspkg.Run) []LineageNode {
	slices.SortFunc(runs, func(a, b runspkg.Run) int {
		_, i := ace.ForkRoot(a.WorkflowID)
		_, j := ace.ForkRoot(b.WorkflowID)
		return cmp.Or(i-j, a.Start.Compare(b.Start))
	})
	children := map[string][]runspkg.Run{}
	origin := origins(runs)
	for _, r := range runs {
		children[origin[r.RunID]] = append(children[origin[r.RunID]], r)
	}
	var nodes []LineageNode
	seen := map[string]bool{}
	var walk func(from string, original, depth int, more []bool)
	walk = func(from string, original, depth int, more []bool) {
		list := children[from]
		for i, r := range list {
			if seen[r.RunID] {
				continue
			}
			seen[r.RunID] = true
			last := i == len(list)-1
			at := len(nodes)
			nodes = append(nodes, LineageNode{Run: r, Depth: depth, Last: last, More: slices.Clone(more), Original: original})
			walk(r.RunID, at, depth+1, append(slices.Clone(more), !last))
		}
	}
	walk("", -1, 0, nil)
	numberByStart(nodes)
	return nodes
}

// numberByStart numbers the runs in the order of their starts, and those of one id.
func numberByStart(nodes []LineageNode) {
	order := make([]int, len(nodes))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return nodes[a].Run.Start.Compare(nodes[b].Run.Start) })
	under := map[string]int{}
	for n, i := range order {
		nodes[i].Number = n
		under[nodes[i].Run.WorkflowID]++
		nodes[i].Nth = under[nodes[i].Run.WorkflowID]
	}
	for i := range nodes {
		if under[nodes[i].Run.WorkflowID] == 1 {
			nodes[i].Nth = 0
		}
	}
}

// origins says of each run, by run id, which one it was forked or reset from: "" where
// that is none, or none that is still there.
func origins(runs []runspkg.Run) map[string]string {
	here := map[string]bool{}
	newest := map[string]string{} // run id by workflow id
	for _, r := range runs {
		here[r.RunID], newest[r.WorkflowID] = true, r.RunID
	}
	from := map[string]string{}
	for _, r := range runs {
		of := ""
		switch f := r.Fork; {
		case r.ResetFrom != "": // also of a fork: it was reset after it was forked
			if here[r.ResetFrom] {
				of = r.ResetFrom
			}
		case f != nil:
			if of = f.RunID; !here[of] {
				of = newest[f.WorkflowID] // the run itself is gone, not its name
			}
		}
		if of != r.RunID {
			from[r.RunID] = of
		}
	}
	return from
}
