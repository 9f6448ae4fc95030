package agents

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine/tasks/blueprint"
	"acescope/engine/tasks/run"
	"acescope/engine/tasks/runner"
)

// BlueprintLine is a blueprint in a list.
type BlueprintLine struct {
	Type          string               `json:"type"` // blueprint
	Name          string               `json:"name"`
	Description   string               `json:"description"`
	BlueprintType run.BlueprintType    `json:"blueprint_type,omitempty"` // not of one that cannot be read
	Strategy      run.Strategy         `json:"parameter_strategy,omitempty"`
	Tags          []string             `json:"tags"`
	Demands       *runner.Requirements `json:"demands,omitempty"`
	Path          string               `json:"path"`
	ShadowedBy    string               `json:"shadowed_by,omitempty"`
	Error         string               `json:"error,omitempty"`
}

// BlueprintDetail is one blueprint as a run would carry it.
type BlueprintDetail struct {
	Type       string                `json:"type"` // blueprint_detail
	Name       string                `json:"name"`
	Path       string                `json:"path"`
	Blueprint  run.Blueprint         `json:"blueprint"`
	Parameters []blueprint.Parameter `json:"parameters"`
	Notes      []blueprint.Problem   `json:"notes,omitempty"`
}

func agentListCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the blueprints, also those that cannot be used",
		Long: "Lists the blueprints in --agents-dir, else in agents_dirs of the configuration or $ACESCOPE_AGENTS_DIR, else in ./agents,\n" +
			"./.acescope/agents and agents beside the configuration file. Of two with one name the first counts.",
		Example: "acescope agent list\nacescope agent list --json | jq -r 'select(.error) | .name + \": \" + .error'",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return agentList(a, cmd.Context()) },
	}
}

func agentList(a *cli.App, ctx context.Context) error {
	l, err := a.Library()
	if err != nil {
		return err
	}
	entries, err := l.Entries(ctx)
	if err != nil {
		return err
	}
	if len(entries) == 0 {
		fmt.Fprintln(a.Err, "acescope: there are no blueprints in "+cli.SafeText(strings.Join(l.Dirs, ", "))+"; acescope agent new NAME makes one")
	}
	if a.JSON {
		out := cli.NewLines(a.Out)
		for _, e := range entries {
			if err := out.Put(blueprintLineOf(e)); err != nil {
				return err
			}
		}
		return out.Flush()
	}
	w := tabwriter.NewWriter(a.Out, 0, 4, 2, ' ', 0)
	if len(entries) > 0 {
		fmt.Fprintln(w, "NAME\tTYPE\tTAGS\tDEMANDS\tDESCRIPTION")
	}
	for _, e := range entries {
		about := e.Description
		if d := e.Info(); d.Error != "" {
			about = "cannot be used: " + d.Error
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", cli.SafeText(e.Name), cli.OrDash(string(e.Type)), cli.OrDash(cli.SafeText(strings.Join(e.Tags, ","))), cli.OrDash(cli.SafeText(demandsText(e.Requirements))), cli.SafeText(about))
	}
	return w.Flush()
}

func blueprintLineOf(e blueprint.Entry) BlueprintLine {
	d := e.Info()
	return BlueprintLine{Type: "blueprint", Name: d.Name, Description: d.Description, BlueprintType: d.Type, Strategy: e.Strategy, Tags: d.Tags, Demands: d.Requirements,
		Path: d.Path, ShadowedBy: e.Shadowed, Error: d.Error}
}

// demandsText is what is demanded of a runner, in a few words.
func demandsText(d *runner.Requirements) string {
	if d == nil {
		return ""
	}
	var parts []string
	for _, p := range [][2]string{{"host", d.Hostname}, {"dir", d.ProjectDir}, {"executor", d.ExecutorType}, {"tags", strings.Join(d.Tags, ",")}} {
		if p[1] != "" {
			parts = append(parts, p[0]+"="+p[1])
		}
	}
	return strings.Join(parts, " ")
}

func agentShowCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:               "show NAME",
		Short:             "Show a blueprint: what is run, where, and with which parameters",
		Example:           "acescope agent show site-crawler\nacescope agent show site-crawler --json | jq '.blueprint.parameters_schema'",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.CompleteBlueprints,
		RunE:              func(_ *cobra.Command, args []string) error { return agentShow(a, args[0]) },
	}
}

