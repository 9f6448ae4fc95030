// Package flows holds the commands of workflows of steps, which are declared in files.
package flows

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine"
	"acescope/engine/ace"
	"acescope/engine/flow"
	"acescope/engine/flow/library"
	"acescope/engine/tasks/blueprint"
	"acescope/sources/runs"
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
	Valid    bool           `json:"valid" jsonschema:"true if there are no problems"`
	Digest   string         `json:"digest,omitempty"`
	Steps    int            `json:"steps"`
	Problems []flow.Problem `json:"problems" jsonschema:"what is wrong, with its place"`
}

func validateCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:     "validate FLOW",
		Short:   "Check a flow and list its problems with file, line and column",
		Example: "acescope flow validate ./release.yaml\nacescope flow validate ./release.yaml --json | jq '.problems[].line'",
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

type FlowLine struct {
	Name        string `json:"name"`
	Place       string `json:"place"` // path of the file, or shipped
	Description string `json:"description,omitempty"`
	Digest      string `json:"digest,omitempty"`
	Steps       int    `json:"steps"`
	Error       string `json:"error,omitempty"` // why it is not valid
}

func listCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "List the flows of this directory, of the user and of acescope",
		Example: "acescope flow list\nacescope flow list --json | jq -r .name",
		RunE: func(*cobra.Command, []string) error {
			l, err := flows(a)
			if err != nil {
				return err
			}
			all, err := l.List()
			if err != nil {
				return err
			}
			header := "NAME\tSTEPS\tPLACE\tDESCRIPTION"
			return cli.WriteRows(a, cli.Mapped(all, lineOf), header, func(l FlowLine) []any {
				first, _, _ := strings.Cut(l.Error, "\n")
				return []any{l.Name, l.Steps, l.Place, cmp.Or(first, l.Description)}
			})
		},
	}
}

func lineOf(e library.Entry) FlowLine {
	line := FlowLine{Name: e.Name, Place: e.Place}
	if e.Err != nil {
		line.Error = e.Err.Error()
		return line
	}
	line.Description = e.Flow.Description
	line.Digest = e.Source.Digest()
	e.Flow.Walk(func(*flow.Step, int) { line.Steps++ })
	return line
}

type DetailLine struct {
	FlowLine
	Inputs  []blueprint.Parameter `json:"inputs" jsonschema:"inputs that the flow declares"`
	Outputs []string              `json:"outputs" jsonschema:"names of the outputs"`
	Tree    []TreeLine            `json:"tree"`
	Source  flow.Source           `json:"source"`
}

type TreeLine struct {
	ID    string `json:"id"`
	Kind  string `json:"kind"`
	Depth int    `json:"depth" jsonschema:"number of steps around it; 0 at the top"`
	If    string `json:"if,omitempty" jsonschema:"condition; left out if the step always runs"`
	flow.Position
}

func showCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:     "show FLOW",
		Short:   "Show the inputs, steps and outputs of a flow",
		Example: "acescope flow show package-build\nacescope flow show package-build --json | jq -r '.source.files[]'",
		RunE: func(_ *cobra.Command, args []string) error {
			e, err := Find(a, args[0])
			if err != nil {
				return err
			}
			return show(a, e)
		},
	}
}

