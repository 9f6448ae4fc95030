package cli

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"acescope/engine"
	"acescope/engine/ace"
	"acescope/engine/temporal/server"
	"acescope/sources/runs"
)

// Bounds of the completion of ids in a shell: its duration, and the number of newest runs that are read.
const (
	completeWithin = 2 * time.Second
	CompleteRuns   = 200
)

// CompleteFrom completes arguments with a list from the server. It starts no server and hides errors.
func (a *App) CompleteFrom(list func(context.Context, *engine.Engine) []cobra.Completion) cobra.CompletionFunc {
	const noFiles = cobra.ShellCompDirectiveNoFileComp
	return func(cmd *cobra.Command, given []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
		full := len(given) > 0 && cmd.Args != nil && cmd.Args(cmd, append(given, prefix)) != nil
		if full || a.Load(cmd, given) != nil || !a.Served() {
			return nil, noFiles
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), completeWithin)
		defer cancel()
		e, done, err := a.OpenReadOnly(ctx)
		if err != nil {
			return nil, noFiles
		}
		defer done()
		return Completions(list(ctx, e), prefix), noFiles
	}
}

// Served reports whether there is a server: a cluster, or the host of the data directory.
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

// Completions returns the completions that begin with a prefix, each once. It drops those that a terminal cannot show.
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

// CompleteIDs completes arguments with the ids of the newest runs, or of the newest experiments.
func (a *App) CompleteIDs(experiments bool) cobra.CompletionFunc {
	query := ""
	if experiments {
		query = "WorkflowType = '" + ace.ExperimentWorkflow + "'"
	}
	return a.CompleteFrom(func(ctx context.Context, e *engine.Engine) (ids []cobra.Completion) {
		_ = runs.List(ctx, e.Client, query, CompleteRuns, func(r runs.Run) error {
			id := r.WorkflowID
			if r.TaskID != "" {
				id = r.TaskID
			} else if r.Type == ace.ExperimentWorkflow {
				id = strings.TrimPrefix(id, ace.ExperimentIDPrefix)
			}
			ids = append(ids, cobra.CompletionWithDesc(id, string(r.Status)))
			return nil
		})
		return ids
	})
}
