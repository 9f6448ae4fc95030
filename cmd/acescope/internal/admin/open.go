package admin

import (
	"context"
	"os"

	"github.com/charmbracelet/x/term"
	"github.com/spf13/cobra"

	"acescope/cmd/acescope/internal/cli"
	"acescope/cmd/acescope/internal/runs"
	"acescope/sources/detail"
)

// OpenCommand opens the console on exported histories; where there is no terminal it shows
// them as show does those of a server.
func OpenCommand(a *cli.App) *cobra.Command {
	return cli.ConsoleFlags(&cobra.Command{
		Use:   "open FILE|DIR|-",
		Short: "Open the console on exported histories, without a server",
		Long: "Reads what \"temporal workflow show -o json\", the Web UI and acescope replay export write, also gzip, directories and\n" +
			"standard input, and opens the console on it: every screen that works from histories. No server is started, no data\n" +
			"directory made, and nothing is changed. With --json, or where standard output is no terminal, it writes each run as\n" +
			"acescope show does.",
		Example: "acescope open bug-report.json.gz\nacescope open histories/\nssh host cat q.json | acescope open -\n" +
			"acescope open histories/ --json | jq .exit_status",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			files, err := cli.FilesIn(args[0])
			switch {
			case err != nil:
				return err
			case !a.JSON && canPaint(args[0]):
				return openFiles(a, cmd.Context(), args[0], files)
			}
			return printFiles(a, cmd.Context(), files)
		},
	})
}

// canPaint tells whether there is a terminal to paint on and to type at. Where standard
// input is the data, keys come from the terminal itself.
func canPaint(path string) bool {
	if !term.IsTerminal(os.Stdout.Fd()) {
		return false
	}
	if path != "-" {
		return term.IsTerminal(os.Stdin.Fd())
	}
	tty, err := os.Open("/dev/tty")
	if err != nil {
		return false
	}
	_ = tty.Close() // it was only tried
	return !term.IsTerminal(os.Stdin.Fd())
}

// printFiles shows every history that can be read, and then says what could not.
func printFiles(a *cli.App, ctx context.Context, files []string) error {
	var broken error
	for _, file := range files {
		for _, h := range a.ReadHistories(ctx, file) {
			if len(h.Events) > 0 {
				if err := showHistory(a, h); err != nil {
					return err
				}
			}
			if h.ReadErr != nil && broken == nil {
				broken = h.ReadErr
			}
		}
	}
	return broken
}

func showHistory(a *cli.App, h cli.RunHistory) error {
	d, err := detail.ReadEvents(h.Events)
	if err != nil {
		return err
	}
	line := runs.LineOf(d)
	if a.JSON {
		return cli.NewLines(a.Out).Write(line)
	}
	return runs.PrintShow(a.Out, d, line)
}
