package history

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"acescope/cmd/acescope/internal/cli"
	"acescope/cmd/acescope/internal/learning"
	"acescope/engine/ace"
	"acescope/sources/experiments"
	diffview "acescope/views/diff"
	experimentsview "acescope/views/experiments"
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
	if f.allFields || f.only == diffview.DiffOnlyInput || f.only == diffview.DiffOnlyResult {
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
			command := "acescope diff " + shellWord(l.TaskA) + " " + shellWord(l.TaskB)
			flips = append(flips, DiffFlip{l, ace.WorkflowID(l.TaskA), ace.WorkflowID(l.TaskB), command})
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
	if err := d.Print(append(experimentsview.ComparisonText(c, width, time.Now(), styles), ""), paint); err != nil {
		return err
	}
	for _, flip := range experiments.Flips() {
		fmt.Fprintf(d.Out, "%s %d  ", flip, c.Counts[flip])
	}
	fmt.Fprintln(d.Out)
	w := tabwriter.NewWriter(d.Out, 0, 4, 2, ' ', 0)
	for _, l := range flips {
		answerA, answerB := cli.SafeText(l.AnswerA), cli.SafeText(l.AnswerB)
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
