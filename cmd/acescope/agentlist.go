package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"acescope/engine/blueprint"
	"acescope/engine/run"
	"acescope/engine/runner"
)

// blueprintLine is a blueprint in a list.
type blueprintLine struct {
	Type          string            `json:"type"` // blueprint
	Name          string            `json:"name"`
	Description   string            `json:"description"`
	BlueprintType run.BlueprintType `json:"blueprint_type,omitempty"` // not of one that cannot be read
	Strategy      run.Strategy      `json:"parameter_strategy,omitempty"`
	Tags          []string          `json:"tags"`
	Demands       *runner.Demands   `json:"demands,omitempty"`
	Path          string            `json:"path"`
	ShadowedBy    string            `json:"shadowed_by,omitempty"`
	Error         string            `json:"error,omitempty"`
}

// blueprintDetail is one blueprint as a run would carry it.
type blueprintDetail struct {
	Type       string                `json:"type"` // blueprint_detail
	Name       string                `json:"name"`
	Path       string                `json:"path"`
	Blueprint  run.Blueprint         `json:"blueprint"`
	Parameters []blueprint.Parameter `json:"parameters"`
	Notes      []blueprint.Problem   `json:"notes,omitempty"`
}

func (a *app) agentListCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the blueprints, also those that cannot be used",
		Long: "Lists the blueprints in --agents-dir, else in agents_dirs of the configuration or $ACESCOPE_AGENTS_DIR, else in ./agents,\n" +
			"./.acescope/agents and agents beside the configuration file. Of two with one name the first counts.",
		Example: "acescope agent list\nacescope agent list --json | jq -r 'select(.error) | .name + \": \" + .error'",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.agentList(cmd.Context()) },
	}
}

func (a *app) agentList(ctx context.Context) error {
	l, err := a.library()
	if err != nil {
		return err
	}
	entries, err := l.Entries(ctx)
	if err != nil {
		return err
	}
	if len(entries) == 0 {
		fmt.Fprintln(a.err, "acescope: there are no blueprints in "+safe(strings.Join(l.Dirs, ", "))+"; acescope agent new NAME makes one")
	}
	if a.json {
		out := newLines(a.out)
		for _, e := range entries {
			if err := out.put(blueprintLineOf(e)); err != nil {
				return err
			}
		}
		return out.flush()
	}
	w := tabwriter.NewWriter(a.out, 0, 4, 2, ' ', 0)
	if len(entries) > 0 {
		fmt.Fprintln(w, "NAME\tTYPE\tTAGS\tDEMANDS\tDESCRIPTION")
	}
	for _, e := range entries {
		about := e.Description
		if d := e.Described(); d.Error != "" {
			about = "cannot be used: " + d.Error
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", safe(e.Name), orDash(string(e.Type)), orDash(safe(strings.Join(e.Tags, ","))), orDash(safe(demandsText(e.Demands))), safe(about))
	}
	return w.Flush()
}

func blueprintLineOf(e blueprint.Entry) blueprintLine {
	d := e.Described()
	return blueprintLine{Type: "blueprint", Name: d.Name, Description: d.Description, BlueprintType: d.Type, Strategy: e.Strategy, Tags: d.Tags, Demands: d.Demands,
		Path: d.Path, ShadowedBy: e.Shadowed, Error: d.Error}
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// demandsText is what is demanded of a runner, in a few words.
func demandsText(d *runner.Demands) string {
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

func (a *app) agentShowCommand() *cobra.Command {
	return &cobra.Command{
		Use:               "show NAME",
		Short:             "Show a blueprint: what is run, where, and with which parameters",
		Example:           "acescope agent show site-crawler\nacescope agent show site-crawler --json | jq '.blueprint.parameters_schema'",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeBlueprints,
		RunE:              func(_ *cobra.Command, args []string) error { return a.agentShow(args[0]) },
	}
}

func (a *app) agentShow(name string) error {
	l, err := a.library()
	if err != nil {
		return err
	}
	b, err := l.Load(name)
	if err != nil {
		return noBlueprint(err)
	}
	if a.json {
		return newLines(a.out).write(blueprintDetail{"blueprint_detail", b.Name, b.Dir, b.Blueprint, b.Params.Parameters(), b.Notes})
	}
	return a.printBlueprint(b)
}

// noBlueprint gives an error of a library its exit code.
func noBlueprint(err error) error {
	switch {
	case errors.Is(err, run.ErrNoBlueprint):
		return &coded{exitNotFound, err}
	case errors.Is(err, run.ErrBadRequest):
		return badRequest(err)
	}
	return err
}

func (a *app) printBlueprint(b blueprint.Blueprint) error {
	w := tabwriter.NewWriter(a.out, 0, 4, 2, ' ', 0)
	fmt.Fprintf(w, "%s\t%s\n", safe(b.Name), safe(b.Description))
	for _, row := range blueprintRows(b) {
		if row[1] != "" {
			fmt.Fprintf(w, "  %s\t%s\n", row[0], safe(row[1]))
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if parameters := b.Params.Parameters(); len(parameters) > 0 {
		fmt.Fprintln(w, "\nPARAMETER\tTYPE\tDEFAULT\tABOUT")
		for _, p := range parameters {
			preset := orDash(string(p.Default))
			if p.Required {
				preset = "(needed)"
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", safe(p.Name), orDash(p.Type), safe(preset), safe(p.Description))
		}
	}
	for _, n := range b.Notes {
		fmt.Fprintf(w, "\nnote: %s\n", safe(n.String()))
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
	return [][2]string{{"type", string(b.Type)}, {"path", b.Dir}, {"tags", strings.Join(b.Tags, ", ")}, {"demands", demandsText(b.Demands)},
		{"command", command}, {"parameters by", string(b.Strategy)}, {"variables", strings.Join(b.Env, ", ")}, {"works in", b.WorkingDir},
		{"system prompt", prompt}, {"model", b.Model}, {"permission mode", b.PermissionMode}, {"allowed tools", strings.Join(b.AllowedTools, ", ")},
		{"tool servers", strings.Join(servers, ", ")}, {"may be repeated", repeat}, {"time-out", timeout}, {"runner lost", loss}, {"digest", b.Digest}}
}
