package history

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"

	"acescope/cmd/acescope/internal/cli"
	"acescope/cmd/acescope/internal/learning"
	"acescope/engine/ace"
	rundiff "acescope/sources/diff"
	"acescope/sources/experiments"
)

// DiffFlip is a task whose verdict flipped, with its run in both experiments.
type DiffFlip struct {
	learning.FlipLine
	WorkflowA string `json:"workflow_a"`
	WorkflowB string `json:"workflow_b"`
	Diff      string `json:"diff"` // command that compares the two runs
}

// compareExperiments compares two experiments task by task.
func (d *differ) compareExperiments(ctx context.Context, sides [2]*diffSide, f diffFlags) error {
	if f.allFields || f.only == rundiff.OnlyInput || f.only == rundiff.OnlyResult {
		return cli.UsageError("experiments are compared task by task: " +
			"--all-fields, --only input and --only result are for runs (ID@RUN)")
	}
	var series [2]*experiments.Series
	for i, s := range sides {
		var err error
		if series[i], err = experiments.ReadSeries(ctx, d.engine.Client, s.workflowID); err != nil {
			return err
		}
	}
	c := experiments.Compare(series[0], series[1])
	var flips []DiffFlip
	if !f.stat {
		for l := range learning.FlipLinesOf(c, false) {
			a, b := l.A.TaskID, l.B.TaskID
			command := "acescope diff " + shellWord(a) + " " + shellWord(b)
			flips = append(flips, DiffFlip{l, ace.WorkflowID(a), ace.WorkflowID(b), command})
		}
	}
	write := d.writeExperimentText
	if d.JSON {
		write = d.writeExperimentJSON
	}
	if err := write(c, flips); err != nil {
		return err
	}
	fixed, broken := c.Counts[experiments.FlipFixed], c.Counts[experiments.FlipBroken]
	if fixed+broken+c.OnlyA+c.OnlyB == 0 {
		return nil
	}
	return differs("%s and %s differ: %d tasks fixed, %d broken, %d only in A, %d only in B",
		c.A.Name(), c.B.Name(), fixed, broken, c.OnlyA, c.OnlyB)
}

func (d *differ) writeExperimentJSON(c *experiments.Comparison, flips []DiffFlip) error {
	out := cli.NewLines(d.Out)
	if err := out.Put(learning.ComparisonOf(c)); err != nil {
		return err
	}
	for _, l := range flips {
		if err := out.Put(l); err != nil {
			return err
		}
	}
	return out.Flush()
}

func (d *differ) writeExperimentText(c *experiments.Comparison, flips []DiffFlip) error {
	width, styles, paint := d.Canvas()
	lines := append(learning.ComparisonText(c, width, styles), "", learning.FlipCounts(c))
	if err := d.Print(lines, paint); err != nil {
		return err
	}
	w := tabwriter.NewWriter(d.Out, 0, 4, 2, ' ', 0)
	for _, l := range flips {
		answerA, answerB := cli.SafeText(l.A.Answer), cli.SafeText(l.B.Answer)
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", l.Flip, answerA, answerB, cli.SafeText(l.Diff))
	}
	return w.Flush()
}

// shellWord quotes s if a shell would not take it as one plain word.
func shellWord(s string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:@%+="
	if strings.Trim(s, plain) == "" {
		return s
	}
	return cli.ShellQuote(s)
}
