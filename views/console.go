package views

import (
	"context"
	"fmt"
	"time"

	tea "charm.land/bubbletea/v2"

	"acescope/sources"
	"acescope/tui"
	"acescope/tui/text"
)

// Controls steers what is observed. Every method returns at once; what it leads to
// comes with a later snapshot. Select is called for each row the cursor passes.
type Controls interface {
	SetQuery(query string)
	Select(workflowID, runID string)
	Refresh()
	SetPaused(paused bool)
	listControls
	// Look starts or stops reading a part of the snapshot.
	Look(part sources.Part, on bool)
	logControls
	ExperimentControls
	TriageControls
	ArtifactControls
	bookControls
	EventControls
	DiffControls
	ReplayControls
	agentControls
	VerifyControls
	RunnerControls
}

// Actions are what a person may do to a run. They do IO and are called inside
// commands.
type Actions interface {
	// Cancel asks the run to cancel itself; nil means that it was asked.
	Cancel(ctx context.Context, workflowID, runID string) error
	Mutations
	SessionActions
	RunnerActions
}

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

// actionTimeout bounds one action.
const actionTimeout = 10 * time.Second

// selection is the run that the list's cursor is on; the detail shows it.
type selection struct {
	run sources.Run
	ok  bool
}

func (s *selection) is(workflowID, runID string) bool {
	return s.ok && s.run.WorkflowID == workflowID && (s.run.RunID == runID || s.run.RunID == "" || runID == "")
}

// console is what the views share.
type console struct {
	Options
	selected selection
	runs     sources.RunList // newest
	counted  *sources.Facets // newest
	marks    marks           // of the list; actions apply to them where there are any
	// following is true until somebody moves or opens a run, and again after going to
	// the first row: the cursor then stays in sight of the newest runs, on an open one.
	following bool
	// elsewhere is true while the selected run was chosen on another screen and is not in
	// the list: the list's cursor then stays where it is until it is moved.
	elsewhere bool
	// goal is the session that the screen of agents goes to when it is shown next, "" for none.
	goal string
	// jump is the history event that the timeline goes to when it is shown next, 0 for none.
	jump int64
	// trail is the runs that others were opened from, the newest last.
	trail []sources.Run
}

// show selects a run that may not be in the list. Open the run or the timeline after it.
func (c *console) show(r sources.Run) {
	c.selected = selection{r, true}
	c.elsewhere, c.following = true, false
	c.Controls.Select(r.WorkflowID, r.RunID)
}

// maxBefore bounds how far back one can go from run to run.
const maxBefore = 32

// goFrom shows a run that the one shown names.
func (c *console) goFrom(to sources.Run) {
	c.trail = append(c.trail, c.selected.run)
	c.trail = c.trail[max(0, len(c.trail)-maxBefore):]
	c.show(to)
}

// back shows the run that was shown before another was opened from it.
func (c *console) back(s tui.Shell) tea.Cmd {
	n := len(c.trail)
	if n == 0 {
		s.Note("no other run was opened from here")
		return nil
	}
	run := c.trail[n-1]
	c.trail = c.trail[:n-1]
	c.show(run)
	return nil
}

// Console makes the screens, the list of runs first, and the keys that work in all of
// them.
func Console(o Options) ([]tui.Screen, []tui.Binding) {
	if o.Context == nil {
		o.Context = context.Background()
	}
	if o.Location == nil {
		o.Location = time.Local
	}
	c := &console{Options: o, following: true}
	c.startFilter()
	return screens(c), c.bindings()
}

