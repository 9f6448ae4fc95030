package cli

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// helpTemplate is the help of a command. It uses no colors: choosing them by the terminal's background needs
// a query whose answer arrives late on standard input, where the next program reads it.
const helpTemplate = `{{with or .Long .Short}}{{. | trimTrailingWhitespaces}}

{{end}}{{heading "Usage"}}{{if .Runnable}}
  {{.UseLine}}{{end}}{{if .HasAvailableSubCommands}}
  {{.CommandPath}} [command]{{end}}{{if .HasExample}}

{{heading "Examples"}}
{{.Example | indented}}{{end}}{{if .HasAvailableSubCommands}}{{range $group := .Groups}}

{{heading .Title}}{{range $.Commands}}{{if and .IsAvailableCommand (eq .GroupID $group.ID)}}
  {{rpad .Name .NamePadding}} {{.Short}}{{end}}{{end}}{{else}}

{{heading "Commands"}}{{range .Commands}}{{if .IsAvailableCommand}}
  {{rpad .Name .NamePadding}} {{.Short}}{{end}}{{end}}{{end}}{{end}}{{with common .LocalFlags}}

{{heading "Flags"}}
{{.}}{{end}}{{with common .InheritedFlags}}

{{heading "Flags of every command"}}
{{.}}{{end}}

"acescope help connection" lists the flags of the server, its namespace and the data of its runs.
`

// SetHelp sets the output and the help of a command and its subcommands, and adds the help topic of the flags
// that all of them have.
func SetHelp(a *App, root *cobra.Command) {
	root.SetOut(painted(a.Out))
	root.SetErr(a.Err)
	_, _, bold := Terminal(a.Out)
	bold = bold && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	cobra.AddTemplateFunc("heading", func(title string) string {
		if bold {
			return "\x1b[1m" + title + "\x1b[m"
		}
		return title
	})
	cobra.AddTemplateFunc("indented", func(lines string) string {
		return "  " + strings.ReplaceAll(lines, "\n", "\n  ")
	})
	ofConnection := func(f *pflag.Flag) bool {
		return root.PersistentFlags().Lookup(f.Name) != nil && f.Name != "json" && f.Name != "data-dir"
	}
	cobra.AddTemplateFunc("common", func(flags *pflag.FlagSet) string {
		return usages(flags, func(f *pflag.Flag) bool { return !ofConnection(f) })
	})
	root.SetHelpTemplate(helpTemplate)
	root.SetUsageTemplate(helpTemplate)

	topic := &cobra.Command{
		Use: "connection",
		Long: "Every command takes these flags. Without --address, acescope uses the embedded server of the data\n" +
			"directory. Most have an environment variable and a setting; \"acescope config\" shows them.",
	}
	topic.SetHelpFunc(func(c *cobra.Command, _ []string) {
		fmt.Fprintf(c.OutOrStdout(), "%s\n\n%s\n", c.Long, usages(root.PersistentFlags(), ofConnection))
	})
	root.AddCommand(topic)
}

// usages returns the usage of the flags that satisfy wanted.
func usages(flags *pflag.FlagSet, wanted func(*pflag.Flag) bool) string {
	some := pflag.NewFlagSet("", pflag.ContinueOnError)
	flags.VisitAll(func(f *pflag.Flag) {
		if wanted(f) {
			some.AddFlag(f)
		}
	})
	return strings.TrimRight(some.FlagUsages(), " \n")
}
