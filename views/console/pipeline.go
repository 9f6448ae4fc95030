package console

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"acescope/engine/ace"
	"acescope/sources/runs"
	"acescope/tui"
	"acescope/tui/text"
)

// ActionTimeout bounds one action on one run, and what is read to prepare it.
const ActionTimeout = 10 * time.Second

// Pipeline performs actions for the user: it prepares an action, asks the user to confirm it, performs it,
// notes the result and refreshes the list. An action on several runs shows its progress as work that the user
// can stop.
type Pipeline struct {
	Context  context.Context
	controls Controls
	actions  RunActions // nil for a console that only reads
}

// Started is the message that an action started a run.
type Started struct{ Run runs.Run }

// preparer prepares an action on one run.
type preparer = func(context.Context, runs.ID) (runs.Prepared, error)

// Doing returns a [runs.Prepared].Do for an action that starts no run.
func Doing(done string, do func(context.Context) error) func(context.Context) (string, runs.Run, error) {
	return func(ctx context.Context) (string, runs.Run, error) { return done, runs.Run{}, do(ctx) }
}

// Propose prepares an action on one run in the background, then asks the user to confirm it. The user can
// stop the preparation.
func (p *Pipeline) Propose(s tui.Shell, verb, name string, of runs.ID, prepare preparer) tea.Cmd {
	ctx, stop := context.WithTimeout(p.Context, ActionTimeout)
	w := &tui.Waiting{Title: capital(verb) + " " + name + "?", Leave: stop,
		Lines: []string{"workflow  " + text.Safe(of.WorkflowID, " "),
			"run       " + text.Safe(cmp.Or(of.RunID, "the newest, being looked up"), " ")}}
	s.Wait(w)
	return func() tea.Msg {
		defer stop()
		a, err := p.prepared(ctx, of, prepare)
		if err != nil {
			return tui.Settled(w, tui.Failed(fmt.Errorf("%s: %w", verb, err)))
		}
		return tui.Settled(w, tui.Asked(p.question(verb, a)))
	}
}

func capital(verb string) string { return strings.ToUpper(verb[:1]) + verb[1:] }

func (p *Pipeline) prepared(ctx context.Context, of runs.ID, prepare preparer) (runs.Prepared, error) {
	of, err := p.frozen(ctx, of)
	if err != nil {
		return runs.Prepared{}, err
	}
	return prepare(ctx, of)
}

// frozen sets the run ID of a target to that of the newest run if it is empty, so that a confirmed action
// does not apply to a later run.
func (p *Pipeline) frozen(ctx context.Context, of runs.ID) (runs.ID, error) {
	if of.RunID != "" {
		return of, nil
	}
	return p.actions.Freeze(ctx, of.WorkflowID)
}

func (p *Pipeline) Confirm(s tui.Shell, verb string, a runs.Prepared) { s.Confirm(p.question(verb, a)) }

func (p *Pipeline) question(verb string, a runs.Prepared) tui.Question {
	return tui.Question{Title: a.Title, Lines: safeLines(a.Lines), Yes: a.Yes,
		Do: func() tea.Cmd { return p.Perform(verb, a) }}
}

func safeLines(lines []string) []string {
	out := make([]string, len(lines))
	for i, l := range lines {
		out[i] = text.Safe(l, " ")
	}
	return out
}

// Perform does a prepared action, notes the result and refreshes.
func (p *Pipeline) Perform(verb string, a runs.Prepared) tea.Cmd {
	return func() tea.Msg {
		ctx, stop := context.WithTimeout(p.Context, ActionTimeout)
		defer stop()
		done, started, err := a.Do(ctx)
		return p.result(verb, done, started, err)
	}
}

// result refreshes and returns the message about an action.
func (p *Pipeline) result(verb, done string, started runs.Run, err error) tea.Msg {
	p.controls.Refresh()
	if err != nil {
		return tui.Failed(fmt.Errorf("%s: %w", verb, err))
	}
	if started.WorkflowID == "" {
		return tui.Noted(done)
	}
	return tea.BatchMsg{func() tea.Msg { return tui.Noted(done) }, func() tea.Msg { return Started{started} }}
}

// Act performs an action that needs no confirmation.
func (p *Pipeline) Act(verb string, do func(context.Context) (done string, err error)) tea.Cmd {
	return p.Perform(verb, runs.Prepared{Do: func(ctx context.Context) (string, runs.Run, error) {
		done, err := do(ctx)
		return done, runs.Run{}, err
	}})
}

// ConfirmEach asks to confirm an action on several runs, then prepares and performs it on each in turn. of is
// the number of marked runs.
func (p *Pipeline) ConfirmEach(s tui.Shell, verb string, open []runs.Run, of int, prepare preparer) {
	lines := []string{fmt.Sprintf("open: %d of %s", len(open), ace.Count(of, "marked run")), ""}
	for _, r := range open[:min(len(open), shownMarks)] {
		lines = append(lines, text.Safe(NameOf(r)+"  run "+r.RunID, " "))
	}
	if more := len(open) - shownMarks; more > 0 {
		lines = append(lines, "and "+ace.Number(more)+" more")
	}
	s.Confirm(tui.Question{Title: capital(verb) + " " + ace.Count(len(open), "run") + "?", Lines: lines,
		Yes: verb + " them", Do: func() tea.Cmd {
			return func() tea.Msg {
				done, err := p.each(verb, open, prepare)
				return p.result(verb, done, runs.Run{}, err)
			}
		}})
}

// each acts on runs one after another until the user stops it. The error is that of the first run that
// failed.
func (p *Pipeline) each(verb string, list []runs.Run, prepare preparer) (string, error) {
	working, progress, end := p.controls.StartWork(p.Context, verb+" "+ace.Count(len(list), "run"))
	defer end()
	var failed error
	done := 0
	for i, r := range list {
		if err := p.one(working, r.ID(), prepare); err == nil {
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
		return "", fmt.Errorf("sent to %d of %s; %w", done, ace.Count(len(list), "run"), failed)
	}
	return "sent " + verb + " to " + ace.Count(done, "run"), nil
}

func (p *Pipeline) one(ctx context.Context, of runs.ID, prepare preparer) error {
	ctx, stop := context.WithTimeout(ctx, ActionTimeout)
	defer stop()
	a, err := p.prepared(ctx, of, prepare)
	if err != nil {
		return err
	}
	_, _, err = a.Do(ctx)
	return err
}

// Failed returns a command that reports the error of an action.
func Failed(what string, err error) tea.Cmd {
	return func() tea.Msg { return tui.Failed(fmt.Errorf("%s: %w", what, err)) }
}
