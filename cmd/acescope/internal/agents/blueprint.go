package agents

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine/ace"
	"acescope/engine/tasks/blueprint"
	"acescope/engine/tasks/run"
	"acescope/engine/tasks/runner"
	"acescope/sources/runners"
)

func AgentCommand(a *cli.App) *cobra.Command {
	cmd := cli.Group(&cobra.Command{
		Use:   "agent",
		Short: "Blueprints of agents and deterministic programs, and starting their runs",
	},
		blueprintListCommand(a), blueprintShowCommand(a), blueprintValidateCommand(a), blueprintNewCommand(a),
		runStartCommand(a), runResumeCommand(a))
	a.AgentDirsFlag(cmd.PersistentFlags())
	return cmd
}

type BlueprintLine struct {
	Type string `json:"type"` // blueprint_definition
	run.BlueprintInfo
	BlueprintType run.BlueprintType `json:"blueprint_type,omitempty"` // empty if the blueprint cannot be read
	Strategy      run.Strategy      `json:"parameter_strategy,omitempty"`
	ShadowedBy    string            `json:"shadowed_by,omitempty"`
}

// BlueprintDetail is a blueprint as a run carries it.
type BlueprintDetail struct {
	Name       string                `json:"name"`
	Path       string                `json:"path" jsonschema:"directory"`
	Blueprint  run.Blueprint         `json:"blueprint" jsonschema:"blueprint, as a run carries it"`
	Parameters []blueprint.Parameter `json:"parameters" jsonschema:"parameters that the schema names"`
	Notes      []blueprint.Problem   `json:"notes,omitempty" jsonschema:"what works but may not be meant"`
}

func blueprintListCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the blueprints, including those that cannot be used",
		Long: `Lists the blueprints in --agents-dir, otherwise in agents_dirs of the configuration or
$ACESCOPE_AGENTS_DIR, otherwise in ./agents, ./.acescope/agents and agents beside the configuration
file. Of blueprints with the same name the first one is used.`,
		Example: "acescope agent list\nacescope agent list --json | jq -r 'select(.error) | .name + \": \" + .error'",
		RunE:    func(cmd *cobra.Command, _ []string) error { return listBlueprints(a, cmd.Context()) },
	}
}

func listBlueprints(a *cli.App, ctx context.Context) error {
	l, err := a.Library()
	if err != nil {
		return err
	}
	entries, err := l.Entries(ctx)
	if err != nil {
		return err
	}
	if len(entries) == 0 {
		cli.Warn(a, `no blueprints in %s; create one with "acescope agent new NAME"`,
			strings.Join(l.Dirs, ", "))
	}
	header := "NAME\tTYPE\tTAGS\tREQUIREMENTS\tDESCRIPTION"
	return cli.WriteRows(a, cli.Mapped(entries, newBlueprintLine), header,
		func(l BlueprintLine) []any {
			description := l.Description
			if l.Error != "" {
				description = "cannot be used: " + l.Error
			}
			return []any{l.Name, cmp.Or(string(l.BlueprintType), "-"), cmp.Or(strings.Join(l.Tags, ","), "-"),
				cmp.Or(requirementsText(l.Requirements), "-"), description}
		})
}

func newBlueprintLine(e blueprint.Entry) BlueprintLine {
	info := e.Info()
	info.Schema = nil
	return BlueprintLine{Type: "blueprint_definition", BlueprintInfo: info, BlueprintType: info.Type,
		Strategy: e.Strategy, ShadowedBy: e.Shadowed}
}

func requirementsText(r *runner.Requirements) string {
	if r == nil {
		return ""
	}
	return runners.RequirementsText(*r)
}

func blueprintShowCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "show BLUEPRINT",
		Short: "Show a blueprint: what it executes, its requirements and parameters",
		Example: `acescope agent show site-crawler
acescope agent show site-crawler --json | jq '.blueprint.parameters_schema'`,
		RunE: func(_ *cobra.Command, args []string) error { return showBlueprint(a, args[0]) },
	}
}

