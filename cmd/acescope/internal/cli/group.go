package cli

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"acescope/engine/ace"
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
