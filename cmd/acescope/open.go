package main

import (
	"context"

	"github.com/spf13/cobra"

	"acescope/sources"
)

// openCommand shows the runs of an exported file as show does those of a server.
func (a *app) openCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "open FILE|DIR|-",
		Short: "Show the runs of exported histories without a server, as show does",
		Long: "Reads what \"temporal workflow show -o json\", the Web UI and acescope replay export write, also gzip, directories and\n" +
			"standard input, and shows each run as acescope show does. acescope replay step steps through one.",
		Example: "acescope open bug-report.json.gz\nacescope open histories/ --json | jq .exit_status",
		Args:    cobra.ExactArgs(1),
		RunE:    func(cmd *cobra.Command, args []string) error { return a.openFile(cmd.Context(), args[0]) },
	}
}

// openFile shows every history that can be read, and then says what could not.
func (a *app) openFile(ctx context.Context, path string) error {
	files, err := filesIn(path)
	if err != nil {
		return err
	}
	var broken error
	for _, file := range files {
		for _, h := range a.readHistories(ctx, file) {
			if len(h.Events) > 0 {
				if err := a.showHistory(h); err != nil {
					return err
				}
			}
			if h.err != nil && broken == nil {
				broken = h.err
			}
		}
	}
	return broken
}

func (a *app) showHistory(h oneHistory) error {
	d, err := sources.ShowHistory(h.Events)
	if err != nil {
		return err
	}
	line := lineOf(d)
	if a.json {
		return newLines(a.out).write(line)
	}
	return printShow(a.out, d, line)
}
