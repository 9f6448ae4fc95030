package main

import (
	"context"
	"fmt"
	"slices"
	"text/tabwriter"
	"time"

	"acescope/engine/ace"
	"acescope/sources"
	"acescope/views"
)

// diffFlip is a task whose answers flipped, with its run on both sides.
type diffFlip struct {
	flipLine
	WorkflowA string `json:"workflow_a"`
	WorkflowB string `json:"workflow_b"`
	Diff      string `json:"diff"` // the command that compares the two runs
}

// experiments compares two experiments task by task.
func (d *differ) experiments(ctx context.Context, sides [2]*diffSide, f diffFlags) error {
	if f.allFields || f.only == string(views.DiffOnlyInput) || f.only == string(views.DiffOnlyResult) {
		return usage("two experiments are compared task by task: --all-fields, --only input and --only result are for runs (ID@RUN names one)")
	}
	var both [2]*sources.Series
	for i, s := range sides {
		var err error
		if both[i], err = sources.ReadSeries(ctx, d.engine.Client, s.workflowID); err != nil {
			return err
		}
	}
	c := sources.Compare(both[0], both[1])
	put := d.experimentText
	if d.json {
		put = d.experimentLines
	}
	if err := put(c, f); err != nil {
		return err
	}
	fixed, broken := c.Counts[sources.FlipFixed], c.Counts[sources.FlipBroken]
	if fixed+broken+c.OnlyA+c.OnlyB == 0 {
		return nil
	}
	return &coded{exitDiverged, fmt.Errorf("%s and %s differ: %d tasks fixed, %d broken, %d only in A, %d only in B", safe(c.A.Name()), safe(c.B.Name()),
		fixed, broken, c.OnlyA, c.OnlyB)}
}

func (d *differ) experimentLines(c *sources.Comparison, f diffFlags) error {
	out := newLines(d.out)
	if err := out.put(comparisonOf(c)); err != nil {
		return err
	}
	for _, l := range flipsOf(c, f) {
		if err := out.put(l); err != nil {
			return err
		}
	}
	return out.flush()
}

// flipsOf are the tasks that flipped, none with stat.
func flipsOf(c *sources.Comparison, f diffFlags) []diffFlip {
	if f.stat {
		return nil
	}
	var all []diffFlip
	for l := range flipLinesOf(c, false) {
		all = append(all, diffFlip{l, ace.WorkflowID(l.TaskA), ace.WorkflowID(l.TaskB), "acescope diff " + shellWord(l.TaskA) + " " + shellWord(l.TaskB)})
	}
	return all
}

func (d *differ) experimentText(c *sources.Comparison, f diffFlags) error {
	width, styles, paint := d.canvas()
	if err := d.print(append(views.ComparisonText(c, width, time.Now(), styles), ""), paint); err != nil {
		return err
	}
	for _, flip := range sources.Flips() {
		fmt.Fprintf(d.out, "%s %d  ", flip, c.Counts[flip])
	}
	fmt.Fprintln(d.out)
	w := tabwriter.NewWriter(d.out, 0, 4, 2, ' ', 0)
	for _, l := range flipsOf(c, f) {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", l.Flip, safe(l.AnswerA), safe(l.AnswerB), safe(l.Diff))
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
			return shellQuote(s)
		}
	}
	return s
}
