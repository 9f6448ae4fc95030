package history

import (
	"context"

	"github.com/kballard/go-shellquote"

	"acescope/cmd/acescope/internal/cli"
	"acescope/cmd/acescope/internal/learning"
	"acescope/engine"
	"acescope/engine/ace"
	rundiff "acescope/sources/diff"
	"acescope/sources/experiments"
)

// DiffFlip is a task whose verdict flipped, with its run in both experiments.
type DiffFlip struct {
	experiments.Pair
	WorkflowA string `json:"workflow_a"`
	WorkflowB string `json:"workflow_b"`
	Diff      string `json:"diff"` // command that compares the two runs
}

// diffExperiments compares two experiments task by task.
func diffExperiments(a *cli.App, ctx context.Context, e *engine.Engine, sides [2]*diffSide,
	f diffFlags) error {
	if f.allFields || f.only == rundiff.OnlyInput || f.only == rundiff.OnlyResult {
		return cli.UsageError("experiments are compared task by task: " +
			"--all-fields, --only input and --only result are for runs (ID@RUN)")
	}
	var series [2]*experiments.Series
	for i, s := range sides {
		var err error
		if series[i], err = experiments.ReadSeries(ctx, e.Client, s.workflowID); err != nil {
			return err
		}
	}
	c := experiments.Compare(series[0], series[1])
	if err := writeComparison(a, c, f.stat); err != nil {
		return err
	}
	fixed, broken := c.Counts[experiments.FlipFixed], c.Counts[experiments.FlipBroken]
	if fixed+broken+c.OnlyA+c.OnlyB == 0 {
		return nil
	}
	return cli.Diverged("%s and %s differ: %s fixed, %d broken, %d only in A, %d only in B",
		c.A.Name(), c.B.Name(), ace.Count(fixed, "task"), broken, c.OnlyA, c.OnlyB)
}

// writeComparison writes a comparison and, unless stat is set, its flips.
func writeComparison(a *cli.App, c *experiments.Comparison, stat bool) error {
	if a.JSON {
		if err := cli.NewLines(a).Write(learning.ComparisonOf(c)); err != nil {
			return err
		}
	} else {
		width, styles, paint := a.Canvas()
		lines := append(learning.ComparisonText(c, width, styles), "", learning.FlipCounts(c))
		if err := a.Print(lines, paint); err != nil {
			return err
		}
	}
	if stat {
		return nil
	}
	flips := cli.Mapped(learning.FlipsOf(c, false), func(p experiments.Pair) DiffFlip {
		a, b := p.A.TaskID, p.B.TaskID
		return DiffFlip{p, ace.WorkflowID(a), ace.WorkflowID(b), shellquote.Join("acescope", "diff", a, b)}
	})
	return cli.WriteRows(a, flips, "", func(l DiffFlip) []any {
		return []any{l.Flip, l.A.Answer, l.B.Answer, l.Diff}
	})
}
