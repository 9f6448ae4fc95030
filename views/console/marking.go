package console

import (
	"context"
	"errors"

	tea "charm.land/bubbletea/v2"

	"acescope/tui"
)

// MarkMatching marks all runs that the filter matches. It reads those that are not loaded. Until the list is
// loaded, its rows are those of the previous filter.
func (f *Forks) MarkMatching(s tui.Shell) tea.Cmd {
	list := f.listing.Runs
	if f.actions == nil || !list.Loading && list.First == 0 && !list.More && !list.Bounded {
		f.listing.Mark(s, list.Rows)
		return nil
	}
	working, progress, end := f.controls.StartWork(f.pipeline.Context, "reading the runs to mark")
	return func() tea.Msg {
		defer end()
		progress(0, list.Total)
		found, err := f.actions.Matching(working, list.Query, MaxMarks+1)
		switch {
		case errors.Is(err, context.Canceled):
			return tui.Noted("stopped; no run was marked")
		case err != nil:
			return tui.Failed(err)
		}
		return tui.Then(func(s tui.Shell) tea.Cmd {
			f.listing.Mark(s, found)
			return nil
		})
	}
}
