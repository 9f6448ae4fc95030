package cli

import (
	"cmp"
	"context"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"acescope/engine"
	"acescope/engine/ace"
	"acescope/engine/agents/session"
	"acescope/engine/flow"
	"acescope/engine/tasks/run"
	"acescope/engine/temporal/server"
	"acescope/sources/runs"
)

// Bounds of the completion of ids in a shell: its duration, and the number of newest runs that are read.
const (
	completeWithin = 2 * time.Second
	completeRuns   = 200
)

// Complete completes with a list that needs the settings. It hides errors.
func Complete(a *App, list func(context.Context) []cobra.Completion) cobra.CompletionFunc {
	const noFiles = cobra.ShellCompDirectiveNoFileComp
	return func(cmd *cobra.Command, given []string, prefix string) ([]cobra.Completion,
		cobra.ShellCompDirective) {
		if a.Load(cmd, given) != nil {
			return nil, noFiles
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), completeWithin)
		defer cancel()
		return Completions(list(ctx), prefix), noFiles
	}
}

// CompleteFrom completes with a list from the server. It starts no server.
func CompleteFrom(a *App, list func(context.Context,
	*engine.Engine) []cobra.Completion) cobra.CompletionFunc {
	return Complete(a, func(ctx context.Context) []cobra.Completion {
		if !a.Served() {
			return nil
		}
		e, err := a.OpenReadOnly(ctx)
		if err != nil {
			return nil
		}
		return list(ctx, e)
	})
}

// Served reports whether a server runs: a cluster, or the host of the data directory.
func (a *App) Served() bool {
	if a.Cluster() != nil {
		return true
	}
	dir, err := a.DataDir()
	if err != nil {
		return false
	}
	_, hosted := server.Lookup(dir)
	return hosted
}

// Completions returns the completions that begin with a prefix, each once. It drops those that a terminal
// cannot show.
func Completions(list []cobra.Completion, prefix string) (out []cobra.Completion) {
	known := map[string]bool{}
	for _, c := range list {
		name, about, _ := strings.Cut(c, "\t")
		if strings.HasPrefix(name, prefix) && name == SafeText(name) && !known[name] {
			known[name] = true
			out = append(out, cobra.CompletionWithDesc(name, SafeText(about)))
		}
	}
	return out
}

// CompleteIDs completes the ids of the newest runs that match a query.
func CompleteIDs(a *App, query string) cobra.CompletionFunc {
	return CompleteFrom(a, func(ctx context.Context, e *engine.Engine) (ids []cobra.Completion) {
		_ = runs.List(ctx, e.Client, query, completeRuns, func(r runs.Run) error {
			ids = append(ids, cobra.CompletionWithDesc(shortID(r), string(r.Status)))
			return nil
		})
		return ids
	})
}

// shortID returns the id by which commands find a run.
func shortID(r runs.Run) string {
	switch r.Type {
	case ace.ExperimentWorkflow:
		return strings.TrimPrefix(r.WorkflowID, ace.ExperimentIDPrefix)
	case ace.TaskWorkflow:
		return cmp.Or(r.TaskID, r.WorkflowID)
	}
	return cmp.Or(run.IDOf(r.WorkflowID), session.IDOf(r.WorkflowID),
		strings.TrimPrefix(r.WorkflowID, flow.IDPrefix))
}

// OrFiles also completes the names of files.
func OrFiles(complete cobra.CompletionFunc) cobra.CompletionFunc {
	return func(cmd *cobra.Command, given []string, prefix string) ([]cobra.Completion,
		cobra.ShellCompDirective) {
		found, _ := complete(cmd, given, prefix)
		return found, cobra.ShellCompDirectiveDefault
	}
}

// Words completes with fixed words.
func Words[T ~string](words ...T) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
		var all []cobra.Completion
		for _, w := range words {
			all = append(all, string(w))
		}
		return Completions(all, prefix), cobra.ShellCompDirectiveNoFileComp
	}
}

// Kinds are completions by what they complete: RUN, BRANCH and so on.
type Kinds map[string]cobra.CompletionFunc