func showBlueprint(a *cli.App, name string) error {
	l, err := a.Library()
	if err != nil {
		return err
	}
	b, err := l.Load(name)
	if err != nil {
		return RunError(err)
	}
	parameters := b.Parameters.Parameters()
	if a.JSON {
		return cli.NewLines(a).Write(BlueprintDetail{b.Name, b.Dir, b.Blueprint, parameters, b.Notes})
	}
	if err := blueprintDetails(b).print(a.Out); err != nil {
		return err
	}
	cells := func(p blueprint.Parameter) []any {
		preset := cmp.Or(string(p.Default), "-")
		if p.Required {
			preset = "(required)"
		}
		return []any{p.Name, cmp.Or(p.Type, "-"), preset, p.Description}
	}
	err = cli.WriteRows(a, slices.Values(parameters), "\nPARAMETER\tTYPE\tDEFAULT\tDESCRIPTION", cells)
	if err != nil {
		return err
	}
	for _, n := range b.Notes {
		fmt.Fprintf(a.Out, "\nnote: %s\n", cli.SafeText(n.String()))
	}
	return nil
}

func blueprintDetails(b blueprint.Blueprint) (d details) {
	d.add("name", "%s", b.Name)
	d.add("description", "%s", b.Description)
	d.add("type", "%s", b.Type)
	d.add("path", "%s", b.Dir)
	d.add("tags", "%s", strings.Join(b.Tags, ", "))
	d.add("requirements", "%s", requirementsText(b.Requirements))
	switch {
	case b.Script != "":
		d.add("command", "%s", blueprint.CommandFile)
	case b.Shell:
		d.add("command", "/bin/sh -c: %s", b.Command)
	case len(b.Argv) > 0:
		words := fmt.Sprintf("%q", b.Argv)
		d.add("command", "%s", words[1:len(words)-1])
	}
	d.add("parameters by", "%s", b.Strategy)
	d.add("variables", "%s", strings.Join(b.Env, ", "))
	d.add("directory", "%s", b.WorkingDir)
	if b.SystemPrompt != "" {
		d.add("system prompt", "%s", ace.Count(len(b.SystemPrompt), "byte"))
	}
	d.add("model", "%s", b.Model)
	d.add("permission mode", "%s", b.PermissionMode)
	d.add("allowed tools", "%s", strings.Join(b.AllowedTools, ", "))
	d.add("MCP servers", "%s", strings.Join(slices.Sorted(maps.Keys(b.MCPServers)), ", "))
	if b.Idempotent {
		d.add("idempotent", "yes")
	}
	d.add("time limit", "%d s", cmp.Or(b.TimeoutSeconds, run.DefaultTimeout))
	lost := "the run fails"
	if b.OnRunnerLoss == run.Move {
		lost = "the run moves to another runner"
	}
	d.add("runner lost", "%s", lost)
	d.add("digest", "%s", b.Digest)
	return d
}

type BlueprintNew struct {
	Name  string   `json:"name"`
	Path  string   `json:"path" jsonschema:"directory"`
	Files []string `json:"files" jsonschema:"files that were written"`
}

func blueprintNewCommand(a *cli.App) *cobra.Command {
	var kind run.BlueprintType
	var strategy run.Strategy
	cmd := &cobra.Command{
		Use:   "new NAME",
		Short: "Create a blueprint that can be run as it is",
		Long: `Creates the directory NAME with the files of a blueprint in the first directory of the search path
(see acescope agent list). It does not overwrite anything.`,
		Example: `acescope agent new web-crawler --type deterministic --strategy args
acescope agent new reviewer --type agent --agents-dir ~/agents`,
		RunE: func(_ *cobra.Command, args []string) error { return newBlueprint(a, args[0], kind, strategy) },
	}
	choiceVar(cmd.Flags(), &kind, "type", []run.BlueprintType{run.Agent, run.Deterministic},
		"agent or deterministic")
	choiceVar(cmd.Flags(), &strategy, "strategy", run.Strategies(),
		"how a program gets its parameters: stdin_json (default), args (--key=value), args_spaced (--key value), env or file")
	_ = cmd.MarkFlagRequired("type")
	return cmd
}