func (c *console) bindings() []tui.Binding {
	b := []tui.Binding{
		{Action: "runs.query", Keys: []string{"/"}, Help: "choose which runs are listed", Short: "filter", Hints: []string{"runs", "run", "triage"}, Do: c.ask},
		{Action: "runs.refresh", Keys: []string{"ctrl+r"}, Help: "read the list again now",
			Do: func(s tui.Shell) tea.Cmd { c.Controls.Refresh(); s.Note("refreshing"); return nil }},
		{Action: "replay.open", Keys: []string{"t"}, Help: "the time machine: the selected run as of any event", Short: "time machine", Hints: []string{"runs", "run"}, Do: c.openReplay},
		{Action: "replay.verify_selected", Keys: []string{"r"}, Help: "verify the marked runs, or the selected one, against today's code", Short: "verify", Hints: []string{"run"},
			Do: func(s tui.Shell) tea.Cmd { c.verify(s, false); return nil }},
	}
	if c.acts() {
		b = append(b, c.mutationBindings()...)
		b = append(b, tui.Binding{Action: "run.cancel", Keys: []string{"x"}, Help: "cancel the marked runs, or the selected one (asks first)",
			Short: "cancel", Hints: []string{"runs", "run", "timeline"}, Mutates: true, Do: c.cancel})
	}
	return append(b, tui.Binding{Action: "runs.pause", Keys: []string{"p"}, Help: "pause or resume refreshing", Short: "pause", Do: c.pause})
}

func (c *console) ask(s tui.Shell) tea.Cmd {
	s.Ask(tui.Prompt{
		Label: "/", Value: c.runs.Query,
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

func (c *console) pause(s tui.Shell) tea.Cmd {
	paused := !c.runs.Paused
	c.Controls.SetPaused(paused)
	if paused {
		s.Note("paused: what is shown does not change")
	} else {
		s.Note("resumed")
	}
	return nil
}

// cancel asks before it acts. The run is the one that was selected when it asked,
// whatever the list does meanwhile.
func (c *console) cancel(s tui.Shell) tea.Cmd {
	r := c.selected.run
	switch {
	case c.selected.ok && c.refused(s, "cancel", Target{r.WorkflowID, r.RunID}):
		return nil
	case len(c.marks.runs) > 0:
		c.cancelMarked(s)
		return nil
	case !c.selected.ok:
		s.Note("no run is selected")
		return nil
	case r.Type == sources.RunWorkflow && c.Actions != nil:
		return c.askStop(s, r)
	case !r.Open():
		s.Note(nameOf(r) + " has already closed")
		return nil
	}
	if r.RunID == "" {
		return c.propose(s, "cancel", Target{WorkflowID: r.WorkflowID}, func(_ context.Context, of Target) (Prepared, error) {
			return Prepared{Title: "Cancel this run?", Lines: []string{"workflow  " + of.WorkflowID, "run       " + of.RunID}, Yes: "cancel the run",
				Do: func(ctx context.Context) (string, sources.Run, error) {
					return "asked " + of.WorkflowID + " to cancel", sources.Run{}, c.Actions.Cancel(ctx, of.WorkflowID, of.RunID)
				}}, nil
		})
	}
	s.Confirm(tui.Question{
		Title: "Cancel this run?",
		Lines: []string{"workflow  " + text.Safe(r.WorkflowID, " "), "run       " + text.Safe(r.RunID, " ")},
		Yes:   "cancel the run",
		Do:    func() tea.Cmd { return c.doCancel(r.WorkflowID, r.RunID) },
	})
	return nil
}

// acts tells whether there are keys for what is done to runs.
func (c *console) acts() bool { return c.Actions != nil || c.Refuse != nil }

// refused says why something cannot be done to a run, where it cannot.
func (c *console) refused(s tui.Shell, what string, of Target) bool {
	if c.Refuse == nil {
		return false
	}
	s.Note(c.Refuse(what, of))
	return true
}

func (c *console) doCancel(workflowID, runID string) tea.Cmd {
	return func() tea.Msg {
		ctx, stop := context.WithTimeout(c.Context, actionTimeout)
		defer stop()
		if err := c.Actions.Cancel(ctx, workflowID, runID); err != nil {
			return tui.Failed(fmt.Errorf("cancel %s: %w", workflowID, err))
		}
		return tui.Noted("asked " + workflowID + " to cancel")
	}
}
