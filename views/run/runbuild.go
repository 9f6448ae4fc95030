package run

import (
	"time"

	"acescope/sources/histories"
	"acescope/theme"
	"acescope/tui/widget"
)

func of(d *widget.Document, detail *histories.Detail) bool {
	return d.WorkflowID == detail.WorkflowID && d.RunID == detail.RunID
}

func build(d *widget.Document, detail *histories.Detail, width int, now time.Time, s theme.Styles, loc *time.Location) []string {
	second := now.Unix()
	if d.Of == detail && d.Width == width && d.Second == second {
		return d.Lines
	}
	w := &widget.Writer{Doc: d, S: s, Width: width, Now: now, Loc: loc}
	trouble(w, detail)
	pending(w, detail)
	experiment(w, detail.Experiment)
	course(w, detail)
	skills(w, detail.Skills)
	delta(w, detail.Delta)
	answer(w, detail)
	reflection(w, detail.Delta)
	calls(w, detail.Skills)
	identity(w, detail)
	d.Of, d.Width, d.Second, d.Lines = detail, width, second, w.Lines
	return d.Lines
}
