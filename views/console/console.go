// Package console holds what screens share: the selected run, marks, the filter language, saved filters and
// the actions on runs, which ask first and report their result in the status line.
package console

import (
	"context"
	"fmt"
	"time"

	tea "charm.land/bubbletea/v2"

	"acescope/sources/runners"
	"acescope/sources/runs"
	"acescope/tui"
	"acescope/tui/text"
)

// Options says what the views work on.
type Options struct {
	Context  context.Context // of actions; nil for the background
	Controls Controls
	Actions  Actions // nil for a console that only reads
	// Refuse says, in place of Actions, why nothing can be done to a run and what to do
	// instead; what is the verb. Nil where Actions act.
	Refuse   func(what string, of Target) string
	Filters  []SavedFilter  // the default one applies at the start
	Saver    FilterSaver    // nil where filters cannot be kept
	Location *time.Location // of times of day; nil for local
	WorkDir  string         // where sessions are started unless another directory is named
}

// ActionTimeout bounds one action.
const ActionTimeout = 10 * time.Second

// Selection is the run that the list's cursor is on; the detail shows it.
type Selection struct {
	Run runs.Run
	Ok  bool
}

func (s *Selection) Is(workflowID, runID string) bool {
	return s.Ok && s.Run.WorkflowID == workflowID && (s.Run.RunID == runID || s.Run.RunID == "" || runID == "")
}

// Screens is what the views share.
type Console struct {
	Options
	Selected Selection
	Runs     runs.RunList // newest
	Counted  *runs.Facets // newest
	Marks    marks        // of the list; actions apply to them where there are any
	// Followingg is true until somebody moves or opens a run, and again after going to
	// the first row: the cursor then stays in sight of the newest runs, on an open one.
	Following bool
	// Elsewheree is true while the selected run was chosen on another screen and is not in
	// the list: the list's cursor then stays where it is until it is moved.
	Elsewhere bool
	// Goall is the session that the screen of agents goes to when it is shown next, "" for none.
	Goal string
	// Jumpp is the history event that the timeline goes to when it is shown next, 0 for none.
	Jump int64
	// trail is the runs that others were opened from, the newest last.
	trail []runs.Run
}

// Show selects a run that may not be in the list. Open the run or the timeline after it.
func (c *Console) Show(r runs.Run) {
	c.Selected = Selection{r, true}
	c.Elsewhere, c.Following = true, false
	c.Controls.Select(r.WorkflowID, r.RunID)
}

// maxBefore bounds how far back one can go from run to run.
const maxBefore = 32

// GoFrom shows a run that the one shown names.
func (c *Console) GoFrom(to runs.Run) {
	c.trail = append(c.trail, c.Selected.Run)
	c.trail = c.trail[max(0, len(c.trail)-maxBefore):]
	c.Show(to)
}

// Back shows the run that was shown before another was opened from it.
func (c *Console) Back(s tui.Shell) tea.Cmd {
	n := len(c.trail)
	if n == 0 {
		s.Note("no other run was opened from here")
		return nil
	}
	run := c.trail[n-1]
	c.trail = c.trail[:n-1]
	c.Show(run)
	return nil
}

func (c *Console) Ask(s tui.Shell) tea.Cmd {
	s.Ask(tui.Prompt{
		Label: "/", Value: c.Runs.Query,
		Hint:     `wrong   exp=finance-7   phase:skills   or a query: ExitStatus="failed" AND ModelName="m"`,
		Preview:  Filter,
		Complete: c.complete,
		Done: func(typed string) tea.Cmd {
			c.Controls.SetQuery(Filter(typed))
			return nil
		},
	})
	return nil
}

func (c *Console) Pause(s tui.Shell) tea.Cmd {
	paused := !c.Runs.Paused
	c.Controls.SetPaused(paused)
	if paused {
		s.Note("paused: what is shown does not change")
	} else {
		s.Note("resumed")
	}
	return nil
}

// Cancel asks before it acts. The run is the one that was selected when it asked,
// whatever the list does meanwhile.
func (c *Console) Cancel(s tui.Shell) tea.Cmd {
	r := c.Selected.Run
	switch {
	case c.Selected.Ok && c.refused(s, "cancel", Target{r.WorkflowID, r.RunID}):
		return nil
	case len(c.Marks.Runs) > 0:
		c.cancelMarked(s)
		return nil
	case !c.Selected.Ok:
		s.Note("no run is selected")
		return nil
	case r.Type == runners.RunWorkflow && c.Actions != nil:
		return c.AskStop(s, r)
	case !r.Open():
		s.Note(NameOf(r) + " has already closed")
		return nil
	}
	if r.RunID == "" {
		return c.Propose(s, "cancel", Target{WorkflowID: r.WorkflowID}, func(_ context.Context, of Target) (Prepared, error) {
			return Prepared{Title: "Cancel this run?", Lines: []string{"workflow  " + of.WorkflowID, "run       " + of.RunID}, Yes: "cancel the run",
				Do: func(ctx context.Context) (string, runs.Run, error) {
					return "asked " + of.WorkflowID + " to cancel", runs.Run{}, c.Actions.Cancel(ctx, of.WorkflowID, of.RunID)
				}}, nil
		})
	}
	s.Confirm(tui.Question{
		Title: "Cancel this run?",
		Lines: []string{"workflow  " + text.Safe(r.WorkflowID, " "), "run       " + text.Safe(r.RunID, " ")},
		Yes:   "cancel the run",
		Do:    func() tea.Cmd { return c.DoCancel(r.WorkflowID, r.RunID) },
	})
	return nil
}

// Acts tells whether there are keys for what is done to runs.
func (c *Console) Acts() bool { return c.Actions != nil || c.Refuse != nil }

// refused says why something cannot be done to a run, where it cannot.
func (c *Console) refused(s tui.Shell, what string, of Target) bool {
	if c.Refuse == nil {
		return false
	}
	s.Note(c.Refuse(what, of))
	return true
}

func (c *Console) DoCancel(workflowID, runID string) tea.Cmd {
	return func() tea.Msg {
		ctx, stop := context.WithTimeout(c.Context, ActionTimeout)
		defer stop()
		if err := c.Actions.Cancel(ctx, workflowID, runID); err != nil {
			return tui.Failed(fmt.Errorf("cancel %s: %w", workflowID, err))
		}
		return tui.Noted("asked " + workflowID + " to cancel")
	}
}
