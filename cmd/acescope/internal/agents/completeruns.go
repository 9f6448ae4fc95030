package agents

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine"
	"acescope/engine/tasks/run"
	"acescope/engine/tasks/runner"
)

// completeRunIDs completes the first argument with the ids of the newest runs of agents and
// programs, of their sessions where only those are wanted, and of those that have not ended
// where they are to be stopped.
func completeRunIDs(a *cli.App, sessions, open bool) cobra.CompletionFunc {
	return completeFrom(a, func(ctx context.Context, e *engine.Engine) (out []string) {
		verbs, err := RunVerbs(a, e)
		if err != nil {
			return nil
		}
		all, err := verbs.List(ctx, run.Filter{Limit: cli.CompleteRuns})
		if err != nil {
			return nil
		}
		for _, s := range all {
			id := s.RunID
			if sessions {
				id = s.SessionID
			}
			if (open && s.Status.Over()) || (sessions && s.Type == run.ExecuteTask) {
				continue
			}
			out = append(out, id+"\t"+s.AgentName+", "+string(s.Status))
		}
		return out
	})
}

// completeRunners completes the first argument with the ids of the runners.
func completeRunners(a *cli.App) cobra.CompletionFunc {
	return completeFrom(a, func(ctx context.Context, e *engine.Engine) (out []string) {
		view, err := e.Runners(ctx, runner.ViewOptions{})
		if err != nil {
			return nil
		}
		for _, r := range view.Runners {
			out = append(out, r.ID+"\t"+string(r.Status)+" on "+r.Capabilities.Hostname)
		}
		return out
	})
}

// completeFrom completes the first argument with what a server says, "value\tabout" each. It
// asks only one that runs already, and says nothing of what goes wrong.
func completeFrom(a *cli.App, list func(context.Context, *engine.Engine) []string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, given []string, begun string) (out []string, _ cobra.ShellCompDirective) {
		const none = cobra.ShellCompDirectiveNoFileComp
		if len(given) > 0 || a.Load(cmd, given) != nil {
			return nil, none
		}
		if a.Cluster() == nil && !hosted(a) {
			return nil, none
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), cli.CompleteWithin)
		defer cancel()
		e, done, err := a.OpenReadOnly(ctx)
		if err != nil {
			return nil, none
		}
		defer done()
		for _, c := range list(ctx, e) {
			id, _, _ := strings.Cut(c, "\t")
			if strings.HasPrefix(id, begun) && id == cli.SafeText(id) && !slices.ContainsFunc(out, func(o string) bool { return strings.HasPrefix(o, id+"\t") }) {
				out = append(out, id+"\t"+cli.SafeText(strings.TrimPrefix(c, id+"\t")))
			}
		}
		return out, none
	}
}
