package console

import (
	tea "charm.land/bubbletea/v2"

	"acescope/sources/histories"
	"acescope/sources/playbooks"
	"acescope/sources/runs"
	"acescope/sources/transcripts"
	"acescope/tui"
)

// Selection is the run that all screens show.
type Selection struct {
	Run runs.Run
	Ok  bool
}

// Is reports whether a run is the selected one. An empty run ID stands for the newest run of the workflow.
func (s *Selection) Is(workflowID, runID string) bool {
	return s.Ok && s.Run.WorkflowID == workflowID && (s.Run.RunID == runID || s.Run.RunID == "" ||
		runID == "")
}

// Navigation is where the user is: the selected run, the runs that led to it, and where other screens go when
// they are shown next.
type Navigation struct {
	Selected Selection
	// Following is true until the user moves or opens a run, and again after going to the first row: the
	// cursor then stays near the newest runs, on an open one.
	Following bool
	// UnderCursor returns the run of the row under the cursor, on a screen whose cursor does not select runs.
	// It is nil on other screens.
	UnderCursor func() (runs.Run, bool)
	// Elsewhere is true while the selected run was chosen on another screen and is not in the list: the
	// list's cursor then stays where it is until the user moves it.
	Elsewhere bool
	// Session is the session that the screen of agents goes to when it is shown next, "" for none.
	Session string
	// Experiment is the workflow ID of the experiment that the screen of experiments goes to once it is
	// listed, "" for none.
	Experiment string
	// Batch is the batch of forks that the scoreboard shows, "" for none.
	Batch string
	// Version is the playbook version that the screen of playbooks goes to when it is shown next, no branch
	// for none.
	Version playbooks.VersionRef
	// Bullet is the bullet of Version that the screen of playbooks goes to, "" for the version itself.
	Bullet string
	// Finding is the group of runs that the triage goes to when it is shown next, see triage.Cause.Key; ""
	// for none.
	Finding string
	// CostBy is the unit of the cost screen when it is shown next, "" for that shown last, and CostKey its
	// row.
	CostBy  transcripts.By
	CostKey string
	// Event is the history event that the timeline goes to when it is shown next, 0 for none.
	Event int64

	flags  []string                 // of commands that use the same data
	read   func(runs.ID)            // reads the selected run
	detail Value[*histories.Detail] // of the selected run; may be nil
	trail  []runs.Run               // the runs that others were opened from, newest last
}

// maxTrail bounds how far back the user can go from run to run.
const maxTrail = 32

// Show selects a run that may not be in the list. Open the run or the timeline after it.
func (n *Navigation) Show(r runs.Run) {
	n.Selected = Selection{r, true}
	n.Elsewhere = true
	n.Following = false
	n.read(r.ID())
}

// GoFrom shows a run that the selected run or the user names.
func (n *Navigation) GoFrom(to runs.Run) {
	if n.Selected.Ok {
		n.trail = append(n.trail, n.Selected.Run)
		n.trail = n.trail[max(0, len(n.trail)-maxTrail):]
	}
	n.Show(to)
}

// Back shows the run from which the selected run was opened.
func (n *Navigation) Back(s tui.Shell) {
	last := len(n.trail) - 1
	if last < 0 {
		s.Note("no other run was opened from here")
		return
	}
	run := n.trail[last]
	n.trail = n.trail[:last]
	n.Show(run)
}

// FollowContinued selects the run that continues the selected run, if that was open when it was selected: a
// user who opens a closed run wants to see the closed run.
func (n *Navigation) FollowContinued(d *histories.Detail) {
	r := &n.Selected.Run
	if d == nil || d.ContinuedAs == "" || !n.Live() || d.WorkflowID != r.WorkflowID || d.RunID != r.RunID {
		return
	}
	r.RunID = d.ContinuedAs
	r.Start = d.Close
	n.Elsewhere = true // until the list has it
	n.read(r.ID())
}

// Live reports whether the selected run was open when it was selected. Only the IDs of a run that another run
// names are known.
func (n *Navigation) Live() bool {
	return n.Selected.Ok && n.Selected.Run.Open() && !n.Selected.Run.Start.IsZero()
}

// Detail returns the selected run as far as it is read, or nil.
func (n *Navigation) Detail() *histories.Detail {
	if n.detail == nil {
		return nil
	}
	d := n.detail.Value()
	if d == nil || !n.Selected.Is(d.WorkflowID, d.RunID) {
		return nil
	}
	return d
}

// Target returns the run that an action applies to: the run under the cursor, which it selects, or on other
// screens the selected run. It notes if there is no run.
func (n *Navigation) Target(s tui.Shell) (r runs.Run, ok bool) {
	if n.UnderCursor == nil {
		if !n.Selected.Ok {
			s.Note("no run is selected")
		}
		return n.Selected.Run, n.Selected.Ok
	}
	if r, ok = n.UnderCursor(); ok {
		n.Show(r)
	} else {
		s.Note("this row has no run")
	}
	return r, ok
}

// OpenTimeMachine shows the target of an action in the time machine. It reports false if there is no run.
func (n *Navigation) OpenTimeMachine(s tui.Shell) bool {
	_, ok := n.Target(s)
	if ok {
		s.Open("replay")
	}
	return ok
}

// OpenSession shows a session on the screen of agents.
func (n *Navigation) OpenSession(s tui.Shell, workflowID string) {
	n.Session = workflowID
	s.Open("agents")
}

// OpenAt shows the run under a cursor on the run screen. It notes if no run is there.
func (n *Navigation) OpenAt(s tui.Shell, at func() (runs.Run, bool)) tea.Cmd {
	r, ok := at()
	if !ok {
		s.Note("no run is selected")
		return nil
	}
	return n.OpenRun(s, r)
}

// OpenRun shows a run on the run screen.
func (n *Navigation) OpenRun(s tui.Shell, r runs.Run) tea.Cmd {
	n.Show(r)
	s.Open("run")
	s.Focus(0)
	return nil
}
