package flows

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine/flow"
	"acescope/engine/flow/library"
	"acescope/engine/tasks/blueprint"
)

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
		Args:    cobra.NoArgs,
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
	Inputs  []blueprint.Parameter `json:"inputs"`
	Outputs []string              `json:"outputs"`
	Tree    []TreeLine            `json:"tree"`
	Source  flow.Source           `json:"source"`
}

type TreeLine struct {
	ID    string `json:"id"`
	Kind  string `json:"kind"`
	Depth int    `json:"depth"`
	If    string `json:"if,omitempty"`
	flow.Position
}

func showCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:     "show FLOW",
		Short:   "Show the inputs, steps and outputs of a flow",
		Example: "acescope flow show package-build\nacescope flow show package-build --json | jq -r '.source.files[]'",
		Args:    cobra.ExactArgs(1),
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