func show(a *cli.App, e library.Entry) error {
	d := DetailLine{FlowLine: lineOf(e), Inputs: e.Flow.Inputs, Outputs: []string{}, Source: e.Source}
	for _, o := range e.Flow.Outputs {
		d.Outputs = append(d.Outputs, o.Name)
	}
	e.Flow.Walk(func(s *flow.Step, depth int) {
		line := TreeLine{ID: s.ID, Kind: s.Do.Name(), Depth: depth, Position: s.At}
		if s.If != nil {
			line.If = s.If.Text
		}
		d.Tree = append(d.Tree, line)
	})
	if a.JSON {
		return cli.NewLines(a).Write(d)
	}
	fmt.Fprintf(a.Out, "%s (%s)\n%s\n", cli.SafeText(d.Name), cli.SafeText(d.Place),
		cli.SafeText(d.Description))
	w := cli.NewTable(a.Out)
	fmt.Fprintln(w, "\nINPUT\tTYPE\tDEFAULT\tDESCRIPTION")
	for _, in := range d.Inputs {
		byDefault := string(in.Default)
		if in.Required {
			byDefault = "required"
		}
		w.Row(in.Name, cmp.Or(in.Type, "any"), byDefault, in.Description)
	}
	fmt.Fprintln(w, "\nSTEP\tKIND\tIF\tLINE")
	for _, t := range d.Tree {
		w.Row(strings.Repeat("  ", t.Depth)+t.ID, t.Kind, t.If, fmt.Sprintf("%s:%d", t.File, t.Line))
	}
	if len(d.Outputs) > 0 {
		fmt.Fprintf(w, "\noutputs: %s\n", strings.Join(d.Outputs, ", "))
	}
	return w.Flush()
}

type CopyLine struct {
	Name  string   `json:"name" jsonschema:"name of the flow"`
	Files []string `json:"files" jsonschema:"paths of the files"`
}

func copyCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "copy FLOW [DIR]",
		Short: "Copy the files of a flow, to change them",
		Long: "Copy the files of a flow to " + library.ProjectDir +
			" of the current directory, or to DIR. There it takes\n" +
			"precedence over a flow of acescope with the same name. Existing files are not replaced.",
		Example: "acescope flow copy ace-loop && $EDITOR .acescope/flows/ace-loop/curator.yaml",
		RunE: func(_ *cobra.Command, args []string) error {
			e, err := Find(a, args[0])
			if err != nil {
				return err
			}
			dir := filepath.FromSlash(library.ProjectDir)
			if len(args) == 2 {
				dir = args[1]
			}
			return copyFlow(a, e, dir)
		},
	}
}

func copyFlow(a *cli.App, e library.Entry, dir string) error {
	line := CopyLine{Name: e.Name, Files: []string{}}
	for _, name := range e.Source.Names() {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
		if errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("%s exists; name another directory, or remove it", path)
		}
		if err != nil {
			return err
		}
		_, err = f.WriteString(e.Source.Files[name])
		if err := errors.Join(err, f.Close()); err != nil {
			return err
		}
		line.Files = append(line.Files, path)
	}
	return cli.Report(a, line, "copied %s", strings.Join(line.Files, ", "))
}

type DecisionLine struct {
	WorkflowID string `json:"workflow_id"`
	flow.Decision
}

func approveCommand(a *cli.App, name string, approved bool) *cobra.Command {
	d := flow.Decision{Approved: approved}
	short := "Approve the step of a run that waits for it"
	if !approved {
		short = "Reject the step of a run that waits for approval"
	}
	cmd := &cobra.Command{
		Use:     name + " RUN",
		Short:   short,
		Example: "acescope flow " + name + " code-review-1 --comment 'read it'",
		RunE: func(cmd *cobra.Command, args []string) error {
			return decide(a, cmd.Context(), args[0], d)
		},
	}
	cmd.Flags().StringVar(&d.Step, "step", "", "path of the step, if several wait")
	cmd.Flags().StringVar(&d.Comment, "comment", "",
		"comment, which the history keeps and later steps can read")
	return cmd
}

func decide(a *cli.App, ctx context.Context, name string, d flow.Decision) error {
	e, err := a.Open(ctx, false)
	if err != nil {
		return err
	}
	r, err := runs.Resolve(ctx, e.Client, name)
	if err != nil {
		return err
	}
	d.By = ace.User()
	id := r.GetWorkflowExecutionInfo().GetExecution().GetWorkflowId()
	if d, err = engine.DecideFlow(ctx, e, id, "", d); errors.Is(err, flow.ErrNotWaiting) {
		return cli.NotFound("%w", err)
	} else if err != nil {
		return err
	}
	verb := "rejected"
	if d.Approved {
		verb = "approved"
	}
	return cli.Report(a, DecisionLine{id, d}, "%s %s of %s", verb, d.Step, name)
}
