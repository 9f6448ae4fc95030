package console

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"acescope/engine/ace"
	"acescope/sources/histories"
	"acescope/sources/runners"
	"acescope/sources/runs"
	"acescope/tui"
	"acescope/tui/text"
	"acescope/tui/widget"
)

// ActionTimeout bounds one action on one run, and what is read to prepare it.
const ActionTimeout = 10 * time.Second

// Actor changes runs for the user. It prepares an action, asks the user to confirm it, performs it, notes the result
// and refreshes the list. An action on several runs shows its progress as work that the user can stop.
type Actor struct {
	Context context.Context
	Actions Actions // nil for a console that only reads
	// Detail is the selected run as far as it is read. It may be nil.
	Detail Value[*histories.Detail]

	nav      *Navigation
	listing  *Listing
	controls Controls
	refuse   func(verb string, of runs.ID) string
}

// Started is the message that an action started a run.
type Started struct{ Run runs.Run }

// Acts reports whether the console has keys for actions.
func (a *Actor) Acts() bool { return a.Actions != nil || a.refuse != nil }

// refused notes why an action is impossible here, if it is.
func (a *Actor) refused(s tui.Shell, verb string, of runs.ID) bool {
	if a.refuse == nil {
		return false
	}
	s.Note(a.refuse(verb, of))
	return true
}

// preparer prepares an action on one run.
type preparer = func(context.Context, runs.ID) (runs.Prepared, error)

// preparing returns a preparer of a change.
func (a *Actor) preparing(c runs.Change) preparer {
	return func(ctx context.Context, of runs.ID) (runs.Prepared, error) { return a.Actions.Prepare(ctx, of, c) }
}

// Propose prepares an action on one run in the background, then asks the user to confirm it. The user can leave before.
func (a *Actor) Propose(s tui.Shell, verb string, of runs.ID, prepare preparer) tea.Cmd {
	ctx, stop := context.WithTimeout(a.Context, ActionTimeout)
	w := &tui.Waiting{Title: capital(verb) + " " + NameOf(a.nav.Selected.Run) + "?", Leave: stop,
		Lines: []string{"workflow  " + text.Safe(of.WorkflowID, " "),
			"run       " + text.Safe(cmp.Or(of.RunID, "the newest, being looked up"), " ")}}
	s.Wait(w)
	return func() tea.Msg {
		defer stop()
		return tui.Settled(w, a.prepared(ctx, verb, of, prepare))
	}
}

func capital(verb string) string { return strings.ToUpper(verb[:1]) + verb[1:] }

// prepared returns the message that asks the question or reports an error.
func (a *Actor) prepared(ctx context.Context, verb string, of runs.ID, prepare preparer) tea.Msg {
	var p runs.Prepared
	of, err := a.frozen(ctx, of)
	if err == nil {
		p, err = prepare(ctx, of)
	}
	if err != nil {
		return tui.Failed(fmt.Errorf("%s: %w", verb, err))
	}
	return tui.Asked(a.question(verb, p))
}

func (a *Actor) question(verb string, p runs.Prepared) tui.Question {
	lines := make([]string, len(p.Lines))
	for i, l := range p.Lines {
		lines[i] = text.Safe(l, " ")
	}
	return tui.Question{Title: p.Title, Lines: lines, Yes: p.Yes, Do: func() tea.Cmd { return a.Perform(verb, p) }}
}

// frozen sets the run ID of a target to that of the newest run if it is empty, so that a confirmed action does not
// apply to a later run.
func (a *Actor) frozen(ctx context.Context, of runs.ID) (runs.ID, error) {
	if of.RunID != "" {
		return of, nil
	}
	return a.Actions.Freeze(ctx, of.WorkflowID)
}

// Perform does a prepared action, notes the result and refreshes.
func (a *Actor) Perform(verb string, p runs.Prepared) tea.Cmd {
	return func() tea.Msg {
		ctx, stop := context.WithTimeout(a.Context, ActionTimeout)
		defer stop()
		return a.result(verb, func() (string, runs.Run, error) { return p.Do(ctx) })
	}
}

func (a *Actor) result(verb string, do func() (string, runs.Run, error)) tea.Msg {
	done, started, err := do()
	a.controls.Refresh()
	if err != nil {
		return tui.Failed(fmt.Errorf("%s: %w", verb, err))
	}
	if started.WorkflowID == "" {
		return tui.Noted(done)
	}
	return tea.BatchMsg{func() tea.Msg { return tui.Noted(done) }, func() tea.Msg { return Started{started} }}
}

