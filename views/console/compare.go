package console

import (
	"slices"

	"acescope/engine/ace"
	"acescope/sources/histories"
	"acescope/sources/runs"
	"acescope/tui"
)

// Comparer opens the comparison of two runs.
type Comparer struct {
	nav      *Navigation
	listing  *Listing
	controls Controls
	// Experiments compares two experiments, by workflow ID.
	Experiments func(s tui.Shell, a, b string)
}

// Compare compares two runs.
func (c *Comparer) Compare(s tui.Shell, a, b runs.Run) {
	ref := func(r runs.Run) histories.DiffRef {
		return histories.DiffRef{WorkflowID: r.WorkflowID, RunID: r.RunID, TaskID: r.TaskID}
	}
	c.controls.Compare(histories.DiffAsk{A: ref(a), B: ref(b)})
	s.Open("diff")
}

// CompareMarked compares the two marked runs, or the only marked run and the selected run. The run that
// started first is A.
func (c *Comparer) CompareMarked(s tui.Shell) {
	pair := c.listing.Marked()
	if selected := &c.nav.Selected; len(pair) == 1 && selected.Ok && pair[0].ID() != selected.Run.ID() {
		pair = append(pair, selected.Run)
	}
	if len(pair) != 2 {
		s.Note("mark two runs with space to compare them")
		return
	}
	if pair[1].Start.Before(pair[0].Start) {
		slices.Reverse(pair)
	}
	isExperiment := func(r runs.Run) bool { return r.Type == ace.ExperimentWorkflow }
	if isExperiment(pair[0]) && isExperiment(pair[1]) {
		c.Experiments(s, pair[0].WorkflowID, pair[1].WorkflowID)
		return
	}
	c.Compare(s, pair[0], pair[1])
}

// CompareOriginal compares a fork with the run that it was forked from.
func (c *Comparer) CompareOriginal(s tui.Shell, t *histories.LineageTree, n *histories.LineageNode) {
	switch f := n.Run.Fork; {
	case n.Original >= 0:
		c.Compare(s, t.Nodes[n.Original].Run, n.Run)
	case f != nil:
		c.Compare(s, runs.Run{WorkflowID: f.WorkflowID, RunID: f.RunID, TaskID: ace.TaskIDOf(f.WorkflowID)},
			n.Run)
	default:
		s.Note(NameOf(n.Run) + " was not forked from another run; select a fork, or mark two runs with space")
	}
}
