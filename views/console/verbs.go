package console

import (
	"context"
	"errors"
	"fmt"
	"slices"

	tea "charm.land/bubbletea/v2"

	"acescope/engine/ace"
	"acescope/sources"
	"acescope/sources/histories"
	"acescope/sources/runners"
	"acescope/sources/runs"
	"acescope/tui"
	"acescope/tui/text"
)

// cancelMarked asks before it acts on the runs that were marked, and are open, when it
// asked.
func (c *Console) cancelMarked(s tui.Shell) {
	c.Marks.refresh(c.Runs.Rows)
	var open []runs.Run
	for _, r := range c.Marks.Runs {
		if r.Open() {
			open = append(open, r)
		}
	}
	marked := len(c.Marks.Runs)
	if len(open) == 0 {
		s.Note(fmt.Sprintf("all %d marked runs have already closed", marked))
		return
	}
	lines := []string{fmt.Sprintf("%d of the %d marked runs are open:", len(open), marked), ""}
	for _, r := range open[:min(len(open), shownMarks)] {
		lines = append(lines, text.Safe(NameOf(r)+"  run "+r.RunID, " "))
	}
	if more := len(open) - shownMarks; more > 0 {
		lines = append(lines, "and "+text.Count(int64(more))+" more")
	}
	s.Confirm(tui.Question{Title: fmt.Sprintf("Cancel %d runs?", len(open)), Lines: lines, Yes: "cancel them",
		Do: func() tea.Cmd { return c.doCancelAll(open) }})
}

func (c *Console) doCancelAll(open []runs.Run) tea.Cmd {
	return func() tea.Msg {
		var failed error
		done := 0
		for _, r := range open {
			ctx, stop := context.WithTimeout(c.Context, ActionTimeout)
			err := c.Actions.Cancel(ctx, r.WorkflowID, r.RunID)
			stop()
			switch {
			case err == nil:
				done++
			case failed == nil:
				failed = fmt.Errorf("%s: %w", r.WorkflowID, err)
			}
			if errors.Is(c.Context.Err(), context.Canceled) {
				break
			}
		}
		if failed != nil {
			return tui.Failed(fmt.Errorf("asked %d of %d runs to cancel; %w", done, len(open), failed))
		}
		return tui.Noted(fmt.Sprintf("asked %d runs to cancel", done))
	}
}

// AskStop asks before a run of a blueprint is stopped. It is that run, whatever is shown
// meanwhile.
func (c *Console) AskStop(s tui.Shell, r runs.Run) tea.Cmd {
	if c.refused(s, "agent stop", Target{r.WorkflowID, r.RunID}) {
		return nil
	}
	if !r.Open() {
		s.Note(NameOf(r) + " has already ended")
		return nil
	}
	id := runners.BlueprintRunID(r.WorkflowID)
	lines := []string{"run       " + text.Safe(id, " ")}
	if r.Blueprint != "" {
		lines = append(lines, "blueprint "+text.Safe(r.Blueprint, " "))
	}
	if r.Runner != "" {
		lines = append(lines, "runner    "+text.Safe(r.Runner, " "))
	}
	s.Confirm(tui.Question{Title: "Stop this run?", Lines: append(lines, "a program gets SIGTERM and after 5 s SIGKILL; an agent ends its turn"), Yes: "stop the run",
		Do: func() tea.Cmd {
			return c.Act("stop "+id, "asked run "+id+" to stop", func(ctx context.Context) error { return c.Actions.StopRun(ctx, id) })
		}})
	return nil
}

// Act is a command that does something to one thing, and says so.
func (c *Console) Act(what, said string, do func(context.Context) error) tea.Cmd {
	return func() tea.Msg {
		ctx, stop := context.WithTimeout(c.Context, ActionTimeout)
		defer stop()
		if err := do(ctx); err != nil {
			return tui.Failed(fmt.Errorf("%s: %w", what, err))
		}
		return tui.Noted(said)
	}
}

// DiffRuns opens the comparison of two runs.
func (c *Console) DiffRuns(s tui.Shell, a, b runs.Run) {
	ref := func(r runs.Run) histories.DiffRef {
		return histories.DiffRef{WorkflowID: r.WorkflowID, RunID: r.RunID, TaskID: r.TaskID}
	}
	c.Controls.DiffRuns(ref(a), ref(b), false)
	s.Open("diff")
}

// DiffPair compares the two marked runs, or the marked one and the selected. The one that
// began first is A.
func (c *Console) DiffPair(s tui.Shell) {
	c.Marks.refresh(c.Runs.Rows)
	pair := slices.Clone(c.Marks.Runs)
	if len(pair) == 1 && c.Selected.Ok && KeyOf(&pair[0]) != KeyOf(&c.Selected.Run) {
		pair = append(pair, c.Selected.Run)
	}
	if len(pair) != 2 {
		s.Note("mark two runs with space to compare them")
		return
	}
	if pair[1].Start.Before(pair[0].Start) {
		slices.Reverse(pair)
	}
	c.DiffRuns(s, pair[0], pair[1])
}

// DiffOriginal compares a fork with the run that it was forked from.
func (c *Console) DiffOriginal(s tui.Shell, t *histories.LineageTree, n *histories.LineageNode) {
	switch f := n.Run.Fork; {
	case n.Original >= 0:
		c.DiffRuns(s, t.Nodes[n.Original].Run, n.Run)
	case f != nil:
		c.DiffRuns(s, runs.Run{WorkflowID: f.WorkflowID, RunID: f.RunID, TaskID: ace.TaskIDOf(f.WorkflowID)}, n.Run)
	default:
		s.Note(NameOf(n.Run) + " was not forked from another run: go to a fork, or mark two runs with space")
	}
}

// Verify verifies the marked runs, else the selected one in the time machine.
func (c *Console) Verify(s tui.Shell, strict bool) {
	if len(c.Marks.Runs) == 0 {
		if c.openTimeMachine(s) {
			c.Controls.VerifyRun(strict)
		}
		return
	}
	c.Controls.VerifyRuns(sources.VerifyWish{Runs: slices.Clone(c.Marks.Runs), Strict: strict})
	s.Open("verified")
}

// VerifyAll verifies all runs that the list's query chooses.
func (c *Console) VerifyAll(s tui.Shell, strict bool) {
	c.Controls.VerifyRuns(sources.VerifyWish{Query: c.Runs.Query, Strict: strict})
	s.Open("verified")
}

// OpenReplay shows the selected run in the time machine.
func (c *Console) OpenReplay(s tui.Shell) tea.Cmd {
	c.openTimeMachine(s)
	return nil
}

// openTimeMachine tells whether there is a run to show in it.
func (c *Console) openTimeMachine(s tui.Shell) bool {
	if !c.Selected.Ok {
		s.Note("no run is selected")
		return false
	}
	s.Open("replay")
	return true
}

// GoSession shows a session on the screen of agents.
func (c *Console) GoSession(s tui.Shell, workflowID string) tea.Cmd {
	c.Goal = workflowID
	s.Open("agents")
	return nil
}

// OpenRun shows a run of a blueprint whole.
func (c *Console) OpenRun(s tui.Shell, r runs.Run) tea.Cmd {
	c.Show(r)
	s.Open("run")
	s.Focus(0)
	return nil
}
