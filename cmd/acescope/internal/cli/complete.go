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

// Bounds of completing an id in a shell: how long it may take, and how many of the newest
// runs are looked at.
const (
	CompleteWithin = 2 * time.Second
	CompleteRuns   = 200
)

// CompleteIDs completes arguments with the ids of the newest runs, for the shell. It asks
// only a server that runs already, and says nothing of what goes wrong.
func (a *App) CompleteIDs(experiments bool) cobra.CompletionFunc {
	return func(cmd *cobra.Command, given []string, begun string) ([]string, cobra.ShellCompDirective) {
		const none = cobra.ShellCompDirectiveNoFileComp
		if a.Load(cmd, given) != nil || cmd.Args != nil && cmd.Args(cmd, append(given, begun)) != nil && len(given) > 0 {
			return nil, none
		}
		if dir, err := a.DataDir(); a.Cluster() == nil {
			if err != nil {
				return nil, none
			}
			if _, hosted := server.Lookup(dir); !hosted {
				return nil, none
			}
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), CompleteWithin)
		defer cancel()
		e, done, err := a.OpenReadOnly(ctx)
		if err != nil {
			return nil, none
		}
		defer done()
		query := ""
		if experiments {
			query = "WorkflowType = '" + ace.ExperimentWorkflow + "'"
		}
		var ids []string
		seen := map[string]bool{} // an experiment has several runs
		_ = runs.List(ctx, e.Client, query, CompleteRuns, func(r runs.Run) error {
			id := completedID(r)
			if strings.HasPrefix(id, begun) && id == SafeText(id) && !seen[id] {
				seen[id] = true
				ids = append(ids, id+"\t"+SafeText(string(r.Exit)))
			}
			return nil
		})
		return ids, none
	}
}

// completedID is what a run is called in a command.
func completedID(r runs.Run) string {
	switch {
	case r.TaskID != "":
		return r.TaskID
	case r.Type == ace.ExperimentWorkflow:
		return strings.TrimPrefix(r.WorkflowID, ace.ExperimentIDPrefix)
	}
	return r.WorkflowID
}

// Explain makes the errors about arguments and flags of a command, and of those below it,
// say how the command is used.
func Explain(cmd *cobra.Command) {
	if check := cmd.Args; check != nil && cmd.Runnable() {
		cmd.Args = func(c *cobra.Command, args []string) error {
			err := check(c, args)
			if err == nil || !strings.HasPrefix(err.Error(), "accepts ") {
				return err
			}
			wants, _, _ := strings.Cut(err.Error(), ",")
			word := "arguments"
			if strings.HasSuffix(wants, " 1 arg(s)") {
				word = "argument"
			}
			return UsageError("%s, %d given: %s", strings.Replace(wants, "arg(s)", word, 1), len(args), c.UseLine())
		}
	}
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		said := err.Error()
		if at := strings.Index(said, "flag: strconv."); at >= 0 {
			return UsageError("%sflag: not a number", said[:at])
		}
		return err
	})
	for _, sub := range cmd.Commands() {
		Explain(sub)
	}
}
