package agents

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine/tasks/blueprint"
)

// BlueprintCheck is what came of checking one blueprint.
type BlueprintCheck struct {
	Type       string              `json:"type"` // blueprint_check
	Name       string              `json:"name"`
	Path       string              `json:"path"`
	OK         bool                `json:"ok"`
	Problems   []blueprint.Problem `json:"problems"`
	More       int                 `json:"more,omitempty"` // problems beyond those
	Notes      []blueprint.Problem `json:"notes,omitempty"`
	ShadowedBy string              `json:"shadowed_by,omitempty"`
}

func agentValidateCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "validate [NAME|DIRECTORY]...",
		Short: "Check blueprints, and say all that is wrong with them",
		Long: "Checks the blueprints of the names or in the directories (what holds a / or is a dot), all of the search path where none\n" +
			"is given. Each problem is one line, with file, line, column and JSON path; a note is about what works but may not be\n" +
			"what was meant. It exits with 1 where a blueprint cannot be used.",
		Example: "acescope agent validate\nacescope agent validate ./agents/web-crawler\n" +
			"acescope agent validate --json | jq -r 'select(.ok | not) | .problems[] | \"\\(.file):\\(.line): \\(.path) \\(.text)\"'",
		ValidArgsFunction: a.CompleteBlueprints,
		RunE:              func(cmd *cobra.Command, args []string) error { return agentValidate(a, cmd.Context(), args) },
	}
}

func agentValidate(a *cli.App, ctx context.Context, args []string) error {
	l, err := a.Library()
	if err != nil {
		return err
	}
	checked, err := checkBlueprints(ctx, l, args)
	if err != nil {
		return noBlueprint(err)
	}
	if len(checked) == 0 {
		return &cli.ExitError{Code: cli.ExitNotFound, Err: fmt.Errorf("there are no blueprints in %s", strings.Join(l.Dirs, ", "))}
	}
	bad, out := 0, cli.NewLines(a.Out)
	for _, c := range checked {
		if !c.OK {
			bad++
		}
		if a.JSON {
			err = out.Put(c)
		} else {
			_, err = fmt.Fprint(out.Buf, c.text())
		}
		if err != nil {
			return err
		}
	}
	if err := out.Flush(); err != nil || bad == 0 {
		return err
	}
	return fmt.Errorf("%d of %s cannot be used", bad, cli.Numbered(int64(len(checked)), "blueprint"))
}

// checkBlueprints reads those that were named, or all.
func checkBlueprints(ctx context.Context, l blueprint.Library, args []string) (out []BlueprintCheck, err error) {
	if len(args) == 0 {
		entries, err := l.Entries(ctx)
		for _, e := range entries {
			out = append(out, blueprintCheckOf(e))
		}
		return out, err
	}
	for _, arg := range args {
		var e blueprint.Entry
		if arg == "." || arg == ".." || strings.ContainsRune(arg, filepath.Separator) || strings.Contains(arg, "/") {
			e, err = blueprintIn(arg)
		} else {
			e, err = l.Find(arg)
		}
		if err != nil {
			return nil, err
		}
		out = append(out, blueprintCheckOf(e))
	}
	return out, nil
}

// blueprintIn reads the blueprint in a directory.
func blueprintIn(dir string) (blueprint.Entry, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return blueprint.Entry{}, err
	}
	if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
		return blueprint.Entry{}, &cli.ExitError{Code: cli.ExitNotFound, Err: fmt.Errorf("%s: there is no such directory", dir)}
	}
	e := blueprint.Entry{Name: filepath.Base(dir), Dir: dir}
	e.Blueprint, err = blueprint.Read(dir)
	var wrong *blueprint.Problems
	if errors.As(err, &wrong) {
		e.Problems, err = *wrong, nil
	}
	return e, err
}

func blueprintCheckOf(e blueprint.Entry) BlueprintCheck {
	return BlueprintCheck{Type: "blueprint_check", Name: e.Name, Path: e.Dir, OK: len(e.Problems.List) == 0, Problems: append([]blueprint.Problem{}, e.Problems.List...),
		More: e.Problems.More, Notes: e.Notes, ShadowedBy: e.Shadowed}
}

// text is a line for each thing to say.
func (c BlueprintCheck) text() string {
	var b strings.Builder
	line := func(mark string, p blueprint.Problem) {
		where := c.Path + ": "
		if p.File != "" {
			where = c.Path + string(filepath.Separator)
		}
		b.WriteString(mark + cli.SafeText(where+p.String()) + "\n")
	}
	if c.OK {
		b.WriteString("ok " + cli.SafeText(c.Name) + "  " + cli.SafeText(c.Path))
		if c.ShadowedBy != "" {
			b.WriteString("  (not used: the one in " + cli.SafeText(c.ShadowedBy) + " counts)")
		}
		b.WriteString("\n")
	}
	for _, p := range c.Problems {
		line("", p)
	}
	if c.More > 0 {
		fmt.Fprintf(&b, "%s: and %d more\n", cli.SafeText(c.Path), c.More)
	}
	for _, p := range c.Notes {
		line("note: ", p)
	}
	return b.String()
}
