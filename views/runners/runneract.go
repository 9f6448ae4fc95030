package runners

import (
	"context"

	tea "charm.land/bubbletea/v2"

	"acescope/sources/runners"
	"acescope/sources/runs"
	"acescope/tui"
	"acescope/tui/text"
	"acescope/tui/widget"
)

// runnerActions are the keys for what is done with the runner or the run under a cursor.
func (v *runnerList) runnerActions(view string, run func() (runs.Run, bool)) []tui.Binding {
	if v.actor.Actions == nil {
		return nil
	}
	return []tui.Binding{
		{Action: view + ".stop", Keys: []string{"x"}, Help: "stop the run under the cursor (asks first)", Short: "stop", Mutates: true, Do: func(s tui.Shell) tea.Cmd {
			r, ok := run()
			if !ok {
				s.Note("no run is selected here: a runner's stand in the other pane")
				return nil
			}
			return v.actor.AskStop(s, r)
		}},
		{Action: view + ".drain", Keys: []string{"D"}, Help: "drain the runner: it gets no more runs (asks first)", Short: "drain", Mutates: true, Do: v.askDrain},
	}
}

func (v *runnerList) askDrain(s tui.Shell) tea.Cmd {
	v.arrange()
	r, ok := v.runner()
	switch {
	case !ok:
		s.Note("no runner is selected")
		return nil
	case r.Status == runners.RunnerDraining || r.Status == runners.RunnerGone:
		s.Note("runner " + text.Safe(r.ID, " ") + " is " + text.Safe(string(r.Status), " ") + " already")
		return nil
	}
	lines := []string{"runner    " + text.Safe(r.ID, " "), "host      " + text.Safe(r.Capabilities.Hostname, " ")}
	if r.Busy > 0 {
		lines = append(lines, widget.HowMany(r.Busy, "run")+" under way; they are not stopped")
	}
	s.Confirm(tui.Question{Title: "Drain this runner?", Lines: append(lines, "it gets no more runs; its process ends when those it has do"), Yes: "drain the runner",
		Do: func() tea.Cmd {
			return v.actor.Act("drain "+r.ID, func(ctx context.Context) (string, error) {
				return "runner " + r.ID + " gets no more runs", v.actor.Actions.DrainRunner(ctx, r.ID)
			})
		}})
	return nil
}