// Act performs an action that needs no confirmation.
func (a *Actor) Act(verb string, do func(context.Context) (done string, err error)) tea.Cmd {
	return a.Perform(verb, runs.Prepared{Do: func(ctx context.Context) (string, runs.Run, error) {
		done, err := do(ctx)
		return done, runs.Run{}, err
	}})
}

// ask asks to confirm an action on several runs, then prepares and performs it on each in turn.
func (a *Actor) ask(s tui.Shell, verb string, open []runs.Run, of int, prepare preparer) tea.Cmd {
	lines := []string{fmt.Sprintf("open: %d of %s", len(open), widget.Counted(of, "marked run")), ""}
	for _, r := range open[:min(len(open), shownMarks)] {
		lines = append(lines, text.Safe(NameOf(r)+"  run "+r.RunID, " "))
	}
	if more := len(open) - shownMarks; more > 0 {
		lines = append(lines, "and "+text.Count(int64(more))+" more")
	}
	s.Confirm(tui.Question{Title: capital(verb) + " " + widget.Counted(len(open), "run") + "?", Lines: lines,
		Yes: verb + " them", Do: func() tea.Cmd {
			return func() tea.Msg {
				return a.result(verb, func() (string, runs.Run, error) {
					done, err := a.each(verb, open, prepare)
					return done, runs.Run{}, err
				})
			}
		}})
	return nil
}

// each acts on runs one after another until the user stops it. The error is that of the first run that failed.
func (a *Actor) each(verb string, list []runs.Run, prepare preparer) (string, error) {
	working, progress, end := a.controls.StartWork(a.Context, verb+" "+widget.Counted(len(list), "run"))
	defer end()
	var failed error
	done := 0
	one := func(r runs.Run) error {
		ctx, stop := context.WithTimeout(working, ActionTimeout)
		defer stop()
		of, err := a.frozen(ctx, r.ID())
		if err != nil {
			return err
		}
		p, err := prepare(ctx, of)
		if err != nil {
			return err
		}
		_, _, err = p.Do(ctx)
		return err
	}
	for i, r := range list {
		if err := one(r); err == nil {
			done++
		} else if failed == nil && working.Err() == nil {
			failed = fmt.Errorf("%s: %w", r.WorkflowID, err)
		}
		progress(int64(i+1), int64(len(list)))
		if working.Err() != nil {
			failed = cmp.Or(failed, errors.New("stopped"))
			break
		}
	}
	if failed != nil {
		return "", fmt.Errorf("sent to %d of %s; %w", done, widget.Counted(len(list), "run"), failed)
	}
	return "sent " + verb + " to " + widget.Counted(done, "run"), nil
}

// on acts on the marked runs that are open, or else on the selected run.
func (a *Actor) on(s tui.Shell, verb string, prepare preparer) tea.Cmd {
	r := a.nav.Selected.Run
	of := r.ID()
	switch {
	case a.refused(s, verb, of):
		return nil
	case len(a.listing.Marks.Runs) > 0:
		return a.onMarked(s, verb, prepare)
	case !a.selectedOpen(s):
		return nil
	}
	return a.Propose(s, verb, of, prepare)
}

// selectedOpen reports whether the selected run is open. If not, it notes why.
func (a *Actor) selectedOpen(s tui.Shell) bool {
	_, ok := a.target(s)
	if ok && !a.nav.Selected.Run.Open() {
		s.Note(NameOf(a.nav.Selected.Run) + " has already closed")
		ok = false
	}
	return ok
}

func (a *Actor) onMarked(s tui.Shell, verb string, prepare preparer) tea.Cmd {
	m := &a.listing.Marks
	m.refresh(a.listing.Runs.Rows)
	var open []runs.Run
	for _, r := range m.Runs {
		if r.Open() {
			open = append(open, r)
		}
	}
	if len(open) == 0 {
		s.Note(fmt.Sprintf("all %s have already closed", widget.Counted(len(m.Runs), "marked run")))
		return nil
	}
	return a.ask(s, verb, open, len(m.Runs), prepare)
}

// Cancel asks, then cancels the marked runs or the selected one.
func (a *Actor) Cancel(s tui.Shell) tea.Cmd {
	if a.refuse == nil && len(a.listing.Marks.Runs) > 0 {
		return a.onMarked(s, "cancel", a.prepareCancel)
	}
	return a.CancelSelected(s)
}

