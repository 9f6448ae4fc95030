// Package flows holds the commands of workflows of steps, which are declared in files.
package flows

import (
	"errors"
	"path/filepath"

	"github.com/spf13/cobra"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine/ace"
	"acescope/engine/flow"
	"acescope/engine/flow/library"
)

func FlowCommand(a *cli.App) *cobra.Command {
	return cli.Group(&cobra.Command{
		Use:   "flow",
		Short: "Run workflows of steps that a file declares: prompts, agents, programs, loops and approvals",
		Long: "Run workflows of steps. A flow is a file NAME.yaml in .acescope/flows of the current directory or in flows of the\n" +
			"configuration directory, any other file by its path, or one that acescope ships; see docs/guides/flows.md.",
	},
		validateCommand(a), testCommand(a), checkCommand(a), runCommand(a), listCommand(a), showCommand(a),
		copyCommand(a),
		approveCommand(a, "approve", true),
		approveCommand(a, "reject", false))
}

// flows returns the library of the current directory and the user.
func flows(a *cli.App) (library.Library, error) {
	p, err := a.Paths()
	if err != nil {
		return library.Library{}, err
	}
	return library.Library{Dirs: []string{filepath.FromSlash(library.ProjectDir),
		filepath.Join(filepath.Dir(p.Config), "flows")}}, nil
}

// Names returns the names of the flows in the library.
func Names(a *cli.App) (names []string) {
	l, err := flows(a)
	if err != nil {
		return nil
	}
	list, _ := l.List() // it holds flows that cannot be read
	for _, e := range list {
		names = append(names, e.Name)
	}
	return names
}

// Find returns a valid flow.
func Find(a *cli.App, name string) (library.Entry, error) {
	l, err := flows(a)
	if err != nil {
		return library.Entry{}, err
	}
	e, err := l.Find(name)
	return e, flowError(e, err)
}

// flowError gives the error of a flow its exit code.
func flowError(e library.Entry, err error) error {
	var problems flow.Problems
	if errors.As(err, &problems) {
		return cli.UsageError("the flow %s is not valid:\n%w", e.Name, problems)
	}
	return err
}

type ValidationLine struct {
	Name     string         `json:"name"`
	Place    string         `json:"place"`
	Valid    bool           `json:"valid"`
	Digest   string         `json:"digest,omitempty"`
	Steps    int            `json:"steps"`
	Problems []flow.Problem `json:"problems"`
}

func validateCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:     "validate FLOW",
		Short:   "Check a flow and list its problems with file, line and column",
		Example: "acescope flow validate ./release.yaml\nacescope flow validate ./release.yaml --json | jq '.problems[].line'",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			l, err := flows(a)
			if err != nil {
				return err
			}
			e, err := l.Find(args[0])
			return validate(a, e, err)
		},
	}
}

func validate(a *cli.App, e library.Entry, err error) error {
	var problems flow.Problems
	if err != nil && !errors.As(err, &problems) {
		return flowError(e, err)
	}
	line := ValidationLine{Name: e.Name, Place: e.Place, Valid: err == nil, Problems: []flow.Problem{}}
	line.Problems = append(line.Problems, problems...)
	if err == nil {
		line.Digest = e.Source.Digest()
		e.Flow.Walk(func(*flow.Step, int) { line.Steps++ })
	}
	if err != nil && !a.JSON {
		return flowError(e, err)
	}
	writeErr := cli.Report(a, line, "%s is valid: %s, digest %.12s", e.Place, ace.Count(line.Steps, "step"),
		line.Digest)
	if err == nil || writeErr != nil {
		return writeErr
	}
	return cli.UsageError("the flow %s is not valid: %s", e.Name, ace.Count(len(problems), "problem"))
}
