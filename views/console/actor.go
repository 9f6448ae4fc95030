package console

import (
	"context"
	"errors"
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"

	"acescope/engine/ace"
	"acescope/engine/tasks/run"
	"acescope/sources/runs"
	"acescope/tui"
)

// Actor changes the selected run, or the marked ones.
type Actor struct {
	pipeline *Pipeline
	actions  RunActions    // nil for a console that only reads
	runners  RunnerActions // of blueprint runs
	nav      *Navigation
	listing  *Listing
	refuse   func(verb string, of runs.ID) string
}

// Acts reports whether the console has keys for actions. They may refuse.
func (a *Actor) Acts() bool { return a.Changes() || a.refuse != nil }

// Changes reports whether the console can change runs.
func (a *Actor) Changes() bool { return a.actions != nil }

// refused reports whether an action is impossible here, and notes why.
func (a *Actor) refused(s tui.Shell, verb string, of runs.ID) bool {
	if a.refuse == nil {
		return false
	}
	s.Note(a.refuse(verb, of))
	return true
}

// hasMarks reports whether actions apply to marked runs.
func (a *Actor) hasMarks() bool {
	return a.refuse == nil && a.listing.ShowsMarks && len(a.listing.Marks.Runs) > 0
}

func (a *Actor) preparing(c runs.Change) preparer {
	return func(ctx context.Context, of runs.ID) (runs.Prepared, error) {
		return a.actions.Prepare(ctx, of, c)
	}
}

// Propose prepares an action on the selected run in the background, then asks the user to confirm it.
func (a *Actor) Propose(s tui.Shell, verb string, of runs.ID, prepare preparer) tea.Cmd {
	return a.pipeline.Propose(s, verb, NameOf(a.nav.Selected.Run), of, prepare)
}

// on acts on the marked runs that are open. If no run is marked, it acts on the selected run.
func (a *Actor) on(s tui.Shell, verb string, prepare preparer) tea.Cmd {
	if a.hasMarks() {
		a.onMarked(s, verb, prepare)
		return nil
	}
	r, ok := a.nav.Target(s)
	if a.refused(s, verb, r.ID()) || !ok || !noteClosed(s, r) {
		return nil
	}
	return a.Propose(s, verb, r.ID(), prepare)
}

// noteClosed reports whether a run is open. If not, it notes that the run is closed.
func noteClosed(s tui.Shell, r runs.Run) (open bool) {
	if !r.Open() {
		s.Note(NameOf(r) + " has already closed")
	}
	return r.Open()
}

func (a *Actor) onMarked(s tui.Shell, verb string, prepare preparer) {
	marked := a.listing.Marked()
	var open []runs.Run
	for _, r := range marked {
		if r.Open() {
			open = append(open, r)
		}
	}
	if len(open) == 0 {
		s.Note(fmt.Sprintf("all %s have already closed", ace.Count(len(marked), "marked run")))
		return
	}
	a.pipeline.ConfirmEach(s, verb, open, len(marked), prepare)
}

// Cancel asks, then cancels the marked runs or the selected one.
func (a *Actor) Cancel(s tui.Shell) tea.Cmd {
	if a.hasMarks() {
		a.onMarked(s, "cancel", a.prepareCancel)
		return nil
	}
	return a.CancelSelected(s)
}

// CancelSelected asks, then cancels the selected run and ignores marks. A blueprint run is stopped.
func (a *Actor) CancelSelected(s tui.Shell) tea.Cmd {
	r, ok := a.nav.Target(s)
	of := r.ID()
	switch {
	case !ok, a.refused(s, "cancel", of):
		return nil
	case r.Type == run.Workflow && a.runners != nil:
		a.AskStop(s, r)
		return nil
	case !noteClosed(s, r):
		return nil
	case r.RunID == "":
		return a.Propose(s, "cancel", of, a.prepareCancel)
	}
	p, _ := a.prepareCancel(a.pipeline.Context, of)
	a.pipeline.Confirm(s, "cancel "+of.WorkflowID, p)
	return nil
}

func (a *Actor) prepareCancel(_ context.Context, of runs.ID) (runs.Prepared, error) {
	return runs.Prepared{
		Title: "Cancel this run?", Yes: "cancel the run",
		Lines: []string{"workflow  " + of.WorkflowID, "run       " + of.RunID},
		Do: Doing("asked "+of.WorkflowID+" to cancel",
			func(ctx context.Context) error { return a.actions.Cancel(ctx, of.WorkflowID, of.RunID) }),
	}, nil
}

// AskStop asks, then stops a blueprint run.
func (a *Actor) AskStop(s tui.Shell, r runs.Run) {
	if a.refused(s, "cancel", r.ID()) || !noteClosed(s, r) {
		return
	}
	id := run.IDOf(r.WorkflowID)
	lines := []string{"run       " + id}
	if r.Blueprint != "" {
		lines = append(lines, "blueprint "+r.Blueprint)
	}
	if r.Runner != "" {
		lines = append(lines, "runner    "+r.Runner)
	}
	lines = append(lines, "a program gets SIGTERM and after 5 s SIGKILL; an agent ends its turn")
	a.pipeline.Confirm(s, "stop "+id, runs.Prepared{Title: "Stop this run?", Lines: lines,
		Yes: "stop the run",
		Do: Doing("asked run "+id+" to stop", func(ctx context.Context) error {
			return a.runners.StopRun(ctx, id)
		})})
}

func (a *Actor) Commands() []tui.Command {
	return []tui.Command{
		{Name: "reset", Args: "at=EVENT|phase=PHASE REASON", Mutates: true, Complete: completePoint,
			Do: a.reset, Help: "reset the run to an event or phase, with the same input"},
		{Name: "terminate", Args: "REASON", Mutates: true, Do: a.terminate,
			Help: "terminate the run immediately, without cleanup"},
		{Name: "signal", Args: "NAME [JSON]", Help: "send the run a signal", Mutates: true, Do: a.signal},
	}
}

func (a *Actor) reset(s tui.Shell, args string) tea.Cmd {
	r, ok := a.nav.Target(s)
	if !ok || a.refused(s, "reset", r.ID()) {
		return nil
	}
	first, reason, _ := strings.Cut(args, " ")
	at, rest, err := ParseFork(first)
	if len(rest) > 0 {
		err = fmt.Errorf("%q: give the point (at=EVENT or phase=PHASE) first, then the reason", first)
	}
	if reason = strings.TrimSpace(reason); err == nil && reason == "" {
		err = errNoReason
	}
	if err != nil {
		return Failed("reset", err)
	}
	return a.Propose(s, "reset", r.ID(), a.preparing(runs.Change{Verb: "reset", At: at, Reason: reason}))
}

var errNoReason = errors.New("missing reason; the history keeps it")

func (a *Actor) terminate(s tui.Shell, reason string) tea.Cmd {
	if reason == "" && a.refuse == nil {
		return Failed("terminate", errNoReason)
	}
	return a.on(s, "terminate", a.preparing(runs.Change{Verb: "terminate", Reason: reason}))
}

func (a *Actor) signal(s tui.Shell, args string) tea.Cmd {
	name, argument, _ := strings.Cut(args, " ")
	if name == "" && a.refuse == nil {
		return Failed("signal", errors.New("missing signal name; give the name, then the argument as JSON"))
	}
	c := runs.Change{Verb: "signal", Signal: name, Argument: strings.TrimSpace(argument)}
	return a.on(s, "signal", a.preparing(c))
}
