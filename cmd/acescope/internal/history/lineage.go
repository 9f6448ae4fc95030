package history

import (
	"cmp"
	"context"
	"os"
	"strings"

	"github.com/charmbracelet/x/ansi"
	"github.com/spf13/cobra"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine/ace"
	"acescope/sources/histories"
	lineagesource "acescope/sources/lineage"
	"acescope/sources/runs"
	"acescope/sources/scoreboard"
	"acescope/theme"
)

type LineageLine struct {
	cli.RunLine     // with type lineage
	Depth       int `json:"depth" jsonschema:"0 for the root"`
	// OriginalRun is the parent in the tree: the run that this run was forked or reset from or, if that run
	// was deleted, the newest run of its workflow ID.
	OriginalRun string           `json:"original_run_id,omitempty"`
	Selected    bool             `json:"selected,omitempty"` // the run that the command names
	Effect      histories.Effect `json:"effect,omitempty"`   // better, worse, same or other, if known
	// without reused phases; nil while it is open or unknown
	CostUSD *float64 `json:"cost_usd,omitempty"`
	Tokens  int64    `json:"tokens,omitempty"`

	row lineagesource.Row
}

func LineageCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "lineage TASK|BATCH",
		Short: "Show a run and its forks as a tree: changes, outcomes, costs and effects; or the scoreboard of a batch",
		Long: "Show a run and its forks as a tree. BATCH, the ID that \"acescope fork -q\" prints, shows the forks of the\n" +
			"batch beside their originals instead: which answers they fixed, which they broke, and what they cost.",
		RunE: func(cmd *cobra.Command, args []string) error {
			if strings.HasPrefix(args[0], ace.BatchPrefix) {
				return lineageOfBatch(a, cmd.Context(), args[0])
			}
			return lineage(a, cmd.Context(), args[0])
		},
	}
}

func lineage(a *cli.App, ctx context.Context, name string) error {
	e, exec, err := cli.OpenRun(a, ctx, name, "")
	if err != nil {
		return err
	}
	tree, err := histories.ReadLineage(ctx, e.Client, e.Namespace(), exec.GetWorkflowId(), nil)
	if err != nil {
		return err
	}
	if tree.Dropped > 0 {
		cli.Warn(a, "%s not shown", ace.Count(tree.Dropped, "older run"))
	}
	if tree.Unread > 0 {
		cli.Warn(a, "the outcomes or resets of %s are not read", ace.Count(tree.Unread, "run"))
	}
	lines := cli.Mapped(tree.Nodes, func(n histories.LineageNode) LineageLine {
		return lineageLine(tree, &n, exec.GetRunId())
	})
	styles := theme.NoColor().Styles(theme.GlyphsFor(os.Getenv))
	header := "RUN\tFORKED AT\tCHANGED\tSTATUS\tVERDICT\tCOST\tANSWER\tEFFECT"
	return cli.WriteRows(a, lines, header, func(l LineageLine) []any { return l.cells(styles) })
}

// maxLineageCell bounds a column of the tree, in cells.
const maxLineageCell = 60

func (l LineageLine) cells(s theme.Styles) []any {
	g := s.Glyphs
	status, cost, selected := s.Status(string(l.Status)), "", ""
	if l.Attempt > 1 && l.Open() {
		status = s.Retry()
	}
	if l.CostUSD != nil {
		cost = ace.Dollars(*l.CostUSD)
	}
	if l.Selected {
		selected = "selected"
	}
	r := l.row
	var cells []any
	for _, text := range []string{
		r.Place + r.Name, r.At, r.Changed, status.Glyph + " " + status.Word, string(l.Verdict), cost,
		r.Answer, r.Effect,
	} {
		cells = append(cells, g.Replace(ansi.Truncate(cli.SafeText(cmp.Or(text, g.Dash)), maxLineageCell,
			g.Ellipsis)))
	}
	return append(cells, selected)
}

