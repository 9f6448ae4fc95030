package console

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	tea "charm.land/bubbletea/v2"

	"acescope/tui"
)

// Viewer returns the program that shows history files in the console's terminal, without running it.
type Viewer func(path string) *exec.Cmd

const fileField = "file"

// AskOpen opens the form for a history file. Another console shows it; quitting that leads back.
func (c *Console) AskOpen(s tui.Shell) tea.Cmd {
	if c.viewer == nil {
		s.Note("files cannot be opened here")
		return nil
	}
	return s.Fill(tui.Form{Title: "Open a history", Name: "open", Verb: "open",
		Fields: []tui.Field{{Name: fileField, Label: "File",
			Hint:     "exported histories, or a directory of them",
			Complete: completeFiles}},
		Check: func(v tui.Values) tui.Report {
			r := tui.Report{Problems: map[string]string{}, Lines: []string{"q leads back here"}}
			if path := strings.TrimSpace(v[fileField]); path == "" {
				r.Problems[fileField] = "name a file or a directory"
			} else if _, err := os.Stat(expandHome(path)); err != nil {
				r.Problems[fileField] = err.Error()
			}
			return r
		},
		Submit: func(_ context.Context, v tui.Values) (func(tui.Shell) tea.Cmd, error) {
			path := strings.TrimSpace(v[fileField])
			return func(tui.Shell) tea.Cmd { return c.view(path) }, nil
		}})
}

func (c *Console) view(path string) tea.Cmd {
	return func() tea.Msg {
		var said strings.Builder
		viewer := c.viewer(expandHome(path))
		viewer.Stderr = &said
		return tui.Exec(viewer, func(err error) tea.Msg {
			reason := strings.TrimSpace(strings.TrimPrefix(said.String(), "acescope: "))
			switch {
			case err != nil && reason != "":
				return tui.Failed(errors.New(reason))
			case err != nil:
				return tui.Failed(fmt.Errorf("open %s: %w", path, err))
			}
			return tui.Noted("closed " + path)
		})
	}
}
