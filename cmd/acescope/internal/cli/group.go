package cli

import (
	"strings"

	"github.com/spf13/cobra"
)

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
	if command := meant[strings.TrimSpace(path+" "+name)]; command != "" {
		return UsageError("unknown command %q; did you mean %q?", name, group.Root().Name()+" "+command)
	}
	group.SuggestionsMinimumDistance = 1 + len(name)/5
	if similar := group.SuggestionsFor(name); len(similar) > 0 {
		return UsageError("unknown command %q; did you mean %q?", name,
			group.CommandPath()+" "+strings.Join(similar, " or "))
	}
	return UsageError("unknown command %q; run %q", name, group.CommandPath()+" --help")
}