func lineageLine(t *histories.LineageTree, n *histories.LineageNode, selected string) LineageLine {
	r := n.Run
	l := LineageLine{
		RunLine: cli.ListLine(r), Depth: n.Depth, Selected: r.RunID == selected,
		Effect: n.Effect, row: lineagesource.RowOf(n),
	}
	l.Kind = "lineage"
	if n.Original >= 0 {
		l.OriginalRun = t.Nodes[n.Original].Run.RunID
	}
	if n.Outcome != nil {
		l.Answer, l.Correct = n.Outcome.Answer, n.Outcome.Correct
	}
	if r.Summary != nil {
		if u := r.Summary.Usage; u.Cost() != ace.UnknownCost {
			l.CostUSD = &u.CostUSD
		}
		l.Tokens = r.Summary.Usage.InputTokens + r.Summary.Usage.OutputTokens
	}
	return l
}

// ScoreLine is a fork of a batch beside its original.
type ScoreLine struct {
	Batch    string             `json:"batch_id"`
	Outcome  scoreboard.Outcome `json:"outcome"` // fixed, broken, unchanged, failed, running or unknown
	Original ScoredRun          `json:"original" jsonschema:"the forked run; without a status if it is gone"`
	Fork     ScoredRun          `json:"fork" jsonschema:"the fork"`
}

type ScoredRun struct {
	TaskID     string      `json:"task_id"`
	WorkflowID string      `json:"workflow_id"`
	RunID      string      `json:"run_id"`
	Status     ace.Status  `json:"status,omitempty"`  // "" if the run is gone
	Verdict    ace.Verdict `json:"verdict,omitempty"` // "" if it is unknown
	Usage      *ace.Usage  `json:"usage,omitempty"`   // nil if it is unknown
}

// ScoreboardLine ends a scoreboard.
type ScoreboardLine struct {
	Batch     string   `json:"batch_id"`
	Fixed     int      `json:"fixed" jsonschema:"forks that are correct where the original was not"`
	Broken    int      `json:"broken" jsonschema:"forks that are not correct where the original was"`
	Unchanged int      `json:"unchanged" jsonschema:"forks that are as correct as the original"`
	Failed    int      `json:"failed" jsonschema:"forks that closed without an answer"`
	Running   int      `json:"running" jsonschema:"open forks"`
	Unknown   int      `json:"unknown" jsonschema:"forks without a verdict to compare"`
	P         *float64 `json:"p,omitempty"` // of McNemar's test on fixed and broken
	ace.Usage          // of the forks that have closed
	Caution   string   `json:"caution,omitempty" jsonschema:"how to read p if no original was correct"`
}

func scoredRun(r runs.Run) ScoredRun {
	s := ScoredRun{TaskID: r.TaskID, WorkflowID: r.WorkflowID, RunID: r.RunID, Status: r.Status,
		Verdict: r.Verdict}
	if r.Summary != nil {
		s.Usage = &r.Summary.Usage
	}
	return s
}

// printScoreboard writes the forks of a batch and the totals.
func printScoreboard(a *cli.App, s *scoreboard.Scoreboard) error {
	lines := cli.Mapped(s.Rows, func(r scoreboard.Row) ScoreLine {
		return ScoreLine{s.Batch, r.Outcome, scoredRun(r.Original), scoredRun(r.Fork)}
	})
	err := cli.WriteRows(a, lines, "OUTCOME\tTASK\tORIGINAL\tFORK\tCOST\tFORKED AS", func(l ScoreLine) []any {
		cost := "-"
		if u := l.Fork.Usage; u != nil {
			cost = u.Cost()
		}
		return []any{l.Outcome, l.Original.TaskID, l.Original.result(), l.Fork.result(), cost, l.Fork.TaskID}
	})
	if err != nil {
		return err
	}
	n := s.Counts
	end := ScoreboardLine{s.Batch, n[scoreboard.Fixed], n[scoreboard.Broken], n[scoreboard.Unchanged],
		n[scoreboard.Failed], n[scoreboard.Running], n[scoreboard.Unknown], s.P, s.Usage, s.Caution()}
	if err := cli.Report(a, end, "%s", s.Text()); err != nil || s.Caution() == "" {
		return err
	}
	cli.Warn(a, "%s", s.Caution())
	return nil
}

// result returns the verdict of a run, or its status if it has no verdict.
func (r ScoredRun) result() string {
	return cmp.Or(string(r.Verdict), string(r.Status), "-")
}

func lineageOfBatch(a *cli.App, ctx context.Context, batch string) error {
	e, err := a.OpenReadOnly(ctx)
	if err != nil {
		return err
	}
	s, err := scoreboard.Read(ctx, e.Client, batch)
	if err != nil {
		return err
	}
	return printScoreboard(a, s)
}
