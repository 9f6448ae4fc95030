package views

import (
	"context"
	"fmt"

	tea "charm.land/bubbletea/v2"

	"acescope/sources"
	"acescope/theme"
	"acescope/tui"
	"acescope/tui/text"
)

// RunnerActions are what a person may do with runs of blueprints and with runners. They do
// IO and are called inside commands.
type RunnerActions interface {
	// StopRun asks a run of a blueprint to end; it does not wait for that.
	StopRun(ctx context.Context, id string) error
	// DrainRunner has a runner take no more runs.
	DrainRunner(ctx context.Context, id string) error
}

// runnerActions are the keys for what is done with the runner or the run under a cursor.
func (v *runners) runnerActions(view string, run func() (sources.Run, bool)) []tui.Binding {
	if v.Actions == nil {
		return nil
	}
	return []tui.Binding{
		{Action: view + ".stop", Keys: []string{"x"}, Help: "stop the run under the cursor (asks first)", Short: "stop", Mutates: true, Do: func(s tui.Shell) tea.Cmd {
			r, ok := run()
			if !ok {
				s.Note("no run is selected here: a runner's stand in the other pane")
				return nil
			}
			return v.askStop(s, r)
		}},
		{Action: view + ".drain", Keys: []string{"D"}, Help: "drain the runner: it gets no more runs (asks first)", Short: "drain", Mutates: true, Do: v.askDrain},
	}
}

// askStop asks before a run of a blueprint is stopped. It is that run, whatever is shown
// meanwhile.
func (c *console) askStop(s tui.Shell, r sources.Run) tea.Cmd {
	if c.refused(s, "agent stop", Target{r.WorkflowID, r.RunID}) {
		return nil
	}
	if !r.Open() {
		s.Note(nameOf(r) + " has already ended")
		return nil
	}
	id := sources.BlueprintRunID(r.WorkflowID)
	lines := []string{"run       " + text.Safe(id, " ")}
	if r.Blueprint != "" {
		lines = append(lines, "blueprint "+text.Safe(r.Blueprint, " "))
	}
	if r.Runner != "" {
		lines = append(lines, "runner    "+text.Safe(r.Runner, " "))
	}
	s.Confirm(tui.Question{Title: "Stop this run?", Lines: append(lines, "a program gets SIGTERM and after 5 s SIGKILL; an agent ends its turn"), Yes: "stop the run",
		Do: func() tea.Cmd {
			return c.act("stop "+id, "asked run "+id+" to stop", func(ctx context.Context) error { return c.Actions.StopRun(ctx, id) })
		}})
	return nil
}

// act is a command that does something to one thing, and says so.
func (c *console) act(what, said string, do func(context.Context) error) tea.Cmd {
	return func() tea.Msg {
		ctx, stop := context.WithTimeout(c.Context, actionTimeout)
		defer stop()
		if err := do(ctx); err != nil {
			return tui.Failed(fmt.Errorf("%s: %w", what, err))
		}
		return tui.Noted(said)
	}
}

func (v *runners) askDrain(s tui.Shell) tea.Cmd {
	v.arrange()
	r, ok := v.runner()
	switch {
	case !ok:
		s.Note("no runner is selected")
		return nil
	case r.Status == sources.RunnerDraining || r.Status == sources.RunnerGone:
		s.Note("runner " + text.Safe(r.ID, " ") + " is " + text.Safe(string(r.Status), " ") + " already")
		return nil
	}
	lines := []string{"runner    " + text.Safe(r.ID, " "), "host      " + text.Safe(r.Capabilities.Hostname, " ")}
	if r.Busy > 0 {
		lines = append(lines, howMany(r.Busy, "run")+" under way; they are not stopped")
	}
	s.Confirm(tui.Question{Title: "Drain this runner?", Lines: append(lines, "it gets no more runs; its process ends when those it has do"), Yes: "drain the runner",
		Do: func() tea.Cmd {
			return v.act("drain "+r.ID, "runner "+r.ID+" gets no more runs", func(ctx context.Context) error { return v.Actions.DrainRunner(ctx, r.ID) })
		}})
	return nil
}

// courseMark is how a run of a blueprint stands: by its status, else as any run.
func courseMark(r sources.Run, s theme.Styles) theme.Mark {
	word := text.Cut(text.Safe(string(r.Phase), " "), 9, "")
	switch r.Phase {
	case "pending":
		return theme.Mark{Glyph: s.Glyphs.Pending, Word: word, Ink: s.Muted}
	case "claimed":
		return theme.Mark{Glyph: s.Glyphs.Pending, Word: word, Ink: s.Running}
	case "running", "stopping":
		return theme.Mark{Glyph: s.Glyphs.Running, Word: word, Ink: s.Running}
	case "completed", "failed", "stopped":
		m := s.Status(string(courseExit(r.Phase)))
		m.Word = word
		return m
	}
	return markOf(r, s)
}
