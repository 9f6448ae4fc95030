package console

import (
	"acescope/engine/ace"
	"acescope/sources/runners"
	"acescope/sources/runs"
	"acescope/sources/sessions"
	"acescope/tui"
	"context"
	"errors"
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"
)

// Point is where in a run: an event, or the begin of a phase. One of the two is given.
type Point struct {
	Event int64
	Phase ace.Phase
}

// Field is a field of an input and its new value.
type Field struct{ Name, Value string }

// forkKey forks, on every screen.
const forkKey = "f"

// MutationBindings are the keys for what is done to runs.
func (a *Actor) MutationBindings() []tui.Binding {
	return []tui.Binding{{Action: "run.fork", Keys: []string{forkKey}, Help: "fork the selected run: run it again from a point, with something changed (asks first)",
		Short: "fork", Hints: []string{"runs", "lineage"}, Mutates: true, Do: func(s tui.Shell) tea.Cmd { return a.askFork(s, "") }}}
}

// ForkAt is the key of a screen that knows the point under its cursor.
func (a *Actor) ForkAt(view string, point func() string) []tui.Binding {
	if !a.Acts() {
		return nil
	}
	return []tui.Binding{{Action: view + ".fork", Keys: []string{forkKey}, Help: "fork the run at what the cursor is on, with something changed (asks first)",
		Short: "fork", Mutates: true, Do: func(s tui.Shell) tea.Cmd { return a.askFork(s, point()) }}}
}

// ForkOf is the key of a screen whose cursor stands on a run that is not the selected one:
// it becomes that. at gives the point too, "" for the usual.
func (a *Actor) ForkOf(view string, at func() (runs.Run, string, bool)) tui.Binding {
	return tui.Binding{Action: view + ".fork", Keys: []string{forkKey}, Help: "fork the run under the cursor, with something changed (asks first)", Mutates: true,
		Do: func(s tui.Shell) tea.Cmd {
			r, point, ok := at()
			if !ok {
				s.Note("there is no run here")
				return nil
			}
			a.nav.Show(r)
			return a.askFork(s, point)
		}}
}

// MutationCommands are the commands for what is done to runs.
func (a *Actor) MutationCommands() []tui.Command {
	if !a.Acts() {
		return nil
	}
	return []tui.Command{
		{Name: "fork", Args: "[at=EVENT|phase=PHASE] [model=M] [prompt=\"…\"] …", Help: "run it again from a point, with something changed", Mutates: true,
			Complete: a.completeForkArgs, Do: func(s tui.Shell, args string) tea.Cmd {
				if args == "" {
					return a.askFork(s, "")
				}
				return a.fork(s, args)
			}},
		{Name: "reset", Args: "at=EVENT|phase=PHASE REASON", Help: "let the run itself begin again at a point, with the same input", Mutates: true,
			Complete: completePoint, Do: a.reset},
		{Name: "terminate", Args: "REASON", Help: "end the run at once, unasked", Mutates: true, Do: a.terminate},
		{Name: "signal", Args: "NAME [JSON]", Help: "send the run a signal", Mutates: true, Do: a.signal},
	}
}

// askFork opens the line in which a fork is described. It begins with the point: the one
// under the cursor, else where the run failed, else its first phase.
func (a *Actor) askFork(s tui.Shell, point string) tea.Cmd {
	if of, ok := a.target(s); !ok || a.refused(s, "fork", of) {
		return nil
	}
	if !a.forkable(s) {
		return nil
	}
	name := NameOf(a.nav.Selected.Run)
	if point == "" {
		point = "phase=" + string(a.usualPhase())
	}
	s.Ask(tui.Prompt{Label: "fork", Value: point + " ", Hint: "phase=reflector model=other   or   at=16 prompt=\"…\" playbook=best.txt",
		Preview: func(line string) string { return name + ": " + PreviewFork(line) }, Complete: a.CompleteFork, Done: func(line string) tea.Cmd { return a.fork(s, line) }})
	return nil
}

// forkable tells whether the selected run is of a type that can be forked, and says it where
// it is not.
func (a *Actor) forkable(s tui.Shell) bool {
	switch a.nav.Selected.Run.Type {
	case ace.ExperimentWorkflow:
		s.Note("an experiment cannot be forked; fork a run of one of its tasks")
	case sessions.SessionWorkflow:
		s.Note("a session of an agent cannot be forked; :session start begins another")
	case runners.RunWorkflow:
		s.Note("a run of a blueprint cannot be forked; acescope agent start begins another")
	default:
		return true
	}
	return false
}

func (a *Actor) usualPhase() ace.Phase {
	if r := a.nav.Selected.Run; (r.Exit == ace.Failed || r.Exit == ace.Timeout) && r.Phase.Activity() != "" {
		return r.Phase
	}
	return ace.PhaseGenerator
}

func (a *Actor) fork(s tui.Shell, line string) tea.Cmd {
	of, ok := a.target(s)
	if !ok || a.refused(s, "fork", of) || !a.forkable(s) {
		return nil
	}
	at, fields, err := ParseFork(line)
	if err != nil {
		return Failed("fork", err)
	}
	return a.Propose(s, "fork", of, func(ctx context.Context, of Target) (Prepared, error) {
		return a.Actions.PrepareFork(ctx, of, at, fields)
	})
}

func Failed(what string, err error) tea.Cmd {
	return func() tea.Msg { return tui.Failed(fmt.Errorf("%s: %w", what, err)) }
}

func (a *Actor) reset(s tui.Shell, args string) tea.Cmd {
	of, ok := a.target(s)
	if !ok || a.refused(s, "reset", of) {
		return nil
	}
	first, reason, _ := strings.Cut(args, " ")
	at, rest, err := ParseFork(first)
	if len(rest) > 0 {
		err = fmt.Errorf("%q: first the point (at=EVENT or phase=PHASE), then the reason", first)
	}
	if reason = strings.TrimSpace(reason); err == nil && reason == "" {
		err = errNoReason
	}
	if err != nil {
		return Failed("reset", err)
	}
	return a.Propose(s, "reset", of, func(ctx context.Context, of Target) (Prepared, error) {
		return a.Actions.PrepareReset(ctx, of, at, reason)
	})
}

var errNoReason = errors.New("give a reason; the history keeps it")

func (a *Actor) terminate(s tui.Shell, reason string) tea.Cmd {
	if reason == "" && a.refuse == nil {
		return Failed("terminate", errNoReason)
	}
	return a.on(s, "terminate", func(_ context.Context, of Target) (Prepared, error) {
		return a.Actions.PrepareTerminate(of, reason)
	})
}

func (a *Actor) signal(s tui.Shell, args string) tea.Cmd {
	name, argument, _ := strings.Cut(args, " ")
	if name == "" && a.refuse == nil {
		return Failed("signal", errors.New("give the signal's name, and its argument as JSON"))
	}
	return a.on(s, "signal", func(_ context.Context, of Target) (Prepared, error) {
		return a.Actions.PrepareSignal(of, name, strings.TrimSpace(argument))
	})
}

// target returns the selected run, and notes if there is none.
func (a *Actor) target(s tui.Shell) (Target, bool) {
	if !a.nav.Selected.Ok {
		s.Note("no run is selected")
		return Target{}, false
	}
	return Target{a.nav.Selected.Run.WorkflowID, a.nav.Selected.Run.RunID}, true
}
