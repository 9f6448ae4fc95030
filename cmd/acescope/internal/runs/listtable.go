package runs

import (
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine/ace"
	"acescope/sources/runners"
	"acescope/sources/runs"
	runsview "acescope/views/runs"
)

// runTable writes runs as a table for people: the usual columns, or those that were
// asked for.
type runTable struct {
	app     *cli.App
	columns []string
	w       *tabwriter.Writer
	now     time.Time
	rows    int
}

func (t *runTable) put(r runs.Run) error {
	if t.rows == 0 {
		t.w, t.now = tabwriter.NewWriter(t.app.Out, 0, 4, 2, ' ', 0), time.Now()
		if err := t.heading(); err != nil {
			return err
		}
	}
	err := t.row(r)
	if t.rows++; err == nil && t.rows%100 == 0 {
		err = t.w.Flush()
	}
	return err
}

func (t *runTable) heading() error {
	if t.columns == nil {
		_, err := fmt.Fprintln(t.w, "TASK\tPHASE\tSKILLS\tΔ\tCOST\tAGE\tSTATUS\tEXPERIMENT")
		return err
	}
	var titles []string
	for _, c := range t.columns {
		titles = append(titles, runsview.Heading(c))
	}
	_, err := fmt.Fprintln(t.w, strings.Join(titles, "\t"))
	return err
}

func (t *runTable) row(r runs.Run) error {
	if t.columns != nil {
		var cells []string
		for _, c := range t.columns {
			cell, _ := runsview.Cell(c, r, t.now)
			cells = append(cells, cell)
		}
		_, err := fmt.Fprintln(t.w, strings.Join(cells, "\t"))
		return err
	}
	skills, delta, cost := "", "", ""
	if s := r.Summary; s != nil {
		skills = fmt.Sprintf("%d/%d", s.SkillsOK, s.Skills)
		delta = fmt.Sprintf("+%d ~%d -%d", s.Added, s.Updated, s.Removed)
		cost = fmt.Sprintf("%.4f", s.Usage.CostUSD)
	}
	name := r.TaskID
	switch {
	case r.Type == ace.ExperimentWorkflow:
		name = r.WorkflowID
	case r.Blueprint != "":
		name = r.Blueprint + " " + runners.BlueprintRunID(r.WorkflowID)
	}
	status := string(r.Exit)
	if r.Attempt > 1 {
		status = fmt.Sprintf("retry #%d %s", r.Attempt, r.LastError)
	}
	_, err := fmt.Fprintf(t.w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", cli.SafeText(name), cli.SafeText(string(r.Phase)), skills, delta, cost,
		r.Age(t.now).Round(10*time.Millisecond), cli.SafeText(status), cli.SafeText(r.Experiment))
	return err
}

func (t *runTable) close() error {
	if t.w == nil {
		return nil
	}
	return t.w.Flush()
}