func agentShow(a *cli.App, name string) error {
	l, err := a.Library()
	if err != nil {
		return err
	}
	b, err := l.Load(name)
	if err != nil {
		return noBlueprint(err)
	}
	if a.JSON {
		return cli.NewLines(a.Out).Write(BlueprintDetail{"blueprint_detail", b.Name, b.Dir, b.Blueprint, b.Parameters.Parameters(), b.Notes})
	}
	return printBlueprint(a, b)
}

// noBlueprint gives an error of a library its exit code.
func noBlueprint(err error) error {
	switch {
	case errors.Is(err, run.ErrNoBlueprint):
		return &cli.ExitError{Code: cli.ExitNotFound, Err: err}
	case errors.Is(err, run.ErrBadRequest):
		return badRequest(err)
	}
	return err
}

func printBlueprint(a *cli.App, b blueprint.Blueprint) error {
	w := tabwriter.NewWriter(a.Out, 0, 4, 2, ' ', 0)
	fmt.Fprintf(w, "%s\t%s\n", cli.SafeText(b.Name), cli.SafeText(b.Description))
	for _, row := range blueprintRows(b) {
		if row[1] != "" {
			fmt.Fprintf(w, "  %s\t%s\n", row[0], cli.SafeText(row[1]))
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if parameters := b.Parameters.Parameters(); len(parameters) > 0 {
		fmt.Fprintln(w, "\nPARAMETER\tTYPE\tDEFAULT\tABOUT")
		for _, p := range parameters {
			preset := cli.OrDash(string(p.Default))
			if p.Required {
				preset = "(needed)"
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", cli.SafeText(p.Name), cli.OrDash(p.Type), cli.SafeText(preset), cli.SafeText(p.Description))
		}
	}
	for _, n := range b.Notes {
		fmt.Fprintf(w, "\nnote: %s\n", cli.SafeText(n.String()))
	}
	return w.Flush()
}

// blueprintRows are what a blueprint says, in words; what it does not say is "".
func blueprintRows(b blueprint.Blueprint) [][2]string {
	command, timeout, loss := "", fmt.Sprintf("%d s", run.DefaultTimeout), "the run fails"
	switch {
	case b.Script != "":
		command = blueprint.CommandFile
	case b.Shell:
		command = "/bin/sh -c: " + b.Command
	case len(b.Argv) > 0:
		var words []string
		for _, word := range b.Argv {
			words = append(words, fmt.Sprintf("%q", word))
		}
		command = strings.Join(words, " ")
	}
	if b.TimeoutSeconds > 0 {
		timeout = fmt.Sprintf("%d s", b.TimeoutSeconds)
	}
	if b.OnRunnerLoss == run.Move {
		loss = "another runner runs it again"
	}
	prompt, servers := "", slices.Sorted(maps.Keys(b.MCPServers))
	if b.SystemPrompt != "" {
		prompt = fmt.Sprintf("%d bytes", len(b.SystemPrompt))
	}
	repeat := ""
	if b.Idempotent {
		repeat = "yes"
	}
	return [][2]string{{"type", string(b.Type)}, {"path", b.Dir}, {"tags", strings.Join(b.Tags, ", ")}, {"demands", demandsText(b.Requirements)},
		{"command", command}, {"parameters by", string(b.Strategy)}, {"variables", strings.Join(b.Env, ", ")}, {"works in", b.WorkingDir},
		{"system prompt", prompt}, {"model", b.Model}, {"permission mode", b.PermissionMode}, {"allowed tools", strings.Join(b.AllowedTools, ", ")},
		{"tool servers", strings.Join(servers, ", ")}, {"may be repeated", repeat}, {"time-out", timeout}, {"runner lost", loss}, {"digest", b.Digest}}
}
