package cli

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"acescope/engine/ace"
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

// Group makes group a command that only holds other commands.
func Group(group *cobra.Command, commands ...*cobra.Command) *cobra.Command {
	group.AddCommand(commands...)
	group.Args = cobra.NoArgs
	group.RunE = func(*cobra.Command, []string) error {
		var names []string
		for _, c := range commands {
			names = append(names, c.Name())
		}
		return UsageError("%s needs a command: %s", group.Name(), strings.Join(names, ", "))
	}
	return group
}

// unknownCommand returns the error for a name that is not a command of group. It suggests a similar command.
func unknownCommand(group *cobra.Command, name string, meant map[string]string) error {
	_, path, _ := strings.Cut(group.CommandPath(), " ")
	names := map[string]string{} // commands by the names in group that suggest them
	for of, command := range meant {
		if in, of := splitLast(of); in == path {
			names[of] = command
		}
	}
	for _, c := range group.Commands() {
		if c.IsAvailableCommand() {
			_, names[c.Name()], _ = strings.Cut(c.CommandPath(), " ")
		}
	}
	command := names[name]
	if command == "" && path != "" {
		command = names[meant[name]] // ls in a group is its list
	}
	group.SuggestionsMinimumDistance = 1 + len(name)/5
	if similar := group.SuggestionsFor(name); command == "" && name != "" && len(similar) > 0 {
		for i := range similar {
			similar[i] = strconv.Quote(group.CommandPath() + " " + similar[i])
		}
		return UsageError("unknown command %q; did you mean %s?", name, strings.Join(similar, " or "))
	}
	for _, of := range slices.Sorted(maps.Keys(names)) {
		if command == "" && ace.Distance(name, of) == 1 {
			command = names[of]
		}
	}
	if command != "" {
		return UsageError("unknown command %q; did you mean %q?", name, group.Root().Name()+" "+command)
	}
	return UsageError("unknown command %q; run %q", name, group.CommandPath()+" --help")
}

// splitLast splits the last word off a name.
func splitLast(name string) (front, last string) {
	i := strings.LastIndexByte(name, ' ')
	return name[:max(i, 0)], name[i+1:]
}
