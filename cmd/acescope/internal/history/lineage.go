package history

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine/ace"
	"acescope/sources/histories"
	"acescope/theme"
	lineagepkg "acescope/views/lineage"
)

// LineageLine is a run of a lineage.
type LineageLine struct {
	Type       string      `json:"type"` // lineage
	TaskID     string      `json:"task_id"`
	WorkflowID string      `json:"workflow_id"`
	RunID      string      `json:"run_id"`
	Depth      int         `json:"depth"` // 0: the run that the others come from
	ForkedFrom *ace.Forked `json:"forked_from,omitempty"`
	// OriginalRun is the run in the tree that it stands behind: the one it was forked or reset
	// from, or if that is gone the newest of its id.
	OriginalRun string         `json:"original_run_id,omitempty"`
	ResetFrom   string         `json:"reset_from,omitempty"` // run id, where that is known
	Asked       bool           `json:"asked,omitempty"`      // the run that the command named
	ExitStatus  ace.ExitStatus `json:"exit_status"`
	Answer      string         `json:"answer,omitempty"`
	Correct     *bool          `json:"correct,omitempty"` // left out where there was no label, or no answer yet
	// Effect is better, worse, same or other beside the original; left out where one of the
	// two has no outcome.
	Effect  histories.Effect `json:"effect,omitempty"`
	Model   string           `json:"model,omitempty"`
	CostUSD *float64         `json:"cost_usd,omitempty"` // of what it executed itself; left out while it runs
	Tokens  int64            `json:"tokens,omitempty"`
	Start   time.Time        `json:"start"`
	Close   *time.Time       `json:"close,omitempty"`
}

func LineageCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "lineage TASK",
		Short: "Show a run with all its forks as a tree: what was changed, how they ended, what they cost, and whether it helped",
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
		fmt.Fprintf(a.Err, "acescope: %d more runs are not shown\n", tree.Dropped)
	}
	return putLineage(a, tree, exec.GetRunId())
}

func putLineage(a *cli.App, tree *histories.LineageTree, asked string) error {
	out := cli.NewLines(a.Out)
	if !a.JSON {
		for _, l := range lineagepkg.LineageLines(tree, asked, theme.NoColor().Styles(theme.GlyphsFor(os.Getenv))) {
			fmt.Fprintln(out.Buf, l)
		}
		return out.Flush()
	}
	for i := range tree.Nodes {
		if err := out.Put(lineageLineOf(tree, &tree.Nodes[i], asked)); err != nil {
			return err
		}
	}
	return out.Flush()
}

func lineageLineOf(t *histories.LineageTree, n *histories.LineageNode, asked string) LineageLine {
	r := n.Run
	l := LineageLine{Type: "lineage", TaskID: r.TaskID, WorkflowID: r.WorkflowID, RunID: r.RunID, Depth: n.Depth, ForkedFrom: r.Fork, ResetFrom: r.ResetFrom,
		Asked: r.RunID == asked, ExitStatus: r.Exit, Effect: n.Effect, Model: r.Model, Start: r.Start, Close: cli.TimeOrNil(r.Close)}
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
