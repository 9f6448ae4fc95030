package cli

import (
	"os"
	"strings"

	"github.com/charmbracelet/x/term"
	"github.com/spf13/cobra"
)

// helpTemplate is how a command explains itself: what it does, how it is called, and its
// flags. It is written in the terminal's own colours. A library that chose some by the
// background would have to ask the terminal for it: the answer comes as if it was typed,
// late, and into whatever is read next.
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

// ExplainPlainly gives the command and all below it this help.
func ExplainPlainly(root *cobra.Command) {
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
