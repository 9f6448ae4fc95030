package cli

import (
	"os"
	"strings"

	"github.com/charmbracelet/x/term"
	"github.com/spf13/cobra"
)

// helpTemplate is the help of a command. It uses no colors: choosing them by the terminal's background needs a query
// whose answer arrives late on standard input, where the next program reads it.
const helpTemplate = `{{with or .Long .Short}}{{. | trimTrailingWhitespaces}}

{{end}}{{heading "Usage"}}{{if .Runnable}}
  {{.UseLine}}{{end}}{{if .HasAvailableSubCommands}}
  {{.CommandPath}} [command]{{end}}{{if .HasExample}}

{{heading "Examples"}}
{{.Example | indented}}{{end}}{{if .HasAvailableSubCommands}}

{{heading "Commands"}}{{range .Commands}}{{if .IsAvailableCommand}}
  {{rpad .Name .NamePadding}} {{.Short}}{{end}}{{end}}{{end}}{{if .HasAvailableLocalFlags}}

{{heading "Flags"}}
{{.LocalFlags.FlagUsages | trimTrailingWhitespaces}}{{end}}{{if .HasAvailableInheritedFlags}}

{{heading "Flags of every command"}}
{{.InheritedFlags.FlagUsages | trimTrailingWhitespaces}}{{end}}
`

// SetHelp sets the help of a command and its subcommands.
func SetHelp(root *cobra.Command) {
	bold := term.IsTerminal(os.Stdout.Fd()) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	cobra.AddTemplateFunc("heading", func(title string) string {
		if bold {
			return "\x1b[1m" + title + "\x1b[m"
		}
		return title
	})
	cobra.AddTemplateFunc("indented", func(lines string) string {
		return "  " + strings.ReplaceAll(lines, "\n", "\n  ")
	})
	root.SetHelpTemplate(helpTemplate)
	root.SetUsageTemplate(helpTemplate)
}
