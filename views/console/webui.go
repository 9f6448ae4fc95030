package console

import (
	"context"
	"fmt"
	"net/url"

	tea "charm.land/bubbletea/v2"

	"acescope/sources/runs"
	"acescope/tui"
	"acescope/tui/text"
)

// OpenWeb opens a run in the Temporal Web UI with the user's browser, or the list of runs if the run is
// empty. It returns the link, and false if there is no browser on this machine.
type OpenWeb func(ctx context.Context, of runs.ID) (link string, opened bool, err error)

// WebBindings returns the key that opens the selected run in the Temporal Web UI, if there is one. Without a
// browser it copies the link and shows it.
func (c *Console) WebBindings() []tui.Binding {
	if c.web == nil {
		return nil
	}
	open := func(s tui.Shell) tea.Cmd {
		of, name := runs.ID{}, "the list of runs"
		if r, ok := c.Navigation.Target(s); ok {
			of, name = r.ID(), NameOf(r)
		}
		s.Note("opening the Web UI")
		return func() tea.Msg {
			ctx, stop := context.WithTimeout(c.Pipeline.Context, ActionTimeout)
			defer stop()
			switch link, opened, err := c.web(ctx, of); {
			case err != nil:
				return tui.Failed(fmt.Errorf("open the Web UI: %w", err))
			case opened:
				return tui.Noted("opened " + name + " in the browser")
			default:
				return shownLink(name, link)
			}
		}
	}
	return []tui.Binding{Key("run.web", "open the selected run in the Temporal Web UI", "", open, "W")}
}

// shownLink copies a link and shows it, and how to reach this machine from another one.
func shownLink(name, link string) tea.Msg {
	copied := func() tea.Msg { return tui.Copied("the link", link) }
	lines := []string{text.Safe(link, " ")}
	if u, err := url.Parse(link); err == nil && u.Hostname() == loopback {
		lines = append(lines, "", "If your browser is on another machine, first run there:",
			fmt.Sprintf("ssh -L %s:%s:%[1]s HOST", u.Port(), loopback))
	}
	return tea.BatchMsg{copied, func() tea.Msg {
		return tui.Asked(tui.Question{Title: "Open " + name + " in a browser", Long: true, Lines: lines,
			Yes: "copy the link again", Do: func() tea.Cmd { return copied }})
	}}
}

const loopback = "127.0.0.1"
