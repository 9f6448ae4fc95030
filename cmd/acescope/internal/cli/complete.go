package cli

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"acescope/engine/ace"
	"acescope/engine/temporal/server"
	"acescope/sources/runs"
)

// Bounds of the completion of ids in a shell: its duration, and the number of newest runs that are read.
const (
	CompleteWithin = 2 * time.Second
	CompleteRuns   = 200
)

// CompleteIDs completes arguments with the ids of the newest runs, or of the newest experiments. It starts no server
// and reports no errors.
func (a *App) CompleteIDs(experiments bool) cobra.CompletionFunc {
	return func(cmd *cobra.Command, given []string, prefix string) ([]string, cobra.ShellCompDirective) {
		const noFiles = cobra.ShellCompDirectiveNoFileComp
		if a.Load(cmd, given) != nil || cmd.Args != nil && cmd.Args(cmd, append(given, prefix)) != nil && len(given) > 0 {
			return nil, noFiles
		}
		if dir, err := a.DataDir(); a.Cluster() == nil {
			if err != nil {
				return nil, noFiles
			}
			if _, hosted := server.Lookup(dir); !hosted {
				return nil, noFiles
			}
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), CompleteWithin)
		defer cancel()
		e, done, err := a.OpenReadOnly(ctx)
		if err != nil {
			return nil, noFiles
		}
		defer done()
		query := ""
		if experiments {
			query = "WorkflowType = '" + ace.ExperimentWorkflow + "'"
		}
		var ids []string
		seen := map[string]bool{} // an experiment may have several runs
		_ = runs.List(ctx, e.Client, query, CompleteRuns, func(r runs.Run) error {
			id := completedID(r)
			if strings.HasPrefix(id, prefix) && id == SafeText(id) && !seen[id] {
				seen[id] = true
				ids = append(ids, id+"\t"+SafeText(string(r.Exit)))
			}
			return nil
		})
		return ids, noFiles
	}
}

// completedID returns the id of a run as commands take it.
func completedID(r runs.Run) string {
	switch {
	case r.TaskID != "":
		return r.TaskID
	case r.Type == ace.ExperimentWorkflow:
		return strings.TrimPrefix(r.WorkflowID, ace.ExperimentIDPrefix)
	}
	return r.WorkflowID
}
