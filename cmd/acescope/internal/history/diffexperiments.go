package history

import (
	"context"
	"fmt"
	"slices"
	"text/tabwriter"
	"time"

	"acescope/cmd/acescope/internal/cli"
	"acescope/cmd/acescope/internal/learning"
	"acescope/engine/ace"
	"acescope/sources/experiments"
	"acescope/views/diff"
	experimentsview "acescope/views/experiments"
)

// DiffFlip is a task whose answers flipped, with its run on both sides.
type DiffFlip struct {
	learning.FlipLine
	WorkflowA string `json:"workflow_a"`
	WorkflowB string `json:"workflow_b"`
	Diff      string `json:"diff"` // the command that compares the two runs
}

// experiments compares two experiments task by task.
func (d *differ) experiments(ctx context.Context, sides [2]*diffSide, f diffFlags) error {
	if f.allFields || f.only == string(diff.DiffOnlyInput) || f.only == string(diff.DiffOnlyResult) {
		return cli.UsageError("two experiments are compared task by task: --all-fields, --only input and --only result are for runs (ID@RUN names one)")
	}
	var both [2]*experiments.Series
	for i, s := range sides {
		var err error
		if both[i], err = experiments.ReadSeries(ctx, d.engine.Client, s.workflowID); err != nil {
			return err
		}
	}
	c := experiments.Compare(both[0], both[1])
	put := d.experimentText
	if d.JSON {
		put = d.experimentLines
	}
	if err := put(c, f); err != nil {
		return err
	}
	fixed, broken := c.Counts[experiments.FlipFixed], c.Counts[experiments.FlipBroken]
	if fixed+broken+c.OnlyA+c.OnlyB == 0 {
		return nil
	}
	return &cli.ExitError{Code: cli.ExitDiverged, Err: fmt.Errorf("%s and %s differ: %d tasks fixed, %d broken, %d only in A, %d only in B", cli.SafeText(c.A.Name()), cli.SafeText(c.B.Name()),
		fixed, broken, c.OnlyA, c.OnlyB)}
}

func (d *differ) experimentLines(c *experiments.Comparison, f diffFlags) error {
	out := cli.NewLines(d.Out)
	if err := out.Put(learning.ComparisonOf(c)); err != nil {
		return err
	}
	for _, l := range flipsOf(c, f) {
		if err := out.Put(l); err != nil {
			return err
		}
	}
	return out.Flush()
}

// flipsOf are the tasks that flipped, none with stat.
func flipsOf(c *experiments.Comparison, f diffFlags) []DiffFlip {
	if f.stat {
		return nil
	}
	var all []DiffFlip
	for l := range learning.FlipLinesOf(c, false) {
		all = append(all, DiffFlip{l, ace.WorkflowID(l.TaskA), ace.WorkflowID(l.TaskB), "acescope diff " + shellWord(l.TaskA) + " " + shellWord(l.TaskB)})
	}
	return all
}

func (d *differ) experimentText(c *experiments.Comparison, f diffFlags) error {
	width, styles, paint := d.Canvas()
	if err := d.Print(append(experimentsview.ComparisonText(c, width, time.Now(), styles), ""), paint); err != nil {
		return err
	}
	for _, flip := range experiments.Flips() {
		fmt.Fprintf(d.Out, "%s %d  ", flip, c.Counts[flip])
	}
	fmt.Fprintln(d.Out)
	w := tabwriter.NewWriter(d.Out, 0, 4, 2, ' ', 0)
	for _, l := range flipsOf(c, f) {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", l.Flip, cli.SafeText(l.AnswerA), cli.SafeText(l.AnswerB), cli.SafeText(l.Diff))
	}
	return w.Flush()
}

// shellWord is a word as a shell takes it.
func shellWord(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || slices.Contains([]rune("-_./:@%+="), r)
	}
	for _, r := range s {
		if !plain(r) {
			return cli.ShellQuote(s)
		}
	}
	return s
}
