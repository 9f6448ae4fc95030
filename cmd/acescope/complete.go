package main

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"acescope/cmd/acescope/internal/admin"
	"acescope/cmd/acescope/internal/agents"
	"acescope/cmd/acescope/internal/cli"
	"acescope/cmd/acescope/internal/flows"
	"acescope/cmd/acescope/internal/runs"
	"acescope/engine"
	"acescope/engine/ace"
	"acescope/engine/tasks/runner"
	sourceruns "acescope/sources/runs"
	"acescope/sources/sessions"
	runsview "acescope/views/runs"
)

// completions returns the completions of arguments, by their name in a usage line such as RUN, and of flags,
// by flagKinds.
func completions(a *cli.App) cli.Kinds {
	listed := func(list func(*cli.App) []string) cobra.CompletionFunc {
		return cli.Complete(a, func(context.Context) []cobra.Completion { return list(a) })
	}
	allRuns := cli.CompleteIDs(a, "")
	branches := cli.OrFiles(cli.CompleteFrom(a, branchNames))
	return cli.Kinds{
		"RUN": allRuns, "TASK": allRuns,
		"EXPERIMENT": cli.CompleteIDs(a, "WorkflowType = "+strconv.Quote(ace.ExperimentWorkflow)),
		"SESSION":    cli.CompleteIDs(a, sessions.Query),
		"RUNNER":     agents.CompleteRunners(a),
		"BLUEPRINT":  cli.Complete(a, a.BlueprintNames),
		"PLAYBOOK":   branches, "BRANCH": branches,
		"PROMPT": runs.CompletePhasePrompts(a, "/"), "PHASE=PROMPT": runs.CompletePhasePrompts(a, "="),
		"FLOW":     cli.OrFiles(listed(flows.Names)),
		"PROVIDER": runs.CompleteProviders(a),
		"GRADER":   listed(graders),
		"THEME":    listed(admin.ThemeNames),
		"FILTER":   listed(filterNames),
		"COLUMN":   cli.Words(runsview.ColumnNames()...),
		"ADAPTER":  cli.Words("offline", "online"),
		"PHASE":    cli.Words(ace.Steps()...),
		"PRESET":   cli.Words(ace.PresetPaper),
		"QUERY":    completeQuery,
		"OBSERVE":  cli.Words("on", "spool", "off"),
		"EXECUTOR": cli.Words(runner.Deterministic, runner.ClaudeCode, runner.Codex, runner.Gemini,
			runner.OpenCode),
	}
}

// flagKinds names the kind of value of each flag whose type and help do not list the values.
var flagKinds = map[string]string{
	"ablation": "EXPERIMENT", "no-regressions": "EXPERIMENT",
	"branch": "BRANCH", "playbook": "PLAYBOOK",
	"session": "SESSION", "parent": "SESSION",
	"flow": "FLOW", "provider": "PROVIDER", "grader": "GRADER", "theme": "THEME", "filter": "FILTER",
	"sort": "COLUMN", "adapter": "ADAPTER", "phase": "PHASE", "preset": "PRESET", "executor": "EXECUTOR",
	"observe": "OBSERVE", "query": "QUERY",
	"phase-prompt": "PHASE=PROMPT", "recorded": "RUN", "task-id": "TASK",
}

// completeQuery completes the last word of a filter.
func completeQuery(_ *cobra.Command, _ []string, typed string) (
	[]cobra.Completion, cobra.ShellCompDirective,
) {
	from, options := sourceruns.Completion(typed, len(typed), func(string) []string { return nil })
	for i := range options {
		options[i] = typed[:from] + options[i]
	}
	return options, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

func branchNames(_ context.Context, e *engine.Engine) (names []cobra.Completion) {
	list, _ := e.Books.Branches() // completion hides errors
	for _, b := range list {
		names = append(names, b.Name)
	}
	return names
}

func filterNames(a *cli.App) (names []string) {
	list, _ := a.Filters()
	for _, f := range list {
		names = append(names, f.Name)
	}
	return names
}

func graders(a *cli.App) []string {
	names := []string{"exact", "numeric:", "choice", "tags", "judge"}
	for _, g := range a.GraderLines() {
		names = append(names, "program:"+g.Name)
	}
	return names
}
