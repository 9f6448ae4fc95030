package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"acescope/engine/ace"
	"acescope/sources"
	"acescope/theme"
	"acescope/views"
)

// lineageLine is a run of a lineage.
type lineageLine struct {
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
	Effect  sources.Effect `json:"effect,omitempty"`
	Model   string         `json:"model,omitempty"`
	CostUSD *float64       `json:"cost_usd,omitempty"` // of what it executed itself; left out while it runs
	Tokens  int64          `json:"tokens,omitempty"`
	Start   time.Time      `json:"start"`
	Close   *time.Time     `json:"close,omitempty"`
}

func (a *app) lineageCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "lineage TASK",
		Short: "Show a run with all its forks as a tree: what was changed, how they ended, what they cost, and whether it helped",
		Args:  cobra.ExactArgs(1),
		RunE:  func(cmd *cobra.Command, args []string) error { return a.lineage(cmd.Context(), args[0]) },
	}
}

func (a *app) lineage(ctx context.Context, name string) error {
	e, exec, done, err := a.lookAt(ctx, name, "")
	if err != nil {
		return err
	}
	defer done()
	tree, err := sources.ReadLineage(ctx, e.Client, exec.GetWorkflowId(), nil)
	if err != nil {
		return err
	}
	if tree.Dropped > 0 {
		fmt.Fprintf(a.err, "acescope: %d more runs are not shown\n", tree.Dropped)
	}
	return a.putLineage(tree, exec.GetRunId())
}

func (a *app) putLineage(tree *sources.LineageTree, asked string) error {
	out := newLines(a.out)
	if !a.json {
		for _, l := range views.LineageLines(tree, asked, theme.NoColor().Styles(theme.GlyphsFor(os.Getenv))) {
			fmt.Fprintln(out.buf, l)
		}
		return out.flush()
	}
	for i := range tree.Nodes {
		if err := out.put(lineageLineOf(tree, &tree.Nodes[i], asked)); err != nil {
			return err
		}
	}
	return out.flush()
}

func lineageLineOf(t *sources.LineageTree, n *sources.LineageNode, asked string) lineageLine {
	r := n.Run
	l := lineageLine{Type: "lineage", TaskID: r.TaskID, WorkflowID: r.WorkflowID, RunID: r.RunID, Depth: n.Depth, ForkedFrom: r.Fork, ResetFrom: r.ResetFrom,
		Asked: r.RunID == asked, ExitStatus: r.Exit, Effect: n.Effect, Model: r.Model, Start: r.Start, Close: timeOrNil(r.Close)}
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
