package history

import (
	"context"
	"os"

	"github.com/spf13/cobra"

	"acescope/cmd/acescope/internal/cli"
	"acescope/cmd/acescope/internal/runs"
	"acescope/sources/histories"
	"acescope/theme"
	lineageview "acescope/views/lineage"
)

// LineageLine is a run of a lineage.
type LineageLine struct {
	cli.RunLine     // with type lineage
	Depth       int `json:"depth"` // 0 for the original
	// OriginalRun is the parent in the tree: the run that this run was forked or reset from, or if that run
	// is gone the newest of its workflow ID.
	OriginalRun string           `json:"original_run_id,omitempty"`
	Selected    bool             `json:"selected,omitempty"` // the run that the command names
	Effect      histories.Effect `json:"effect,omitempty"`   // better, worse, same or other, if known
	CostUSD     *float64         `json:"cost_usd,omitempty"` // without reused phases; nil while it is open
	Tokens      int64            `json:"tokens,omitempty"`
}

func LineageCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "lineage TASK",
		Short: "Show a run and its forks as a tree: changes, outcomes, costs and effects",
		Args:  cobra.ExactArgs(1),
		RunE:  func(cmd *cobra.Command, args []string) error { return lineage(a, cmd.Context(), args[0]) },
	}
}

func lineage(a *cli.App, ctx context.Context, name string) error {
	e, exec, done, err := a.OpenRun(ctx, name, "")
	if err != nil {
		return err
	}
	defer done()
	tree, err := histories.ReadLineage(ctx, e.Client, exec.GetWorkflowId(), nil)
	if err != nil {
		return err
	}
	if tree.Dropped > 0 {
		runs.Warn(a, "%d more runs are not shown", tree.Dropped)
	}
	if !a.JSON {
		styles := theme.NoColor().Styles(theme.GlyphsFor(os.Getenv))
		return a.Print(lineageview.LineageLines(tree, exec.GetRunId(), styles), false)
	}
	out := cli.NewLines(a.Out)
	for i := range tree.Nodes {
		if err := out.Put(lineageLine(tree, &tree.Nodes[i], exec.GetRunId())); err != nil {
			return err
		}
	}
	return out.Flush()
}

func lineageLine(t *histories.LineageTree, n *histories.LineageNode, selected string) LineageLine {
	r := n.Run
	l := LineageLine{
		RunLine: cli.ListLine(r), Depth: n.Depth, Selected: r.RunID == selected,
		Effect: n.Effect,
	}
	l.Kind = "lineage"
	if n.Original >= 0 {
		l.OriginalRun = t.Nodes[n.Original].Run.RunID
	}
	if n.Outcome != nil {
		l.Answer, l.Correct = n.Outcome.Answer, n.Outcome.Correct
	}
	if r.Summary != nil {
		l.CostUSD = &r.Summary.Usage.CostUSD
		l.Tokens = r.Summary.Usage.InputTokens + r.Summary.Usage.OutputTokens
	}
	return l
}