func newBlueprint(a *cli.App, name string, kind run.BlueprintType, strategy run.Strategy) error {
	dirs, err := a.AgentsPath()
	if err != nil {
		return err
	}
	dir, err := blueprint.New(dirs[0], name, kind, strategy)
	if err != nil {
		return RunError(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	line := BlueprintNew{Name: name, Path: dir}
	for _, e := range entries {
		line.Files = append(line.Files, e.Name())
	}
	return cli.Report(a, line, `created %s; show it with "acescope agent show %s"`, dir, name)
}

type BlueprintCheck struct {
	Name       string              `json:"name"`
	Path       string              `json:"path" jsonschema:"directory"`
	OK         bool                `json:"ok" jsonschema:"whether it can be used"`
	Problems   []blueprint.Problem `json:"problems" jsonschema:"what is wrong"`
	More       int                 `json:"more,omitempty"` // number of further problems
	Notes      []blueprint.Problem `json:"notes,omitempty" jsonschema:"what works but may not be meant"`
	ShadowedBy string              `json:"shadowed_by,omitempty"`
}

func blueprintValidateCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "validate [BLUEPRINT|DIR]...",
		Short: "Check blueprints and list all their problems",
		Long: `Checks the blueprints with the names or in the directories (an argument with a / or a dot alone), or
all on the search path. Each problem is one line with file, line, column and JSON path; a note is
about a field that works but may not mean what its author intended. The exit code is 1 if a
blueprint cannot be used.`,
		Example: `acescope agent validate
acescope agent validate ./agents/web-crawler
acescope agent validate --json | jq -r 'select(.ok | not) | .problems[] | "\(.file):\(.line): \(.path) \(.text)"'`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return validateBlueprints(a, cmd.Context(), args)
		},
	}
}

func validateBlueprints(a *cli.App, ctx context.Context, args []string) error {
	l, err := a.Library()
	if err != nil {
		return err
	}
	entries, err := chosenBlueprints(ctx, l, args)
	if err != nil {
		return RunError(err)
	}
	if len(entries) == 0 {
		return cli.NotFound("no blueprints in %s", strings.Join(l.Dirs, ", "))
	}
	invalid := 0
	out := cli.NewLines(a)
	for _, e := range entries {
		c := BlueprintCheck{Name: e.Name, Path: e.Dir, OK: len(e.Problems.List) == 0,
			Problems: append([]blueprint.Problem{}, e.Problems.List...), More: e.Problems.More,
			Notes: e.Notes, ShadowedBy: e.Shadowed}
		if !c.OK {
			invalid++
		}
		if a.JSON {
			out.Put(c)
		} else {
			c.print(out)
		}
	}
	if err := out.Flush(); err != nil || invalid == 0 {
		return err
	}
	return fmt.Errorf("%d of %s cannot be used", invalid, ace.Count(len(entries), "blueprint"))
}

// chosenBlueprints reads the blueprints with the names or in the directories, or all if there are no
// arguments.
func chosenBlueprints(ctx context.Context, l blueprint.Library, args []string) (out []blueprint.Entry,
	err error) {
	if len(args) == 0 {
		return l.Entries(ctx)
	}
	for _, arg := range args {
		find := l.Find
		if arg == "." || arg == ".." || strings.ContainsAny(arg, "/"+string(filepath.Separator)) {
			find = blueprintIn
		}
		e, err := find(arg)
		if err != nil {
			return nil, err
		}
		out = append(out, e)
	}
	return out, nil
}

// blueprintIn reads the blueprint in a directory.
func blueprintIn(dir string) (e blueprint.Entry, err error) {
	if dir, err = filepath.Abs(dir); err != nil {
		return e, err
	}
	if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
		return e, cli.NotFound("%s: no such directory", dir)
	}
	e.Name, e.Dir = filepath.Base(dir), dir
	e.Blueprint, err = blueprint.Read(dir)
	var problems *blueprint.Problems
	if errors.As(err, &problems) {
		e.Problems, err = *problems, nil
	}
	return e, err
}

// print writes one line for each problem and note.
func (c BlueprintCheck) print(out *cli.Lines) {
	position := func(p blueprint.Problem) string {
		if p.File == "" {
			return c.Path + ": " + p.String()
		}
		return c.Path + string(filepath.Separator) + p.String()
	}
	switch {
	case c.OK && c.ShadowedBy != "":
		out.Printf("ok %s  %s  (not used: shadowed by %s)", c.Name, c.Path, c.ShadowedBy)
	case c.OK:
		out.Printf("ok %s  %s", c.Name, c.Path)
	}
	for _, p := range c.Problems {
		out.Printf("%s", position(p))
	}
	if c.More > 0 {
		out.Printf("%s: and %s", c.Path, ace.Count(c.More, "more problem"))
	}
	for _, p := range c.Notes {
		out.Printf("note: %s", position(p))
	}
}