// CancelSelected asks, then cancels the selected run, whatever is marked. A blueprint run is stopped.
func (a *Actor) CancelSelected(s tui.Shell) tea.Cmd {
	r := a.nav.Selected.Run
	of := r.ID()
	switch _, ok := a.target(s); {
	case !ok, a.refused(s, "cancel", of):
		return nil
	case r.Type == runners.RunWorkflow && a.Actions != nil:
		return a.AskStop(s, r)
	case !a.selectedOpen(s):
		return nil
	case r.RunID == "":
		return a.Propose(s, "cancel", of, a.prepareCancel)
	}
	p, _ := a.prepareCancel(a.Context, of)
	s.Confirm(a.question("cancel "+of.WorkflowID, p))
	return nil
}

func (a *Actor) prepareCancel(_ context.Context, of runs.ID) (runs.Prepared, error) {
	return runs.Prepared{
		Title: "Cancel this run?", Yes: "cancel the run",
		Lines: []string{"workflow  " + of.WorkflowID, "run       " + of.RunID},
		Do: func(ctx context.Context) (string, runs.Run, error) {
			return "asked " + of.WorkflowID + " to cancel", runs.Run{}, a.Actions.Cancel(ctx, of.WorkflowID, of.RunID)
		}}, nil
}

// AskStop asks, then stops a blueprint run.
func (a *Actor) AskStop(s tui.Shell, r runs.Run) tea.Cmd {
	if a.refused(s, "cancel", r.ID()) {
		return nil
	}
	if !r.Open() {
		s.Note(NameOf(r) + " has already closed")
		return nil
	}
	id := runners.BlueprintRunID(r.WorkflowID)
	lines := []string{"run       " + id}
	if r.Blueprint != "" {
		lines = append(lines, "blueprint "+r.Blueprint)
	}
	if r.Runner != "" {
		lines = append(lines, "runner    "+r.Runner)
	}
	lines = append(lines, "a program gets SIGTERM and after 5 s SIGKILL; an agent ends its turn")
	s.Confirm(a.question("stop "+id, runs.Prepared{Title: "Stop this run?", Lines: lines, Yes: "stop the run",
		Do: func(ctx context.Context) (string, runs.Run, error) {
			return "asked run " + id + " to stop", runs.Run{}, a.Actions.StopRun(ctx, id)
		}}))
	return nil
}

// Compare opens the comparison of two runs.
func (a *Actor) Compare(s tui.Shell, one, other runs.Run) {
	ref := func(r runs.Run) histories.DiffRef {
		return histories.DiffRef{WorkflowID: r.WorkflowID, RunID: r.RunID, TaskID: r.TaskID}
	}
	a.controls.Compare(histories.DiffAsk{A: ref(one), B: ref(other)})
	s.Open("diff")
}

// CompareMarked compares the two marked runs, or the marked one and the selected one. The run that started first is A.
func (a *Actor) CompareMarked(s tui.Shell) {
	m := &a.listing.Marks
	m.refresh(a.listing.Runs.Rows)
	pair := slices.Clone(m.Runs)
	if selected := &a.nav.Selected; len(pair) == 1 && selected.Ok && pair[0].ID() != selected.Run.ID() {
		pair = append(pair, selected.Run)
	}
	if len(pair) != 2 {
		s.Note("mark two runs with space to compare them")
		return
	}
	if pair[1].Start.Before(pair[0].Start) {
		slices.Reverse(pair)
	}
	a.Compare(s, pair[0], pair[1])
}

// CompareOriginal compares a fork with the run that it was forked from.
func (a *Actor) CompareOriginal(s tui.Shell, t *histories.LineageTree, n *histories.LineageNode) {
	switch f := n.Run.Fork; {
	case n.Original >= 0:
		a.Compare(s, t.Nodes[n.Original].Run, n.Run)
	case f != nil:
		a.Compare(s, runs.Run{WorkflowID: f.WorkflowID, RunID: f.RunID, TaskID: ace.TaskIDOf(f.WorkflowID)}, n.Run)
	default:
		s.Note(NameOf(n.Run) + " was not forked from another run; select a fork, or mark two runs with space")
	}
}

// Verify verifies the marked runs, or the selected one in the time machine.
func (a *Actor) Verify(s tui.Shell, strict bool) {
	if len(a.listing.Marks.Runs) == 0 {
		if a.nav.OpenTimeMachine(s) {
			a.controls.VerifyRun(strict)
		}
		return
	}
	a.controls.VerifyRuns(histories.VerifyRequest{Runs: slices.Clone(a.listing.Marks.Runs), Strict: strict})
	s.Open("verified")
}

// VerifyAll verifies all runs that match the list's query.
func (a *Actor) VerifyAll(s tui.Shell, strict bool) {
	a.controls.VerifyRuns(histories.VerifyRequest{Query: a.listing.Runs.Query, Strict: strict})
	s.Open("verified")
}