// SetCompletions sets the completion of a command and its subcommands. The kind of an argument is its name
// in the command's usage line. The kind of a flag is its entry in flags, by "COMMAND FLAG" or "FLAG";
// without an entry, the values are those that its type or its help lists. Other flags complete the names of
// files.
func SetCompletions(cmd *cobra.Command, kinds Kinds, flags map[string]string) {
	if cmd.ValidArgsFunction == nil {
		cmd.ValidArgsFunction = kinds.arguments
	}
	cmd.NonInheritedFlags().VisitAll(func(f *pflag.Flag) {
		if _, known := cmd.GetFlagCompletionFunc(f.Name); known {
			return
		}
		complete := kinds[cmp.Or(flags[cmd.Name()+" "+f.Name], flags[f.Name])]
		if words := valuesOf(f); complete == nil && len(words) > 0 {
			complete = inList(Words(words...))
		}
		if complete != nil {
			_ = cmd.RegisterFlagCompletionFunc(f.Name, complete) // fails only for an unknown flag
		}
	})
	for _, sub := range cmd.Commands() {
		SetCompletions(sub, kinds, flags)
	}
}

// arguments completes the next argument by the kinds that the usage line gives.
func (k Kinds) arguments(
	cmd *cobra.Command, given []string, prefix string,
) (out []cobra.Completion, directive cobra.ShellCompDirective) {
	directive = cobra.ShellCompDirectiveNoFileComp
	places := Placeholders(cmd)
	if len(places) == 0 || len(given) >= len(places) && !strings.HasSuffix(cmd.Use, "...") {
		return nil, directive
	}
	for _, kind := range places[min(len(given), len(places)-1)] {
		if complete := k[kind]; complete != nil {
			found, files := complete(cmd, given, prefix)
			out = append(out, found...)
			directive &= files
		} else if slices.Contains([]string{"FILE", "DIR", "PATH", "CASES"}, kind) {
			directive = cobra.ShellCompDirectiveDefault
		}
	}
	return out, directive
}

// argumentCount accepts as many arguments as the usage line of a command has: those in brackets may be
// missing, and the last one may be repeated if it ends with dots.
func argumentCount(cmd *cobra.Command) cobra.PositionalArgs {
	words := arguments(cmd)
	least := len(slices.DeleteFunc(slices.Clone(words), func(w string) bool { return w[0] == '[' }))
	if strings.HasSuffix(cmd.Use, "...") {
		return cobra.MinimumNArgs(least)
	}
	return cobra.RangeArgs(least, len(words))
}

// arguments returns the words for arguments in the usage line of a command.
func arguments(cmd *cobra.Command) []string {
	words := strings.Fields(cmd.Use)[1:]
	end := slices.IndexFunc(words, func(w string) bool { return w == "|" || w[0] == '-' })
	if end < 0 {
		return words
	}
	return words[:end]
}

// Placeholders returns the kinds of the arguments in the usage line of a command.
func Placeholders(cmd *cobra.Command) (kinds [][]string) {
	for _, word := range arguments(cmd) {
		word = strings.Trim(strings.TrimSuffix(word, "..."), "[]")
		kinds = append(kinds, strings.Split(word, "|"))
	}
	return kinds
}

// inList completes the last value of a list that is separated by commas, with a value that it lacks.
func inList(complete cobra.CompletionFunc) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, prefix string) ([]cobra.Completion,
		cobra.ShellCompDirective) {
		before := prefix[:strings.LastIndexByte(prefix, ',')+1]
		found, directive := complete(cmd, args, prefix[len(before):])
		given := strings.Split(before, ",")
		found = slices.DeleteFunc(found, func(c cobra.Completion) bool {
			word, _, _ := strings.Cut(c, "\t")
			return slices.Contains(given, word)
		})
		for i := range found {
			found[i] = before + found[i]
		}
		return found, directive
	}
}

var (
	inParentheses = regexp.MustCompile(`\s*\([^)]*\)`)
	betweenWords  = regexp.MustCompile(`,? or |, `)
	oneWord       = regexp.MustCompile(`^[a-z][A-Za-z0-9_-]*$`)
)

// valuesOf returns the values of a flag: those of its type, or those that its help lists as "about: one, two
// or three".
func valuesOf(f *pflag.Flag) (words []string) {
	if v, ok := f.Value.(interface{ Choices() []string }); ok && len(v.Choices()) > 0 {
		return v.Choices()
	}
	list, _, _ := strings.Cut(inParentheses.ReplaceAllString(f.Usage, ""), "; ")
	list = list[strings.LastIndex(list, ": ")+1:]
	items := betweenWords.Split(strings.TrimSpace(list), -1)
	for i, item := range items {
		if oneWord.MatchString(item) {
			words = append(words, item)
		} else if i < len(items)-1 {
			return nil
		}
	}
	if len(items) < 2 {
		return nil
	}
	return words
}
