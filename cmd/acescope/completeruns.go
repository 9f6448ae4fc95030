package main

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"acescope/engine"
	"acescope/engine/run"
	"acescope/engine/runner"
)

// completeRunIDs completes the first argument with the ids of the newest runs of agents and
// programs, of their sessions where only those are wanted, and of those that have not ended
// where they are to be stopped.
func (a *app) completeRunIDs(sessions, open bool) cobra.CompletionFunc {
	return a.completeFrom(func(ctx context.Context, e *engine.Engine) (out []string) {
		verbs, err := a.runVerbs(e)
		if err != nil {
			return nil
		}
		all, err := verbs.List(ctx, run.Filter{Limit: completeRuns})
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
func (a *app) completeRunners() cobra.CompletionFunc {
	return a.completeFrom(func(ctx context.Context, e *engine.Engine) (out []string) {
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
func (a *app) completeFrom(list func(context.Context, *engine.Engine) []string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, given []string, begun string) (out []string, _ cobra.ShellCompDirective) {
		const none = cobra.ShellCompDirectiveNoFileComp
		if len(given) > 0 || a.load(cmd, given) != nil {
			return nil, none
		}
		if a.cluster() == nil && !a.hosted() {
			return nil, none
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), completeWithin)
		defer cancel()
		e, done, err := a.look(ctx)
		if err != nil {
			return nil, none
		}
		defer done()
		for _, c := range list(ctx, e) {
			id, _, _ := strings.Cut(c, "\t")
			if strings.HasPrefix(id, begun) && id == safe(id) && !slices.ContainsFunc(out, func(o string) bool { return strings.HasPrefix(o, id+"\t") }) {
				out = append(out, id+"\t"+safe(strings.TrimPrefix(c, id+"\t")))
			}
		}
		return out, none
	}
}
